//! Two repositories, one with our hooks and one without, go the same way with the same dates.
//! After every step they are the same to the byte: work tree, index, refs, logs, configuration, objects.
use std::collections::BTreeMap;

use super::*;

/// Two scratch repositories, and the time of the next step.
struct Twins {
    hooked: Scratch,
    plain: Scratch,
    seconds: u32,
}

impl Twins {
    fn new() -> Self {
        let mut twins = Self {
            hooked: Scratch::empty(PROGRAM),
            plain: Scratch::empty(PROGRAM),
            seconds: 1_700_000_000,
        };
        for scratch in [&twins.hooked, &twins.plain] {
            fs::create_dir(scratch.repo()).unwrap();
        }
        twins.git(&["init", "-q", "-b", "main"]);
        // What git does by itself in the background is not what is compared.
        twins.git(&["config", "gc.auto", "0"]);
        twins.git(&["config", "maintenance.auto", "false"]);
        twins.write("a.txt", "one\n");
        twins.git(&["add", "a.txt"]);
        twins.git(&["commit", "-q", "-m", "first"]);
        twins.hooked.takeup(&["hooks", "install"]).exits(0);
        twins.compare("hooks install");
        twins
    }

    fn run(&mut self, folder: &str, bare: bool, args: &[&str]) -> String {
        let date = format!("{} +0100", self.seconds);
        self.seconds += 60;
        let mut said = Vec::new();
        for scratch in [&self.hooked, &self.plain] {
            let done = git_with(
                scratch,
                &scratch.path().join(folder),
                |command| {
                    if bare {
                        // As a program with windows calls git.
                        command
                            .env_clear()
                            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
                        command.env("GIT_CONFIG_NOSYSTEM", "1");
                    }
                    for who in ["AUTHOR", "COMMITTER"] {
                        command
                            .env(format!("GIT_{who}_NAME"), "x")
                            .env(format!("GIT_{who}_EMAIL"), "x@example.invalid")
                            .env(format!("GIT_{who}_DATE"), &date);
                    }
                    command
                        .env("GIT_EDITOR", "true")
                        .env("FILTER_BRANCH_SQUELCH_WARNING", "1");
                },
                args,
            );
            let text = |bytes: &[u8]| {
                String::from_utf8_lossy(bytes)
                    .replace(&*scratch.path().to_string_lossy(), "@")
                    .split('\n')
                    // A line that is written over and over is progress, and ends in seconds.
                    .map(|line| match line.rsplit_once('\r') {
                        Some((_, last)) => last.split(" (").next().unwrap_or_default(),
                        None => line,
                    })
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            said.push((done.status.code(), text(&done.stdout), text(&done.stderr)));
        }
        assert_eq!(said[0], said[1], "git {args:?} said something else");
        // What failed in both is no test of anything.
        let (code, stdout, stderr) = said.pop().unwrap();
        assert_eq!(code, Some(0), "git {args:?}: {stdout}{stderr}");
        stdout
    }

    /// Runs git in both, and compares.
    fn git(&mut self, args: &[&str]) -> String {
        let said = self.run("repo", false, args);
        self.compare(&format!("{args:?}"));
        said
    }

    fn write(&self, path: &str, content: &str) {
        for scratch in [&self.hooked, &self.plain] {
            scratch.write(path, content);
        }
    }

    fn commit(&mut self, path: &str, content: &str) {
        self.write(path, content);
        self.git(&["add", path]);
        self.git(&["commit", "-q", "-m", &format!("{path}: {content}")]);
    }

    fn compare(&self, after: &str) {
        let (hooked, plain) = (all(&self.hooked), all(&self.plain));
        let names: Vec<&String> = hooked
            .iter()
            .filter(|(name, what)| plain.get(*name) != Some(what))
            .chain(plain.iter().filter(|(name, _)| !hooked.contains_key(*name)))
            .map(|(name, _)| name)
            .collect();
        assert!(names.is_empty(), "after {after} these differ: {names:?}");
        assert!(hooked.len() > 10);
    }
}

/// Everything in the repository and in the work trees beside it, by path: mode, and content or target. Of an index the
/// entries count, since it also holds times and inodes.
fn all(scratch: &Scratch) -> BTreeMap<String, (u32, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt as _;
    let top = scratch.path();
    let ours = |name: &str| {
        name == "home"
            || name == "bin"
            || name == "repo/.git/takeup"
            || name == "repo/.git/hooks"
            || (name.starts_with("repo/.git/worktrees/") && name.ends_with("/takeup"))
    };
    let mut found = BTreeMap::new();
    let mut todo = vec![top.clone()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(&top)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            if ours(&name) {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_dir() {
                todo.push(path);
                Vec::new()
            } else if meta.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes()
            } else if name.ends_with("/index") {
                let listed = git_with(
                    scratch,
                    &scratch.repo(),
                    |command| {
                        command.env("GIT_INDEX_FILE", &path);
                    },
                    &["ls-files", "--stage", "-v", "-z"],
                );
                listed.stdout
            } else {
                let here = top.to_string_lossy().into_owned();
                let bytes = fs::read(&path).unwrap();
                match String::from_utf8(bytes) {
                    Ok(text) => text.replace(&here, "@").into_bytes(),
                    Err(bytes) => bytes.into_bytes(),
                }
            };
            found.insert(name, (meta.mode(), content));
        }
    }
    found
}

