//! The doctor, and what keeps the disk bounded.
use super::*;

fn doctor(scratch: &Scratch, args: &[&str]) -> Value {
    let args = [&["doctor", "--json"], args].concat();
    scratch.takeup(&args).json()
}

/// The verdict of a check, the worst where there are several.
fn verdict_of(answer: &Value, check: &str) -> Option<String> {
    let order = |verdict: &str| {
        ["ok", "warn", "fail"]
            .iter()
            .position(|one| *one == verdict)
    };
    answer["data"]["findings"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer:#}"))
        .iter()
        .filter(|finding| finding["check"] == check)
        .map(|finding| finding["verdict"].as_str().unwrap().to_owned())
        .max_by_key(|verdict| order(verdict))
}

#[test]
fn a_repository_in_good_order_has_nothing_to_look_at() {
    let scratch = Scratch::new(PROGRAM);
    let before = picture(&scratch.path(), &|_| false);
    let answer = doctor(&scratch, &[]);
    assert_eq!(
        picture(&scratch.path(), &|_| false),
        before,
        "looking wrote something"
    );
    assert_eq!(answer["data"]["verdict"], "ok", "{answer:#}");
    scratch.takeup(&["init"]).exits(0);
    scratch.takeup(&["hooks", "install"]).exits(0);
    leave(&scratch, &scratch.repo(), "task", "s1");
    let before = picture(&scratch.path(), &|_| false);
    let answer = doctor(&scratch, &[]);
    assert_eq!(
        picture(&scratch.path(), &|_| false),
        before,
        "looking wrote something"
    );
    assert_eq!(answer["data"]["verdict"], "ok", "{answer:#}");
    for check in ["git", "places", "repository", "tokens", "ledger", "hooks"] {
        assert_eq!(verdict_of(&answer, check).as_deref(), Some("ok"), "{check}");
    }
}

#[test]
fn every_finding_says_what_to_do_and_fix_asks_first() {
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["hooks", "install"]).exits(0);
    leave(&scratch, &scratch.repo(), "task", "s1");
    let state = scratch.repo().join(".git/takeup");
    // A torn line, a temporary file of long ago, a hook that was overwritten, a place that is gone, a HEAD nobody saw.
    let journal = state.join("journal.jsonl");
    let mut content = fs::read(&journal).unwrap();
    content.extend_from_slice(b"{\"v\":1,\"seq\":99,\"tra");
    fs::write(&journal, content).unwrap();
    let temporary = state.join(".takeup-tmp-old");
    fs::write(&temporary, "x").unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    fs::File::options()
        .write(true)
        .open(&temporary)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    fs::write(scratch.repo().join(".git/hooks/post-commit"), "#!/bin/sh\n").unwrap();
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "unseen"]);
    let other = scratch.path().join("other");
    fs::create_dir(&other).unwrap();
    scratch.git_in(&other, &["init", "-q"]);
    scratch.takeup_in(&other, &["init"]).exits(0);
    fs::remove_dir_all(&other).unwrap();

    let answer = doctor(&scratch, &[]);
    for (check, verdict) in [
        ("ledger", "warn"),
        ("ledger-temporary", "warn"),
        ("hook-post-commit", "warn"),
        ("places", "warn"),
    ] {
        assert_eq!(
            verdict_of(&answer, check).as_deref(),
            Some(verdict),
            "{check}: {answer:#}"
        );
    }
    for finding in answer["data"]["findings"].as_array().unwrap() {
        let advised = finding["advice"].is_string();
        assert!(advised || finding["verdict"] == "ok", "{finding:#}");
    }
    // Without a yes nothing happens.
    let before = picture(&scratch.path(), &|_| false);
    let unasked = scratch
        .takeup(&["doctor", "--fix", "--json"])
        .exits(3)
        .json();
    assert_eq!(unasked["error"]["code"], "confirmation-needed");
    assert!(
        unasked["error"]["hint"]
            .as_str()
            .unwrap()
            .contains(".takeup-tmp-old")
    );
    assert_eq!(picture(&scratch.path(), &|_| false), before);

    let mended = doctor(&scratch, &["--fix", "--yes"]);
    for one in mended["data"]["mended"].as_array().unwrap() {
        assert!(one["error"].is_null(), "{one:#}");
    }
    assert!(!temporary.exists());
    assert_eq!(
        verdict_of(&mended, "ledger").as_deref(),
        Some("ok"),
        "{mended:#}"
    );
    assert_eq!(verdict_of(&mended, "places").as_deref(), Some("ok"));
    assert_eq!(verdict(&scratch, &scratch.repo()), "resume-verification");
    // What was torn is kept.
    let kept = fs::read_dir(&state)
        .unwrap()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("torn-"));
    assert!(kept);
    // Other people's hooks are theirs.
    assert_eq!(
        fs::read_to_string(scratch.repo().join(".git/hooks/post-commit")).unwrap(),
        "#!/bin/sh\n"
    );
}

