use super::*;
use crate::testing::Repo;
use takeup_core::review::ReviewState;
use takeup_core::verdict::Content;

fn only(repo: &Repo) -> ForeignTask {
    let found = tasks(&repo.env, &repo.place);
    assert_eq!(found.issues, Vec::new());
    assert_eq!(found.items.len(), 1);
    found.items.into_iter().next().unwrap()
}

#[test]
fn equal_digests_are_a_proof_only_where_the_plugin_is_not_blind() {
    let repo = Repo::new();
    repo.sh("echo changed > src/a");
    repo.identity("fix-login", "ses_old", "active");
    assert_eq!(only(&repo).content, Content::Equal);
    repo.sh("echo other > src/a");
    assert_eq!(only(&repo).content, Content::Differs);
    repo.sh("echo changed > src/a");
    assert_eq!(only(&repo).content, Content::Equal);
    // The same difference on another commit.
    repo.sh("echo b > b; git add b; git commit -qm b");
    assert!(matches!(only(&repo).content, Content::Blind(why) if why.contains("HEAD")));
}

/// What `git stash`, a copy or `touch` does to the file of a record says nothing of when the record was written.
#[test]
fn a_record_whose_file_is_newer_does_not_hide_that_head_moved() {
    for disturb in [
        "git stash -q -u; git stash pop -q",
        "touch .agent-context/sidecar/*",
        "cp -r .agent-context x; rm -r .agent-context; mv x .agent-context",
    ] {
        for change in [
            "echo b > b; git add b; git commit -qm b -- b",
            "echo more >> AGENTS.md",
        ] {
            let repo = Repo::new();
            repo.sh("echo agents > AGENTS.md; git add AGENTS.md; git commit -qm agents; echo changed > src/a");
            repo.identity("fix-login", "ses_old", "active");
            assert_eq!(only(&repo).content, Content::Equal);
            repo.sh(change);
            assert!(matches!(only(&repo).content, Content::Blind(_)), "{change}");
            // Newer than the change by more than any clock's step.
            repo.sh(disturb);
            repo.sh("touch -d '1 hour' .agent-context/sidecar/*");
            assert!(
                matches!(only(&repo).content, Content::Blind(_)),
                "{change}; {disturb}"
            );
        }
    }
    // A record that does not say when it was written.
    let repo = Repo::new();
    repo.sh("echo changed > src/a");
    let path = repo.identity("fix-login", "ses_old", "active");
    let mut object = sidecar::read(&path).unwrap().unwrap().object;
    object.set("updatedAt", "some day");
    std::fs::write(&path, sidecar::Json::Object(object).pretty()).unwrap();
    assert!(matches!(only(&repo).content, Content::Blind(_)));
}

#[test]
fn a_clean_tree_proves_nothing_unless_head_is_known() {
    let repo = Repo::new();
    let path = repo.identity("fix-login", "ses_old", "active");
    assert!(matches!(only(&repo).content, Content::Blind(why) if why.contains("clean")));
    let mut object = sidecar::read(&path).unwrap().unwrap().object;
    sidecar::note_write(
        &mut object,
        head(&repo.place.root, &repo.env).as_deref(),
        false,
    );
    std::fs::write(&path, sidecar::Json::Object(object).pretty()).unwrap();
    assert_eq!(only(&repo).content, Content::Equal);
    repo.sh("echo b > b; git add b; git commit -qm b");
    assert!(matches!(only(&repo).content, Content::Blind(why) if why.contains("HEAD")));
}

#[test]
fn what_the_plugin_leaves_out_is_no_proof() {
    let repo = Repo::new();
    repo.sh(
        "echo agents > AGENTS.md; git add AGENTS.md; git commit -qm agents; echo changed > src/a",
    );
    repo.identity("fix-login", "ses_old", "active");
    assert_eq!(only(&repo).content, Content::Equal);
    repo.sh("echo more >> AGENTS.md");
    assert!(matches!(only(&repo).content, Content::Blind(why) if why.contains("AGENTS.md")));
    let repo = Repo::new();
    repo.sh("echo changed > src/a; git update-index --assume-unchanged src/b");
    repo.identity("fix-login", "ses_old", "active");
    repo.sh("echo hidden > src/b");
    assert!(matches!(only(&repo).content, Content::Blind(why) if why.contains("overlook")));
}

#[test]
fn a_pending_question_outlives_the_status() {
    let repo = Repo::new();
    repo.identity("fix-login", "ses_old", "stale-task");
    let order = sidecar::Collation::new().unwrap();
    let draft = sidecar::Draft {
        task: Some("fix-login"),
        session: Some("ses_old"),
        reason: sidecar::BOUNDARY,
        title: "May it edit more?",
        explanation: "Needs \u{1b}[31mred",
        required_action: "decide",
        resume_condition: "decided",
        commands: &[],
        files: &["x.ts".to_owned()],
        current: &[],
        requested: None,
        boundary_revision: Some(1),
        at: "2026-03-01T10:00:00.000Z",
    };
    let path = Paths::new(&repo.place.root).review(Some("fix-login"), Some("ses_old"));
    let object = draft.over(None, &order).unwrap();
    std::fs::write(path, sidecar::Json::Object(object).pretty()).unwrap();
    let review = only(&repo).review.unwrap();
    assert_eq!(review.state, ReviewState::Pending);
    assert_eq!(review.requested_boundary, ["x.ts"]);
    assert!(!review.explanation.contains('\u{1b}'));
}

