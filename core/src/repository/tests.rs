//! One suite over both implementations; plain git is the judge.
#![expect(
    clippy::disallowed_methods,
    clippy::create_dir,
    clippy::needless_collect,
    reason = "tests make files as a user does, and start all threads before they wait for one"
)]
mod places;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;
use crate::time::Time;

struct Scratch {
    _folder: tempfile::TempDir,
    top: PathBuf,
    env: Env,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        let env = Self::env_of(&top, &[]);
        Self {
            _folder: folder,
            top,
            env,
        }
    }

    fn env_of(top: &Path, more: &[(&str, &OsStr)]) -> Env {
        let path = std::env::var_os("PATH").unwrap();
        let mut vars: Vec<(&str, &OsStr)> = vec![
            ("PATH", &path),
            ("HOME", top.as_os_str()),
            ("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
            ("GIT_CEILING_DIRECTORIES", top.as_os_str()),
        ];
        vars.extend_from_slice(more);
        Env::of(vars, top)
    }

    /// A repository with one commit.
    fn repository(&self, name: &str, options: &[&str]) -> PathBuf {
        let root = self.top.join(name);
        fs::create_dir_all(&root).unwrap();
        git(&root, &[&["init", "-q", "-b", "main"], options].concat());
        fs::write(root.join("file"), "one\n").unwrap();
        git(&root, &["add", "file"]);
        git(&root, &["commit", "-q", "-m", "first"]);
        root
    }

    /// The repository at `start` through every implementation that can open it, libgit2 first.
    fn both(&self, start: &Path) -> Vec<Box<dyn Git>> {
        let program = GitProgram::find(&self.env).unwrap();
        let program = program.discover(&self.env, start).unwrap();
        let mut found: Vec<Box<dyn Git>> = Vec::new();
        if let Ok(git) = Libgit2::discover(&self.env, start) {
            assert_eq!(git.place(), program.place().unwrap());
            found.push(Box::new(git));
        }
        found.push(Box::new(program));
        found
    }
}

fn git_command(root: &Path) -> Command {
    let mut command = Command::new("git");
    clean_git_environment(&mut command);
    command
        .current_dir(root)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@example.com"),
            ("GIT_COMMITTER_NAME", "A"),
            ("GIT_COMMITTER_EMAIL", "a@example.com"),
            ("GIT_AUTHOR_DATE", "1700000000 +0000"),
        ])
        .args([
            "-c",
            "protocol.file.allow=always",
            "-c",
            "advice.detachedHead=false",
        ]);
    command
}

fn try_git(root: &Path, args: &[&str]) -> std::process::Output {
    git_command(root).args(args).output().unwrap()
}

fn git(root: &Path, args: &[&str]) -> String {
    let output = try_git(root, args);
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

fn oid(text: &str) -> Oid {
    Oid::new(text).unwrap()
}

#[test]
fn the_place_is_what_git_says_it_is() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    fs::create_dir_all(root.join("sub/deep")).unwrap();
    git(&root, &["worktree", "add", "-q", "../linked", "-b", "side"]);
    symlink(root.join("sub"), scratch.top.join("link")).unwrap();
    for start in [
        root.clone(),
        root.join("sub/deep"),
        scratch.top.join("linked"),
        scratch.top.join("link"),
    ] {
        let place = discover(&scratch.env, &start).unwrap();
        assert_eq!(scratch.both(&start).len(), 2);
        let start = fs::canonicalize(start).unwrap();
        let ask = |what| PathBuf::from(git(&start, &["rev-parse", "--path-format=absolute", what]));
        assert_eq!(place.root, ask("--show-toplevel"));
        assert_eq!(place.git_dir, ask("--absolute-git-dir"));
        assert_eq!(place.common_dir, ask("--git-common-dir"));
        assert_eq!(
            Repository::open(&scratch.env, &place).unwrap().place(),
            &place
        );
    }
    // Inside the git folder git has no work tree; the one it belongs to is meant.
    let inside = root.join(".git/refs");
    assert_eq!(scratch.both(&inside).len(), 2);
    assert_eq!(discover(&scratch.env, &inside).unwrap().root, root);
}

