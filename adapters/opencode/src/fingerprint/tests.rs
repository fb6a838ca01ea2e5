use super::*;

fn vectors() -> serde_json::Value {
    serde_json::from_slice(include_bytes!(
        "../../tests/fixtures/opencode-fingerprint.json"
    ))
    .unwrap()
}

fn environment(home: &Path) -> Env {
    let mut vars: Vec<(String, String)> = vectors()["environment"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    vars.push(("PATH".to_owned(), std::env::var("PATH").unwrap()));
    vars.push(("HOME".to_owned(), home.to_str().unwrap().to_owned()));
    Env::of(vars, home)
}

/// Runs every recipe and compares. The groups with sparse files of gigabytes are run with `--ignored`.
fn run_groups(wanted: &dyn Fn(&str) -> bool) {
    let mut count = 0;
    for vector in vectors()["vectors"].as_array().unwrap() {
        if !wanted(vector["group"].as_str().unwrap()) {
            continue;
        }
        let id = vector["id"].as_str().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(&root).unwrap();
        let env = environment(folder.path());
        let recipe: Vec<&str> = vector["recipe"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap())
            .collect();
        let status = Command::new("sh")
            .arg("-euc")
            .arg(format!("umask 022\n{}", recipe.join("\n")))
            .current_dir(&root)
            .env_clear()
            .envs(env.vars())
            .status()
            .unwrap();
        assert!(status.success(), "{id}");
        let before = snapshot(&root);
        let taken = fingerprint(&root.join(vector["start"].as_str().unwrap()), &env).unwrap();
        assert_eq!(taken.digest, vector["digest"].as_str().unwrap(), "{id}");
        assert_eq!(
            taken.on_bun.as_deref(),
            vector["digest_on_bun"].as_str(),
            "{id}"
        );
        assert_eq!(snapshot(&root), before, "{id}: looking is not writing");
        count += 1;
    }
    assert!(count > 0);
}

/// Names, sizes and times of the git folder.
fn snapshot(root: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    let mut found = Vec::new();
    let mut folders = vec![root.join(".git")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            }
            found.push((entry.path(), meta.size(), meta.mtime(), meta.mtime_nsec()));
        }
    }
    found.sort();
    found
}

#[test]
fn digests_are_the_plugins() {
    run_groups(&|group| group != "limits");
}

#[test]
#[ignore = "reads 2 GiB"]
fn digests_at_the_limits_are_the_plugins() {
    run_groups(&|group| group == "limits");
}

#[test]
fn no_program_of_the_repository_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let env = environment(root);
    let marker = root.join("ran");
    let sh = |script: &str| {
        let status = Command::new("sh")
            .arg("-euc")
            .arg(script)
            .current_dir(root)
            .env_clear()
            .envs(env.vars())
            .status()
            .unwrap();
        assert!(status.success(), "{script}");
    };
    sh(
        "git init -q . && echo a > a && git add a && git commit -qm a && echo b > a && printf '*.x filter=evil\\na diff=evil filter=evil\\n' > .gitattributes",
    );
    sh(&format!(
        "printf '#!/bin/sh\\ntouch {}\\n' > .git/evil && chmod +x .git/evil",
        marker.display()
    ));
    for key in [
        "core.fsmonitor",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.process",
    ] {
        sh(&format!("git config {key} \"$PWD/.git/evil\""));
        let taken = fingerprint(root, &env);
        assert!(!marker.exists(), "{key} ran");
        if key == "core.fsmonitor" {
            assert!(taken.is_ok());
        } else {
            assert!(matches!(taken, Err(FingerprintError::WouldRun(named)) if named == key));
        }
        sh(&format!("git config --unset {key}"));
    }
}

#[test]
fn blindness_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let env = environment(root);
    let sh = |script: &str| {
        let status = Command::new("sh")
            .arg("-euc")
            .arg(script)
            .current_dir(root)
            .env_clear()
            .envs(env.vars())
            .status()
            .unwrap();
        assert!(status.success(), "{script}");
    };
    let blind = || fingerprint(root, &env).unwrap().blind;
    sh("git init -q . && echo a > a && git add a && git commit -qm a && echo b > b");
    assert_eq!(blind(), Vec::<String>::new());
    sh("git init -q nested && echo x > nested/x");
    assert!(blind()[0].contains("nested"));
    sh("rm -r nested; printf '\\377\\n' > a");
    assert!(blind()[0].contains("UTF-8"));
    sh("echo a > a; git update-index --assume-unchanged a; echo c > a");
    assert!(overlooked(root, &env).unwrap().unwrap().contains("\"a\""));
}

#[test]
fn a_pipe_in_the_place_of_a_file_that_git_reads_is_an_error() {
    for name in READ_BY_GIT {
        let repo = crate::testing::Repo::new();
        repo.sh(&format!("mkfifo {name}"));
        let taken = fingerprint(&repo.place.root, &repo.env);
        assert!(
            matches!(&taken, Err(FingerprintError::Unreadable { path, .. }) if path.ends_with(name)),
            "{taken:?}"
        );
    }
}