#[test]
fn one_look_whatever_the_number() {
    let repo = Repo::new();
    repo.sh("echo changed > src/a");
    let path = repo.identity("fix-login", "ses_0", "active");
    let text = std::fs::read_to_string(&path).unwrap();
    for n in 1..300 {
        std::fs::write(
            path.with_file_name(format!("task-identity-fix-login-ses-{n}.json")),
            text.replace("ses_0", &format!("ses_{n}")),
        )
        .unwrap();
    }
    // A git that counts its calls, in front of the real one.
    let bin = repo.folder.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let count = repo.folder.path().join("count");
    let real = repo.output("command -v git");
    std::fs::write(
        bin.join("git"),
        format!(
            "#!/bin/sh\necho \"$1\" >> '{}'\nexec '{real}' \"$@\"\n",
            count.display()
        ),
    )
    .unwrap();
    repo.sh_in(&bin, "chmod +x git");
    let path_var = format!("{}:{}", bin.display(), repo.env.text("PATH").unwrap());
    let vars: Vec<_> = repo
        .env
        .vars()
        .filter(|(name, _)| *name != "PATH")
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .chain([("PATH".into(), path_var.into())])
        .collect();
    let env = Env::of(vars, &repo.place.root);
    let found = tasks(&env, &repo.place);
    assert_eq!(found.items.len(), 300);
    assert!(
        found
            .items
            .iter()
            .all(|task| task.content == Content::Equal)
    );
    let calls = std::fs::read_to_string(count).unwrap();
    assert_eq!(calls, "config\nrev-parse\ndiff\nstatus\nls-files\n");
}

#[test]
fn a_hostile_sidecar_harms_nothing() {
    let repo = Repo::new();
    repo.sh("echo changed > src/a");
    let good = repo.identity("fix-login", "ses_old", "active");
    let text = std::fs::read_to_string(&good).unwrap();
    let put = |name: &str, content: &str| {
        std::fs::write(
            good.with_file_name(format!("task-identity-{name}.json")),
            content,
        )
        .unwrap();
    };
    put(
        "traversal",
        &text.replace("fix-login", "../../../etc/passwd"),
    );
    put(
        "root",
        &text.replace(repo.place.root.to_str().unwrap(), "/etc"),
    );
    put("escape", &text.replace("ses_old", "ses_\\u001b[31m"));
    put("deep", &"[".repeat(2_000_000));
    put("broken", "{broken");
    put("schema", &text.replace("task-resume.v1", "task-resume.v2"));
    std::fs::create_dir_all(good.with_file_name("task-identity-folder.json")).unwrap();
    std::os::unix::fs::symlink(
        "/etc/passwd",
        good.with_file_name("task-identity-link.json"),
    )
    .unwrap();
    let large = std::fs::File::create(good.with_file_name("task-identity-large.json")).unwrap();
    large.set_len(100 << 20).unwrap();
    std::fs::create_dir_all(repo.place.root.join(".agent-context/runs")).unwrap();
    std::os::unix::fs::symlink(
        "/etc",
        repo.place.root.join(".agent-context/runs/fix-login"),
    )
    .unwrap();
    let found = tasks(&repo.env, &repo.place);
    let mut kinds: Vec<_> = found
        .issues
        .iter()
        .map(|issue| {
            (
                issue.path.file_name().unwrap().to_str().unwrap().to_owned(),
                issue.kind,
            )
        })
        .collect();
    kinds.sort();
    let named = |name: &str, kind| (name.to_owned(), kind);
    assert_eq!(
        kinds,
        [
            named("fix-login", IssueKind::Symlink),
            named("task-identity-broken.json", IssueKind::Corrupt),
            named("task-identity-deep.json", IssueKind::Corrupt),
            named("task-identity-escape.json", IssueKind::Corrupt),
            named("task-identity-folder.json", IssueKind::NotAFile),
            named("task-identity-large.json", IssueKind::TooLarge),
            named("task-identity-link.json", IssueKind::Symlink),
            named("task-identity-schema.json", IssueKind::UnknownVersion),
        ]
    );
    let mut tasks: Vec<_> = found
        .items
        .iter()
        .map(|task| (task.task_id.as_str(), task.root_matches))
        .collect();
    tasks.sort_unstable();
    assert_eq!(
        tasks,
        [
            ("etc-passwd", true),
            ("fix-login", false),
            ("fix-login", true)
        ]
    );
}

#[test]
fn a_linked_folder_is_not_entered() {
    let repo = Repo::new();
    let elsewhere = Repo::new();
    elsewhere.identity("fix-login", "ses_old", "active");
    std::os::unix::fs::symlink(
        elsewhere.place.root.join(".agent-context"),
        repo.place.root.join(".agent-context"),
    )
    .unwrap();
    let found = tasks(&repo.env, &repo.place);
    assert!(found.items.is_empty());
    assert_eq!(
        found.issues.first().map(|issue| issue.kind),
        Some(IssueKind::Symlink)
    );
}
