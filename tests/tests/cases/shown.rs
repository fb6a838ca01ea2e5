//! What people see: one story, every human output, with times, ids and places replaced.
use insta::assert_snapshot;

use super::scratch;

fn filters() -> Vec<(&'static str, &'static str)> {
    vec![
        (r"/[^\s]*takeup-test-\w+", "[SCRATCH]"),
        (r"review-[0-9a-z]{26}", "[REVIEW]"),
        (r"ok-[0-9a-f]{10}", "[TOKEN]"),
        (r"\b[0-9a-f]{40}\b", "[OID]"),
        (r"\b[0-9a-f]{10}\b", "[SHORT]"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]"),
        (r"just now|\d+ seconds? ago", "[AGO]"),
    ]
}

#[test]
fn every_output_for_people_is_as_it_was() {
    let scratch = scratch();
    let mut shown = String::new();
    let mut show = |words: &[&str]| {
        let ran = scratch.takeup(words);
        shown.push_str(&format!(
            "$ git takeup {}\n{}{}[exit {}]\n\n",
            words.join(" "),
            ran.stdout,
            ran.stderr,
            ran.code
        ));
    };
    show(&["inspect"]);
    show(&[
        "start",
        "Fix login",
        "--session",
        "s1",
        "--check",
        "test -f a.txt",
        "--allow",
        "a.txt",
    ]);
    show(&["note", "the flaky test is not ours", "--session", "s1"]);
    show(&["plan"]);
    scratch.write("a.txt", "two\n");
    show(&["save", "--session", "s1", "--end"]);
    show(&["inspect"]);
    scratch.write("b.txt", "new\n");
    show(&[]);
    show(&["diff", "fix-login"]);
    show(&["resume", "fix-login", "--to", "s2", "--confirm"]);
    show(&["resume", "fix-login", "--to", "s2", "--rebuild"]);
    show(&["evaluate", "fix-login", "--session", "s2"]);
    scratch.write("c.txt", "outside\n");
    show(&["evaluate", "fix-login", "--session", "s2"]);
    let id =
        scratch.takeup(&["review", "--json"]).json()["data"]["reviews"][0]["review"]["reviewId"]
            .as_str()
            .unwrap()
            .to_owned();
    show(&["review"]);
    show(&["review", "show", &id]);
    show(&["next", "--session", "s2"]);
    show(&[
        "review",
        "approve",
        &id,
        "--confirm",
        "--by",
        "ana",
        "--remark",
        "fine",
    ]);
    show(&["check", "--session", "s2", "--planned", "1"]);
    show(&["show", "fix-login"]);
    show(&["next", "--session", "s2"]);
    show(&["log", "fix-login"]);
    show(&["inspect", "--all"]);
    insta::with_settings!({filters => filters()}, { assert_snapshot!(shown) });
}
