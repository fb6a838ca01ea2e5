use super::*;

struct Case {
    folder: tempfile::TempDir,
    env: Env,
    agent: AgentId,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::of([("TAKEUP_HOME", folder.path().join("own"))], folder.path());
        Self {
            folder,
            env,
            agent: AgentId::new("x").unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn edit(&self, name: &str, after: &str) -> EditPlan {
        let path = self.path(name);
        let before = current(&path).unwrap();
        EditPlan {
            edits: vec![Edit {
                path,
                before,
                after: Some(after.into()),
                mode: 0o600,
            }],
            ..EditPlan::default()
        }
    }
}

#[test]
fn what_was_there_comes_back_byte_for_byte() {
    let case = Case::new();
    files::write_atomic(&case.path("old"), b"mine\r\n", 0o640).unwrap();
    install(
        &case.env,
        &case.agent,
        &Scope::User,
        &case.edit("old", "mine\r\nours\n"),
    )
    .unwrap();
    install(
        &case.env,
        &case.agent,
        &Scope::User,
        &case.edit("deep/er/new", "ours"),
    )
    .unwrap();
    // A second version of ours changes nothing of what is put back.
    install(
        &case.env,
        &case.agent,
        &Scope::User,
        &case.edit("old", "mine\r\nours, newer\n"),
    )
    .unwrap();
    assert_eq!(
        std::fs::read(case.path("old")).unwrap(),
        b"mine\r\nours, newer\n"
    );
    assert_eq!(mode_of(&case.path("old")), 0o640);
    uninstall(&case.env, &case.agent, &Scope::User, &EditPlan::default()).unwrap();
    assert_eq!(std::fs::read(case.path("old")).unwrap(), b"mine\r\n");
    assert_eq!(mode_of(&case.path("old")), 0o640);
    assert!(!case.path("deep").exists());
    assert!(
        uninstall(&case.env, &case.agent, &Scope::User, &EditPlan::default())
            .unwrap()
            .changed
            .is_empty()
    );
}

#[test]
fn a_file_that_was_edited_since_loses_only_our_part() {
    let case = Case::new();
    files::write_atomic(&case.path("old"), b"mine\n", 0o644).unwrap();
    install(
        &case.env,
        &case.agent,
        &Scope::User,
        &case.edit("old", "mine\nours\n"),
    )
    .unwrap();
    files::write_atomic(&case.path("old"), b"mine\nours\nlater\n", 0o644).unwrap();
    let plan = case.edit("old", "mine\nlater\n");
    uninstall(&case.env, &case.agent, &Scope::User, &plan).unwrap();
    assert_eq!(std::fs::read(case.path("old")).unwrap(), b"mine\nlater\n");
}

#[test]
fn a_removal_leaves_what_moved_under_its_plan() {
    let case = Case::new();
    files::write_atomic(&case.path("old"), b"mine\nours\n", 0o644).unwrap();
    let plan = case.edit("old", "mine\n");
    files::write_atomic(&case.path("old"), b"mine\nours\nmeanwhile\n", 0o644).unwrap();
    let error = uninstall(&case.env, &case.agent, &Scope::User, &plan).unwrap_err();
    assert_eq!(error.code(), "file-changed");
    assert_eq!(
        std::fs::read(case.path("old")).unwrap(),
        b"mine\nours\nmeanwhile\n"
    );
}

#[test]
fn an_own_file_that_was_edited_stays_however_often_it_is_asked() {
    let case = Case::new();
    let (env, agent, scope) = (&case.env, &case.agent, &Scope::User);
    install(env, agent, scope, &case.edit("deep/own", "ours\n")).unwrap();
    files::write_atomic(&case.path("deep/own"), b"ours\nmine\n", 0o644).unwrap();
    let removal = || {
        let mut plan = case.edit("deep/own", "");
        plan.edits[0].after = None;
        plan.without_edited(env, agent, scope, |_| true)
    };
    for _ in 0..2 {
        let plan = removal();
        assert_eq!((plan.edits.len(), plan.left.len()), (0, 1));
        let done = uninstall(env, agent, scope, &plan).unwrap();
        assert_eq!((done.changed.len(), done.notes.len()), (0, 1));
        assert_eq!(
            std::fs::read(case.path("deep/own")).unwrap(),
            b"ours\nmine\n"
        );
    }
    // Once its owner took it away, the next removal takes the folder that was made for it.
    std::fs::remove_file(case.path("deep/own")).unwrap();
    uninstall(env, agent, scope, &EditPlan::default()).unwrap();
    assert!(!case.path("deep").exists());
    assert!(!folder(env, agent, scope).unwrap().exists());
}

#[test]
fn a_file_that_moved_under_the_plan_is_left_alone() {
    let case = Case::new();
    let plan = case.edit("new", "ours");
    files::write_atomic(&case.path("new"), b"theirs", 0o644).unwrap();
    let error = install(&case.env, &case.agent, &Scope::User, &plan).unwrap_err();
    assert_eq!(error.code(), "file-changed");
    assert_eq!(std::fs::read(case.path("new")).unwrap(), b"theirs");
}

/// A record that cannot be read stands in nobody's way for ever, and what it does not say any more is not guessed.
#[test]
fn a_damaged_record_is_put_aside() {
    let case = Case::new();
    let (env, agent, scope) = (&case.env, &case.agent, &Scope::User);
    files::write_atomic(&case.path("theirs"), b"mine\n", 0o644).unwrap();
    install(env, agent, scope, &case.edit("theirs", "mine\nours\n")).unwrap();
    for own in ["kept", "edited"] {
        install(
            env,
            agent,
            scope,
            &case.edit(own, &format!("{own}, ours\n")),
        )
        .unwrap();
    }
    files::write_atomic(&case.path("edited"), b"ours, and mine\n", 0o644).unwrap();
    let record = folder(env, agent, scope).unwrap();
    let manifest = record.join("manifest.json");
    let mut text = std::fs::read(&manifest).unwrap();
    text.pop();
    files::write_atomic(&manifest, &text, 0o600).unwrap();
    let plan = || {
        let mut plan = case.edit("theirs", "mine\n");
        for own in ["kept", "edited"] {
            plan.edits.extend(case.edit(own, "").edits);
        }
        for edit in plan.edits.iter_mut().skip(1) {
            edit.after = None;
        }
        plan.without_edited(env, agent, scope, |path| !path.ends_with("theirs"))
    };
    for error in [
        uninstall(env, agent, scope, &plan()).unwrap_err(),
        install(env, agent, scope, &case.edit("new", "x")).unwrap_err(),
    ] {
        assert_eq!(error.code(), "integration-record");
        assert!(error.hint().unwrap().contains("doctor --fix"));
    }
    assert_eq!(damaged(env).len(), 1);
    // As the doctor does it.
    let mut aside = record.clone().into_os_string();
    aside.push(ASIDE);
    files::rename(&record, Path::new(&aside)).unwrap();
    assert_eq!(damaged(env), []);
    let plan = plan();
    assert_eq!(plan.left, [case.path("edited")]);
    uninstall(env, agent, scope, &plan).unwrap();
    assert_eq!(std::fs::read(case.path("theirs")).unwrap(), b"mine\n");
    assert!(!case.path("kept").exists());
    assert_eq!(
        std::fs::read(case.path("edited")).unwrap(),
        b"ours, and mine\n"
    );
    // Whoever wants to know what was there still can.
    assert!(Path::new(&aside).join("manifest.json").exists());
}

/// Two installations in one file, the first of which made it: after both are out it was made by nobody, in whatever order.
#[test]
fn what_was_there_before_the_first_is_known_to_the_last() {
    for (theirs, other_first) in [
        (None, false),
        (Some("mine\n"), false),
        (None, true),
        (Some("mine\n"), true),
    ] {
        let case = Case::new();
        let (env, scope) = (&case.env, &Scope::User);
        let [one, two] = ["one", "two"].map(|name| AgentId::new(name).unwrap());
        let path = case.path("shared");
        if let Some(text) = theirs {
            files::write_atomic(&path, text.as_bytes(), 0o644).unwrap();
        }
        let theirs_text = theirs.unwrap_or_default();
        install(
            env,
            &one,
            scope,
            &case.edit("shared", &format!("{theirs_text}one\n")),
        )
        .unwrap();
        install(
            env,
            &two,
            scope,
            &case.edit("shared", &format!("{theirs_text}one\ntwo\n")),
        )
        .unwrap();
        if other_first {
            uninstall(env, &two, scope, &EditPlan::default()).unwrap();
            uninstall(env, &one, scope, &EditPlan::default()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), theirs);
            continue;
        }
        uninstall(
            env,
            &one,
            scope,
            &case.edit("shared", &format!("{theirs_text}two\n")),
        )
        .unwrap();
        let known = before(env, &two, scope, &path);
        assert_eq!(known.as_deref(), theirs.map(str::as_bytes));
        // The same content again is not what the last one found, and is not put back over the first.
        install(
            env,
            &one,
            scope,
            &case.edit("shared", &format!("{theirs_text}one\ntwo\n")),
        )
        .unwrap();
        uninstall(
            env,
            &two,
            scope,
            &case.edit("shared", &format!("{theirs_text}one\n")),
        )
        .unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            format!("{theirs_text}one\n")
        );
    }
}