#[test]
fn a_hooks_environment_names_the_place_and_only_for_the_folder_of_the_call() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    let other = scratch.repository("other", &[]);
    git(&root, &["worktree", "add", "-q", "../linked", "-b", "side"]);
    let linked = scratch.top.join("linked");
    let slot = root.join(".git/worktrees/linked");
    let sub = linked.join("sub");
    fs::create_dir(&sub).unwrap();
    for (cwd, git_dir, tree, expected) in [
        (&linked, slot.clone(), None, &linked),
        (&sub, slot.clone(), None, &linked),
        (&root, PathBuf::from(".git"), None, &root),
        (&other, root.join(".git"), Some(root.clone()), &root),
        (&other, root.join(".git"), None, &other),
    ] {
        let mut more = vec![("GIT_DIR", git_dir.as_os_str())];
        if let Some(tree) = &tree {
            more.push(("GIT_WORK_TREE", tree.as_os_str()));
        }
        more.push(("GIT_INDEX_FILE", OsStr::new(".git/index.lock")));
        let mut env = Scratch::env_of(&scratch.top, &more);
        env.cwd.clone_from(cwd);
        let by_library = Libgit2::discover(&env, cwd).unwrap();
        let program = GitProgram::find(&env).unwrap();
        let by_program = program.discover(&env, cwd).unwrap();
        assert_eq!(by_library.place(), by_program.place().unwrap());
        assert_eq!(&by_library.place().root, expected);
        assert_eq!(by_library.head().unwrap(), by_program.head().unwrap());
        // Another folder than that of the call is found by its own.
        assert_eq!(
            discover(&env, &scratch.top.join("r/.git/refs"))
                .unwrap()
                .root,
            root
        );
    }
}

/// As for git itself, which is asked beside it.
#[test]
fn a_work_tree_that_the_environment_names_alone_counts() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    let bare = scratch.top.join("bare.git");
    git(&scratch.top, &["clone", "-q", "--bare", "r", "bare.git"]);
    let other = scratch.repository("other", &[]);
    let tree = scratch.top.join("tree");
    fs::create_dir(&tree).unwrap();
    for (cwd, named) in [
        (&root, tree.as_os_str()),
        (&root, OsStr::new("../tree")),
        (&bare, tree.as_os_str()),
    ] {
        let mut env = Scratch::env_of(&scratch.top, &[("GIT_WORK_TREE", named)]);
        env.cwd.clone_from(cwd);
        let by_library = Libgit2::discover(&env, cwd).unwrap();
        let by_program = GitProgram::find(&env).unwrap();
        let by_program = by_program.discover(&env, cwd).unwrap();
        assert_eq!(by_library.place(), by_program.place().unwrap());
        assert_eq!(by_library.place().root, tree);
        let judge = Command::new("git")
            .args(["rev-parse", "--show-toplevel"])
            .env("GIT_WORK_TREE", named)
            .current_dir(cwd)
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(judge.stdout).unwrap().trim_end(),
            tree.to_str().unwrap()
        );
        // Only for the folder of the call.
        assert_eq!(discover(&env, &other).unwrap().root, other);
    }
}

#[test]
fn what_is_no_work_tree_is_refused_by_its_kind() {
    let scratch = Scratch::new();
    let env = &scratch.env;
    let root = scratch.repository("r", &[]);
    let bare = scratch.top.join("bare.git");
    git(&scratch.top, &["clone", "-q", "--bare", "r", "bare.git"]);
    git(&bare, &["worktree", "add", "-q", "../of-bare", "main"]);
    git(&bare, &["config", "extensions.worktreeConfig", "true"]);
    let code = |start: &Path| discover(env, start).unwrap_err().code();
    assert_eq!(code(&scratch.top), "not-a-repository");
    assert_eq!(code(&scratch.top.join("gone")), "not-a-repository");
    assert_eq!(code(&bare), "bare-repository");
    let of_bare = scratch.top.join("of-bare");
    assert_eq!(scratch.both(&of_bare).len(), 2);
    assert_eq!(discover(env, &of_bare).unwrap().common_dir, bare);
    let program = GitProgram::find(env).unwrap();
    for (start, code) in [
        (&scratch.top, "not-a-repository"),
        (&bare, "bare-repository"),
    ] {
        assert_eq!(program.discover(env, start).unwrap_err().code(), code);
        assert_eq!(Libgit2::discover(env, start).unwrap_err().code(), code);
    }

    // A `.git` that is no repository is passed by; one that names a folder that is gone is an error, as in git.
    fs::create_dir_all(root.join("stray/.git/ai")).unwrap();
    assert_eq!(scratch.both(&root.join("stray")).len(), 2);
    assert_eq!(discover(env, &root.join("stray")).unwrap().root, root);
    fs::create_dir(root.join("lost")).unwrap();
    fs::write(root.join("lost/.git"), "gitdir: /nowhere/at/all\n").unwrap();
    assert!(!try_git(&root.join("lost"), &["rev-parse"]).status.success());
    assert_eq!(code(&root.join("lost")), "unreadable-repository");
}

