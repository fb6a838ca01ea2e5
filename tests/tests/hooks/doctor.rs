//! What the doctor says of one thing at a time. The judge is how the thing was brought about.
use serde_json::Value;
use takeup_core::ledger::{Change, InstalledHook};
use takeup_core::time::{Clock as _, Time};

use super::*;

fn findings(scratch: &Scratch, folder: &Path) -> Vec<Value> {
    let before = picture(&scratch.path(), &|_| false);
    let answer = scratch.takeup_in(folder, &["doctor", "--json"]).json();
    assert_eq!(
        picture(&scratch.path(), &|_| false),
        before,
        "looking wrote something"
    );
    let found = answer["data"]["findings"].as_array().unwrap().clone();
    for finding in &found {
        let advised = finding["advice"].is_string();
        assert!(advised || finding["verdict"] == "ok", "{finding:#}");
    }
    found
}

/// Demands a finding, and returns what it says: message and advice.
fn says(found: &[Value], check: &str, verdict: &str) -> String {
    let one = found
        .iter()
        .find(|one| one["check"] == check && one["verdict"] == verdict)
        .unwrap_or_else(|| panic!("no {check} {verdict} in {found:#?}"));
    format!(
        "{} | {}",
        one["message"].as_str().unwrap(),
        one["advice"].as_str().unwrap_or_default()
    )
}

fn leave(scratch: &Scratch, folder: &Path, task: &str) {
    for args in [
        &["start", task, "--session", "s"][..],
        &["save", "--session", "s", "--end"],
    ] {
        scratch.takeup_in(folder, args).exits(0);
    }
}

#[test]
fn settings_that_have_no_effect_are_named_with_the_nearest_that_has() {
    let scratch = Scratch::new(PROGRAM);
    says(&findings(&scratch, &scratch.repo()), "settings", "ok");
    scratch.git(&["config", "takeup.exclud", "x"]);
    let said = says(&findings(&scratch, &scratch.repo()), "settings", "warn");
    assert!(said.contains("did you mean exclude?"), "{said}");
    scratch.git(&["config", "--unset", "takeup.exclud"]);
    let folder = scratch.home().join(".config/takeup");
    fs::create_dir_all(&folder).unwrap();
    for (content, expected) in [
        ("count_reportd = true\n", "did you mean countReported?"),
        ("zzz = 1\n", "no setting \"zzz\" is known"),
        ("confirm = \"everybody\"\n", "has to be person or caller"),
        ("confirm = \n", "config.toml"),
    ] {
        fs::write(folder.join("config.toml"), content).unwrap();
        let said = says(&findings(&scratch, &scratch.repo()), "settings", "warn");
        assert!(said.contains(expected), "{content}: {said}");
    }
}

/// Who keeps settings among dotfiles has a link in their place.
#[test]
fn settings_behind_a_link_of_the_user_s_own_are_read() {
    let scratch = Scratch::new(PROGRAM);
    let kept = scratch.path().join("kept.toml");
    fs::write(&kept, "exclude = [\"scratch\"]\n").unwrap();
    let folder = scratch.home().join(".config/takeup");
    fs::create_dir_all(&folder).unwrap();
    let link = folder.join("config.toml");
    std::os::unix::fs::symlink(&kept, &link).unwrap();
    says(&findings(&scratch, &scratch.repo()), "settings", "ok");
    let config = scratch.takeup(&["config", "--json"]).exits(0).json();
    assert!(config.to_string().contains("\"scratch\""), "{config:#}");
    fs::remove_file(&kept).unwrap();
    let said = says(&findings(&scratch, &scratch.repo()), "settings", "warn");
    assert!(said.contains("a link to nothing"), "{said}");
}

#[test]
fn a_link_in_the_place_of_the_ledger_is_no_ledger_that_was_never_there() {
    let scratch = installed();
    let state = scratch.repo().join(".git/takeup");
    let moved = scratch.path().join("moved");
    fs::rename(&state, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &state).unwrap();
    let said = says(
        &findings(&scratch, &scratch.repo()),
        "ledger-folder",
        "fail",
    );
    assert!(said.contains("put the folder itself"), "{said}");
    fs::rename(&moved, scratch.path().join("gone")).unwrap();
    let said = says(
        &findings(&scratch, &scratch.repo()),
        "ledger-folder",
        "fail",
    );
    assert!(said.contains("which is not there"), "{said}");
    scratch.takeup(&["doctor"]).exits(1);
    // Git goes on, and nothing is made where the link leads.
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    assert!(!moved.exists());
}

