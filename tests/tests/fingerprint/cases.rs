//! Awkward states of a repository, each looked at by every method and by plain git.
use std::os::unix::fs::PermissionsExt as _;

use takeup_core::fingerprint::{DeviationKind, Look, Method, Options, look};
use takeup_core::ids::Fingerprint;
use takeup_tests::fingerprint::judge;
use takeup_tests::fingerprint::repo::Repo;

/// Ways to look that must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the `git` program alone.
    Git,
    /// By the engine, or what it chooses instead, without a cache.
    Engine,
    /// The same with a cache, which is kept from look to look.
    Cached,
    /// The same, believing nothing.
    Verify,
}

pub(super) const WAYS: &[Way] = &[Way::Git, Way::Engine, Way::Cached, Way::Cached, Way::Verify];

pub(super) fn by(repo: &Repo, way: Way) -> Look {
    let mut options = Options::reading_only(&repo.env);
    match way {
        Way::Git => options.method = Some(Method::Git),
        Way::Engine => options.use_cache = false,
        Way::Cached => {
            options.write_cache = true;
            std::fs::create_dir_all(repo.common("takeup")).unwrap();
        }
        Way::Verify => options.verify = true,
    }
    let look = look(&repo.place(), &options).unwrap_or_else(|error| panic!("{way:?}: {error}"));
    if way != Way::Git {
        assert_eq!(look.method == Method::Engine, look.fallback.is_none());
    }
    look
}

/// Looks in every way; each must agree with plain git on the tree and with the others on the whole record. Returns what the
/// engine saw.
pub(super) fn agreed(repo: &Repo) -> Look {
    let judged = judge::tree(&repo.root, &repo.env).unwrap();
    let looks = every_way(repo);
    let seen = looks[1].record.fingerprint.as_ref().map(Fingerprint::tree);
    assert_eq!(seen, Some(judged.as_str()), "plain git");
    looks[1].clone()
}

/// Looks in every way; each must see everything, and agree with the others on the whole record.
pub(super) fn every_way(repo: &Repo) -> Vec<Look> {
    let looks: Vec<Look> = WAYS.iter().map(|way| by(repo, *way)).collect();
    for (way, look) in WAYS.iter().zip(&looks) {
        assert_eq!(look.record.incomplete, None, "{way:?}");
        assert_eq!(
            looks[0].record, look.record,
            "{way:?} against {:?}",
            WAYS[0]
        );
    }
    looks
}

/// Looks in every way; none may see everything.
pub(super) fn incomplete(repo: &Repo) {
    for way in WAYS {
        let look = by(repo, *way);
        assert_eq!(look.record.fingerprint, None, "{way:?}");
        assert!(look.record.incomplete.is_some(), "{way:?}");
        assert!(!look.record.same_content(&look.record), "{way:?}");
    }
}

/// Checks out one folder alone; the index names each other folder as a whole.
pub(super) fn sparse_index(repo: &Repo, folder: &str) {
    repo.git(["sparse-checkout", "set", "--cone", "--sparse-index", folder]);
}

pub(super) fn kinds(look: &Look) -> Vec<(&str, DeviationKind, bool)> {
    look.record
        .deviations
        .iter()
        .map(|deviation| (deviation.path.as_str(), deviation.kind, deviation.staged))
        .collect()
}

pub(super) fn base() -> Repo {
    let repo = Repo::new();
    repo.write("a.txt", "a\n");
    repo.write("dir/b.txt", "b\n");
    repo.write("dir/deep/c.txt", "c\n");
    repo.write("run.sh", "#!/bin/sh\n");
    repo.commit();
    repo
}

