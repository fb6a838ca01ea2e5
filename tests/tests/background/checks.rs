//! Checks that run in the background: where they run, what they count for, and that they are told of while they run.
use serde_json::Value;

use super::kit::Desk;

/// A repository whose check fails at the top and passes in `sub`, with a task that plans it.
fn planned() -> Desk {
    let desk = Desk::in_repository();
    desk.scratch.write("t.sh", "exit 1\n");
    desk.scratch.write("sub/t.sh", "exit 0\n");
    desk.here(&["start", "t1", "--session", "s1", "--check", "sh t.sh"])
        .exits(0);
    desk
}

fn proof(desk: &Desk) -> String {
    let answer = desk.here(&["next", "t1", "--session", "s1", "--json"]);
    let proof = &answer.exits(0).json()["data"]["evidence"][0]["proof"];
    proof.as_str().unwrap().to_owned()
}

/// Starts a task in a folder of the repository, waits for its end and returns the answer of the start.
fn ended(desk: &Desk, folder: &str, words: &[&str]) -> Value {
    let folder = desk.scratch.repo().join(folder);
    let words = [&["bg", "run", "--json", "--session", "s1"], words].concat();
    let answer = desk.scratch.takeup_in(&folder, &words).exits(0).json();
    desk.end(answer["data"]["task"]["id"].as_str().unwrap());
    answer
}

#[test]
fn a_check_in_the_background_counts_at_the_top_alone() {
    let desk = planned();
    for (from, words) in [
        ("sub", &["--check", "--", "sh", "t.sh"][..]),
        (
            "",
            &["--check", "--cwd", "sub", "--", "sh", "-c", "sh t.sh"],
        ),
    ] {
        let answer = ended(&desk, from, words);
        let check = &answer["data"]["check"];
        assert_eq!(check["planned"], true, "{answer}");
        assert_eq!(check["inOtherFolder"], true, "{answer}");
        assert_eq!(proof(&desk), "elsewhere");
    }
    // A planned one goes to the top by itself.
    let answer = ended(&desk, "sub", &["--planned", "1"]);
    assert_eq!(answer["data"]["check"]["inOtherFolder"], false, "{answer}");
    assert_eq!(proof(&desk), "failed");
    desk.scratch.write("t.sh", "exit 0\n");
    ended(&desk, "sub", &["--planned", "1"]);
    assert_eq!(proof(&desk), "fresh");
}

#[test]
fn what_is_not_in_the_plan_is_said_to_be_not() {
    let desk = planned();
    let words = ["bg", "run", "--check", "--session", "s1", "--", "true"];
    let said = desk.here(&words).exits(0).stdout;
    assert!(said.contains("plan add --task t1 true"), "{said}");
    desk.here(&["plan", "add", "--session", "s1", "sleep 0; test -f a.txt"])
        .exits(0);
    let line = ["--check", "--", "sh", "-c", "sleep 0; test -f a.txt"];
    let answer = ended(&desk, "", &line);
    assert_eq!(answer["data"]["check"]["planned"], true, "{answer}");
    let missing = ["bg", "run", "--session", "s1", "--planned", "9"];
    desk.here(&missing).exits(4);
}

#[test]
fn a_file_is_no_folder_to_run_in() {
    let desk = planned();
    for (folder, why) in [("a.txt", "is no folder"), ("gone", "is not there")] {
        for check in [&[][..], &["--check"]] {
            let words = [&["bg", "run", "--cwd", folder], check, &["--", "true"]].concat();
            let ran = desk.here(&words).exits(2);
            assert!(ran.stderr.contains(&format!("{folder} {why}")), "{ran:?}");
        }
    }
}