#[test]
fn who_holds_the_lock_is_named() {
    let scratch = installed();
    let ledger = Ledger::at(scratch.repo().join(".git/takeup")).during("a long test");
    let (held, is_held) = std::sync::mpsc::channel();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let ledger = &ledger;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let clock = takeup_core::time::SystemClock;
            ledger
                .transact(&clock, Ledger::PATIENCE, |_| {
                    held.send(()).unwrap();
                    is_done.recv().unwrap();
                    Ok::<_, std::convert::Infallible>((None, ()))
                })
                .unwrap();
        });
        is_held.recv().unwrap();
        let found = findings(&scratch, &scratch.repo());
        done.send(()).unwrap();
        let said = says(&found, "ledger-lock", "warn");
        assert!(said.contains("a long test"), "{said}");
        assert!(said.contains(&std::process::id().to_string()), "{said}");
    });
    let found = findings(&scratch, &scratch.repo());
    assert!(found.iter().all(|one| one["check"] != "ledger-lock"));
}

#[test]
fn a_git_that_is_too_old_or_not_there_is_named() {
    let scratch = Scratch::new(PROGRAM);
    script(
        &scratch.path().join("bin/git"),
        "#!/bin/sh\necho 'git version 2.20.1'\n",
    );
    let said = says(&findings(&scratch, &scratch.repo()), "git", "fail");
    assert!(said.contains("2.20.1") && said.contains("2.31"), "{said}");
    let found = scratch
        .program_in(&scratch.repo())
        .env("PATH", "/nonexistent")
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let found = found["data"]["findings"].as_array().unwrap();
    says(found, "git", "warn");
}

#[test]
fn a_repository_of_somebody_else_is_named_with_git_s_own_way_out() {
    let scratch = Scratch::new(PROGRAM);
    let given = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(scratch.repo())
        .status()
        .unwrap();
    if !given.success() {
        println!("skipped: only root can give files away");
        return;
    }
    let judge = scratch.git_may_fail(&scratch.repo(), &["status"]);
    assert!(String::from_utf8_lossy(&judge.stderr).contains("safe.directory"));
    let said = says(&findings(&scratch, &scratch.repo()), "repository", "fail");
    assert!(said.contains("--add safe.directory"), "{said}");
}

#[test]
fn places_that_moved_were_copied_or_are_gone_are_told_apart() {
    let scratch = installed();
    leave(&scratch, &scratch.repo(), "here");
    scratch.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    leave(&scratch, &scratch.path().join("linked"), "there");
    scratch.git(&["worktree", "remove", "--force", "../linked"]);
    // The same name again is another place.
    scratch.git(&["worktree", "add", "-q", "../linked", "linked"]);
    scratch
        .takeup_in(&scratch.path().join("linked"), &["init"])
        .exits(0);
    says(
        &findings(&scratch, &scratch.repo()),
        "places-worktree-gone",
        "warn",
    );
    let copy = scratch.path().join("copy");
    let done = Command::new("cp")
        .arg("-a")
        .arg(scratch.repo())
        .arg(&copy)
        .status();
    assert!(done.unwrap().success());
    says(&findings(&scratch, &copy), "places-copied", "warn");
    fs::remove_dir_all(&copy).unwrap();
    let moved = scratch.path().join("moved");
    fs::rename(scratch.repo(), &moved).unwrap();
    let said = says(&findings(&scratch, &moved), "places-relocated", "warn");
    assert!(said.contains("git takeup init --moved"), "{said}");
    let said = says(&findings(&scratch, &moved), "places", "warn");
    assert!(said.contains("gone"), "{said}");
}

