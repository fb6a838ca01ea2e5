//! Kills and full disks at every single write, flush, rename and cut that a scenario reaches.
use std::path::{Path, PathBuf};

use takeup_core::issue::{Issue, IssueKind};
use takeup_core::ledger::Ledger;
use takeup_tests::ledger::{note, noted, notes, put, task_id};

use super::{acknowledged, child, copy, overwrite, reader};

/// What is done to a ledger, and what it looks like before.
struct Scenario {
    name: &'static str,
    args: &'static [&'static str],
    prepare: fn(&Path),
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "the first record of all",
        args: &["start", "t"],
        prepare: |_| {},
    },
    Scenario {
        name: "records and the first snapshot",
        args: &["note", "new", "3"],
        prepare: |folder| drop(noted(folder, 61)),
    },
    Scenario {
        name: "records and the next snapshot",
        args: &["note", "new", "3"],
        prepare: |folder| drop(noted(folder, 125)),
    },
    Scenario {
        name: "a record after a torn one",
        args: &["note", "new", "2"],
        prepare: |folder| {
            drop(noted(folder, 3));
            let journal = folder.join("journal.jsonl");
            let mut bytes = std::fs::read(&journal).unwrap();
            bytes.extend_from_slice(b"{\"v\":1,\"seq\":5,\"transition\":{");
            overwrite(&journal, bytes);
        },
    },
    Scenario {
        name: "a new snapshot in the place of a damaged one",
        args: &["note", "new", "3"],
        prepare: |folder| {
            drop(noted(folder, 125));
            let snapshot = folder.join("state.json");
            let bytes = std::fs::read(&snapshot).unwrap();
            overwrite(&snapshot, &bytes[..bytes.len() / 2]);
        },
    },
    Scenario {
        name: "a new snapshot after a damaged line",
        args: &["note", "new", "3"],
        prepare: |folder| {
            drop(noted(folder, 61));
            let journal = folder.join("journal.jsonl");
            let text = std::fs::read_to_string(&journal).unwrap();
            overwrite(&journal, text.replacen("base-30\"", "base-3x\"", 1));
        },
    },
    Scenario {
        name: "a finished task into the archive",
        args: &["archive"],
        prepare: |folder| {
            drop(noted(folder, 2));
            put(
                &Ledger::at(folder),
                takeup_tests::ledger::start("done", takeup_core::status::Status::Completed),
            )
            .unwrap();
        },
    },
];

/// The points a run reaches, in order; the same name again is the same point once more.
fn points(folder: &Path, log: &Path, args: &[&str]) -> Vec<String> {
    let output = child(folder, args)
        .env("TAKEUP_FAULT_LOG", log)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(log).unwrap();
    let mut seen: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    text.lines()
        .map(|point| {
            let count = seen.entry(point).or_default();
            *count += 1;
            format!("{point}#{count}")
        })
        .collect()
}

struct Bench {
    folder: tempfile::TempDir,
    base: PathBuf,
    before: reader::Found,
}

impl Bench {
    fn of(scenario: &Scenario) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        (scenario.prepare)(&base);
        let before = reader::read(&base);
        Self {
            folder,
            base,
            before,
        }
    }

    fn fresh(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        if self.base.exists() {
            copy(&self.base, &folder);
        }
        folder
    }
}

/// All that holds after a run that was stopped or failed at a point.
fn verify(bench: &Bench, folder: &Path, acknowledged: &[String], is_archive: bool, context: &str) {
    let found = reader::read(folder);
    let view = Ledger::at(folder).read().unwrap();
    assert_eq!(notes(&view), found.notes, "{context}");
    assert!(
        !found.cut,
        "{context}: what was never acknowledged is missed"
    );
    let missed = |issue: &Issue| issue.kind == IssueKind::Missing;
    assert!(!view.issues.iter().any(missed), "{context}");
    if is_archive {
        let here = found.tasks.contains(&"done".to_owned());
        let archived = Ledger::at(folder)
            .read_archive(&task_id("done"))
            .unwrap()
            .is_some();
        assert!(here || archived, "{context}: the task is lost");
        assert!(here || !acknowledged.is_empty() || archived, "{context}");
        assert_eq!(found.notes, bench.before.notes, "{context}");
    } else if bench.before.tasks.is_empty() {
        assert!(
            found.tasks.len() >= acknowledged.len() && found.tasks.len() <= 1,
            "{context}"
        );
    } else {
        let expected: Vec<String> = bench
            .before
            .notes
            .iter()
            .chain(acknowledged)
            .cloned()
            .collect();
        let whole = found.notes.starts_with(&expected);
        assert!(whole, "{context}: acknowledged records are lost");
        assert!(
            found.notes.len() <= expected.len() + 1,
            "{context}: more than the one in flight appeared"
        );
    }
    // It goes on: the next record is written, and read back.
    if !is_archive && found.tasks.contains(&"t".to_owned()) {
        let ledger = Ledger::at(folder);
        put(&ledger, note("t", "afterwards")).unwrap();
        let found = reader::read(folder);
        assert_eq!(found.notes.last().unwrap(), "afterwards", "{context}");
        let view = ledger.read().unwrap();
        assert_eq!(notes(&view), found.notes, "{context}");
    }
}

