//! Git's configuration can name programs for nearly everything. None of them runs by looking, and none by recording.
use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::mcp::Client;

/// A program that leaves a trace when it runs.
struct Canary {
    folder: PathBuf,
}

impl Canary {
    fn new(world: &World) -> Self {
        let folder = world.scratch.path().join("canary");
        std::fs::create_dir_all(&folder).unwrap();
        let canary = Self { folder };
        // Named by a link, it says by which name it was called; what it is given it gives back.
        std::fs::write(
            canary.folder.join("sing"),
            format!(
                "#!/bin/sh\necho \"$0 $*\" >>{}\ncat 2>/dev/null </dev/null\nexit 0\n",
                canary.trace().display()
            ),
        )
        .unwrap();
        sh(&canary.folder, "chmod 755 sing && mkdir hooks");
        canary
    }

    fn trace(&self) -> PathBuf {
        self.folder.join("trace")
    }

    /// A program of that name.
    fn named(&self, name: &str) -> String {
        let path = self.folder.join(name);
        if path.symlink_metadata().is_err() {
            std::os::unix::fs::symlink("sing", &path).unwrap();
        }
        path.display().to_string()
    }

    /// Fails if it ran since the last time.
    fn is_silent(&self, context: &str) {
        if let Ok(trace) = std::fs::read_to_string(self.trace()) {
            panic!("{context}: ran {trace}");
        }
    }

    /// Returns what ran, and forgets it.
    fn sang(&self) -> String {
        let trace = std::fs::read_to_string(self.trace()).unwrap_or_default();
        drop(std::fs::remove_file(self.trace()));
        trace
    }
}

const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-auto-gc",
    "pre-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
    "reference-transaction",
];