#[test]
fn records_of_a_newer_version_are_named_and_left() {
    use sha2::Digest as _;
    use std::io::Write as _;
    let scratch = installed();
    let journal = scratch.repo().join(".git/takeup/journal.jsonl");
    let body = "{\"v\":2,\"seq\":99,\"transition\":{\"from\":\"the future\"},\"prev\":\"0\"";
    let sum: String = sha2::Sha256::digest(body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    fs::File::options()
        .append(true)
        .open(&journal)
        .unwrap()
        .write_all(format!("{body},\"sum\":\"{sum}\"}}\n").as_bytes())
        .unwrap();
    let before = fs::read(&journal).unwrap();
    let said = says(&findings(&scratch, &scratch.repo()), "ledger", "fail");
    assert!(said.contains("another version"), "{said}");
    scratch.takeup(&["doctor", "--fix", "--yes"]);
    assert_eq!(fs::read(&journal).unwrap(), before);
}

#[test]
fn a_drop_in_that_is_out_of_date_is_named() {
    let scratch = installed();
    script(&scratch.path().join("bin/opencode"), "#!/bin/sh\n");
    scratch.takeup(&["agents", "install", "opencode"]).exits(0);
    says(&findings(&scratch, &scratch.repo()), "agent-opencode", "ok");
    let found = Command::new("grep")
        .args(["-rlI", "takeup", "--include=*.js", "--include=*.ts"])
        .arg(scratch.home())
        .arg(scratch.repo())
        .output()
        .unwrap();
    let files = String::from_utf8(found.stdout).unwrap();
    let plugin = files.lines().next().expect("the plugin is there");
    let mut content = fs::read(plugin).unwrap();
    content.extend_from_slice(b"// edited\n");
    fs::write(plugin, content).unwrap();
    let said = says(
        &findings(&scratch, &scratch.repo()),
        "agent-opencode",
        "warn",
    );
    assert!(said.contains("out of date"), "{said}");
    assert!(
        said.contains("git takeup agents install opencode"),
        "{said}"
    );
}

/// The judge is the command itself: it is run as it is said.
#[test]
fn what_is_said_of_an_agent_can_be_run() {
    let scratch = Scratch::new(PROGRAM);
    fs::create_dir_all(scratch.home().join(".jcode")).unwrap();
    let said = says(&findings(&scratch, &scratch.repo()), "agent-jcode", "ok");
    let (_, command) = said.split_once("by itself: git takeup ").unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    scratch.takeup(&words).exits(0);
    let said = says(&findings(&scratch, &scratch.repo()), "agent-jcode", "ok");
    assert!(said.contains("is integrated"), "{said}");
}

#[test]
fn a_damaged_record_of_an_integration_is_put_aside_by_the_fix() {
    let scratch = Scratch::new(PROGRAM);
    let settings = scratch.home().join(".claude/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, "{\n  \"model\": \"x\"\n}\n").unwrap();
    let claude = |word: &str| scratch.takeup(&["agents", word, "claude-code", "--user"]);
    claude("install").exits(0);
    let record = scratch
        .home()
        .join(".local/state/takeup/installed/claude-code-user");
    fs::write(record.join("manifest.json"), "{").unwrap();
    let refused = claude("uninstall").exits(1);
    assert!(
        refused.stderr.contains("git takeup doctor --fix"),
        "{}",
        refused.stderr
    );
    says(&findings(&scratch, &scratch.repo()), "integrations", "warn");
    scratch.takeup(&["doctor", "--fix", "--yes"]).exits(0);
    let found = findings(&scratch, &scratch.repo());
    assert!(found.iter().all(|one| one["check"] != "integrations"));
    claude("uninstall").exits(0);
    assert_eq!(
        fs::read_to_string(&settings).unwrap(),
        "{\n  \"model\": \"x\"\n}\n"
    );
    claude("install").exits(0);
    claude("uninstall").exits(0);
}

/// An agent calls the program by its name, and what it does not find records nothing.
#[test]
fn a_program_that_agents_do_not_find_is_named() {
    let scratch = Scratch::new(PROGRAM);
    fs::create_dir_all(scratch.home().join(".claude")).unwrap();
    scratch
        .takeup(&["agents", "install", "claude-code", "--user"])
        .exits(0);
    // Nothing but git is on PATH.
    let bin = scratch.path().join("only");
    fs::create_dir_all(&bin).unwrap();
    let paths = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&paths)
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    std::os::unix::fs::symlink(git, bin.join("git")).unwrap();
    let answer = |args: &[&str]| {
        let mut command = scratch.program_in(&scratch.repo());
        let output = command.env("PATH", &bin).args(args).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let doctor = answer(&["doctor", "--json"]);
    let found = doctor["data"]["findings"].as_array().unwrap();
    let said = says(found, "agent-claude-code", "warn");
    assert!(said.contains("git-takeup is not on PATH"), "{said}");
    assert!(!said.contains("agents install"), "{said}");
    let list = answer(&["agents", "list", "--json"]);
    let agents = list["data"]["agents"].as_array().unwrap();
    let claude = agents
        .iter()
        .find(|one| one["id"] == "claude-code")
        .unwrap();
    assert_eq!(claude["forUser"], "outdated");
}

#[test]
fn a_switch_that_was_forgotten_and_moves_nobody_saw_are_named() {
    let scratch = installed();
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "seen"]);
    settled(&scratch.repo());
    let off = scratch
        .program_in(&scratch.repo())
        .env("TAKEUP_HOOKS", "0")
        .args(["doctor", "--json"])
        .output()
        .unwrap();
    let off: Value = serde_json::from_slice(&off.stdout).unwrap();
    let off = off["data"]["findings"].as_array().unwrap();
    says(off, "switches", "warn");
    assert!(off.iter().all(|one| one["check"] != "hooks-missed"));

    let unseen = git_with(
        &scratch,
        &scratch.repo(),
        |command| {
            command.env("TAKEUP_HOOKS", "0");
        },
        &["commit", "-q", "--allow-empty", "-m", "nobody looked"],
    );
    assert!(unseen.status.success());
    let said = says(&findings(&scratch, &scratch.repo()), "hooks-missed", "warn");
    assert!(said.contains("commit: nobody looked"), "{said}");
}