fn at_every_point(scenario: &Scenario, action: &str, killed: bool) {
    let bench = Bench::of(scenario);
    let all = points(
        &bench.fresh("traced"),
        &bench.folder.path().join("points"),
        scenario.args,
    );
    let has_snapshot = all.iter().any(|point| point.starts_with("file-rename"));
    let wants_snapshot = scenario.name.contains("snapshot");
    assert!(
        all.len() >= 8 && (has_snapshot || !wants_snapshot),
        "{all:?}"
    );
    for point in &all {
        let folder = bench.fresh(&point.replace([':', '#'], "-"));
        let output = child(&folder, scenario.args)
            .env("TAKEUP_FAULT", format!("{point}={action}"))
            .output()
            .unwrap();
        let context = format!("{}: {action} at {point}", scenario.name);
        if killed {
            use std::os::unix::process::ExitStatusExt as _;
            assert_eq!(output.status.signal(), Some(9), "{context}: {output:?}");
        }
        verify(
            &bench,
            &folder,
            &acknowledged(&output),
            scenario.args == ["archive"],
            &context,
        );
        drop(std::fs::remove_dir_all(&folder));
    }
}

fn faults_are_built_in() -> bool {
    if !cfg!(debug_assertions) {
        println!("skipped: fault points exist in builds with debug assertions only");
    }
    cfg!(debug_assertions)
}

#[test]
fn a_kill_at_any_point_loses_nothing_that_was_acknowledged() {
    if faults_are_built_in() {
        for scenario in SCENARIOS {
            at_every_point(scenario, "kill", true);
        }
    }
}

#[test]
fn a_full_disk_at_any_point_loses_nothing_and_leaves_nothing() {
    if faults_are_built_in() {
        for scenario in SCENARIOS {
            at_every_point(scenario, "enospc", false);
        }
    }
}

#[test]
fn a_record_that_failed_does_not_appear_later() {
    if !faults_are_built_in() {
        return;
    }
    for point in [
        "journal-append:before",
        "journal-append:middle",
        "journal-append:after",
        "journal-flush:before",
        "journal-flush:after",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("takeup");
        let ledger = noted(&folder, 2);
        let output = child(&folder, &["note", "new", "1"])
            .env("TAKEUP_FAULT", format!("{point}=enospc"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("disk-full: cannot write"), "{error}");
        let view = ledger.read().unwrap();
        assert_eq!(
            (notes(&view).len(), view.issues.len(), view.seq),
            (2, 0, 3),
            "{point}"
        );
        put(&ledger, note("t", "after")).unwrap();
        assert_eq!(
            notes(&ledger.read().unwrap()),
            ["base-1", "base-2", "after"]
        );
    }
}

/// Unmounts when the test is over.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        drop(std::process::Command::new("umount").arg(&self.0).status());
    }
}

#[test]
fn a_disk_that_is_really_full() {
    let scratch = tempfile::tempdir().unwrap();
    let disk = scratch.path().join("disk");
    std::fs::create_dir_all(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k,mode=0700", "none"])
        .arg(&disk)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        println!("skipped: no small file system can be mounted here");
        return;
    }
    let disk = Mount(disk);
    let ledger = noted(&disk.0.join("takeup"), 3);
    let ballast = disk.0.join("ballast");
    overwrite(&ballast, vec![0; 60 << 10]);
    let output = child(ledger.dir(), &["note", "new", "1000", "3000"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("disk-full"));
    let known = acknowledged(&output);
    assert!(known.len() > 3, "{}", known.len());
    let view = ledger.read().unwrap();
    assert_eq!(view.issues, []);
    assert_eq!(notes(&view)[3..], known);
    assert_eq!(reader::read(ledger.dir()).notes, notes(&view));
    std::fs::remove_file(ballast).unwrap();
    put(&ledger, note("t", "room again")).unwrap();
    assert_eq!(notes(&ledger.read().unwrap()).last().unwrap(), "room again");
}
