//! The records of the OpenCode++ plugin in `.agent-context/`, as its versions of early 2026 write them: keys in their
//! order, two spaces, a line end; times with milliseconds; digests taken with the two commands the plugin runs.
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use takeup_core::ids::SessionRef;

use super::super::facts::Fact;
use super::super::stage::{self, Stage, TASK, TITLE};
use super::super::story::Deed;
use super::{Teller, Untold, session_ref};

/// The records of one place.
#[derive(Debug, Default)]
pub(super) struct Sidecar {
    held: BTreeMap<String, Held>,
    run: Run,
    request: Option<Request>,
}

/// One identity with its workflow.
#[derive(Clone, Debug)]
struct Held {
    root: String,
    base: String,
    latest: String,
    status: &'static str,
    phase: &'static str,
    revision: u64,
    resumed_to: Option<String>,
    resumed_from: Option<String>,
}

/// The manifest of the task.
#[derive(Clone, Debug, Default)]
struct Run {
    allow: Vec<String>,
    avoid: Vec<String>,
    commands: Vec<String>,
    revision: u64,
}

/// A question to a person.
#[derive(Clone, Debug)]
struct Request {
    who: String,
    question: String,
    asked: Option<String>,
    status: &'static str,
    revision: u64,
    created: String,
}

impl Teller for Sidecar {
    fn session(&self, who: &str) -> SessionRef {
        session_ref("opencode", &id(who))
    }

    fn tell(&mut self, stage: &mut Stage, who: &str, deed: &Deed) -> Result<(), Untold> {
        match deed {
            Deed::Begins {
                allow,
                avoid,
                prove,
            } => {
                self.run = Run {
                    allow: allow.clone(),
                    avoid: avoid.clone(),
                    commands: prove.clone(),
                    revision: 1,
                };
                let digest = digest(stage);
                self.hold(stage, who, &digest, &digest, "active", "prepared", None);
                self.write(stage, who);
            }
            Deed::Saves { .. } => {
                let digest = digest(stage);
                let held = self.of(who);
                if held.latest != digest {
                    held.latest = digest;
                    held.status = "dirty";
                    held.phase = "editing";
                    self.write(stage, who);
                }
            }
            Deed::Calls { .. } => return Err(Untold(Fact::Calls)),
            // Nothing is written when a session goes away, in whatever way.
            Deed::Dies(_) | Deed::Ends => {}
            Deed::Asks { question, allow } => {
                self.request = Some(Request {
                    who: who.to_owned(),
                    question: question.clone(),
                    asked: allow.clone(),
                    status: "pending",
                    revision: 1,
                    created: stage::now().to_string(),
                });
                let held = self.of(who);
                held.status = "human-review";
                held.phase = "blocked";
                self.write(stage, who);
            }
            Deed::Approves | Deed::Rejects | Deed::Decides => {
                let digest = digest(stage);
                let request = self.request.as_mut().expect("a question was put");
                let who = request.who.clone();
                request.revision += 1;
                match deed {
                    Deed::Decides => request.status = "approved",
                    Deed::Rejects => {
                        request.status = "rejected";
                        self.of(&who).status = "abandoned";
                    }
                    _ => {
                        // Only a wider boundary can be approved.
                        let asked = request.asked.clone().ok_or(Untold(Fact::Review))?;
                        request.status = "resumed";
                        self.run.allow.push(asked);
                        self.run.revision += 1;
                        let held = self.of(&who);
                        held.status = "dirty";
                        held.phase = "editing";
                        held.latest = digest;
                    }
                }
                self.write(stage, &who);
            }
            Deed::Takes { from } | Deed::Rebuilds { from } => {
                let digest = digest(stage);
                let rebuilt = matches!(deed, Deed::Rebuilds { .. });
                let left = self.of(from);
                if rebuilt {
                    left.latest.clone_from(&digest);
                }
                left.status = "abandoned";
                left.resumed_to = Some(id(who));
                let base = if rebuilt {
                    digest.clone()
                } else {
                    left.base.clone()
                };
                self.write(stage, from);
                let (status, phase) = if rebuilt {
                    ("active", "prepared")
                } else {
                    ("verification-required", "evaluated")
                };
                self.hold(stage, who, &base, &digest, status, phase, Some(from));
                self.write(stage, who);
            }
            Deed::GoesOn => {
                let digest = digest(stage);
                let held = self.of(who);
                held.status = "active";
                held.phase = "prepared";
                held.base.clone_from(&digest);
                held.latest = digest;
                self.write(stage, who);
            }
            Deed::Evaluates { .. } => {
                let digest = digest(stage);
                let held = self.of(who);
                held.status = "verification-required";
                held.phase = "evaluated";
                held.latest = digest;
                self.write(stage, who);
            }
            Deed::Checks { .. } => return Err(Untold(Fact::Proof)),
            Deed::Finishes => {
                let held = self.of(who);
                held.status = "completed";
                held.phase = "finalize";
                self.write(stage, who);
            }
            Deed::GivesUp => {
                self.of(who).status = "abandoned";
                self.write(stage, who);
            }
            Deed::MarkedStale => {
                // The plugin puts the present digest in the place of the one that was left.
                let digest = digest(stage);
                let held = self.of(who);
                held.status = "stale-task";
                held.latest = digest;
                self.write(stage, who);
            }
            Deed::Torn => stage::cut(&identity_path(stage, who), 40),
            Deed::Damaged => {
                let path = identity_path(stage, who);
                let text = std::fs::read_to_string(&path).expect("the record is there");
                stage::put(&path, text.replace("\"status\"", "\"stat us\""));
            }
        }
        Ok(())
    }
}