#[test]
fn content_counts_and_not_where_it_is_recorded() {
    let repo = base();
    let clean = agreed(&repo);
    assert!(kinds(&clean).is_empty());
    repo.write("a.txt", "changed\n");
    repo.write("new/n.txt", "n\n");
    repo.remove("dir/b.txt");
    let unstaged = agreed(&repo);
    assert_eq!(
        kinds(&unstaged),
        [
            ("a.txt", DeviationKind::Modified, false),
            ("dir/b.txt", DeviationKind::Deleted, false),
            ("new/n.txt", DeviationKind::Untracked, false),
        ]
    );
    assert_ne!(unstaged.record.fingerprint, clean.record.fingerprint);
    repo.git(["add", "-A"]);
    let staged = agreed(&repo);
    assert_eq!(staged.record.fingerprint, unstaged.record.fingerprint);
    assert_eq!(
        kinds(&staged),
        [
            ("a.txt", DeviationKind::Modified, true),
            ("dir/b.txt", DeviationKind::Deleted, true),
            ("new/n.txt", DeviationKind::Added, true),
        ]
    );
    assert_ne!(staged.record.index_tree, unstaged.record.index_tree);
    repo.git(["commit", "-q", "-m", "m"]);
    let committed = agreed(&repo);
    assert_eq!(committed.record.fingerprint, unstaged.record.fingerprint);
    assert!(kinds(&committed).is_empty());
    assert_ne!(committed.record.head, staged.record.head);
}

#[test]
fn empty_and_unborn() {
    let repo = Repo::new();
    let look = agreed(&repo);
    assert_eq!(look.record.head, None);
    assert_eq!(look.record.branch.as_deref(), Some("main"));
    repo.write("a", "1");
    repo.git(["add", "a"]);
    repo.write("b", "2");
    let look = agreed(&repo);
    assert_eq!(
        kinds(&look),
        [
            ("a", DeviationKind::Added, true),
            ("b", DeviationKind::Untracked, false)
        ]
    );
}

#[test]
fn sha256() {
    let repo = Repo::with_format("sha256");
    agreed(&repo);
    repo.write("a", "1");
    repo.write("d/b", "1");
    repo.commit();
    repo.write("d/b", "2");
    repo.write("e/c", "2");
    assert_eq!(kinds(&agreed(&repo)).len(), 2);
}

#[test]
fn modes_links_and_swaps() {
    let repo = base();
    let chmod = |mode| {
        std::fs::set_permissions(repo.path("run.sh"), std::fs::Permissions::from_mode(mode))
            .unwrap();
    };
    chmod(0o755);
    assert_eq!(
        kinds(&agreed(&repo)),
        [("run.sh", DeviationKind::Modified, false)]
    );
    repo.git(["config", "core.fileMode", "false"]);
    assert!(kinds(&agreed(&repo)).is_empty());
    repo.git(["config", "core.fileMode", "true"]);
    repo.commit();
    repo.remove("a.txt");
    repo.link("run.sh", "a.txt");
    repo.remove("dir");
    repo.link("/nowhere", "dir");
    repo.remove("run.sh");
    repo.write("run.sh/inner", "x");
    let look = agreed(&repo);
    assert_eq!(
        kinds(&look),
        [
            ("a.txt", DeviationKind::Modified, false),
            ("dir", DeviationKind::Untracked, false),
            ("dir/b.txt", DeviationKind::Deleted, false),
            ("dir/deep/c.txt", DeviationKind::Deleted, false),
            ("run.sh", DeviationKind::Deleted, false),
            ("run.sh/inner", DeviationKind::Untracked, false),
        ]
    );
    assert_eq!(look.record.deviations[0].mode.as_deref(), Some("120000"));
    repo.commit();
    repo.remove("dir");
    repo.write("dir/b.txt", "again");
    repo.remove("run.sh");
    agreed(&repo);
}