#[test]
fn a_repository_of_another_owner_is_refused_unless_it_is_named_safe() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    let given = [&root, &root.join(".git")]
        .iter()
        .all(|path| std::os::unix::fs::chown(path, Some(65534), None).is_ok());
    if !given {
        println!("skipped: only root can give a repository away");
        return;
    }
    let error = discover(&scratch.env, &root).unwrap_err();
    assert_eq!(error.code(), "unsafe-repository", "{error}");
    assert!(error.hint().unwrap().contains(root.to_str().unwrap()));
    let safe = Scratch::env_of(
        &scratch.top,
        &[
            ("GIT_CONFIG_COUNT", OsStr::new("1")),
            ("GIT_CONFIG_KEY_0", OsStr::new("safe.directory")),
            ("GIT_CONFIG_VALUE_0", root.as_os_str()),
        ],
    );
    let repository = Repository::discover(&safe, &root).unwrap();
    assert_eq!(repository.place().root, root);
    assert!(repository.fallback().is_some());
    repository.git().head().unwrap();
}

#[test]
fn head_branch_and_stash_are_git_s() {
    let scratch = Scratch::new();
    for format in ["sha1", "sha256"] {
        let root = scratch.top.join(format);
        fs::create_dir(&root).unwrap();
        let object_format = format!("--object-format={format}");
        git(&root, &["init", "-q", "-b", "main", &object_format]);
        for git in scratch.both(&root) {
            let head = git.head().unwrap();
            assert_eq!((head.commit, head.branch.as_deref()), (None, Some("main")));
            assert_eq!(git.stash_tip().unwrap(), None);
            assert_eq!(
                git.object_format().unwrap(),
                if format == "sha1" {
                    ObjectFormat::Sha1
                } else {
                    ObjectFormat::Sha256
                }
            );
        }
        scratch.repository(format, &[]);
        fs::write(root.join("file"), "two\n").unwrap();
        git(&root, &["stash", "-q"]);
        git(&root, &["switch", "-q", "-c", "feat/ä"]);
        let (head, stash) = (
            oid(&git(&root, &["rev-parse", "HEAD"])),
            oid(&git(&root, &["rev-parse", "stash"])),
        );
        for git in scratch.both(&root) {
            let found = git.head().unwrap();
            assert_eq!(found.branch.as_deref(), Some("feat/ä"));
            assert_eq!(found.commit.as_ref(), Some(&head));
            assert_eq!(git.stash_tip().unwrap().as_ref(), Some(&stash));
        }
        git(&root, &["switch", "-q", "--detach"]);
        for git in scratch.both(&root) {
            assert_eq!(
                git.head().unwrap(),
                Head {
                    commit: Some(head.clone()),
                    branch: None
                }
            );
        }
        // HEAD as a link, with the branch in a file of its own and without.
        git(&root, &["branch", "-f", "linked"]);
        for packed in [false, true] {
            fs::remove_file(root.join(".git/HEAD")).unwrap();
            symlink("refs/heads/linked", root.join(".git/HEAD")).unwrap();
            if packed {
                git(&root, &["pack-refs", "--all"]);
            }
            for by in scratch.both(&root) {
                let found = by.head().unwrap();
                assert_eq!(found.branch.as_deref(), Some("linked"), "{packed}");
                assert_eq!(found.commit.as_ref(), Some(&head), "{packed}");
            }
        }
        fs::remove_file(root.join(".git/HEAD")).unwrap();
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/linked\n").unwrap();
        // A branch whose file is damaged is an error, and no unborn branch.
        git(&root, &["switch", "-q", "main"]);
        fs::write(root.join(".git/refs/heads/main"), "zzz\n").unwrap();
        for git in scratch.both(&root) {
            assert_eq!(git.head().unwrap_err().code(), "git-failed");
        }
    }
}

