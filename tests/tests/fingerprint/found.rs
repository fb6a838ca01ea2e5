//! Every difference that a random walk ever found, as small as it could be made.
use std::path::Path;

use takeup_core::fingerprint::{DeviationKind, TreeRecord};
use takeup_core::ids::Fingerprint;
use takeup_tests::fingerprint::judge;
use takeup_tests::fingerprint::repo::Repo;

use super::cases::{WAYS, Way, agreed, base, by, every_way, incomplete, kinds, sparse_index};

/// A repository with another in `inner`, as a submodule is.
fn with_inner() -> Repo {
    let repo = base();
    repo.git(["init", "-q", "inner"]);
    repo.git_in(
        &repo.path("inner"),
        ["commit", "-q", "--allow-empty", "-m", "m"],
    );
    repo.git(["add", "inner"]);
    repo
}

#[test]
fn a_lock_that_a_dead_git_left_behind_is_no_change() {
    let repo = base();
    repo.write("a.txt", "changed\n");
    let before = agreed(&repo);
    repo.write(".git/index.lock", "");
    assert_eq!(agreed(&repo).record, before.record);
}

#[test]
fn a_folder_that_became_a_link_to_itself_has_no_files() {
    let repo = base();
    repo.remove("dir");
    repo.link("dir/deep", "dir");
    let look = agreed(&repo);
    assert_eq!(look.record.deviations.len(), 3, "{:?}", look.record);
    // git keeps its entries for ever where the link itself is ignored.
    repo.write(".gitignore", "dir\n");
    let look = agreed(&repo);
    assert_eq!(look.record.deviations.len(), 3, "{:?}", look.record);
}

#[test]
fn a_folder_that_the_sparse_index_names_as_a_whole_differs_from_an_unborn_head() {
    let repo = base();
    sparse_index(&repo, "other");
    repo.git(["checkout", "-q", "--orphan", "young"]);
    let look = agreed(&repo);
    let paths: Vec<&str> = look
        .record
        .deviations
        .iter()
        .map(|deviation| deviation.path.as_str())
        .collect();
    assert_eq!(paths, ["a.txt", "dir/b.txt", "dir/deep/c.txt", "run.sh"]);
}

#[test]
fn a_file_to_convert_in_a_tracked_folder_that_became_a_repository() {
    let repo = base();
    repo.git(["init", "-q", "dir"]);
    repo.git_in(
        &repo.path("dir"),
        ["commit", "-q", "--allow-empty", "-m", "m"],
    );
    repo.git(["config", "core.autocrlf", "true"]);
    repo.write("dir/new.txt", "line\r\n");
    agreed(&repo);
}

#[test]
fn what_git_says_of_a_repository_inside_is_no_shortfall_of_the_one_outside() {
    let repo = base();
    let inside = repo.path("w");
    repo.git(["worktree", "add", "-q", "--detach", "w"]);
    repo.git(["add", "w"]);
    repo.remove("w/dir");
    std::os::unix::fs::symlink("dir", inside.join("dir")).unwrap();
    let look = agreed(&repo);
    assert!(look.record.submodules.iter().any(|inner| inner.dirty));
}

#[test]
fn a_folder_that_became_a_repository_while_its_files_went() {
    let repo = base();
    repo.git(["init", "-q", "dir"]);
    repo.remove("dir/b.txt");
    repo.remove("dir/deep");
    repo.write("dir/new.txt", "new\n");
    let look = agreed(&repo);
    assert_eq!(look.record.submodules, []);
}

#[test]
fn a_file_of_submodules_that_is_none() {
    let repo = base();
    repo.git(["init", "-q", "inner"]);
    repo.git_in(
        &repo.path("inner"),
        ["commit", "-q", "--allow-empty", "-m", "m"],
    );
    repo.write(".gitmodules", "no setting\n");
    agreed(&repo);
}

#[test]
fn names_beside_a_folder_that_the_sparse_index_names_as_a_whole() {
    // `dir-` and `dir.` stand before `dir/` in an index, and behind `dir`.
    let repo = base();
    repo.write("dir-", "1\n");
    repo.write("dir.", "2\n");
    repo.write("other/.gitignore", "*.log\n");
    repo.commit();
    sparse_index(&repo, "other");
    repo.remove("dir-");
    repo.remove("dir.");
    let look = agreed(&repo);
    let staged: Vec<bool> = look
        .record
        .deviations
        .iter()
        .map(|deviation| deviation.staged)
        .collect();
    assert_eq!(staged, [false, false], "{:?}", look.record.deviations);
}

