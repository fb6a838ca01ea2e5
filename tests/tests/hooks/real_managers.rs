//! Real hook managers, where the variable `TAKEUP_REAL_MANAGERS` names a folder with their programs (`pre-commit`, `prek`,
//! `lefthook`, `husky`). Without it the scripts of `managers.rs`, which behave like them, have to do.
use super::*;

/// The folder with the programs; says in one line what is skipped.
fn manager(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("TAKEUP_REAL_MANAGERS").map(PathBuf::from);
    let program = folder
        .map(|folder| folder.join(name))
        .filter(|file| file.exists());
    if program.is_none() {
        println!("skipped: {name} is not in the folder that TAKEUP_REAL_MANAGERS names");
    }
    program
}

/// A scratch in which the manager's folder is on PATH, as its hooks need it.
fn run(scratch: &Scratch, program: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program);
    dress(scratch, program, &mut command);
    let output = command
        .current_dir(scratch.repo())
        .args(args)
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success(),
        "{} {args:?}: {said}",
        program.display()
    );
    said
}

fn dress(scratch: &Scratch, program: &Path, command: &mut Command) {
    scratch.dress(command);
    let mut paths = vec![
        scratch.path().join("bin"),
        program.parent().unwrap().to_path_buf(),
    ];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    command.env("PATH", std::env::join_paths(paths).unwrap());
}

