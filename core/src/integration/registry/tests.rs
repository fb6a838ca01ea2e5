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

/// Two installations in one file, whichever came first, came again in a newer version, and goes first: after both are out it
/// holds what its owner had, to the byte, and after one of them nothing of that one. What a plan leaves loses line ends.
#[test]
fn the_last_to_go_puts_back_what_was_there_before_the_first() {
    let out = |text: &str, name: &str| -> String {
        let rest = text.lines().filter(|line| !line.starts_with(name));
        rest.flat_map(|line| [line, "\n"]).collect()
    };
    for theirs in [None, Some("mine\r\n\r\n")] {
        for gone in [["one", "two"], ["two", "one"]] {
            for updated in [None, Some("one"), Some("two")] {
                let case = Case::new();
                let (env, scope) = (&case.env, &Scope::User);
                let path = case.path("shared");
                if let Some(text) = theirs {
                    files::write_atomic(&path, text.as_bytes(), 0o644).unwrap();
                }
                let now = || std::fs::read_to_string(&path).unwrap_or_default();
                let put = |name: &str, line: &str| {
                    let agent = AgentId::new(name).unwrap();
                    let text = if now().contains(name) {
                        now().replace(name, line)
                    } else {
                        format!("{}{line}\n", now())
                    };
                    install(env, &agent, scope, &case.edit("shared", &text)).unwrap();
                };
                put("one", "one");
                put("two", "two");
                if let Some(name) = updated {
                    put(name, &format!("{name}, newer"));
                }
                for (at, name) in gone.iter().enumerate() {
                    let agent = AgentId::new(*name).unwrap();
                    let plan = case.edit("shared", &out(&now(), name));
                    let shown = planned_removal(env, &agent, scope, &plan).unwrap();
                    uninstall(env, &agent, scope, &plan).unwrap();
                    assert_eq!(
                        shown.edits[0].after.as_deref().unwrap_or_default(),
                        now().as_bytes()
                    );
                    assert!(!now().contains(name), "{gone:?} {updated:?}: {}", now());
                    assert_eq!(now().contains("one") || now().contains("two"), at == 0);
                }
                assert_eq!(
                    std::fs::read_to_string(&path).ok().as_deref(),
                    theirs,
                    "{gone:?} {updated:?}"
                );
            }
        }
    }
}

/// An installation that is put in again meets content that was there before: it is not put back over the other one.
#[test]
fn what_comes_again_is_not_taken_for_what_was_there() {
    for theirs in ["", "mine\n"] {
        let case = Case::new();
        let (env, scope) = (&case.env, &Scope::User);
        let [one, two] = ["one", "two"].map(|name| AgentId::new(name).unwrap());
        let path = case.path("shared");
        files::write_atomic(&path, theirs.as_bytes(), 0o644).unwrap();
        let edit = |text: &str| case.edit("shared", &format!("{theirs}{text}"));
        let now = || std::fs::read_to_string(&path).unwrap();
        install(env, &one, scope, &edit("one\n")).unwrap();
        install(env, &two, scope, &edit("one\ntwo\n")).unwrap();
        uninstall(env, &one, scope, &edit("two\n")).unwrap();
        let known = before(env, &two, scope, &path);
        assert_eq!(known.as_deref(), Some(theirs.as_bytes()));
        install(env, &one, scope, &edit("one\ntwo\n")).unwrap();
        uninstall(env, &two, scope, &edit("one\n")).unwrap();
        assert_eq!(now(), format!("{theirs}one\n"));
        uninstall(env, &one, scope, &EditPlan::default()).unwrap();
        assert_eq!(now(), theirs);
    }
}

/// Somebody's edit in between: only what is ours goes, and that the file was there is known to the last.
#[test]
fn an_edit_between_two_installations_stays() {
    let case = Case::new();
    let (env, scope) = (&case.env, &Scope::User);
    let [one, two] = ["one", "two"].map(|name| AgentId::new(name).unwrap());
    let path = case.path("shared");
    files::write_atomic(&path, b"mine\n", 0o644).unwrap();
    install(env, &one, scope, &case.edit("shared", "mine\none\n")).unwrap();
    install(env, &two, scope, &case.edit("shared", "mine\none\ntwo\n")).unwrap();
    files::write_atomic(&path, b"mine\none\ntwo\nlater\n", 0o644).unwrap();
    uninstall(env, &one, scope, &case.edit("shared", "mine\ntwo\nlater\n")).unwrap();
    assert_eq!(
        before(env, &two, scope, &path).as_deref(),
        Some(&b"mine\n"[..])
    );
    uninstall(env, &two, scope, &case.edit("shared", "mine\nlater\n")).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"mine\nlater\n");
}