#[test]
fn ignored_at_every_level() {
    let repo = base();
    repo.write(
        ".gitignore",
        "*.log\n/build/\n!keep.log\n# comment\n\\#odd\ntrailing \n",
    );
    repo.write(
        "dir/.gitignore",
        "*\n!.gitignore\n!deep\ndeep/*\n!deep/yes.txt\n",
    );
    repo.write("x.log", "1");
    repo.write("keep.log", "1");
    repo.write("build/out", "1");
    repo.write("dir/build/out", "1");
    repo.write("dir/no.txt", "1");
    repo.write("dir/deep/no.txt", "1");
    repo.write("dir/deep/yes.txt", "1");
    repo.write("#odd", "1");
    repo.write("trailing", "1");
    repo.write(".git/info/exclude", "excluded\n");
    repo.write("excluded", "1");
    repo.write("sub/excluded/inner", "1");
    repo.git(["config", "--global", "core.excludesFile", "~/ignored"]);
    repo.write("../home/ignored", "*.global\n");
    repo.write("x.global", "1");
    agreed(&repo);
    repo.git(["add", "-f", "x.log"]);
    repo.write("x.log", "2");
    let look = agreed(&repo);
    assert!(kinds(&look).contains(&("x.log", DeviationKind::Added, false)));
}

#[test]
fn line_ends_ident_and_encodings() {
    let repo = base();
    repo.git(["config", "core.autocrlf", "true"]);
    repo.write("a.txt", "one\r\ntwo\r\n");
    repo.write("new.txt", "one\r\ntwo\r\n");
    repo.write("binary", "one\r\n\0two\r\n");
    repo.write("lone", "one\rtwo\r\n");
    agreed(&repo);
    repo.git(["config", "core.autocrlf", "false"]);
    repo.write("crlf.txt", "in\r\nthe index\r\n");
    repo.commit();
    repo.write(
        ".gitattributes",
        "* text=auto\n*.id ident\n*.u16 working-tree-encoding=UTF-16\nbin -text\nhard text\n",
    );
    repo.write("crlf.txt", "in\r\nthe index still\r\n");
    repo.write("new.txt", "another\r\n");
    repo.write("x.id", "$Id$ and $Id: 123 $\n");
    repo.write("x.u16", b"\xff\xfea\0\r\0\n\0");
    repo.write("bin", "x\r\n");
    repo.write("hard", "x\r\ny\r");
    repo.write("dir/.gitattributes", "*.txt -text\n");
    repo.write("dir/b.txt", "raw\r\n");
    agreed(&repo);
    repo.commit();
    repo.remove(".gitattributes");
    repo.write("x.id", "$Id: 456 $\n");
    // What git looked at under other attributes stays as it was until the file is touched.
    for name in [
        "crlf.txt",
        "new.txt",
        "x.u16",
        "bin",
        "hard",
        "lone",
        "binary",
        "dir/b.txt",
    ] {
        let content = std::fs::read(repo.path(name)).unwrap();
        repo.write(name, content);
    }
    agreed(&repo);
}

#[test]
fn a_clean_filter_of_the_user_runs_and_one_of_the_repository_does_not() {
    let repo = base();
    repo.write(".gitattributes", "*.up filter=up\n");
    repo.write("x.up", "lower");
    repo.git(["config", "--global", "filter.up.clean", "tr a-z A-Z"]);
    let plain = agreed(&repo).record.fingerprint;
    repo.git(["config", "--global", "--unset", "filter.up.clean"]);
    let mark = repo.base().join("ran");
    repo.git([
        "config",
        "filter.up.clean",
        &format!("touch {}; tr a-z A-Z", mark.display()),
    ]);
    incomplete(&repo);
    assert!(!mark.exists(), "the repository's program ran");
    for method in [Some(Method::Git), None] {
        let mut options = Options::reading_only(&repo.env);
        options.method = method;
        options.repository_programs = true;
        let allowed = look(&repo.place(), &options).unwrap();
        assert_eq!(allowed.record.fingerprint, plain, "{method:?}");
    }
    repo.remove("x.up");
    agreed(&repo);
}