#[test]
fn a_folder_that_the_sparse_index_names_as_a_whole_behind_a_link() {
    let repo = base();
    repo.write("far/c.txt", "1");
    repo.commit();
    sparse_index(&repo, "dir/near");
    repo.remove("dir");
    repo.link("far", "dir");
    let expected = [
        ("dir", DeviationKind::Untracked, false),
        ("dir/b.txt", DeviationKind::Deleted, false),
        ("dir/deep/c.txt", DeviationKind::Hidden, false),
    ];
    assert_eq!(kinds(&agreed(&repo)), expected);
    // What HEAD has and that folder has not is staged as before.
    repo.git(["rm", "-q", "--sparse", "--cached", "dir/deep/c.txt"]);
    agreed(&repo);
}

#[test]
fn a_file_of_rules_that_git_has_thousands_of_remarks_on() {
    let repo = base();
    repo.write("dir/.gitattributes", "$Id: x $\r\n".repeat(6_500));
    agreed(&repo);
}

#[test]
fn what_is_unmerged_only_where_nothing_counts() {
    let repo = base();
    repo.write(".agent-context/notes", "1\n");
    repo.commit();
    repo.git(["branch", "other"]);
    repo.write(".agent-context/notes", "2\n");
    repo.commit();
    repo.git(["checkout", "-q", "other"]);
    repo.write(".agent-context/notes", "3\n");
    repo.commit();
    let merged = repo.try_git(&repo.root, &["merge", "-q", "main"]);
    assert!(!merged.status.success());
    let tree = agreed(&repo).record.index_tree.unwrap();
    assert!(!tree.contains("conflict"), "{tree}");
    repo.write("a.txt", "changed");
    agreed(&repo);
}

#[test]
fn a_line_of_rules_ends_at_a_zero_byte() {
    let repo = base();
    repo.write(".gitignore", b"new\0junk\n\0*\n");
    repo.write("new", "1");
    let look = agreed(&repo);
    assert_eq!(
        look.record.deviations.len(),
        1,
        "{:?}",
        look.record.deviations
    );
    repo.write(".gitattributes", b"*.crlf text\0junk\n");
    repo.write("x.crlf", "line\r\n");
    agreed(&repo);
}

#[test]
fn a_macro_may_have_any_name() {
    let repo = base();
    repo.write(
        ".gitattributes",
        "[attr]binary text\n[attr]diff ident\n*.one binary\n*.two diff\n",
    );
    repo.write("x.one", "line\r\n");
    repo.write("x.two", "$Id: x $\n");
    agreed(&repo);
}

#[test]
fn an_absent_file_behind_a_link_to_itself() {
    let repo = base();
    repo.git(["update-index", "--skip-worktree", "dir/b.txt"]);
    repo.remove("dir");
    repo.link("dir", "dir");
    agreed(&repo);
}

#[test]
fn only_the_mark_of_utf_8_is_no_part_of_the_first_rule() {
    let repo = base();
    repo.write("new", "1");
    for (mark, kept) in [
        (b"\xff\xfe".as_slice(), 2),
        (b"+/v8", 2),
        (b"\xef\xbb\xbf", 1),
    ] {
        repo.write(".gitignore", [mark, b"new\n"].concat());
        let look = agreed(&repo);
        assert_eq!(look.record.deviations.len(), kept, "{mark:?}");
    }
}

#[test]
fn trees_that_the_index_remembers_are_not_believed_unseen() {
    // After `git checkout -f -B` in some states the index holds trees that are not those of its entries.
    let repo = base();
    agreed(&repo);
    let id = |path: &str| {
        let hex = repo.git(["rev-parse", path]);
        let digits = hex.trim().as_bytes().chunks(2);
        digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect::<Vec<u8>>()
    };
    let (old, new) = (id(":a.txt"), id(":run.sh"));
    let mut index = std::fs::read(repo.own("index")).unwrap();
    let at = index.windows(20).position(|bytes| bytes == old).unwrap();
    index[at..at + 20].copy_from_slice(&new);
    *index.last_mut().unwrap() ^= 1;
    repo.write(".git/index", index);
    repo.write("a.txt", "#!/bin/sh\n");
    let look = agreed(&repo);
    assert_eq!(look.record.deviations.len(), 1, "{:?}", look.record);
}