/// Names a session as OpenCode does.
fn id(who: &str) -> String {
    format!("ses_{who}")
}

impl Sidecar {
    fn of(&mut self, who: &str) -> &mut Held {
        self.held
            .get_mut(who)
            .unwrap_or_else(|| panic!("{who} holds no task"))
    }

    #[expect(clippy::too_many_arguments, reason = "each is a field of the record")]
    fn hold(
        &mut self,
        stage: &Stage,
        who: &str,
        base: &str,
        latest: &str,
        status: &'static str,
        phase: &'static str,
        from: Option<&str>,
    ) {
        let held = Held {
            root: stage.root(),
            base: base.to_owned(),
            latest: latest.to_owned(),
            status,
            phase,
            revision: 0,
            resumed_to: None,
            resumed_from: from.map(id),
        };
        self.held.insert(who.to_owned(), held);
    }

    /// Writes every record of a session, the identity last.
    fn write(&mut self, stage: &Stage, who: &str) {
        let at = crate::a_tick_later().to_string();
        self.of(who).revision += 1;
        let held = self.of(who).clone();
        let session = id(who);
        let folder = stage.place.join(".agent-context");
        let sidecar = folder.join("sidecar");
        let run = &self.run;
        let paths: Vec<&str> = vec![];
        stage::put(
            &folder.join("runs").join(TASK).join("run.json"),
            pretty(&[
                ("id", json!(TASK)),
                ("task", json!(TITLE)),
                ("type", json!("bugfix")),
                ("mustInspect", json!(paths)),
                ("allowedEditGlobs", json!(run.allow)),
                ("avoidEditGlobs", json!(run.avoid)),
                ("relatedTests", json!(paths)),
                ("requiredCommands", json!(run.commands)),
                ("requiredRegressionTests", json!(paths)),
                ("regressionMatches", json!(paths)),
                ("riskLevel", json!("low")),
                ("files", json!(paths)),
                ("boundaryRevision", json!(run.revision)),
            ]),
        );
        if let Some(request) = self.request.as_ref().filter(|request| request.who == who) {
            let reason = if request.asked.is_some() {
                "BOUNDARY_EXPANSION_REQUIRED"
            } else {
                "EXTERNAL_SIDE_EFFECT"
            };
            let asked: Vec<&String> = request.asked.iter().collect();
            let digest = Sha256::digest(request.question.as_bytes());
            stage::put(
                &sidecar.join(format!("human-review-{TASK}-ses-{who}.json")),
                pretty(&[
                    ("schemaVersion", json!("opencode-plusplus.human-review.v1")),
                    ("revision", json!(request.revision)),
                    (
                        "requestId",
                        json!(format!("human-review-{}", &hex(&digest)[..20])),
                    ),
                    ("taskId", json!(TASK)),
                    ("sessionId", json!(session)),
                    ("reasonCode", json!(reason)),
                    ("title", json!("A person has to decide")),
                    ("explanation", json!(request.question)),
                    ("requiredUserAction", json!("Decide.")),
                    ("suggestedCommands", json!(paths)),
                    ("affectedFiles", json!(asked)),
                    ("resumeCondition", json!("A person decided.")),
                    ("status", json!(request.status)),
                    ("requestedBoundary", json!(asked)),
                    ("createdAt", json!(request.created)),
                    ("updatedAt", json!(at)),
                ]),
            );
        }
        let label = Sha256::digest(format!("{}:{TASK}", held.root).as_bytes());
        let mut workflow = vec![
            ("schemaVersion", json!(1)),
            ("revision", json!(held.revision)),
            ("sessionId", json!(session)),
            ("phase", json!(held.phase)),
            ("taskId", json!(TASK)),
            ("contextFingerprint", json!(hex(&label))),
            ("initialWorkingTreeHash", json!(held.base)),
            ("currentWorkingTreeHash", json!(held.latest)),
            (
                "editBoundary",
                json!({"allowedEditGlobs": run.allow, "avoidEditGlobs": run.avoid}),
            ),
            ("boundaryRevision", json!(run.revision)),
            ("requiredTests", json!(run.commands)),
            ("lastEventKey", json!(format!("prepare:{TASK}"))),
            ("sourceChanged", json!(held.base != held.latest)),
        ];
        if let Some(from) = &held.resumed_from {
            workflow.push(("resumedFromSessionId", json!(from)));
        }
        workflow.push(("updatedAt", json!(at)));
        let name = hex(&Sha256::digest(session.as_bytes()));
        stage::put(
            &sidecar.join(format!("plugin-workflow-{}.json", &name[..16])),
            pretty(&workflow),
        );
        let record = pretty(&[
            ("taskId", json!(TASK)),
            ("task", json!(TITLE)),
            ("type", json!("bugfix")),
            ("sessionId", json!(session)),
            ("updatedAt", json!(at)),
            ("schemaVersion", json!(1)),
            ("revision", json!(held.revision)),
        ]);
        for name in [
            format!("plugin-session-ses-{who}.json"),
            "plugin-session.json".to_owned(),
        ] {
            stage::put(&sidecar.join(name), &record);
        }
        let mut identity = vec![
            ("schemaVersion", json!("opencode-plusplus.task-resume.v1")),
            ("sessionId", json!(session)),
            ("repositoryRoot", json!(held.root)),
            ("taskId", json!(TASK)),
            ("baseWorkingTreeFingerprint", json!(held.base)),
            ("latestWorkingTreeFingerprint", json!(held.latest)),
            ("status", json!(held.status)),
            ("updatedAt", json!(at)),
            ("revision", json!(held.revision)),
        ];
        if let Some(to) = &held.resumed_to {
            identity.push(("resumedToSessionId", json!(to)));
        }
        stage::put(&identity_path(stage, who), pretty(&identity));
    }
}