/// Git with the manager on PATH; the session `s1` is the shell that calls it.
fn git_as_session(scratch: &Scratch, program: &Path, args: &str) {
    let mut shell = Command::new("sh");
    dress(scratch, program, &mut shell);
    let script = format!(
        "set -e\ngit-takeup start t --session s1 --pid $$ --no-checks >/dev/null 2>&1 || git-takeup save --session s1 --pid $$ >/dev/null\ngit {args}\n"
    );
    let ran = shell
        .current_dir(scratch.repo())
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

fn verdict(scratch: &Scratch) -> String {
    let answer = scratch.takeup(&["inspect", "--json"]).json();
    answer["data"]["candidates"][0]["verdict"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The managers that park the unstaged part of a half-staged tree while hooks run.
fn half_staged(name: &str) {
    let Some(program) = manager(name) else { return };
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let mark = scratch.path().join("mark");
    let config = format!(
        "repos:\n  - repo: local\n    hooks:\n      - id: look\n        name: look\n        language: system\n        entry: sh -c 'cp a.txt {}'\n        stages: [pre-commit]\n        always_run: true\n        pass_filenames: false\n",
        mark.display()
    );
    scratch.write(".pre-commit-config.yaml", &config);
    run(
        &scratch,
        &program,
        &["install", "-t", "pre-commit", "-t", "post-commit"],
    );
    // The post-commit hook is the manager's: what to add is said, and done.
    let answer = scratch
        .takeup(&["hooks", "install", "--json"])
        .exits(1)
        .json();
    let first = &answer["data"]["hooks"][0];
    assert_eq!(
        (first["manager"].as_str(), first["outcome"].as_str()),
        (Some(name), Some("by-hand"))
    );
    let add = first["add"].as_str().unwrap();
    // One list of repositories: the added one goes below the one that is there.
    assert_eq!(first["below"][0], "repos");
    scratch.write(".pre-commit-config.yaml", format!("{config}{add}\n"));
    scratch.git(&["add", ".pre-commit-config.yaml"]);
    scratch.git(&["commit", "-q", "--no-verify", "-m", "config"]);
    let before = state(&scratch.repo()).observations.len();

    scratch.write("b.txt", "staged\n");
    scratch.git(&["add", "b.txt"]);
    scratch.write("a.txt", "one\nunstaged\n");
    git_as_session(&scratch, &program, "commit -q -m half");
    // The manager did park: its hook saw the tree without the unstaged line.
    assert_eq!(fs::read_to_string(&mark).unwrap(), "one\n");
    assert_eq!(
        fs::read_to_string(scratch.repo().join("a.txt")).unwrap(),
        "one\nunstaged\n"
    );
    let seen = settled(&scratch.repo()).observations;
    let commits: Vec<_> = seen
        .iter()
        .skip(before)
        .filter(|one| one.event == "post-commit")
        .collect();
    assert_eq!(commits.len(), 1, "{seen:#?}");
    assert_eq!(commits[0].by.as_ref().unwrap().id.as_str(), "s1");
    assert_eq!(verdict(&scratch), "resume-verification");
    let status = scratch.takeup(&["hooks", "status", "--json"]).json();
    assert_eq!(status["data"]["hooks"][0]["state"], "by-hand");
}

#[test]
fn pre_commit_and_a_half_staged_tree() {
    half_staged("pre-commit");
}

#[test]
fn prek_and_a_half_staged_tree() {
    half_staged("prek");
}

/// A manager that is installed after us: it keeps our hook, or we say that it was displaced.
#[test]
fn pre_commit_installed_afterwards_runs_ours_as_well() {
    for name in ["pre-commit", "prek"] {
        let Some(program) = manager(name) else {
            continue;
        };
        let scratch = installed();
        scratch.write(".pre-commit-config.yaml", "repos: []\n");
        run(&scratch, &program, &["install", "-t", "post-commit"]);
        let git = |args: &[&str]| {
            let done = git_with(
                &scratch,
                &scratch.repo(),
                |command| dress(&scratch, &program, command),
                args,
            );
            assert!(
                done.status.success(),
                "{}",
                String::from_utf8_lossy(&done.stderr)
            );
        };
        git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        let runs = settled(&scratch.repo()).observations.len() == 1;
        let status = scratch.takeup(&["hooks", "status", "--json"]).json();
        let found = status["data"]["hooks"][0]["state"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            runs,
            ["installed", "by-hand"].contains(&found.as_str()),
            "{name}: runs {runs}, said {found}"
        );
    }
}

/// Every hook at once, as it is said, in each of prek's files.
#[test]
fn prek_in_each_of_its_files() {
    let Some(program) = manager("prek") else {
        return;
    };
    for (name, content) in [
        (
            "prek.toml",
            "fail_fast = false\n\n[[repos]]\nrepo = \"local\"\nhooks = []\n\n",
        ),
        (".pre-commit-config.yml", "repos:\n"),
        (".pre-commit-config.yaml", ""),
    ] {
        let scratch = Scratch::new(PROGRAM);
        scratch.takeup(&["init"]).exits(0);
        scratch.write(name, content);
        let mut words = vec!["install"];
        for event in ["post-commit", "post-checkout", "post-merge", "post-rewrite"] {
            words.extend(["-t", event]);
        }
        run(&scratch, &program, &words);
        let answer = scratch
            .takeup(&["hooks", "install", "--json"])
            .exits(1)
            .json();
        let mut text = content.to_owned();
        for hook in answer["data"]["hooks"].as_array().unwrap() {
            if hook["outcome"] == "by-hand" {
                assert!(hook["file"].as_str().unwrap().ends_with(name), "{hook:#}");
                text.push_str(hook["add"].as_str().unwrap());
                text.push('\n');
            }
        }
        scratch.write(name, &text);
        scratch.git(&["add", "-A"]);
        let git = |args: &[&str]| {
            let done = git_with(
                &scratch,
                &scratch.repo(),
                |command| dress(&scratch, &program, command),
                args,
            );
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{name}: {said}");
        };
        git(&["commit", "-q", "-m", "x"]);
        git(&["checkout", "-q", "-b", "side"]);
        let seen = settled(&scratch.repo()).observations;
        assert_eq!(events(&seen), ["post-commit", "post-checkout"], "{name}");
        scratch.takeup(&["hooks", "status"]).exits(0);
    }
}

#[test]
fn lefthook() {
    let Some(program) = manager("lefthook") else {
        return;
    };
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    let config = "post-commit:\n  jobs:\n    - name: own\n      run: touch .git/own-ran\n";
    scratch.write("lefthook.yml", config);
    run(&scratch, &program, &["install"]);
    let answer = scratch
        .takeup(&["hooks", "install", "--json"])
        .exits(1)
        .json();
    let first = &answer["data"]["hooks"][0];
    assert_eq!(first["manager"], "lefthook", "{answer:#}");
    let add = first["add"].as_str().unwrap();
    assert_eq!(first["below"][1], "jobs");
    scratch.write("lefthook.yml", format!("{config}{add}\n"));
    run(&scratch, &program, &["install"]);
    let done = git_with(
        &scratch,
        &scratch.repo(),
        |command| dress(&scratch, &program, command),
        &["commit", "-q", "--allow-empty", "-m", "x"],
    );
    assert!(done.status.success());
    assert!(scratch.repo().join(".git/own-ran").exists());
    assert_eq!(
        events(&settled(&scratch.repo()).observations),
        ["post-commit"]
    );
    let status = scratch.takeup(&["hooks", "status", "--json"]).json();
    assert_eq!(status["data"]["hooks"][0]["state"], "by-hand");
}

#[test]
fn husky() {
    let Some(program) = manager("husky") else {
        return;
    };
    let scratch = Scratch::new(PROGRAM);
    scratch.takeup(&["init"]).exits(0);
    scratch.write("package.json", "{}\n");
    run(&scratch, &program, &[]);
    let answer = scratch
        .takeup(&["hooks", "install", "--json"])
        .exits(1)
        .json();
    assert_eq!(answer["error"]["code"], "hooks-managed");
    let first = &answer["data"]["hooks"][0];
    assert_eq!(first["manager"], "husky");
    let file = PathBuf::from(first["file"].as_str().unwrap());
    fs::write(&file, format!("{}\n", first["add"].as_str().unwrap())).unwrap();
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    assert_eq!(
        events(&settled(&scratch.repo()).observations),
        ["post-commit"]
    );
    let status = scratch.takeup(&["hooks", "status", "--json"]).json();
    assert_eq!(status["data"]["hooks"][0]["state"], "by-hand");
}