#[test]
fn every_operation_in_progress_is_named() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    let commit = |text: &str| {
        fs::write(root.join("file"), text).unwrap();
        git(&root, &["commit", "-q", "-a", "-m", text.trim()]);
    };
    commit("two\n");
    git(&root, &["switch", "-q", "-c", "side", "HEAD~1"]);
    commit("other\n");
    let patch = git(&root, &["format-patch", "-1", "-o", "..", "main"]);
    let expect = |operation: Option<Operation>| {
        for git in scratch.both(&root) {
            assert_eq!(git.operation().unwrap(), operation);
        }
    };
    expect(None);
    for (start, end, operation) in [
        (
            vec!["merge", "main"],
            vec!["merge", "--abort"],
            Operation::Merge,
        ),
        (
            vec!["rebase", "main"],
            vec!["rebase", "--abort"],
            Operation::Rebase,
        ),
        (
            vec!["rebase", "--apply", "main"],
            vec!["rebase", "--abort"],
            Operation::Rebase,
        ),
        (vec!["am", &patch], vec!["am", "--abort"], Operation::Am),
        (
            vec!["cherry-pick", "main"],
            vec!["cherry-pick", "--abort"],
            Operation::CherryPick,
        ),
        (
            vec!["revert", "--no-edit", "HEAD~1"],
            vec!["revert", "--abort"],
            Operation::Revert,
        ),
    ] {
        assert!(!try_git(&root, &start).status.success(), "{start:?}");
        expect(Some(operation));
        git(&root, &end);
        expect(None);
    }
    git(&root, &["bisect", "start"]);
    expect(Some(Operation::Bisect));
    git(&root, &["bisect", "reset"]);
    expect(None);
    // After a conflict of a series is committed by hand, only the list of what is left tells.
    assert!(
        !try_git(&root, &["cherry-pick", "main~1", "main"])
            .status
            .success()
    );
    fs::write(root.join("file"), "mended\n").unwrap();
    git(
        &root,
        &["commit", "-q", "-a", "--allow-empty", "-m", "mended"],
    );
    let left = root.join(".git/sequencer/todo").exists();
    expect(left.then_some(Operation::CherryPick));
}

#[test]
fn settings_and_the_hooks_folder_are_those_in_effect() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    fs::write(
        scratch.top.join(".gitconfig"),
        "[user]\n\tname = Global\n[takeup \"Sub.Key\"]\n\tFlag\n",
    )
    .unwrap();
    git(&root, &["config", "user.name", "Local"]);
    git(&root, &["config", "--add", "user.name", "Last"]);
    git(&root, &["worktree", "add", "-q", "../linked", "-b", "side"]);
    let linked = scratch.top.join("linked");
    for git in scratch.both(&linked) {
        let name = git.config("User.Name").unwrap().unwrap();
        assert_eq!(
            (name.value.as_str(), name.scope),
            ("Last", ConfigScope::Local)
        );
        let flag = git.config("takeup.Sub.Key.flag").unwrap().unwrap();
        assert_eq!(
            (flag.as_bool(), flag.scope),
            (Some(true), ConfigScope::Global)
        );
        assert_eq!(git.config("takeup.sub.key.flag").unwrap(), None);
        assert_eq!(git.hooks_dir().unwrap(), root.join(".git/hooks"));
    }
    for (value, expected) in [
        (".husky/_", linked.join(".husky/_")),
        ("/abs/hooks", PathBuf::from("/abs/hooks")),
        ("~/my hooks", scratch.top.join("my hooks")),
    ] {
        git(&root, &["config", "core.hooksPath", value]);
        for git in scratch.both(&linked) {
            assert_eq!(git.hooks_dir().unwrap(), expected);
        }
    }
    // A file that the environment names counts, and settings of the call count most.
    fs::write(scratch.top.join("elsewhere"), "[a]\n\tb = elsewhere\n").unwrap();
    let elsewhere = scratch.top.join("elsewhere");
    let env = Scratch::env_of(
        &scratch.top,
        &[
            ("GIT_CONFIG_GLOBAL", elsewhere.as_os_str()),
            (
                "GIT_CONFIG_PARAMETERS",
                OsStr::new("'core.hooksPath'='/of/the call'"),
            ),
        ],
    );
    let repository = Repository::discover(&env, &root).unwrap();
    assert_eq!(repository.fallback(), None);
    let program = GitProgram::find(&env)
        .unwrap()
        .discover(&env, &root)
        .unwrap();
    for git in [repository.git(), &program] {
        assert_eq!(git.config("a.b").unwrap().unwrap().value, "elsewhere");
        assert_eq!(git.config("user.name").unwrap().unwrap().value, "Last");
        assert_eq!(git.hooks_dir().unwrap(), Path::new("/of/the call"));
    }
}