#[test]
fn a_commit_that_nobody_saw_is_named_also_when_later_ones_were_seen() {
    let scratch = installed();
    let none = |scratch: &Scratch| {
        let found = findings(scratch, &scratch.repo());
        assert!(
            found.iter().all(|one| one["check"] != "hooks-missed"),
            "{found:#?}"
        );
    };
    // Later than the installation by git's clock, which has seconds only.
    let commit = |message: &str, minute: u32, seen: bool| {
        let date = format!("2090-01-01T00:{minute:02}:00Z");
        let ran = git_with(
            &scratch,
            &scratch.repo(),
            |command| {
                command.env("GIT_COMMITTER_DATE", &date);
                if !seen {
                    command.env("TAKEUP_HOOKS", "0");
                }
            },
            &["commit", "-q", "--allow-empty", "-m", message],
        );
        assert!(ran.status.success());
        settled(&scratch.repo());
    };
    commit("seen", 1, true);
    scratch.git(&["reset", "-q", "--hard", "HEAD~1"]);
    commit("seen, too", 2, true);
    none(&scratch);
    commit("nobody looked", 3, false);
    commit("seen again", 4, true);
    let said = says(&findings(&scratch, &scratch.repo()), "hooks-missed", "warn");
    assert!(said.contains("1 commit was made"), "{said}");
    assert!(said.contains("commit: nobody looked"), "{said}");
}

#[test]
fn decisions_that_were_not_shown_are_counted() {
    use takeup_core::agent::Effect;
    use takeup_core::ids::{AgentId, Fingerprint, SessionId, SessionRef, TaskId};
    use takeup_core::ledger::{Actor, Change, PendingEffect, Transition};
    use takeup_core::time::{Clock as _, SystemClock};
    let scratch = installed();
    let session = |id: &str| {
        SessionRef::new(
            AgentId::new("opencode").unwrap(),
            SessionId::new(id).unwrap(),
        )
    };
    let effect = PendingEffect {
        effect_id: "e1".to_owned(),
        agent: AgentId::new("opencode").unwrap(),
        root: scratch.repo().display().to_string(),
        effect: Effect::TakenUp {
            task_id: TaskId::new("t").unwrap(),
            title: "t".to_owned(),
            source: session("a"),
            target: session("b"),
            fingerprint: Fingerprint::new("a".repeat(40)).unwrap(),
            compatible: true,
            at: SystemClock.now(),
        },
    };
    let transition = Transition {
        at: SystemClock.now(),
        actor: Actor {
            session: session("b"),
            pid: 1,
        },
        operation: "resume".to_owned(),
        changes: vec![Change::Decided {
            effect: Box::new(effect),
        }],
    };
    Ledger::at(scratch.repo().join(".git/takeup"))
        .transact(&SystemClock, Ledger::PATIENCE, |_| {
            Ok::<_, std::convert::Infallible>((Some(transition), ()))
        })
        .unwrap();
    let said = says(
        &findings(&scratch, &scratch.repo()),
        "ledger-effects",
        "warn",
    );
    assert!(said.starts_with("1 decision is not yet shown"), "{said}");
}

