//! Hooks named in the configuration, with a real git that runs them (2.54 and later), where the variable `TAKEUP_REAL_GIT`
//! names its program. Without it the stand-in of `install.rs` has to do.
use super::*;

/// A scratch in which that git is the first on PATH.
fn scratch() -> Option<Scratch> {
    let Some(git) = std::env::var_os("TAKEUP_REAL_GIT") else {
        println!("skipped: TAKEUP_REAL_GIT names no git of version 2.54 or later");
        return None;
    };
    let scratch = Scratch::empty(PROGRAM);
    script(
        &scratch.path().join("bin/git"),
        &format!(
            "#!/bin/sh\nexec '{}' \"$@\"\n",
            PathBuf::from(git).display()
        ),
    );
    begin(&scratch, &scratch.repo());
    Some(scratch)
}

fn begin(scratch: &Scratch, repo: &Path) {
    fs::create_dir(repo).unwrap();
    // The program is found by the PATH of the child, so through a shell.
    run(
        scratch,
        repo,
        "git init -q -b main && echo one > a.txt && git add a.txt && git commit -q -m first",
    );
}

/// Runs a script; returns what it said on standard error.
fn run(scratch: &Scratch, folder: &Path, text: &str) -> String {
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let global = scratch.path().join("gitconfig");
    let ran = shell
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", global)
        .env("GIT_EDITOR", "true")
        .args(["-ec", text])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{text}: {said}");
    said
}

fn takeup(scratch: &Scratch, args: &[&str]) -> serde_json::Value {
    let ran = scratch
        .program_in(&scratch.repo())
        .env("GIT_CONFIG_GLOBAL", scratch.path().join("gitconfig"))
        .args(args)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn states(scratch: &Scratch) -> Vec<String> {
    let status = takeup(scratch, &["hooks", "status", "--json"]);
    status["data"]["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| hook["state"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn real_git_runs_what_the_configuration_names() {
    let Some(scratch) = scratch() else { return };
    let repo = scratch.repo();
    let config = repo.join(".git/config");
    let before = fs::read(&config).unwrap();
    let hooks = whole(&hooks_folder(&scratch));
    // Hooks of others, in a folder of theirs, run beside ours.
    let marker = scratch.path().join("marker");
    script(
        &repo.join(".husky/_/post-commit"),
        &format!("#!/bin/sh\necho theirs >> '{}'\n", marker.display()),
    );
    run(&scratch, &repo, "git config core.hooksPath .husky/_");
    let with_path = fs::read(&config).unwrap();
    let installed = takeup(&scratch, &["hooks", "install", "--json"]);
    assert_eq!(installed["data"]["complete"], true, "{installed:#}");
    assert_eq!(whole(&hooks_folder(&scratch)), hooks);
    assert_eq!(states(&scratch), ["installed"; 5]);

    let said = run(
        &scratch,
        &repo,
        "git commit -q --allow-empty -m one
         git commit -q --allow-empty --amend -m two
         git checkout -q -b side HEAD~1
         echo side > b.txt && git add b.txt && git commit -q -m side
         git format-patch -q -1 -o ../patches
         git checkout -q main
         git merge -q --no-edit side
         git checkout -q --detach side~1
         git am -q ../patches/*
         git checkout -q main
         git worktree add -q ../linked -b linked
         cd ../linked && git commit -q --allow-empty -m linked",
    );
    assert_eq!(said, "");
    let seen = settled(&repo).observations;
    assert_eq!(
        events(&seen),
        [
            "post-commit",
            "post-commit",
            "post-rewrite",
            "post-checkout",
            "post-commit",
            "post-checkout",
            "post-merge",
            "post-checkout",
            "post-applypatch",
            "post-checkout",
            "post-checkout",
            "post-commit",
        ]
    );
    let first = &seen[0].worktree_id;
    assert!(seen[..10].iter().all(|one| &one.worktree_id == first));
    assert!(seen[10..].iter().all(|one| &one.worktree_id != first));
    assert_eq!(fs::read_to_string(&marker).unwrap().lines().count(), 3);

    // Switched off, as git's documentation says.
    run(
        &scratch,
        &repo,
        "git config hook.takeup-post-commit.enabled false && git commit -q --allow-empty -m unseen
         git config --unset hook.takeup-post-commit.enabled",
    );
    assert_eq!(settled(&repo).observations.len(), seen.len());
    takeup(&scratch, &["hooks", "uninstall", "--json"]);
    assert_eq!(states(&scratch), ["missing"; 5]);
    let mut rest = fs::read_to_string(&config).unwrap();
    // Git itself leaves the heading of a section that it emptied.
    rest = rest.replace("[hook \"takeup-post-commit\"]\n", "");
    assert_eq!(rest.as_bytes(), with_path);
    assert_ne!(with_path, before);
    assert_eq!(run(&scratch, &repo, "git commit -q --allow-empty -m z"), "");
    assert_eq!(settled(&repo).observations.len(), seen.len());
}

#[test]
fn real_git_goes_on_whatever_becomes_of_the_program() {
    let Some(scratch) = scratch() else { return };
    let repo = scratch.repo();
    let program = scratch.path().join("own/git-takeup");
    run(
        &scratch,
        &repo,
        &format!(
            "mkdir ../own && cp '{PROGRAM}' ../own/git-takeup && ../own/git-takeup hooks install >/dev/null
             rm ../bin/git-takeup"
        ),
    );
    let commit = "git commit -q --allow-empty -m x";
    assert_eq!(run(&scratch, &repo, commit), "");
    assert_eq!(settled(&repo).observations.len(), 1);
    for text in ["#!/bin/sh\nexec sleep 60\n", "#!/bin/sh\nexit 1\n"] {
        script(&program, text);
        let begun = Instant::now();
        assert_eq!(run(&scratch, &repo, commit).lines().count(), 1, "{text}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{text}");
    }
    fs::remove_file(&program).unwrap();
    assert_eq!(run(&scratch, &repo, commit), "");
    assert_eq!(
        run(&scratch, &repo, &format!("TAKEUP_HOOKS=0 {commit}")),
        ""
    );
}

/// Installed for all repositories: those that do not use takeup bear no trace.
#[test]
fn real_git_serves_every_repository_of_a_user() {
    let Some(scratch) = scratch() else { return };
    let repo = scratch.repo();
    let done = takeup(&scratch, &["hooks", "install", "--global", "--json"]);
    assert_eq!(done["ok"], true, "{done:#}");
    let other = scratch.path().join("other");
    begin(&scratch, &other);
    run(&scratch, &other, "git commit -q --allow-empty -m x");
    assert!(!other.join(".git/takeup").exists());
    assert!(!repo.join(".git/takeup").exists());
    takeup(&scratch, &["init", "--json"]);
    run(&scratch, &repo, "git commit -q --allow-empty -m x");
    assert_eq!(events(&settled(&repo).observations), ["post-commit"]);
    takeup(&scratch, &["hooks", "uninstall", "--global", "--json"]);
    let left = fs::read_to_string(scratch.path().join("gitconfig")).unwrap();
    assert_eq!(left, "");
}