#[test]
fn commits_and_changed_paths_are_git_s() {
    let scratch = Scratch::new();
    for options in [&[][..], &["--object-format=sha256"]] {
        let root = scratch.repository(if options.is_empty() { "a" } else { "b" }, options);
        let first = oid(&git(&root, &["rev-parse", "HEAD"]));
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/new\nline \u{fc}"), "x").unwrap();
        fs::write(root.join("d.x"), "y").unwrap();
        fs::remove_file(root.join("file")).unwrap();
        symlink("d", root.join("file")).unwrap();
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-q", "-m", "second\tone\nwraps\n\nbody"]);
        git(&root, &["commit", "-q", "--allow-empty", "-m", "third"]);
        let last = oid(&git(&root, &["rev-parse", "HEAD"]));
        let mut answers = Vec::new();
        for git in scratch.both(&root) {
            let all = git.commits_between(None, &last, 10).unwrap();
            assert_eq!((all.items.len(), all.more), (3, false));
            let found = git.commits_between(Some(&first), &last, 10).unwrap();
            let subjects: Vec<_> = found.items.iter().map(|c| c.subject.as_str()).collect();
            assert_eq!(subjects, ["third", "second one wraps"]);
            assert_eq!(found.items[0].id, last);
            assert_eq!(
                found.items[0].authored_at,
                Time::from_millis(1_700_000_000_000)
            );
            assert_eq!(found.items[0].author, "A");
            let one = git.commits_between(Some(&first), &last, 1).unwrap();
            assert_eq!((one.items.len(), one.more), (1, true));
            assert_eq!(
                git.commits_between(Some(&last), &first, 9).unwrap().items,
                []
            );

            let changed = git.changed_paths(Some(&first), Some(&last), 10).unwrap();
            let listed: Vec<_> = changed
                .items
                .iter()
                .map(|path| (path.path.as_str(), path.change, path.mode.as_deref()))
                .collect();
            assert_eq!(
                listed,
                [
                    ("d.x", PathChange::Added, Some("100644")),
                    ("d/new\\x0aline \u{fc}", PathChange::Added, Some("100644")),
                    ("file", PathChange::Modified, Some("120000")),
                ]
            );
            let back = git.changed_paths(Some(&last), None, 2).unwrap();
            assert_eq!((back.items.len(), back.more), (2, true));
            assert!(
                back.items
                    .iter()
                    .all(|path| path.change == PathChange::Deleted)
            );
            let mut absent = "0123456789".repeat(7);
            absent.truncate(last.as_str().len());
            let absent = oid(&absent);
            for error in [
                git.commits_between(Some(&absent), &last, 9).unwrap_err(),
                git.changed_paths(Some(&absent), Some(&last), 9)
                    .unwrap_err(),
            ] {
                assert!(
                    matches!(&error, RepositoryError::MissingObject { id } if *id == absent),
                    "{error:?}"
                );
            }
            answers.push((
                all,
                found,
                changed,
                git.changed_paths(None, Some(&last), 9).unwrap(),
            ));
        }
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0], answers[1]);
    }
}