/// An installation that was killed leaves a file under a temporary name: the doctor removes it when nobody can be at work
/// on it any more, and so does an uninstallation.
#[test]
fn what_a_killed_installation_left_beside_the_hooks_goes() {
    for fault in ["file-write:middle=kill", "file-rename:before=kill"] {
        let scratch = Scratch::new(PROGRAM);
        scratch.takeup(&["init"]).exits(0);
        let hooks = hooks_folder(&scratch);
        let before = whole(&hooks);
        let temporary = || {
            let names = fs::read_dir(&hooks)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let is_ours = |path: &PathBuf| path.to_string_lossy().contains(".takeup-tmp-");
            names.filter(is_ours).collect::<Vec<_>>()
        };
        let kill = || {
            let killed = scratch
                .program_in(&scratch.repo())
                .env("TAKEUP_FAULT", fault)
                .args(["hooks", "install"])
                .status()
                .unwrap();
            assert_eq!(killed.code(), None, "{fault}");
            assert_eq!(temporary().len(), 1, "{fault}");
        };
        kill();
        let young = findings(&scratch, &scratch.repo());
        assert!(young.iter().all(|one| one["check"] != "hooks-temporary"));
        let left = temporary().remove(0);
        let two_hours_ago = std::time::SystemTime::now() - Duration::from_hours(2);
        let file = fs::File::options().write(true).open(&left).unwrap();
        file.set_modified(two_hours_ago).unwrap();
        let said = says(
            &findings(&scratch, &scratch.repo()),
            "hooks-temporary",
            "warn",
        );
        assert!(said.contains(&left.display().to_string()), "{said}");
        scratch.takeup(&["doctor", "--fix", "--yes"]).exits(0);
        assert_eq!(temporary(), Vec::<PathBuf>::new());
        kill();
        scratch.takeup(&["hooks", "install"]).exits(0);
        assert_eq!(temporary(), Vec::<PathBuf>::new());
        let found = findings(&scratch, &scratch.repo());
        assert!(says(&found, "hooks", "ok").contains("5 git hooks run"));

        scratch.takeup(&["hooks", "uninstall"]).exits(0);
        assert_eq!(timeless(&whole(&hooks)), timeless(&before), "{fault}");
        kill();
        scratch.takeup(&["hooks", "uninstall"]).exits(0);
        assert_eq!(timeless(&whole(&hooks)), timeless(&before), "{fault}");
    }
}

/// Gives everything in the scratch to an ordinary user, where root runs the tests, and returns what makes a command that user's.
fn given_away(scratch: &Scratch) -> impl Fn(&mut Command) {
    use std::os::unix::process::CommandExt as _;
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if root {
        let given = Command::new("chown")
            .args(["-R", "65534:65534"])
            .arg(scratch.path())
            .status();
        assert!(given.unwrap().success());
    }
    move |command| {
        if root {
            command.uid(65_534).gid(65_534);
        }
    }
}

/// What this user may not read is not damaged: nothing of it is given another name, and opening it is enough.
#[test]
fn what_is_closed_is_not_damaged() {
    let scratch = Scratch::new(PROGRAM);
    leave(&scratch, &scratch.repo(), "task");
    let ordinary = given_away(&scratch);
    let as_user = |words: &[&str]| {
        let mut command = scratch.program_in(&scratch.repo());
        ordinary(&mut command);
        takeup_tests::Ran::of(command.args(words).output().unwrap())
    };
    let places = scratch.home().join(".local/state/takeup/places.json");
    let state = scratch.repo().join(".git/takeup");
    for (path, mode) in [
        (state.join("repository-id"), 0o600),
        (state.join("worktree-id"), 0o600),
        (state.clone(), 0o700),
        (places, 0o600),
    ] {
        let before = whole(&scratch.repo());
        let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        set(0);
        let answer = as_user(&["doctor", "--json"]).exits(1).json();
        let found = answer["data"]["findings"].as_array().unwrap();
        let closed = found.iter().find(|one| one["verdict"] == "fail").unwrap();
        let advice = closed["advice"].as_str().unwrap();
        assert!(advice.contains("make it readable"), "{closed:#}");
        assert!(closed["remedy"].is_null(), "{closed:#}");
        for one in found {
            let message = one["message"].as_str().unwrap();
            assert!(!message.ends_with("gone"), "{one:#}");
        }
        as_user(&["doctor", "--fix", "--yes"]).exits(1);
        // As it is advised.
        let command = advice.split_once("yourself: ").unwrap().1;
        let mut shell = Command::new("sh");
        ordinary(&mut shell);
        assert!(shell.args(["-c", command]).status().unwrap().success());
        set(mode);
        assert_eq!(whole(&scratch.repo()), before, "{}", path.display());
        let answer = as_user(&["inspect", "--json"]).exits(0).json();
        let verdict = &answer["data"]["candidates"][0]["verdict"];
        assert_eq!(verdict, "resume-verification", "{}", path.display());
    }
}