/// Everything in git's configuration that names a program.
fn configuration(canary: &Canary) -> String {
    let n = |name: &str| canary.named(name);
    format!(
        r#"
[core]
	fsmonitor = {fsmonitor}
	sshCommand = {ssh}
	pager = {pager}
	editor = {editor}
	askPass = {askpass}
	gitProxy = {proxy}
	hooksPath = {hooks}
	alternateRefsCommand = {alternates}
	untrackedCache = true
[diff]
	external = {external}
[diff "canary"]
	textconv = {textconv}
	command = {driver}
	cachetextconv = true
[filter "canary"]
	clean = {clean}
	smudge = {smudge}
	process = {process}
	required = true
[merge "canary"]
	driver = {merge}
[alias]
	status = !{alias}
	takeup = !{alias}
	rev-parse = !{alias}
	diff = !{alias}
[pager]
	status = {pager}
	diff = {pager}
	log = {pager}
[gpg]
	program = {gpg}
[gpg "ssh"]
	program = {gpg}
	defaultKeyCommand = {gpg}
[commit]
	gpgSign = true
[log]
	showSignature = true
[sequence]
	editor = {editor}
[interactive]
	diffFilter = {filter}
[credential]
	helper = !{credential}
[remote "origin"]
	url = ext::{transport} %S
	fetch = +refs/heads/*:refs/remotes/origin/*
	uploadpack = {upload}
	receivepack = {upload}
	promisor = true
	partialclonefilter = blob:none
[uploadpack]
	packObjectsHook = {upload}
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[submodule "sub"]
	url = ext::{transport} %S
	update = !{update}
	active = true
[submodule]
	recurse = true
[status]
	submoduleSummary = true
[browser "canary"]
	cmd = {alias}
[man "canary"]
	cmd = {alias}
[mergetool "canary"]
	cmd = {alias}
[trailer "canary"]
	command = {alias}
	cmd = {alias}
[ssh]
	variant = simple
[hook "canary"]
	command = {alias}
	event = post-commit
	event = pre-commit
[maintenance]
	auto = true
[takeup]
	confirm = caller
	repositoryPrograms = true
	mcpRun = true
	exclude = a.txt
"#,
        fsmonitor = n("fsmonitor"),
        ssh = n("ssh"),
        pager = n("pager"),
        editor = n("editor"),
        askpass = n("askpass"),
        proxy = n("proxy"),
        hooks = canary.folder.join("hooks").display(),
        alternates = n("alternates"),
        external = n("external"),
        textconv = n("textconv"),
        driver = n("driver"),
        clean = n("clean"),
        smudge = n("smudge"),
        process = n("process"),
        merge = n("merge"),
        alias = n("alias"),
        gpg = n("gpg"),
        filter = n("filter"),
        credential = n("credential"),
        transport = n("transport"),
        upload = n("upload"),
        update = n("update"),
    )
}

/// A repository that was worked in, and into whose configuration all of that was put then. `outside` puts it into a file
/// that the configuration includes.
fn planted(canary_in: &World, outside: bool) -> Canary {
    let world = canary_in;
    let canary = Canary::new(world);
    let repo = world.scratch.repo();
    for hook in HOOKS {
        for folder in [canary.folder.join("hooks"), repo.join(".git/hooks")] {
            std::fs::create_dir_all(&folder).unwrap();
            let path = folder.join(hook);
            drop(std::fs::remove_file(&path));
            std::os::unix::fs::symlink(canary.folder.join("sing"), path).unwrap();
        }
    }
    let config = repo.join(".git/config");
    let mut text = std::fs::read_to_string(&config).unwrap();
    if outside {
        let other = world.scratch.path().join("outside.config");
        std::fs::write(&other, configuration(&canary)).unwrap();
        text.push_str(&format!("[include]\n\tpath = {}\n", other.display()));
        text.push_str(&format!(
            "[includeIf \"gitdir:/\"]\n\tpath = {}\n",
            other.display()
        ));
    } else {
        text.push_str(&configuration(&canary));
    }
    std::fs::write(&config, text).unwrap();
    world.scratch.write(
        ".gitattributes",
        "* diff=canary merge=canary\n*.f filter=canary\n",
    );
    world.scratch.write(
        ".gitmodules",
        format!(
            "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::{0} %S\n\tupdate = !{0}\n",
            canary.named("modules")
        ),
    );
    // What git asks a file monitor and a missing promised object for.
    canary.is_silent("while it was being planted");
    canary
}

#[test]
fn the_canary_sings_when_git_is_asked_without_care() {
    let world = World::new();
    let canary = planted(&world, false);
    drop(
        world
            .scratch
            .git_may_fail(&world.scratch.repo(), &["diff", "HEAD"]),
    );
    let trace = canary.sang();
    assert!(
        trace.contains("fsmonitor") && trace.contains("driver"),
        "{trace}"
    );
    drop(world.scratch.git_may_fail(
        &world.scratch.repo(),
        &["commit", "-m", "x", "--allow-empty"],
    ));
    let trace = canary.sang();
    assert!(trace.contains("sing") || trace.contains("gpg"), "{trace}");
}

#[test]
fn nothing_of_a_repository_runs_by_looking() {
    for outside in [false, true] {
        let world = World::lived();
        let canary = planted(&world, outside);
        for words in looks() {
            // Installing hooks asks git for nothing that runs; it is part of the looks as a dry run.
            ends_well(&world, &words);
            canary.is_silent(&format!("{words:?}, included from outside: {outside}"));
        }
    }
}

#[test]
fn nothing_of_a_repository_runs_by_recording() {
    let world = World::lived();
    let canary = planted(&world, false);
    for words in [
        &["start", "new", "--session", "n1", "--no-checks"][..],
        &["save", "--session", "n1"],
        &["note", "x", "--session", "n1"],
        &["evaluate", "new", "--session", "n1"],
        &["next", "new", "--session", "n1"],
        &["save", "--session", "n1", "--end"],
        &["resume", "new", "--from", "n1", "--to", "n2", "--confirm"],
        &["resume", "stale", "--from", "s1", "--to", "n3", "--rebuild"],
        &["review", "request", "may I?", "--session", "n2"],
        &["review", "approve", "new", "--confirm"],
        &["handover", "new"],
        &["abandon", "new", "--session", "n2"],
        &["hook", "git", "post-commit"],
        &["hook", "claude-code", "Stop", "{\"session_id\": \"c1\"}"],
        &["doctor", "--fix", "--yes"],
        &["gc"],
    ] {
        ends_well(&world, words);
        canary.is_silent(&format!("{words:?}"));
    }
}

#[test]
fn nothing_of_a_repository_runs_through_the_mcp_server() {
    let world = World::lived();
    let canary = planted(&world, false);
    let mut client = Client::of(&world);
    for (tool, arguments) in [
        ("takeup_status", json!({})),
        ("takeup_inspect", json!({})),
        ("takeup_show", json!({"task": "held"})),
        ("takeup_diff", json!({"task": "stale"})),
        ("takeup_handover", json!({"task": "held"})),
        ("takeup_sessions", json!({})),
        ("takeup_start", json!({"title": "x"})),
        ("takeup_save", json!({})),
        // The repository's own configuration says that this is allowed: it has no say.
        ("takeup_bg_run", json!({"command": [canary.named("run")]})),
        (
            "takeup_resume",
            json!({"task": "held", "from": "s2", "confirmed": true}),
        ),
    ] {
        client.request("tools/call", json!({"name": tool, "arguments": arguments}));
        canary.is_silent(tool);
    }
}

/// A filter that the repository brings along is not run: the content is unknown then, and never a yes. One of the user's own
/// runs, as it does for git.
#[test]
fn filters_of_the_repository_are_not_run_and_the_users_are() {
    let world = World::new();
    world
        .run(&["start", "t", "--session", "s1", "--no-checks"])
        .exits(0);
    world.run(&["save", "--session", "s1", "--end"]).exits(0);
    let canary = planted(&world, false);
    world.scratch.write("x.f", "content\n");
    let ran = ends_well(&world, &["inspect", "t", "--json"]);
    canary.is_silent("a filter of the repository");
    assert!(
        !ran.stdout.contains("\"verdict\":\"resume-verification\""),
        "{}",
        ran.stdout
    );
    assert!(
        !ran.stdout.contains("\"verdict\": \"resume-verification\""),
        "{}",
        ran.stdout
    );

    // It says how a user who trusts the repository goes on; saying so is enough.
    let allow = "git config --global takeup.repositoryPrograms true";
    assert!(ran.stdout.contains(allow), "{}", ran.stdout);
    let doctor = world.run(&["doctor"]).stdout;
    // It stands in a column.
    let words: Vec<&str> = doctor.split_whitespace().collect();
    let doctor = words.join(" ");
    assert!(
        doctor.contains(allow) && !doctor.contains("git fsck"),
        "{doctor}"
    );

    let users = world.scratch.home().join("users.config");
    let tool = world.scratch.home().join("upper");
    takeup_tests::put_program(&tool, "#!/bin/sh\nexec tr a-z A-Z\n");
    std::fs::write(
        &users,
        format!("[filter \"mine\"]\n\tclean = {}\n", tool.display()),
    )
    .unwrap();
    world.scratch.write(".gitattributes", "*.f filter=mine\n");
    let ran = world.bounded(
        world
            .program()
            .env("GIT_CONFIG_GLOBAL", &users)
            .args(["fingerprint", "--json"]),
    );
    let answer = ran.exits(0).json();
    let tree = answer["data"]["fingerprint"].as_str().unwrap().to_owned();
    let mut git = std::process::Command::new("git");
    world.scratch.dress(&mut git);
    let index = world.scratch.path().join("index");
    let script = "cp .git/index \"$GIT_INDEX_FILE\"; git -c core.fsmonitor= -c core.hooksPath=/dev/null add -A && git rm -rq --cached .agent-context && git write-tree";
    let mut judge = std::process::Command::new("sh");
    world.scratch.dress(&mut judge);
    let judged = judge
        .args(["-c", script])
        .current_dir(world.scratch.repo())
        .env("GIT_CONFIG_GLOBAL", &users)
        .env("GIT_INDEX_FILE", &index)
        .output()
        .unwrap();
    let judged = String::from_utf8_lossy(&judged.stdout).trim().to_owned();
    assert_eq!(tree, judged);
    drop(git);
}

/// A partial clone fetches what is missing when git is asked for it: over a transport that the repository chooses.
#[test]
fn a_missing_object_is_not_fetched() {
    let world = World::lived();
    let canary = planted(&world, false);
    let repo = world.scratch.repo();
    let config = repo.join(".git/config");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n");
    std::fs::write(&config, text).unwrap();
    let object = |name: &str| {
        let oid = world
            .scratch
            .git(&["-c", "alias.rev-parse=", "rev-parse", name]);
        repo.join(".git/objects").join(&oid[..2]).join(&oid[2..])
    };
    for name in ["HEAD:a.txt", "HEAD:src"] {
        std::fs::remove_file(object(name)).unwrap();
    }
    canary.sang();
    for words in looks() {
        ends_well(&world, &words);
        canary.is_silent(&format!("{words:?}"));
    }
}