fn identity_path(stage: &Stage, who: &str) -> PathBuf {
    stage.place.join(format!(
        ".agent-context/sidecar/task-identity-{TASK}-ses-{who}.json"
    ))
}

/// Puts an object down as the plugin's runtime does, keys in the order given.
fn pretty(fields: &[(&str, Value)]) -> String {
    let lines: Vec<String> = fields
        .iter()
        .map(|(key, value)| {
            let value = serde_json::to_string_pretty(value).expect("it is plain data");
            format!("  \"{key}\": {}", value.replace('\n', "\n  "))
        })
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes the plugin's fingerprint of the place. File names here are plain, so the order of bytes is the plugin's order.
fn digest(stage: &Stage) -> String {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        stage.scratch.dress(&mut command);
        let output = command
            .args(args)
            .args([
                "--",
                ".",
                ":(exclude).agent-context/**",
                ":(exclude)AGENTS.md",
            ])
            .current_dir(&stage.place)
            .output()
            .expect("git can be started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    };
    let Some(difference) = git(&["diff", "--binary", "HEAD"]) else {
        return walk(stage);
    };
    let Some(status) = git(&["status", "--porcelain=v1", "-z", "--untracked-files=all"]) else {
        return walk(stage);
    };
    let mut names: Vec<&str> = status
        .split('\0')
        .filter_map(|entry| entry.strip_prefix("?? "))
        .collect();
    names.sort_unstable();
    let lines: Vec<String> = names.iter().map(|name| line(stage, name)).collect();
    hex(&Sha256::digest(
        format!("status=0\n{difference}\n\n\n{}", lines.join("\n")).as_bytes(),
    ))
}

/// The plugin's digest where git does not answer: of every regular file. Files here are small.
fn walk(stage: &Stage) -> String {
    let mut lines = Vec::new();
    let mut folders = vec![stage.place.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)
            .expect("it can be listed")
            .flatten()
        {
            let name = entry.file_name();
            if [".git", ".agent-context", "node_modules"]
                .iter()
                .any(|skipped| name == *skipped)
            {
                continue;
            }
            let path = entry.path();
            let kind = entry.file_type().expect("it has a kind");
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let content = std::fs::read(&path).expect("it can be read");
                let name = path.strip_prefix(&stage.place).unwrap_or(&path);
                lines.push(format!(
                    "{}\0{}",
                    name.display(),
                    hex(&Sha256::digest(&content))
                ));
            }
        }
    }
    lines.sort_unstable();
    hex(&Sha256::digest(lines.join("\n").as_bytes()))
}

fn line(stage: &Stage, name: &str) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let path = stage.place.join(name);
    let meta = path.symlink_metadata().expect("git has just named it");
    if meta.is_symlink() {
        let target = std::fs::read_link(&path).expect("it is a link");
        return format!("{name}\0symlink\0{}", target.display());
    }
    if !meta.is_file() {
        return format!("{name}\0non-file\0{:o}", meta.mode());
    }
    let content = std::fs::read(&path).expect("git has just named it");
    format!(
        "{name}\0file\0{:o}\0{}",
        meta.mode(),
        hex(&Sha256::digest(&content))
    )
}
