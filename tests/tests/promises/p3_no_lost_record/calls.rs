//! A kill at each system call that writes, by strace: before the first, the second, … call of each kind.
use std::collections::BTreeMap;

use super::*;

/// System calls that change something on disk. An `openat` counts where it may make a file.
const CALLS: &str = "write,pwrite64,writev,pwritev,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,ftruncate,fallocate,fsync,fdatasync,fchmod,chmod,fchmodat,utimensat,flock,copy_file_range,sendfile,openat";

fn traced(stage: &Stage, scenario: &Scenario, options: &[String]) -> Ran {
    let mut command = Command::new("strace");
    stage.world.scratch.dress(&mut command);
    let output = command
        .env("TMPDIR", stage.world.temporary())
        .current_dir(stage.world.scratch.repo())
        .args(options)
        .arg(crate::PROGRAM)
        .args(scenario.words)
        .output()
        .unwrap();
    Ran::of(output)
}

/// The calls that write of one run: the name, and which one of that name it is. strace counts each name for itself.
fn calls(stage: &Stage, scenario: &Scenario) -> Vec<(String, usize)> {
    let log = stage.world.scratch.path().join("calls");
    let options = ["-o", log.to_str().unwrap(), "-e", &format!("trace={CALLS}")].map(String::from);
    let ran = traced(stage, scenario, &options);
    assert_eq!(
        ran.code, 0,
        "{:?}: {}{}",
        scenario.words, ran.stdout, ran.stderr
    );
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = Vec::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        let Some((name, rest)) = line.split_once('(') else {
            continue;
        };
        let count = seen.entry(name.to_owned()).or_default();
        *count += 1;
        if name != "openat" || rest.contains("O_CREAT") || rest.contains("O_TRUNC") {
            all.push((name.to_owned(), *count));
        }
    }
    all
}

/// Long: by hand, or where it is asked for with `--ignored`.
#[test]
#[ignore = "needs strace; takes a quarter of an hour"]
fn a_kill_at_any_system_call_that_writes_leaves_before_or_after() {
    if !Command::new("strace")
        .arg("-V")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        println!("skipped: there is no strace");
        return;
    }
    for scenario in SCENARIOS {
        let stage = Stage::of(scenario);
        let before = stage.told("before");
        let all = calls(&stage, scenario);
        let after = stage.told("after");
        let mut reached = 0;
        for (name, number) in &all {
            strike(
                &stage,
                scenario,
                &before,
                &after,
                &format!("kill before {name} {number}"),
                || {
                    let options = [
                        "-o",
                        "/dev/null",
                        "-e",
                        &format!("trace={name}"),
                        "-e",
                        &format!("inject={name}:signal=SIGKILL:when={number}"),
                    ]
                    .map(String::from);
                    let ran = traced(&stage, scenario, &options);
                    reached += usize::from(ran.code == 128 + 9);
                    ran
                },
            );
        }
        println!("{:?}: {reached} of {} calls", scenario.words, all.len());
        // A call more or less depends on the moment.
        assert!(
            reached * 4 >= all.len() * 3,
            "{:?}: {reached}",
            scenario.words
        );
    }
}
