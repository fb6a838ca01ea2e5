use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use super::*;

fn sleeper() -> Child {
    Command::new("sleep").arg("1000").spawn().unwrap()
}

fn identity(child: &Child) -> ProcessIdentity {
    LinuxProcesses::new().identify(child.id()).unwrap().unwrap()
}

#[test]
fn fields_are_counted_after_the_last_bracket() {
    let fields = "S 41 7 7 0 -1 4194560 2 0 0 0 11 4 0 0 20 0 1 0 987654 10 5 1844 1 1 0";
    for name in ["sleep", "a) R 1 (b", "x) )", "(", "two\nlines"] {
        let stat = Stat::parse(format!("42 ({name}) {fields}\n").as_bytes()).unwrap();
        assert_eq!(stat.name, name);
        assert_eq!(
            (stat.state, stat.parent, stat.start_ticks),
            ('S', 41, 987_654)
        );
        assert_eq!(stat.cpu_ticks, 15);
    }
    for broken in ["", "42", "42 (x", "42 (x) S", "42 (x) S 41 7", ") ("] {
        assert_eq!(Stat::parse(broken.as_bytes()), None, "{broken}");
    }
}

#[test]
fn a_time_namespace_shifts_every_start() {
    let ticks = ticks_per_second();
    let shown = |boot: &str| shift_of(&format!("monotonic 7 0\nboottime {boot}\n"));
    assert_eq!(shown("0 0"), 0);
    assert_eq!(shown("  86400         0"), 86_400 * ticks);
    assert_eq!(shown("-3 0"), -3 * ticks);
    assert_eq!(shown("1 500000000"), ticks + ticks / 2);
    for none in ["", "boottime", "boottime x 0", "monotonic 5 0"] {
        assert_eq!(shift_of(none), 0, "{none}");
    }
}

#[test]
fn a_process_is_known_by_more_than_its_number() {
    let processes = LinuxProcesses::new();
    let mut child = sleeper();
    let known = identity(&child);
    assert_eq!(processes.state(&known), ProcessState::Running);
    assert_eq!(
        processes.parent(child.id()).unwrap(),
        Some(std::process::id())
    );
    assert!(processes.program(child.id()).unwrap().is_some());

    // The same number with another start is another process: it is never signalled.
    let stranger = ProcessIdentity {
        start_ticks: known.start_ticks + 1,
        ..known.clone()
    };
    assert!(matches!(
        processes.state(&stranger),
        ProcessState::Recycled { .. }
    ));
    let earlier = ProcessIdentity {
        boot_id: "00000000-0000-0000-0000-000000000000".to_owned(),
        ..known.clone()
    };
    let elsewhere = ProcessIdentity {
        pid_namespace: Some(1),
        ..known.clone()
    };
    for other in [&stranger, &earlier, &elsewhere] {
        assert!(matches!(
            processes.signal(other, Signal::KILL).unwrap(),
            Signalled::NotThere(_)
        ));
    }
    assert_eq!(child.try_wait().unwrap(), None, "a stranger was signalled");
    assert!(
        !processes
            .wait_end(&known, Duration::from_millis(1))
            .unwrap()
    );

    assert_eq!(
        processes.signal(&known, Signal::TERM).unwrap(),
        Signalled::Sent
    );
    assert!(processes.wait_end(&known, Duration::from_mins(1)).unwrap());
    // Not reaped yet, and gone all the same.
    assert_eq!(processes.state(&known), ProcessState::Zombie);
    assert_eq!(processes.identify(child.id()).unwrap(), None);
    assert_eq!(
        processes.signal(&known, Signal::KILL).unwrap(),
        Signalled::NotThere(ProcessState::Zombie)
    );
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_ne!(processes.state(&known), ProcessState::Running);
}

#[test]
fn descendants_are_found_through_their_parents() {
    let mut shell = Command::new("sh")
        .args(["-c", "sh -c 'sleep 1000 & echo ready; wait' & wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0_u8; 6];
    io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut line).unwrap();
    let processes = LinuxProcesses::new();
    let found = processes.descendants(shell.id()).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(processes.parent(found[0].pid).unwrap(), Some(shell.id()));
    assert_eq!(processes.parent(found[1].pid).unwrap(), Some(found[0].pid));
    for process in found.iter().rev() {
        processes.signal(process, Signal::KILL).unwrap();
    }
    shell.wait().unwrap();
}

#[test]
fn an_unreadable_table_is_unknown_and_never_gone() {
    let nothing = LinuxProcesses {
        root: PathBuf::from("/nonexistent"),
        ..LinuxProcesses::new()
    };
    let known = LinuxProcesses::new()
        .identify(std::process::id())
        .unwrap()
        .unwrap();
    assert!(matches!(nothing.state(&known), ProcessState::Unknown(_)));
    assert!(nothing.identify(1).is_err());
    assert!(!nothing.state(&known).is_over());
}
