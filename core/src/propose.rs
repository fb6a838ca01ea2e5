//! Checks that a repository suggests. Each is shown with where it comes from; none is ever run unasked.
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::read_bounded;

/// The most bytes of a build file that are read.
const LONGEST: u64 = 1 << 20;

/// A check that the repository suggests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The command.
    pub command: String,
    /// The file it comes from.
    pub source: String,
}

/// Looks at the build files at the top of a work tree.
pub fn propose(root: &Path) -> Vec<Proposal> {
    let mut found = Vec::new();
    let mut add = |command: String, source: &str| {
        found.push(Proposal {
            command,
            source: source.to_owned(),
        });
    };
    let read = |name: &str| {
        read_bounded(&root.join(name), LONGEST)
            .ok()
            .flatten()
            .and_then(|bytes| String::from_utf8(bytes).ok())
    };
    let there = |name: &str| {
        root.join(name)
            .symlink_metadata()
            .is_ok_and(|meta| !meta.is_dir())
    };

    if there("Cargo.toml") {
        add("cargo test".to_owned(), "Cargo.toml");
    }
    if let Some(text) = read("package.json") {
        let manager = [
            ("pnpm-lock.yaml", "pnpm"),
            ("yarn.lock", "yarn"),
            ("bun.lock", "bun"),
            ("bun.lockb", "bun"),
        ]
        .into_iter()
        .find(|(lock, _)| there(lock))
        .map_or("npm", |(_, manager)| manager);
        for script in scripts(&text) {
            add(format!("{manager} run {script}"), "package.json");
        }
    }
    if there("go.mod") {
        add("go test ./...".to_owned(), "go.mod");
    }
    if there("tox.ini") {
        add("tox".to_owned(), "tox.ini");
    } else if let Some(text) = read("pyproject.toml") {
        let command = if there("uv.lock") {
            "uv run pytest"
        } else {
            "pytest"
        };
        if text.contains("pytest") {
            add(command.to_owned(), "pyproject.toml");
        }
    } else if there("pytest.ini") || there("conftest.py") {
        add(
            "pytest".to_owned(),
            if there("pytest.ini") {
                "pytest.ini"
            } else {
                "conftest.py"
            },
        );
    }
    for name in ["Makefile", "makefile", "GNUmakefile"] {
        if let Some(text) = read(name) {
            for target in ["test", "check"] {
                if text
                    .lines()
                    .any(|line| line.split(':').next() == Some(target) && line.contains(':'))
                {
                    add(format!("make {target}"), name);
                }
            }
            break;
        }
    }
    for name in ["justfile", "Justfile", ".justfile"] {
        if let Some(text) = read(name) {
            for recipe in ["test", "check"] {
                let begins = |line: &str| {
                    line.strip_prefix(recipe)
                        .is_some_and(|rest| rest.starts_with([':', ' ']) && rest.contains(':'))
                };
                if text.lines().any(begins) {
                    add(format!("just {recipe}"), name);
                }
            }
            break;
        }
    }
    for (file, wrapper, command) in [
        ("build.gradle", "gradlew", "gradle test"),
        ("build.gradle.kts", "gradlew", "gradle test"),
        ("pom.xml", "mvnw", "mvn test"),
    ] {
        if there(file) {
            let wrapped = command
                .split_once(' ')
                .map(|(_, goal)| format!("./{wrapper} {goal}"));
            add(
                wrapped
                    .filter(|_| there(wrapper))
                    .unwrap_or_else(|| command.to_owned()),
                file,
            );
        }
    }
    found
}

/// Returns the scripts of a `package.json` that are checks by their usual names.
fn scripts(text: &str) -> Vec<&'static str> {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = value.get("scripts").and_then(serde_json::Value::as_object);
    ["test", "lint", "typecheck", "build"]
        .into_iter()
        .filter(|name| {
            let script = scripts
                .and_then(|scripts| scripts.get(*name))
                .and_then(serde_json::Value::as_str);
            // What `npm init` writes is no check.
            script.is_some_and(|script| !script.contains("no test specified"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::write_atomic;

    #[test]
    fn build_files_suggest_their_checks() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            write_atomic(&folder.path().join(name), text.as_bytes(), 0o644).unwrap();
        };
        put("Cargo.toml", "[package]");
        put(
            "package.json",
            r#"{"scripts": {"test": "vitest", "lint": "eslint .", "start": "node ."}}"#,
        );
        put("pnpm-lock.yaml", "");
        put("Makefile", "all: test\ntest:\n\techo\n");
        put("justfile", "check arg='x':\n  true\n");
        put("pom.xml", "<project/>");
        let commands: Vec<String> = propose(folder.path())
            .into_iter()
            .map(|proposal| proposal.command)
            .collect();
        assert_eq!(
            commands,
            [
                "cargo test",
                "pnpm run test",
                "pnpm run lint",
                "make test",
                "just check",
                "mvn test"
            ]
        );
        put("package.json", "{ broken");
        assert!(
            !propose(folder.path())
                .iter()
                .any(|proposal| proposal.source == "package.json")
        );
    }
}