#[test]
fn damaged_tokens_and_places_fail_and_are_moved_aside_on_request() {
    let scratch = Scratch::new(PROGRAM);
    leave(&scratch, &scratch.repo(), "task", "s1");
    let token = scratch.repo().join(".git/takeup/worktree-id");
    let places = scratch.home().join(".local/state/takeup/places.json");
    for file in [&token, &places] {
        fs::write(file, [0; 20]).unwrap();
    }
    let answer = scratch.takeup(&["doctor", "--json"]).exits(1).json();
    assert_eq!(verdict_of(&answer, "tokens").as_deref(), Some("fail"));
    assert_eq!(verdict_of(&answer, "places").as_deref(), Some("fail"));
    doctor(&scratch, &["--fix", "--yes"]);
    for file in [&token, &places] {
        assert!(!file.exists());
        let mut kept = file.clone().into_os_string();
        kept.push(".damaged");
        assert_eq!(fs::read(kept).unwrap(), [0; 20]);
    }
    // The task is not taken for one of this place.
    scratch.takeup(&["init"]).exits(0);
    assert_eq!(verdict(&scratch, &scratch.repo()), "mismatched-repository");
}

/// A hundred closed tasks stay, the rest moves into the archive; what anybody reads stays small.
#[test]
fn closed_tasks_leave_the_hot_path() {
    let scratch = Scratch::new(PROGRAM);
    let count = 104;
    for n in 0..count {
        let task = format!("task-{n}");
        scratch
            .takeup(&["start", &task, "--session", "s", "--no-checks"])
            .exits(0);
        scratch
            .takeup(&["abandon", &task, "--session", "s"])
            .exits(0);
    }
    let objects = scratch.git(&["count-objects", "-v"]);
    let before = picture(&scratch.repo(), &|_| false);
    let preview = scratch
        .takeup(&["gc", "--dry-run", "--json"])
        .exits(0)
        .json();
    assert_eq!(picture(&scratch.repo(), &|_| false), before);
    let done = scratch.takeup(&["gc", "--json"]).exits(0).json();
    assert_eq!(preview["data"]["items"], done["data"]["items"]);
    assert_eq!(done["data"]["items"].as_array().unwrap().len(), count - 100);
    assert!(
        scratch
            .repo()
            .join(".git/takeup/archive/task-0.json")
            .exists()
    );
    let again = scratch.takeup(&["gc", "--json"]).exits(0).json();
    assert_eq!(again["data"]["items"].as_array().unwrap().len(), 0);
    assert_eq!(scratch.git(&["count-objects", "-v"]), objects);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

/// A repository that is the user's whole home, so that what takeup keeps for the user lies inside the tree.
#[test]
fn takeup_s_own_files_in_a_home_that_is_a_repository_are_no_content() {
    let scratch = Scratch::empty(PROGRAM);
    let home = scratch.home();
    scratch.git_in(&home, &["init", "-q", "-b", "main"]);
    fs::write(home.join("notes"), "mine\n").unwrap();
    scratch.git_in(&home, &["add", "notes"]);
    scratch.git_in(&home, &["commit", "-q", "-m", "first"]);
    leave(&scratch, &home, "task", "s1");
    let run = ["bg", "run", "--foreground", "--", "echo", "output"];
    scratch.takeup_in(&home, &run).exits(0);
    let other = scratch.path().join("other");
    fs::create_dir(&other).unwrap();
    scratch.git_in(&other, &["init", "-q"]);
    scratch.takeup_in(&other, &["init"]).exits(0);
    assert!(home.join(".local/state/takeup/places.json").exists());
    assert_eq!(scratch.git_in(&home, &["status", "--porcelain"]), "");
    assert_eq!(verdict(&scratch, &home), "resume-verification");
}

/// As a container, or `sudo` with `safe.directory`, leaves it.
#[test]
fn a_ledger_of_root_is_said_to_be_root_s() {
    use std::os::unix::process::CommandExt as _;
    let scratch = Scratch::new(PROGRAM);
    leave(&scratch, &scratch.repo(), "task", "s1");
    let state = scratch.repo().join(".git/takeup");
    let give = |owner: &str, path: &Path| {
        let given = Command::new("chown").args(["-R", owner]).arg(path).output();
        given.is_ok_and(|output| output.status.success())
    };
    if !give("65534", &scratch.path()) {
        println!("skipped: only root can give files away");
        return;
    }
    let as_user = |words: &[&str]| {
        let mut command = scratch.program_in(&scratch.repo());
        takeup_tests::Ran::of(command.args(words).uid(65_534).output().unwrap())
    };
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    as_user(&["inspect"]).exits(0);
    for part in [
        state.clone(),
        state.join("journal.jsonl"),
        state.join("repository-id"),
    ] {
        assert!(give("0", &part));
        let doctor = as_user(&["doctor"]);
        let said = one_line(&doctor.stdout);
        assert!(said.contains("belongs to root"), "{part:?}: {said}");
        assert!(said.contains("sudo chown -R 65534"), "{part:?}: {said}");
        assert!(!said.contains("backup"), "{part:?}: {said}");
        let fixed = as_user(&["doctor", "--fix", "--yes"]);
        assert!(part.exists(), "{}", fixed.stdout);
        let refused = as_user(&["start", "other", "--session", "s2"]);
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(give("65534", &state));
        as_user(&["inspect"]).exits(0);
    }
    assert!(give("0", &state.join("lock")));
    let refused = as_user(&["start", "other", "--session", "s2"]).exits(1);
    assert!(
        refused.stderr.contains("lock belongs to root"),
        "{}",
        refused.stderr
    );
    assert!(give("0", &state));
    let refused = as_user(&["inspect"]).exits(1);
    assert!(
        refused.stderr.contains("belongs to root")
            && refused.stderr.contains("sudo chown -R 65534"),
        "{}",
        refused.stderr
    );
}