#[test]
fn index_states() {
    let repo = base();
    repo.write("intent", "later\n");
    repo.git(["add", "-N", "intent"]);
    let look = agreed(&repo);
    assert_eq!(kinds(&look), [("intent", DeviationKind::Added, false)]);
    repo.remove("intent");
    agreed(&repo);
    repo.git(["reset", "-q", "--hard"]);
    repo.git(["update-index", "--assume-unchanged", "a.txt"]);
    repo.git(["update-index", "--skip-worktree", "dir/b.txt", "run.sh"]);
    repo.write("a.txt", "hidden\n");
    repo.write("dir/b.txt", "hidden\n");
    repo.remove("run.sh");
    let look = agreed(&repo);
    assert_eq!(
        kinds(&look),
        [
            ("a.txt", DeviationKind::Hidden, false),
            ("dir/b.txt", DeviationKind::Hidden, false)
        ]
    );
    for version in ["2", "3", "4"] {
        repo.git(["update-index", "--index-version", version]);
        agreed(&repo);
    }
    repo.git(["update-index", "--split-index"]);
    repo.write("split", "1");
    repo.git(["add", "split"]);
    agreed(&repo);
}

#[test]
fn conflicts() {
    let repo = base();
    repo.git(["checkout", "-q", "-b", "side"]);
    repo.write("a.txt", "side\n");
    repo.remove("dir/b.txt");
    repo.commit();
    repo.git(["checkout", "-q", "main"]);
    repo.write("a.txt", "main\n");
    repo.write("dir/b.txt", "main\n");
    repo.commit();
    assert!(
        !repo
            .try_git(&repo.root, &["merge", "side"])
            .status
            .success()
    );
    let look = agreed(&repo);
    assert_eq!(look.record.operation.as_deref(), Some("merge"));
    assert!(
        look.record
            .index_tree
            .as_ref()
            .unwrap()
            .starts_with("conflict:")
    );
    assert_eq!(kinds(&look)[0], ("a.txt", DeviationKind::Conflicted, false));
}

#[test]
fn sparse_checkout() {
    let repo = base();
    repo.git(["sparse-checkout", "set", "--cone", "dir/deep"]);
    assert!(!repo.path("run.sh").exists() || repo.path("dir/deep").exists());
    agreed(&repo);
    repo.write("dir/b.txt", "there again\n");
    agreed(&repo);
    repo.remove("dir/b.txt");
    sparse_index(&repo, "other");
    agreed(&repo);
}

#[test]
fn submodules_and_nested_repositories() {
    let repo = base();
    let other = repo.base().join("other");
    std::fs::create_dir_all(&other).unwrap();
    repo.git_in(&other, ["init", "-q", "."]);
    takeup_tests::fingerprint::repo::put(&other.join("f"), b"1\n");
    repo.git_in(&other, ["add", "-A"]);
    repo.git_in(&other, ["commit", "-q", "-m", "m"]);
    repo.git(["submodule", "--quiet", "add", "../other", "sub"]);
    repo.commit();
    let clean = agreed(&repo);
    assert_eq!(clean.record.submodules.len(), 1);
    assert!(!clean.record.submodules[0].dirty);
    repo.write("sub/f", "dirt\n");
    let dirty = agreed(&repo);
    assert!(dirty.record.submodules[0].dirty);
    assert_eq!(kinds(&dirty), [("sub/f", DeviationKind::Nested, false)]);
    let (a, b) = (
        clean.record.fingerprint.unwrap(),
        dirty.record.fingerprint.unwrap(),
    );
    assert_eq!(a.tree(), b.tree());
    assert_ne!(a, b);
    repo.write("sub/f", "dirt 2\n");
    assert_ne!(agreed(&repo).record.fingerprint.unwrap(), b);
    repo.git_in(&repo.path("sub"), ["commit", "-q", "-a", "-m", "moved"]);
    assert_eq!(
        kinds(&agreed(&repo)),
        [("sub", DeviationKind::Modified, false)]
    );
    repo.remove("sub");
    agreed(&repo);
    std::fs::create_dir_all(repo.path("sub")).unwrap();
    agreed(&repo);

    // An untracked one with a commit, and one without.
    repo.git(["clone", "-q", "../other", "nested"]);
    let with = agreed(&repo);
    assert!(kinds(&with).contains(&("nested", DeviationKind::Nested, false)));
    repo.write("nested/f", "2");
    assert_ne!(agreed(&repo).record.fingerprint, with.record.fingerprint);
    repo.remove("nested");
    let without = agreed(&repo).record.fingerprint.unwrap();
    repo.git(["init", "-q", "young"]);
    repo.write("young/x", "1");
    let first = by(&repo, Way::Git).record.fingerprint.unwrap();
    assert_eq!(first.tree(), without.tree());
    assert_ne!(first, without);
    repo.write("young/x", "2");
    for way in WAYS {
        let second = by(&repo, *way).record.fingerprint.unwrap();
        assert_eq!(second.tree(), without.tree());
        assert_ne!(second, first);
    }
}

