//! Secrets stay out of records and of what is shown; files are their owner's alone.
use std::os::unix::fs::MetadataExt as _;

use super::kit::Desk;

/// Made up, in the shape of the real thing.
const TOKEN: &str = concat!("gh", "p_", "16C7e42F292c6912E7710c838347Ae178B4a");
const IN_ENVIRONMENT: &str = "plain-looking-value-4711";
const COMMIT: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

#[test]
fn secrets_stay_in_the_raw_output_alone() {
    let desk = Desk::new();
    let script = format!(
        "echo $DEPLOY_TOKEN; printf '%s\\n' {TOKEN}; echo https://me:hunter2secret@host/ {COMMIT}"
    );
    let run = desk
        .program()
        .args([
            "bg",
            "run",
            "--name",
            "t",
            "--json",
            "--",
            "sh",
            "-c",
            &script,
            "--password",
            "hunter2secret",
        ])
        .env("DEPLOY_TOKEN", IN_ENVIRONMENT)
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let mut shown = String::from_utf8(run.stdout).unwrap();
    let id = desk.end("t")["id"].as_str().unwrap().to_owned();
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["show", "t"],
        &["show", "t", "--json"],
        &["output", "t"],
        &["output", "t", "--json"],
        &["tail", "t"],
        &["tail", "-f", "t"],
    ] {
        let ran = desk
            .program()
            .arg("bg")
            .args(words)
            .env("DEPLOY_TOKEN", IN_ENVIRONMENT)
            .output()
            .unwrap();
        shown.push_str(&String::from_utf8_lossy(&ran.stdout));
        shown.push_str(&String::from_utf8_lossy(&ran.stderr));
    }
    for entry in std::fs::read_dir(desk.folder()).unwrap().flatten() {
        if entry.path() != desk.file(&id, ".output") {
            shown.push_str(&String::from_utf8_lossy(
                &std::fs::read(entry.path()).unwrap(),
            ));
        }
    }
    for secret in [TOKEN, "hunter2secret", IN_ENVIRONMENT] {
        assert!(!shown.contains(secret), "{secret} in:\n{shown}");
    }
    assert!(shown.contains("[redacted:") && shown.contains(COMMIT));
    let raw = std::fs::read_to_string(desk.file(&id, ".output")).unwrap();
    assert!(raw.contains(TOKEN) && raw.contains(IN_ENVIRONMENT));
}

#[test]
fn files_are_their_owners_alone() {
    let desk = Desk::new();
    let id = desk.sh("echo x");
    desk.end(&id);
    assert_eq!(
        std::fs::metadata(desk.folder()).unwrap().mode() & 0o777,
        0o700
    );
    let mut count = 0;
    for entry in std::fs::read_dir(desk.folder()).unwrap().flatten() {
        assert_eq!(
            entry.metadata().unwrap().mode() & 0o177,
            0,
            "{:?}",
            entry.path()
        );
        count += 1;
    }
    assert!(count >= 4);
}

#[test]
fn looking_makes_nothing() {
    let desk = Desk::new();
    desk.bg(&["list"]).exits(0);
    desk.bg(&["wait"]).exits(0);
    desk.bg(&["show", "x"]).exits(4);
    desk.bg(&["clean", "--dry-run"]).exits(0);
    assert_eq!(std::fs::read_dir(desk.scratch.home()).unwrap().count(), 0);
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.folder()).unwrap();
    if std::os::unix::fs::chown(desk.folder(), Some(65534), None).is_err() {
        println!("skipped: only root can give a folder away");
        return;
    }
    let ran = desk.bg(&["run", "--json", "--", "true"]).exits(1).json();
    assert_eq!(ran["error"]["code"], "foreign-state-folder");
    std::os::unix::fs::chown(
        desk.folder(),
        Some(rustix::process::geteuid().as_raw()),
        None,
    )
    .unwrap();
}