#[test]
fn a_conflict_about_a_link_where_there_are_none() {
    let repo = base();
    repo.write("f", "base\n");
    repo.commit();
    repo.git(["checkout", "-q", "-b", "side"]);
    repo.remove("f");
    repo.link("theirs", "f");
    repo.commit();
    repo.git(["checkout", "-q", "main"]);
    repo.remove("f");
    repo.link("ours", "f");
    repo.commit();
    repo.git(["config", "core.symlinks", "false"]);
    assert!(
        !repo
            .try_git(&repo.root, &["merge", "side"])
            .status
            .success()
    );
    repo.remove("f");
    repo.write("f", "ours");
    agreed(&repo);
}

#[test]
fn a_folder_in_the_place_of_the_list_of_submodules() {
    let repo = base();
    repo.git(["init", "-q", "inner"]);
    repo.write("inner/.gitmodules/file", "1");
    let inner = repo.path("inner");
    repo.git_in(&inner, ["add", "-A"]);
    repo.git_in(&inner, ["commit", "-q", "-m", "m"]);
    repo.git(["add", "inner"]);
    agreed(&repo);
    repo.write(".gitmodules/file", "1");
    agreed(&repo);
}

#[test]
fn a_link_in_the_place_of_flagged_rules_holds_none() {
    let repo = base();
    repo.write(".gitignore", "new.txt\n");
    repo.commit();
    repo.git(["update-index", "--skip-worktree", ".gitignore"]);
    repo.remove(".gitignore");
    repo.link("a.txt", ".gitignore");
    repo.write("new.txt", "1");
    agreed(&repo);
}

/// git's own sparse checkouts leave such an index behind at times, and git reads the two as one.
#[test]
fn a_folder_of_the_sparse_index_beside_what_is_in_it() {
    let repo = base();
    sparse_index(&repo, "other");
    let blob = repo.git(["rev-parse", "HEAD:dir/b.txt"]);
    let index = std::fs::read(repo.own("index")).unwrap();
    std::fs::write(
        repo.own("index"),
        with_part(&index, "dir/b.txt", blob.trim()),
    )
    .unwrap();
    let look = agreed(&repo);
    assert!(look.fallback.is_some());
    assert_eq!(look.record.deviations, []);
}

/// Trees that name a path more than once come of git's own faults; whoever reads them into an index counts the path once.
#[test]
fn a_folder_of_the_sparse_index_whose_tree_names_a_path_twice() {
    let repo = base();
    sparse_index(&repo, "other");
    let blob = repo.git(["rev-parse", "HEAD:dir/b.txt"]);
    let twice = ("100644", "b.txt", blob.trim());
    let folder = tree(&repo, &[twice, twice]);
    let top = tree(
        &repo,
        &[("100644", "a.txt", blob.trim()), ("40000", "dir", &folder)],
    );
    let commit = repo.git(["commit-tree", "-m", "twice", "-p", "HEAD", &top]);
    repo.git(["checkout", "-q", commit.trim()]);
    assert!(judge::tree(&repo.root, &repo.env).is_err());
    // What is as HEAD has it is not read, and has one tree whatever is in it. Where git's own program looks, it is read.
    let seen = by(&repo, Way::Engine).record;
    assert_eq!(seen.incomplete, None);
    assert_eq!(seen.fingerprint.unwrap().tree(), top);
    let by_git = by(&repo, Way::Git).record;
    assert!(by_git.incomplete.unwrap().contains("dir/b.txt"));
    repo.git(["update-ref", "--no-deref", "HEAD", "HEAD^"]);
    incomplete(&repo);
}

/// HEAD may name such a tree: what it names besides is no change.
#[test]
fn a_commit_whose_tree_names_a_path_twice() {
    let repo = with_inner();
    let inner = repo.path("inner");
    for folder in [&repo.root, &inner] {
        let ask = |args: &[&str]| repo.git_in(folder, args).trim().to_owned();
        let file = folder.join("a.txt");
        std::fs::write(&file, "a\n").unwrap();
        let blob = ask(&["hash-object", "-w", "a.txt"]);
        let twice = ("100644", "a.txt", blob.as_str());
        let tree = tree_in(&repo, folder, &[twice, twice]);
        let commit = ask(&["commit-tree", "-m", "twice", &tree]);
        ask(&["reset", "-q", "--hard", &commit]);
    }
    let looks = every_way(&repo);
    assert!(
        looks
            .iter()
            .all(|look| look.record.deviations.is_empty()
                || look.record.deviations[0].path == "inner"),
        "{looks:?}"
    );
    assert!(
        looks.iter().all(|look| !look.record.submodules[0].dirty),
        "{looks:?}"
    );
}

