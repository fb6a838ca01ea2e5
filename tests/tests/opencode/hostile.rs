//! Records made to harm: each ends in a clear issue, quickly, and nothing outside the sidecar is touched or read.
use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use takeup_tests::{Scratch, picture};

use super::{identity, put, scratch, sidecar};

/// Looks, and demands that the look changed nothing, ended well, and let no control character through.
fn inspect(scratch: &Scratch) -> Value {
    let before = picture(&scratch.path(), &|_| false);
    let told = scratch.takeup(&["inspect"]).exits(0);
    assert!(
        !told.stdout.chars().any(|c| c.is_control() && c != '\n'),
        "a control character reached the terminal: {:?}",
        told.stdout
    );
    let ran = scratch.takeup(&["inspect", "--json"]).exits(0);
    assert_eq!(
        picture(&scratch.path(), &|_| false),
        before,
        "looking wrote something"
    );
    ran.json()
}

/// The kinds of the issues whose path ends so.
fn issues(answer: &Value, end: &str) -> Vec<String> {
    answer["data"]["issues"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|issue| issue["path"].as_str().unwrap().ends_with(end))
        .map(|issue| issue["kind"].as_str().unwrap().to_owned())
        .collect()
}

fn candidates(answer: &Value) -> Vec<String> {
    answer["data"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["identity"]["taskId"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_damaged_record_is_an_issue_and_the_healthy_one_goes_on() {
    let scratch = scratch();
    put(
        &scratch,
        "task-identity-healthy-ses-1.json",
        &identity(&scratch, "healthy", "ses_1"),
    );
    let name = |word: &str| format!("task-identity-{word}.json");
    let raw = |word: &str, bytes: &[u8]| {
        std::fs::write(sidecar(&scratch).join(name(word)), bytes).unwrap();
    };
    raw("half", b"{\"schemaVersion\": \"opencode-plus");
    raw("empty", b"");
    raw("zeros", &[0; 4096]);
    raw("list", b"[]");
    raw(
        "deep",
        &[b"{\"a\":".repeat(200_000), b"1".to_vec()].concat(),
    );
    raw("bytes", b"{\"schemaVersion\":\"\xff\xfe\"}");
    let mut odd = identity(&scratch, "odd", "ses_odd");
    odd["status"] = json!("sleeping");
    put(&scratch, &name("status"), &odd);
    let mut newer = identity(&scratch, "newer", "ses_new");
    newer["schemaVersion"] = json!("opencode-plusplus.task-resume.v9");
    put(&scratch, &name("version"), &newer);
    // 100 MB, of which nothing is on the disk.
    let huge = std::fs::File::create(sidecar(&scratch).join(name("huge"))).unwrap();
    huge.set_len(100 << 20).unwrap();
    std::fs::create_dir(sidecar(&scratch).join(name("folder"))).unwrap();
    let answer = inspect(&scratch);
    assert_eq!(candidates(&answer), ["healthy"]);
    for (word, kinds) in [
        ("half", &["corrupt"][..]),
        ("empty", &["torn"]),
        ("zeros", &["zeroed"]),
        ("list", &["corrupt"]),
        ("deep", &["corrupt"]),
        // Bytes that are no UTF-8 are read as OpenCode++ reads them: as another schema.
        ("bytes", &["unknown-version"]),
        ("status", &["corrupt"]),
        ("version", &["unknown-version"]),
        ("huge", &["too-large"]),
    ] {
        assert_eq!(issues(&answer, &name(word)), kinds, "{word}: {answer:#}");
    }
    assert_eq!(issues(&answer, &name("folder")).len(), 1, "{answer:#}");
}

#[test]
fn links_are_not_followed() {
    let scratch = scratch();
    let outside = scratch.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let stranger = identity(&scratch, "stranger", "ses_s").to_string();
    std::fs::write(outside.join("task-identity-stranger-ses-s.json"), &stranger).unwrap();
    let linked = sidecar(&scratch).join("task-identity-linked.json");
    symlink(outside.join("task-identity-stranger-ses-s.json"), &linked).unwrap();
    let answer = inspect(&scratch);
    assert_eq!(candidates(&answer), Vec::<String>::new());
    assert_eq!(issues(&answer, "task-identity-linked.json"), ["symlink"]);
    // The folders too, for readers and for writers.
    for folder in [".agent-context/sidecar", ".agent-context"] {
        let path = scratch.repo().join(folder);
        std::fs::remove_dir_all(&path).unwrap();
        symlink(&outside, &path).unwrap();
        let answer = inspect(&scratch);
        assert!(
            !candidates(&answer).contains(&"stranger".to_owned()),
            "{folder}"
        );
        assert_eq!(issues(&answer, folder), ["symlink"], "{folder}");
        let before = picture(&outside, &|_| false);
        let session = format!("ses_{}", folder.len());
        scratch
            .takeup(&[
                "start",
                folder,
                "--session",
                &session,
                "--agent",
                "opencode",
                "--no-checks",
            ])
            .exits(0);
        assert_eq!(picture(&outside, &|_| false), before, "{folder}");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir_all(sidecar(&scratch)).unwrap();
    }
}

#[test]
fn ids_and_roots_lead_nowhere_else() {
    let scratch = scratch();
    let ids = [
        "../../../../outside",
        "/etc/passwd",
        "..",
        "a\u{1b}[2J\u{7}b",
        "a\u{202e}b",
        "$(touch here)`touch there`",
        "-rf",
    ];
    for (number, id) in ids.iter().enumerate() {
        put(
            &scratch,
            &format!("task-identity-task-{number}.json"),
            &identity(&scratch, id, &format!("ses_{number}")),
        );
        put(
            &scratch,
            &format!("task-identity-session-{number}.json"),
            &identity(&scratch, &format!("t{number}"), id),
        );
    }
    for (number, root) in ["/", "/etc", "../..", "relative"].iter().enumerate() {
        let mut record = identity(&scratch, &format!("root{number}"), "ses_r");
        record["repositoryRoot"] = json!(root);
        put(
            &scratch,
            &format!("task-identity-root-{number}.json"),
            &record,
        );
    }
    let answer = inspect(&scratch);
    for one in answer["data"]["candidates"].as_array().unwrap() {
        let (task, session) = (&one["identity"]["taskId"], &one["identity"]["sessionId"]);
        let task = task.as_str().unwrap();
        assert!(
            task.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{task:?}"
        );
        assert!(!session.as_str().unwrap().chars().any(char::is_control));
        if task.starts_with("root") {
            assert_eq!(one["verdict"], "mismatched-repository", "{one:#}");
        }
    }
    // Each is taken up by whatever name it shows, and nothing is made outside the repository.
    let outside = |name: &str| {
        name.starts_with("repo/.git/takeup")
            || name.starts_with("repo/.agent-context")
            || name.starts_with("home")
    };
    let before = picture(&scratch.path(), &outside);
    for (number, one) in answer["data"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
    {
        let task = one["identity"]["taskId"].as_str().unwrap();
        let from = one["identity"]["sessionId"].as_str().unwrap();
        scratch.takeup(&[
            "resume",
            "--task",
            task,
            "--from",
            from,
            "--to",
            &format!("taker{number}"),
            "--rebuild",
        ]);
    }
    let now = picture(&scratch.path(), &outside);
    let lines = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(lines(&now), lines(&before));
}

#[test]
fn a_folder_of_a_hundred_thousand_names_is_read_within_bounds() {
    let scratch = scratch();
    let folder = sidecar(&scratch);
    put(
        &scratch,
        "task-identity-aa-first.json",
        &identity(&scratch, "aa", "first"),
    );
    let template = folder.join("task-identity-aa-first.json");
    let mut name = String::new();
    for number in 0..100_000 {
        name.clear();
        write!(name, "task-identity-zz-{number:06}.json").unwrap();
        link(&template, &folder.join(&name));
    }
    let told = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let said = issues(&told, ".agent-context/sidecar");
    assert_eq!(said, ["too-large"], "the bound is not said");
    let message = told["data"]["issues"].to_string();
    assert!(message.contains("only 10000 are read"), "{message}");
}

/// One more name for a file: as good as a file of its own for whoever lists the folder, and far cheaper to make.
fn link(from: &Path, to: &Path) {
    std::fs::hard_link(from, to)
        .or_else(|_| std::fs::copy(from, to).map(|_| ()))
        .unwrap();
}
