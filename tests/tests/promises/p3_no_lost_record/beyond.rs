//! Kills where more than the ledger is written: a session for another agent, and a task in the background, whose supervisor
//! is killed as well as whoever starts it.
use super::*;

/// The points that are reached by a command and by what it starts, each as often as it is.
fn counted(log: &Path) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    std::fs::read_to_string(log)
        .unwrap()
        .lines()
        // Killed after a step is killed before the next; and nothing is written when a lock is taken or freed.
        .filter(|point| !point.starts_with("lock-") && !point.ends_with(":after"))
        .map(|point| {
            let count = seen.entry(point.to_owned()).or_default();
            *count += 1;
            format!("{point}#{count}")
        })
        .collect()
}

fn armed(world: &World, point: &str, words: &[&str]) -> Ran {
    let output = world
        .program()
        .env("TAKEUP_FAULT", format!("{point}=kill"))
        .args(words)
        .output()
        .unwrap();
    Ran::of(output)
}

#[test]
fn a_kill_while_a_session_is_made_leaves_a_whole_one_or_none() {
    if !cfg!(debug_assertions) {
        println!("skipped: fault points exist in builds with debug assertions only");
        return;
    }
    const WORDS: &[&str] = &["handover", "t", "--to", "jcode"];
    let stage = Stage::of(&scenario(STARTED, WORDS));
    let sessions = stage.world.scratch.home().join(".jcode/sessions");
    let all = {
        std::fs::create_dir_all(&sessions).unwrap();
        stage.world.scratch.put_program("jcode", "#!/bin/sh\n");
        let log = stage.world.scratch.path().join("points");
        let mut command = stage.world.program();
        let output = command.env("TAKEUP_FAULT_LOG", &log).args(WORDS).output();
        Ran::of(output.unwrap()).exits(0);
        counted(&log)
    };
    assert!(all.len() > 10, "{all:?}");
    for point in all {
        stage.reset();
        std::fs::create_dir_all(&sessions).unwrap();
        stage.world.scratch.put_program("jcode", "#!/bin/sh\n");
        let ran = armed(&stage.world, &point, WORDS);
        assert_eq!(ran.code, 128 + 9, "{point}");
        let names = |whole: bool| {
            let mut names: Vec<String> = std::fs::read_dir(&sessions)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name.starts_with("session_") == whole)
                .collect();
            names.sort();
            names
        };
        let made = names(true);
        assert!(made.len() <= 1, "{point}: {made:?}");
        for name in &made {
            let bytes = std::fs::read(sessions.join(name)).unwrap();
            let session: Value = serde_json::from_slice(&bytes).unwrap();
            assert!(session["messages"].is_array(), "{point}: {session}");
        }
        stage.told(&point);
        stage.world.run(WORDS).exits(0);
        assert_eq!(names(true).len(), made.len() + 1, "{point}");
        assert_eq!(names(false), [""; 0], "{point}");
        nothing_stays(&stage.world, &point);
    }
}

#[test]
fn a_kill_while_a_task_begins_or_ends_in_the_background_loses_nothing_that_was_said() {
    if !cfg!(debug_assertions) {
        println!("skipped: fault points exist in builds with debug assertions only");
        return;
    }
    const WORDS: &[&str] = &["bg", "run", "--name", "build", "--json", "--", "true"];
    let world = World::plain();
    let log = world.scratch.path().join("points");
    let mut command = world.program();
    let output = command.env("TAKEUP_FAULT_LOG", &log).args(WORDS).output();
    Ran::of(output.unwrap()).exits(0);
    world
        .bounded(world.program().args(["bg", "wait", "build"]))
        .exits(0);
    let all = counted(&log);
    assert!(
        all.iter().any(|point| point.starts_with("event-append")) && all.len() > 20,
        "{all:?}"
    );
    for (number, point) in all.iter().enumerate() {
        let ran = armed(&world, point, WORDS);
        let listed = world
            .run(&["bg", "list", "--all", "--json"])
            .exits(0)
            .json();
        assert_eq!(
            listed["data"]["issues"].as_array().map_or(0, Vec::len),
            0,
            "{point}: {listed}"
        );
        if ran.code == 0 {
            // What was said to run is known, whatever became of its supervisor.
            let id = ran.json()["data"]["task"]["id"]
                .as_str()
                .unwrap_or_else(|| panic!("{point}: {}", ran.stdout))
                .to_owned();
            assert!(listed.to_string().contains(&id), "{point}: {listed}");
            world
                .bounded(world.program().args(["bg", "wait", &id]))
                .ended_well(point);
            world.run(&["bg", "output", &id]).exits(0);
        }
        let name = format!("next-{number}");
        world
            .run(&["bg", "run", "--name", &name, "--", "true"])
            .exits(0);
        world
            .bounded(world.program().args(["bg", "wait", &name]))
            .exits(0);
    }
}