/// Only the file that every record is added to keeps records from being made.
#[test]
fn what_is_said_of_a_closed_file_of_the_ledger_is_so() {
    let scratch = Scratch::new(PROGRAM);
    leave(&scratch, &scratch.repo(), "task");
    let folder = scratch.repo().join(".git/takeup");
    for _ in 0..130 {
        let note = takeup_tests::ledger::note("task", "x");
        takeup_tests::ledger::put(&Ledger::at(&folder), note).unwrap();
    }
    let ordinary = given_away(&scratch);
    let as_user = |words: &[&str]| {
        let mut command = scratch.program_in(&scratch.repo());
        ordinary(&mut command);
        takeup_tests::Ran::of(command.args(words).output().unwrap())
    };
    let mut refused = Vec::new();
    for name in ["journal.jsonl", "state.json", "acknowledged"] {
        let path = folder.join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let doctor = as_user(&["doctor", "--json"]).exits(1).json();
        let found = doctor["data"]["findings"].as_array().unwrap();
        let said = says(found, "ledger", "fail");
        let is_refused = as_user(&["start", name, "--session", "s2"]).code != 0;
        assert_eq!(
            said.contains("nothing is recorded"),
            is_refused,
            "{name}: {said}"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if is_refused {
            refused.push(name);
        }
    }
    assert_eq!(refused, ["journal.jsonl"]);
}

/// Where the clock was set back, what came after what is told by the order of the records.
#[test]
fn a_commit_that_a_hook_saw_is_not_missed_whatever_the_clock_says() {
    let scratch = installed();
    let ledger = Ledger::at(scratch.repo().join(".git/takeup"));
    let clock = takeup_core::time::SystemClock;
    // As if they had been installed three days from now.
    let later = |at: Time| Time::from_millis(at.millis() + 3 * 24 * 3_600_000);
    ledger
        .transact(&clock, Ledger::PATIENCE, |view| {
            let changes = view.state.hooks.iter().map(|(name, hook)| Change::Hook {
                name: name.clone(),
                hook: Some(InstalledHook {
                    installed_at: later(hook.installed_at),
                    ..hook.clone()
                }),
            });
            let transition = takeup_tests::ledger::transition("hooks install", changes.collect());
            Ok::<_, std::convert::Infallible>((Some(transition), ()))
        })
        .unwrap();
    let date = format!("{} +0000", later(clock.now()).millis() / 1000 + 60);
    let dress = |command: &mut Command| {
        command.env("GIT_COMMITTER_DATE", &date);
    };
    let first = ["commit", "-q", "--allow-empty", "-m", "first"];
    assert!(
        git_with(&scratch, &scratch.repo(), dress, &first)
            .status
            .success()
    );
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    assert_eq!(settled(&scratch.repo()).observations.len(), 2);
    let missed = || {
        let found = findings(&scratch, &scratch.repo());
        found.iter().any(|one| one["check"] == "hooks-missed")
    };
    assert!(!missed());
    fs::remove_file(hooks_folder(&scratch).join("post-commit")).unwrap();
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "third"]);
    assert!(missed());
}

/// What `show` sends to the doctor for, the doctor names.
#[test]
fn a_file_of_the_archive_that_holds_another_task_is_named() {
    let scratch = Scratch::new(PROGRAM);
    for task in ["one", "two"] {
        for words in [&["start", task, "--no-checks"][..], &["finish", task]] {
            scratch
                .takeup(&[words, &["--session", task]].concat())
                .exits(0);
        }
    }
    let folder = scratch.repo().join(".git/takeup");
    let actor = takeup_tests::ledger::actor();
    let clock = takeup_core::time::SystemClock;
    Ledger::at(&folder)
        .archive(&clock, Ledger::PATIENCE, &actor, |_| true)
        .unwrap();
    let archive = folder.join("archive");
    fs::copy(archive.join("two.json"), archive.join("one.json")).unwrap();
    let shown = scratch.takeup(&["show", "one"]).exits(1).stderr;
    assert!(shown.contains("one.json: it holds the task two"), "{shown}");
    let said = says(&findings(&scratch, &scratch.repo()), "ledger-spare", "warn");
    assert!(said.contains("one.json: it holds the task two"), "{said}");
    scratch.takeup(&["show", "two"]).exits(0);
}