#[test]
fn shapes_that_libgit2_cannot_open_are_read_by_git() {
    let scratch = Scratch::new();
    let plain = scratch.repository("plain", &[]);
    git(&plain, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", plain.display());
    git(
        &scratch.top,
        &[
            "clone",
            "-q",
            "-b",
            "main",
            "--filter=blob:none",
            &url,
            "partial",
        ],
    );
    let partial = scratch.top.join("partial");
    git(&partial, &["config", "core.repositoryFormatVersion", "1"]);
    git(&partial, &["config", "extensions.partialClone", "origin"]);
    let mut shapes = vec![partial];
    let mut reftable = git_command(&scratch.top);
    if reftable
        .args(["init", "-q", "-b", "main", "--ref-format=reftable", "table"])
        .status()
        .unwrap()
        .success()
    {
        shapes.push(scratch.repository("table", &[]));
    } else {
        println!("skipped: this git has no reftable");
    }
    for root in shapes {
        let repository = Repository::discover(&scratch.env, &root).unwrap();
        assert!(repository.fallback().is_some(), "{}", root.display());
        assert!(repository.libgit2().is_none());
        let head = repository.git().head().unwrap();
        assert_eq!(
            head.commit.unwrap().as_str(),
            git(&root, &["rev-parse", "HEAD"])
        );
        assert_eq!(head.branch.as_deref(), Some("main"));
        let without = Env::of([("PATH", "/nowhere"), ("HOME", "/nowhere")], &root);
        let error = discover(&without, &root).unwrap_err();
        assert_eq!(error.code(), "git-missing", "{error}");
    }
}

#[test]
fn nothing_that_a_repository_names_is_run() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    let script = scratch.top.join("trap");
    let mark = scratch.top.join("ran");
    fs::write(
        &script,
        format!("#!/bin/sh\ntouch '{}'\nexit 1\n", mark.display()),
    )
    .unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let trap = script.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "diff.external",
        "gpg.program",
        "credential.helper",
        "core.askPass",
        "diff.x.textconv",
        "diff.x.command",
        "filter.x.clean",
        "filter.x.process",
        "pager.log",
        "core.alternateRefsCommand",
    ] {
        git(&root, &["config", key, trap]);
    }
    git(&root, &["config", "log.showSignature", "true"]);
    fs::write(root.join(".git/info/attributes"), "* diff=x filter=x\n").unwrap();
    fs::copy(&script, root.join("git")).unwrap();
    let first = oid(&git(&root, &["rev-parse", "HEAD"]));
    let path = format!(":.:{}", std::env::var("PATH").unwrap());
    let env = Env::of([("PATH", path.as_str()), ("HOME", "/nowhere")], &root);
    let program = GitProgram::find(&env)
        .unwrap()
        .discover(&env, &root)
        .unwrap();
    let library = Libgit2::discover(&env, &root).unwrap();
    for git in [&program as &dyn Git, &library] {
        git.head().unwrap();
        git.operation().unwrap();
        git.stash_tip().unwrap();
        git.hooks_dir().unwrap();
        git.config_entries().unwrap();
        git.commits_between(None, &first, 5).unwrap();
        git.changed_paths(None, Some(&first), 5).unwrap();
    }
    assert!(!mark.exists());
}

#[test]
fn work_trees_are_listed_and_those_that_are_gone_are_known() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    git(&root, &["worktree", "add", "-q", "../a", "-b", "a"]);
    git(&root, &["worktree", "add", "-q", "../b", "-b", "b"]);
    fs::remove_dir_all(scratch.top.join("b")).unwrap();
    for start in [&root, &scratch.top.join("a")] {
        let place = discover(&scratch.env, start).unwrap();
        let found: Vec<_> = worktrees(&place)
            .into_iter()
            .map(|tree| (tree.root, tree.gone))
            .collect();
        let listed = git(&root, &["worktree", "list", "--porcelain"]);
        let roots: Vec<_> = listed
            .lines()
            .filter_map(|line| line.strip_prefix("worktree "))
            .map(PathBuf::from)
            .collect();
        assert_eq!(
            found
                .iter()
                .map(|(root, _)| root.clone())
                .collect::<Vec<_>>(),
            roots
        );
        assert_eq!(
            found.iter().map(|(_, gone)| *gone).collect::<Vec<_>>(),
            [false, false, true]
        );
    }
}

#[test]
fn versions_of_git_are_read_in_every_spelling() {
    for (text, expected) in [
        ("git version 2.47.3\n", Some(GitVersion::new(2, 47, 3))),
        (
            "git version 2.39.5 (Apple Git-154)",
            Some(GitVersion::new(2, 39, 5)),
        ),
        ("git version 2.54.0.rc1", Some(GitVersion::new(2, 54, 0))),
        ("git version 2.55", Some(GitVersion::new(2, 55, 0))),
        ("hub version 1", None),
    ] {
        assert_eq!(GitVersion::parse(text), expected, "{text}");
    }
    let scratch = Scratch::new();
    let program = GitProgram::find(&scratch.env).unwrap();
    assert!(program.version().unwrap() >= GitVersion::OLDEST);
}
