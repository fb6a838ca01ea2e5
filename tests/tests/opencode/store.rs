//! OpenCode's own store: whose sessions are told in which work tree.
use std::path::Path;

use serde_json::{Value, json};
use takeup_tests::Scratch;
use takeup_tests::conformance::tell::opencode::import;

use super::PROGRAM;

/// Leaves a session in the middle of a turn, with the content of that moment.
fn left(scratch: &Scratch, id: &str, folder: &Path, tree: &str) {
    session(
        scratch,
        id,
        folder,
        json!([{"type": "step-start", "snapshot": tree, "id": format!("prt_{id}_1")}]),
    );
}

fn session(scratch: &Scratch, id: &str, folder: &Path, parts: Value) {
    let at = 1_790_000_000_000_i64;
    import(
        &scratch.home(),
        &json!({
            "info": {"id": id, "projectID": "global", "slug": format!("happy-{id}"), "directory": folder,
                "title": format!("Work of {id}"), "version": "1.18.33", "time": {"created": at, "updated": at}},
            "messages": [
                {"info": {"id": format!("msg_{id}_1"), "role": "user", "time": {"created": at}},
                    "parts": [{"id": format!("prt_{id}_0"), "type": "text", "text": "go on"}]},
                {"info": {"id": format!("msg_{id}_2"), "role": "assistant", "time": {"created": at + 1}}, "parts": parts},
            ],
        }),
    );
}

/// Tells the verdict and the reason of each session in a folder.
fn verdicts(scratch: &Scratch, folder: &Path) -> Vec<(String, String, String)> {
    let told = scratch.takeup_in(folder, &["inspect", "--json"]).json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let candidates = told["data"]["candidates"].as_array().unwrap();
    let mut list: Vec<_> = candidates
        .iter()
        .map(|candidate| {
            (
                text(&candidate["identity"]["sessionId"]),
                text(&candidate["verdict"]),
                text(&candidate["reasons"][0]["code"]),
            )
        })
        .collect();
    list.sort();
    list
}

fn told(id: &str, verdict: &str, code: &str) -> (String, String, String) {
    (id.to_owned(), verdict.to_owned(), code.to_owned())
}

fn tree(scratch: &Scratch, folder: &Path) -> String {
    scratch
        .git_in(folder, &["rev-parse", "HEAD^{tree}"])
        .trim()
        .to_owned()
}

#[test]
fn a_nested_work_tree_is_a_place_of_its_own() {
    let scratch = Scratch::new(PROGRAM);
    let repo = scratch.repo();
    scratch.write(".git/info/exclude", ".worktrees/\nvendor/\n");
    let inner = repo.join(".worktrees/x");
    scratch.git(&["worktree", "add", "-q", ".worktrees/x", "-b", "x"]);
    let vendor = repo.join("vendor/lib");
    std::fs::create_dir_all(&vendor).unwrap();
    scratch.git_in(&vendor, &["init", "-q"]);
    let before = tree(&scratch, &repo);
    scratch.write(".worktrees/x/a.txt", "changed\n");
    left(&scratch, "ses_tree", &inner, &before);
    left(&scratch, "ses_vendor", &vendor, &before);
    left(&scratch, "ses_own", &repo, &before);
    let own = told("ses_own", "resume-verification", "content-equal");
    assert_eq!(verdicts(&scratch, &repo), std::slice::from_ref(&own));
    let inside = [told("ses_tree", "stale-task", "content-changed")];
    assert_eq!(verdicts(&scratch, &inner), inside);
    let ran = scratch.takeup(&["resume", "nested", "--from", "ses_tree", "--confirm"]);
    assert_ne!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);

    // Once they are gone nothing says that they were no part of this work tree; nor that they were one.
    scratch.git(&["worktree", "remove", "--force", ".worktrees/x"]);
    std::fs::remove_dir_all(&vendor).unwrap();
    let gone = |id| told(id, "stale-task", "record-incomplete");
    assert_eq!(
        verdicts(&scratch, &repo),
        [own, gone("ses_tree"), gone("ses_vendor")]
    );
    let ran = scratch.takeup(&["resume", "nested", "--from", "ses_tree", "--confirm"]);
    assert_ne!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_repository_above_others_does_not_tell_their_sessions() {
    let scratch = Scratch::new(PROGRAM);
    let home = scratch.home();
    scratch.git_in(&home, &["init", "-q"]);
    let inner = home.join("work/project");
    std::fs::create_dir_all(&inner).unwrap();
    scratch.git_in(&inner, &["init", "-q"]);
    left(
        &scratch,
        "ses_inner",
        &inner,
        &tree(&scratch, &scratch.repo()),
    );
    assert_eq!(verdicts(&scratch, &home), []);
    let listed = scratch.takeup_in(&home, &["sessions", "--json"]).json();
    assert_eq!(listed["data"]["sessions"], json!([]));
    assert_eq!(verdicts(&scratch, &inner).len(), 1);
}

#[test]
fn a_session_that_cannot_be_recovered_is_no_missing_one() {
    let scratch = Scratch::new(PROGRAM);
    left(
        &scratch,
        "ses_own",
        &scratch.repo(),
        &tree(&scratch, &scratch.repo()),
    );
    for words in [
        &["sessions", "recover", "ses_own", "--json"][..],
        &["sessions", "recover", "ses_own", "--as-session", "--json"],
    ] {
        let refused = scratch.takeup(words).exits(1).json();
        assert_eq!(refused["error"]["code"], "agent-unsupported");
        assert!(
            refused["error"]["message"]
                .as_str()
                .unwrap()
                .contains("OpenCode")
        );
    }
    scratch
        .takeup(&["sessions", "recover", "ses_none"])
        .exits(4);
}

/// What `inspect` lists as damaged is no health.
#[test]
fn doctor_tells_what_is_damaged_in_a_store() {
    let scratch = Scratch::new(PROGRAM);
    let stores = || {
        let told = scratch.takeup(&["doctor", "--json"]).json();
        let findings = told["data"]["findings"].as_array().unwrap().clone();
        let mut stores = findings
            .into_iter()
            .filter(|found| found["check"] == "stores");
        stores.next().map(|found| found["verdict"].clone()).unwrap()
    };
    assert_eq!(stores(), "ok");
    let data = scratch.home().join(".local/share/opencode");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(
        data.join("opencode.db"),
        "No SQLite at all, but long enough to be looked at.",
    )
    .unwrap();
    assert_eq!(stores(), "warn");
}