#[test]
fn whatever_git_does_it_leaves_what_it_leaves_without_us() {
    let mut twins = Twins::new();
    twins.commit("b.txt", "1");
    twins.commit("b.txt", "2");
    twins.git(&["commit", "-q", "--amend", "-m", "amended"]);
    twins.git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
    twins.commit("c.txt", "1");
    twins.git(&["checkout", "-q", "main"]);
    twins.git(&["merge", "-q", "--no-edit", "side"]);
    twins.git(&["checkout", "-q", "-b", "other", "side"]);
    twins.commit("p.txt", "1");
    twins.git(&["checkout", "-q", "main"]);
    twins.git(&["cherry-pick", "other"]);
    twins.git(&["revert", "--no-edit", "-m", "1", "HEAD~1"]);

    // The unstaged part, the staged part and what is untracked go away and come again.
    twins.write("a.txt", "unstaged\n");
    twins.write("b.txt", "staged\n");
    twins.write("new.txt", "untracked\n");
    twins.git(&["add", "b.txt"]);
    twins.git(&["stash", "push", "-q", "-u"]);
    twins.git(&["stash", "pop", "-q", "--index"]);
    twins.git(&["commit", "-q", "-m", "the staged part"]);
    twins.git(&["commit", "-q", "-a", "-m", "the rest"]);
    twins.git(&["rm", "-q", "--cached", "--ignore-unmatch", "new.txt"]);
    twins.git(&["clean", "-q", "-f"]);

    twins.git(&["format-patch", "-q", "-1", "-o", "../patches", "side"]);
    twins.git(&["checkout", "-q", "side~1"]);
    let patch = fs::read_dir(twins.hooked.path().join("patches"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .file_name();
    let patch = format!("../patches/{}", patch.to_string_lossy());
    twins.git(&["am", "-q", &patch]);
    twins.git(&["checkout", "-q", "main"]);

    twins.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    twins.run(
        "linked",
        false,
        &["commit", "-q", "--allow-empty", "-m", "in the linked one"],
    );
    twins.compare("a commit in the linked work tree");
    twins.git(&["worktree", "remove", "../linked"]);

    // A bare environment: no home, no settings, little of PATH.
    twins.write("a.txt", "by a program with windows\n");
    twins.run("repo", true, &["commit", "-q", "-a", "-m", "bare"]);
    twins.compare("a commit from a bare environment");

    twins.git(&["bisect", "start", "main", "main~3"]);
    twins.git(&["bisect", "good"]);
    twins.git(&["bisect", "reset"]);
    twins.git(&["reset", "-q", "--hard", "HEAD~1"]);
    twins.git(&[
        "filter-branch",
        "-f",
        "--msg-filter",
        "sed s/first/renamed/",
        "HEAD~2..HEAD",
    ]);
    twins.git(&["gc", "-q", "--prune=now"]);

    let seen = settled(&twins.hooked.repo()).observations;
    for event in EVENTS {
        assert!(seen.iter().any(|one| one.event == event), "{event}");
    }
    assert!(
        seen.iter()
            .any(|one| one.operation.as_deref() == Some("bisect"))
    );
    assert!(seen.iter().all(|one| one.by.is_none()));
}

#[test]
fn a_rebase_of_fifty_commits_leaves_what_it_leaves_without_us() {
    let mut twins = Twins::new();
    twins.git(&["checkout", "-q", "-b", "side"]);
    // Made by one command, so that the comparison is of the rebase.
    let mut stream = String::new();
    for number in 0..50 {
        stream.push_str(&format!(
            "commit refs/heads/side\ncommitter x <x@example.invalid> {} +0000\ndata 2\n{:02}\n{}M 100644 inline c{number}.txt\ndata 2\n{:02}\n",
            1_700_000_000 + number,
            number,
            if number == 0 { "from refs/heads/side^0\n" } else { "" },
            number,
        ));
    }
    for scratch in [&twins.hooked, &twins.plain] {
        use std::io::Write as _;
        let mut import = Command::new("git");
        scratch.dress(&mut import);
        let mut import = import
            .current_dir(scratch.repo())
            .args(["fast-import", "--quiet"])
            // For git's own log of the branch.
            .env("GIT_COMMITTER_DATE", "1700000100 +0000")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        import
            .stdin
            .take()
            .unwrap()
            .write_all(stream.as_bytes())
            .unwrap();
        assert!(import.wait().unwrap().success());
    }
    twins.git(&["reset", "-q", "--hard"]);
    let tip = twins.git(&["rev-parse", "HEAD"]);
    twins.git(&["checkout", "-q", "main"]);
    twins.commit("b.txt", "of main");
    twins.git(&["checkout", "-q", "side"]);
    let before = settled(&twins.hooked.repo()).observations.len();
    twins.git(&["rebase", "-q", "--no-ff", "main"]);
    assert_eq!(
        twins.git(&["rev-list", "--count", "main..side"]).trim(),
        "50"
    );

    let seen = settled(&twins.hooked.repo()).observations.split_off(before);
    let last = seen.last().unwrap();
    assert_eq!(
        (last.event.as_str(), last.branch.as_deref()),
        ("post-rewrite", Some("side"))
    );
    assert_eq!(last.head_before.as_ref().unwrap().as_str(), tip.trim());
    assert_eq!(
        last.head_after.as_ref().unwrap().as_str(),
        twins.git(&["rev-parse", "side"]).trim()
    );
    assert!(
        seen.iter()
            .any(|one| one.operation.as_deref() == Some("rebase"))
    );
}