/// Writes a tree of entries (mode, name, id) that git itself would not write.
fn tree(repo: &Repo, entries: &[(&str, &str, &str)]) -> String {
    tree_in(repo, &repo.root, entries)
}

fn tree_in(repo: &Repo, folder: &Path, entries: &[(&str, &str, &str)]) -> String {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend(format!("{mode} {name}\0").bytes());
        bytes.extend(binary(id));
    }
    let file = repo.own("tree");
    std::fs::write(&file, bytes).unwrap();
    let file = file.to_str().unwrap();
    let id = repo.git_in(
        folder,
        ["hash-object", "-t", "tree", "--literally", "-w", file],
    );
    id.trim().to_owned()
}

/// Reads hexadecimal digits.
fn binary(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Returns an index of version 3 with one more entry, copied from that of the folder it is in.
fn with_part(index: &[u8], path: &str, blob: &str) -> Vec<u8> {
    let number = |at: usize| u32::from_be_bytes(index[at..at + 4].try_into().unwrap());
    assert_eq!((number(4), &index[..4]), (3, b"DIRC".as_slice()));
    let folder = path.rsplit_once('/').unwrap().0.to_owned() + "/";
    let name = |at: usize| {
        let start = at + if index[at + 60] & 0x40 == 0 { 62 } else { 64 };
        let len = index[start..].iter().position(|byte| *byte == 0).unwrap();
        (start - at, &index[start..start + len])
    };
    let mut at = 12;
    while name(at).1 != folder.as_bytes() {
        let (start, text) = name(at);
        at += (start + text.len() + 8) & !7;
    }
    let end = at + ((64 + folder.len() + 8) & !7);
    let mut entry = index[at..at + 64].to_vec();
    entry[24..28].copy_from_slice(&0o100_644_u32.to_be_bytes());
    entry[40..60].copy_from_slice(&binary(blob));
    entry[61] = u8::try_from(path.len()).unwrap();
    entry.extend(path.as_bytes());
    entry.resize((64 + path.len() + 8) & !7, 0);
    let mut whole = index[..end].to_vec();
    whole[8..12].copy_from_slice(&(number(8) + 1).to_be_bytes());
    whole.extend(entry);
    whole.extend(&index[end..index.len() - 20]);
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(&whole);
    whole.extend(hasher.try_finalize().unwrap().as_slice());
    whole
}

/// git leaves a gitlink as it is where the repository has no commit yet; what lies in there still counts.
#[test]
fn a_repository_without_a_commit_in_the_place_of_a_submodule() {
    let repo = base();
    let inner = repo.path("inner");
    let print = || agreed(&repo).record.fingerprint;
    repo.git(["init", "-q", "inner"]);
    repo.git_in(&inner, ["commit", "-q", "--allow-empty", "-m", "m"]);
    repo.git(["add", "inner"]);
    repo.remove("inner/.git");
    let gone = print();
    repo.git(["init", "-q", "inner"]);
    let young = print();
    repo.write("inner/x", "1");
    let filled = print();
    assert_ne!(gone, young);
    assert_ne!(young, filled);
}

#[test]
fn a_repository_without_a_commit_in_the_place_of_a_file() {
    let repo = base();
    repo.remove("a.txt");
    repo.git(["init", "-q", "a.txt"]);
    repo.write("a.txt/inside", "1");
    let looks = every_way(&repo);
    assert_eq!(looks[0].record.submodules.len(), 1);
    repo.write(".git/info/exclude", "a.txt/\n");
    let looks = every_way(&repo);
    assert_eq!(looks[0].record.submodules, []);
}

#[test]
fn what_is_only_meant_to_be_added_and_lies_outside_a_sparse_checkout() {
    let repo = base();
    repo.write("dir/new.txt", "1");
    repo.git(["add", "-N", "dir/new.txt"]);
    repo.remove("dir/new.txt");
    repo.git(["update-index", "--skip-worktree", "dir/new.txt"]);
    let look = agreed(&repo);
    assert_eq!(look.record.deviations, []);
}

/// git names the commit of the index in the place of such a submodule, and says nothing of what lies there.
#[test]
fn files_in_a_submodule_that_is_no_repository() {
    let repo = with_inner();
    repo.remove("inner/.git");
    let empty = agreed(&repo).record;
    repo.write("inner/deep/x", "1");
    let one = agreed(&repo).record;
    repo.write("inner/deep/x", "2");
    let two = agreed(&repo).record;
    repo.write("inner/deep/x", "1");
    let again = agreed(&repo).record;
    assert!(!empty.same_content(&one) && !one.same_content(&two));
    assert!(one.same_content(&again));
    let named: Vec<&str> = one.deviations.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(named, ["inner", "inner/deep/x"]);
}

/// git refuses to look at all then.
#[test]
fn a_submodule_whose_repository_is_gone() {
    let repo = with_inner();
    for (path, text) in [
        ("inner/.git", "gitdir: ../nowhere\n"),
        ("inner/.git/x", "1"),
    ] {
        repo.remove("inner/.git");
        repo.write(path, text);
        assert!(judge::tree(&repo.root, &repo.env).is_err());
        incomplete(&repo);
    }
}

/// What stands in its place, or in the place of a folder above it, is in git's tree; the submodule is not.
#[test]
fn a_submodule_in_whose_place_something_else_stands() {
    let repo = with_inner();
    let there = agreed(&repo).record;
    repo.remove("inner");
    let gone = agreed(&repo).record;
    assert!(!there.same_content(&gone));
    repo.write("inner", "a file\n");
    let file = agreed(&repo).record;
    repo.remove("inner");
    std::os::unix::fs::symlink("nowhere", repo.path("inner")).unwrap();
    let link = agreed(&repo).record;
    for record in [gone, file, link] {
        let print = record.fingerprint.unwrap();
        assert_eq!(print.as_str(), print.tree(), "nothing is left to tell");
    }
    // Nor is it where git was told that it is not checked out.
    repo.remove("inner");
    repo.git(["update-index", "--skip-worktree", "inner"]);
    let hidden = agreed(&repo).record.fingerprint.unwrap();
    assert_eq!(hidden.as_str(), hidden.tree());
    repo.write("inner", "a file\n");
    let file = agreed(&repo).record.fingerprint.unwrap();
    assert_eq!(file.as_str(), file.tree());
}

#[test]
fn a_submodule_that_is_not_checked_out_any_more() {
    let repo = with_inner();
    let there = agreed(&repo).record;
    let inner = repo.path("inner");
    std::fs::remove_dir_all(&inner).unwrap();
    std::fs::create_dir(&inner).unwrap();
    let empty = agreed(&repo).record;
    let tree = |record: &TreeRecord| record.fingerprint.clone().unwrap().tree().to_owned();
    assert_eq!(tree(&there), tree(&empty), "plain git");
    assert_ne!(there.fingerprint, empty.fingerprint);
    assert!(!there.same_content(&empty));
}

/// git remarks on such a link on two lines, which cannot be told from a complaint: its own way says so.
#[test]
fn a_name_of_two_lines_behind_a_link_to_itself_in_a_submodule() {
    let repo = with_inner();
    let inner = repo.path("inner");
    repo.write("inner/loop/new\nline", "1");
    repo.git_in(&inner, ["add", "-A"]);
    repo.git_in(&inner, ["commit", "-q", "-m", "m"]);
    repo.git(["add", "inner"]);
    repo.remove("inner/loop");
    repo.link("loop", "inner/loop");
    let judged = judge::tree(&repo.root, &repo.env).unwrap();
    for way in WAYS {
        let record = by(&repo, *way).record;
        let seen = record.fingerprint.as_ref().map(Fingerprint::tree);
        if *way == Way::Git {
            assert_eq!(record.incomplete.as_deref(), Some("loop/new"));
        } else {
            assert_eq!(seen, Some(judged.as_str()), "{way:?}");
        }
    }
}

/// git takes no link of that name in, and says so among remarks on rules.
#[test]
fn a_link_in_the_place_of_the_list_of_submodules() {
    let repo = base();
    repo.write(".gitattributes", "*.x -y=1\n");
    repo.link("nowhere", ".gitmodules");
    assert!(judge::tree(&repo.root, &repo.env).is_err());
    assert!(by(&repo, Way::Git).record.incomplete.is_some());
}