#[test]
fn strange_names() {
    let repo = base();
    for name in [
        b"\xff\xfe".as_slice(),
        b"new\nline",
        b"quote\"",
        b"back\\slash",
        b"-dash",
        b"!bang",
        b"#hash",
        b"trailing ",
        b"tab\there",
        b"d\xff/inner",
        b":(top)x",
    ] {
        repo.write(name, name);
    }
    let look = agreed(&repo);
    assert_eq!(look.record.deviations.len(), 11);
    repo.commit();
    repo.write(b"\xff\xfe", "other");
    assert_eq!(
        kinds(&agreed(&repo)),
        [("\\xff\\xfe", DeviationKind::Modified, false)]
    );
}

#[test]
fn runtime_folders_are_no_content() {
    let repo = base();
    let clean = agreed(&repo);
    repo.write(".agent-context/state.json", "{}");
    assert_eq!(agreed(&repo).record.fingerprint, clean.record.fingerprint);
    repo.git(["add", "-A"]);
    let staged = agreed(&repo);
    assert_eq!(staged.record.fingerprint, clean.record.fingerprint);
    assert_eq!(staged.record.index_tree, clean.record.index_tree);
    repo.git(["commit", "-q", "-m", "m"]);
    assert!(kinds(&agreed(&repo)).is_empty());
    // Only at the top.
    repo.write("dir/.agent-context", "x");
    assert_ne!(agreed(&repo).record.fingerprint, clean.record.fingerprint);
}

#[test]
fn pipes_and_sockets() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let repo = base();
    let clean = agreed(&repo);
    let pipe = |name: &str| mknodat(CWD, repo.path(name), FileType::Fifo, Mode::RUSR, 0).unwrap();
    pipe("pipe");
    let listener = std::os::unix::net::UnixListener::bind(repo.path("socket")).unwrap();
    assert_eq!(agreed(&repo).record.fingerprint, clean.record.fingerprint);
    drop(listener);
    repo.remove("a.txt");
    pipe("a.txt");
    incomplete(&repo);
}

#[test]
fn what_cannot_be_read_makes_the_look_incomplete() {
    let repo = base();
    if rustix::process::getuid().is_root() {
        println!("skipped: nothing is unreadable for root");
        return;
    }
    repo.write("closed/x", "1");
    std::fs::set_permissions(repo.path("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
    incomplete(&repo);
    std::fs::set_permissions(repo.path("closed"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(repo.path("a.txt"), std::fs::Permissions::from_mode(0o000)).unwrap();
    repo.write("a.txt2", "1");
    incomplete(&repo);
}

#[test]
fn a_change_within_the_clock_tick_of_the_index_is_seen() {
    let repo = base();
    for round in 0..20 {
        repo.write("a.txt", format!("{round:04}"));
        repo.git(["add", "a.txt"]);
        let staged = agreed(&repo);
        repo.write("a.txt", format!("{:04}", round + 1000));
        assert_ne!(agreed(&repo).record.fingerprint, staged.record.fingerprint);
    }
}
