//! The real OpenCode: what the adapter's documentation says of it, tried.
#![expect(
    clippy::indexing_slicing,
    reason = "an index into JSON gives null where there is nothing"
)]
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::model::Model;

/// The version it is run against.
const VERSION: &str = "1.18.33";
/// Where its server listens; the network is the suite's own.
const SERVER: &str = "46113";
/// The first turn in a fresh home takes half a minute on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);

/// Arguments of `e2e opencode`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program to test [default: target/debug/git-takeup]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Leave the network on
    #[arg(long)]
    with_network: bool,
}

/// Runs the suite with the client in the folder `opencode` of the clients.
pub(crate) fn run(args: &Args, clients: &Path) -> Result<()> {
    if super::without_network(args.with_network)? {
        return Ok(());
    }
    let modules = clients.join("opencode/node_modules");
    let opencode = [
        "opencode-linux-x64",
        "opencode-linux-x64-baseline",
        "opencode-linux-arm64",
    ]
    .iter()
    .map(|package| modules.join(package).join("bin/opencode"))
    .find(|program| {
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    })
    .with_context(|| format!("no OpenCode that runs here is in {}", modules.display()))?;
    let mut suite = Suite::new(
        opencode.canonicalize()?,
        super::program(args.program.as_ref())?,
        &modules.canonicalize()?,
    )?;
    suite.version()?;
    let before = suite.files()?;
    suite.install()?;
    suite.killed()?;
    suite.refused()?;
    suite.taken_up()?;
    suite.compacted()?;
    suite.without_program()?;
    suite.removed(before)?;
    println!("opencode {VERSION}: all of it holds");
    Ok(())
}

struct Suite {
    folder: tempfile::TempDir,
    opencode: PathBuf,
    program: PathBuf,
    model: Model,
    /// The server, while there is one.
    server: Option<Child>,
}

impl Drop for Suite {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            // One that has ended already is no failure.
            let _ended = server.kill();
            let _reaped = server.wait();
        }
    }
}

impl Suite {
    fn new(opencode: PathBuf, program: PathBuf, modules: &Path) -> Result<Self> {
        let suite = Self {
            folder: tempfile::tempdir()?,
            opencode,
            program,
            model: Model::start()?,
            server: None,
        };
        for folder in ["bin", "home/.config/opencode", "repo/src", "repo/.opencode"] {
            std::fs::create_dir_all(suite.folder.path().join(folder))?;
        }
        suite.put_program()?;
        let settings = json!({
            // OpenCode writes this into settings without it.
            "$schema": "https://opencode.ai/config.json",
            "model": "fake/fake-1", "small_model": "fake/fake-1", "share": "disabled", "autoupdate": false,
            "provider": {"fake": {
                "npm": "@ai-sdk/openai-compatible", "name": "Fake",
                "options": {"baseURL": format!("http://127.0.0.1:{}/v1", suite.model.port), "apiKey": "none"},
                "models": {"fake-1": {"name": "Fake", "limit": {"context": 100_000, "output": 4_000}}},
            }},
        });
        suite.put("repo/opencode.json", &settings.to_string())?;
        suite.put("repo/src/a", "one\n")?;
        suite.put(
            "repo/.gitignore",
            ".opencode/node_modules\n.opencode/package*.json\n.opencode/.gitignore\n",
        )?;
        // OpenCode fetches its own plugin package into each settings folder, and waits for the network until it gives up.
        suite.put("home/.npmrc", "offline=true\nfetch-retries=0\n")?;
        for folder in ["repo/.opencode", "home/.config/opencode"] {
            let folder = suite.folder.path().join(folder);
            std::fs::create_dir_all(folder.join("node_modules"))?;
            for name in ["@opencode-ai", "zod"] {
                let copied = Command::new("cp")
                    .arg("-r")
                    .arg(modules.join(name))
                    .arg(folder.join("node_modules"))
                    .status()?;
                ensure!(copied.success(), "cannot copy {name}");
            }
            let manifest = json!({"dependencies": {"@opencode-ai/plugin": VERSION}});
            takeup_core::files::write_atomic(
                &folder.join("package.json"),
                manifest.to_string().as_bytes(),
                0o644,
            )?;
        }
        suite.sh("git init -q -b main . && git add . && git commit -qm base && git config --global takeup.confirm caller")?;
        Ok(suite)
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin/git-takeup")
    }

    fn put_program(&self) -> Result<()> {
        std::os::unix::fs::symlink(&self.program, self.bin())?;
        Ok(())
    }

    fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn put(&self, path: &str, text: &str) -> Result<()> {
        takeup_core::files::write_atomic(&self.folder.path().join(path), text.as_bytes(), 0o644)?;
        Ok(())
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.repo()).env_clear();
        let path = std::env::var("PATH").unwrap_or_default();
        for (name, value) in [
            (
                "PATH",
                format!("{}:{path}", self.folder.path().join("bin").display()),
            ),
            (
                "HOME",
                self.folder.path().join("home").display().to_string(),
            ),
        ] {
            command.env(name, value);
        }
        for (name, value) in [
            ("TERM", "dumb"),
            ("LANG", "C.UTF-8"),
            ("NO_COLOR", "1"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@example.invalid"),
            ("GIT_COMMITTER_NAME", "A"),
            ("GIT_COMMITTER_EMAIL", "a@example.invalid"),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ] {
            command.env(name, value);
        }
        command
    }

    fn sh(&self, script: &str) -> Result<String> {
        let output = self.command("sh").args(["-euc", script]).output()?;
        ensure!(
            output.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Starts a turn; the prompt goes in by standard input, since OpenCode quotes an argument.
    fn start(&self, prompt: &str) -> Result<Child> {
        let file = self.folder.path().join("prompt");
        takeup_core::files::write_atomic(&file, prompt.as_bytes(), 0o600)?;
        Ok(self
            .command(&self.opencode)
            .args(["run", "--format", "json"])
            .stdin(std::fs::File::open(file)?)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(self.folder.path().join("said"))?)
            .spawn()?)
    }

    /// What the last turn said beside its answers, for a message.
    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("said")).unwrap_or_default()
    }

    /// Runs a whole turn and returns what each tool answered.
    fn turn(&self, prompt: &str) -> Result<Vec<(String, Value)>> {
        let output = self.start(prompt)?.wait_with_output()?;
        ensure!(
            output.status.success(),
            "the turn failed: {prompt}{}",
            self.said()
        );
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| event["type"] == "tool_use")
            .map(|event| {
                let said = event["part"]["state"]["output"]
                    .as_str()
                    .unwrap_or_default();
                let answer = serde_json::from_str(said).unwrap_or_else(|_| json!(said));
                (
                    event["part"]["tool"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                    answer,
                )
            })
            .collect())
    }

    /// Asks the program under test.
    fn takeup(&self, args: &[&str]) -> Result<Value> {
        let output = self
            .command("git")
            .arg("takeup")
            .args(args)
            .arg("--json")
            .output()?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("git takeup {args:?} gave no JSON"))
    }

    fn candidate(&self, task: &str) -> Result<Value> {
        let found = self.takeup(&["inspect", task])?;
        let candidates = found["data"]["candidates"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        candidates
            .into_iter()
            .find(|candidate| candidate["verdict"] != "not-resumable")
            .with_context(|| format!("task {task} is no candidate"))
    }

    /// Everything in the work tree that git would see, with its content.
    fn files(&self) -> Result<BTreeMap<String, String>> {
        let listed = self.sh("git ls-files -co --exclude-standard")?;
        listed
            .lines()
            .map(|name| {
                let text = std::fs::read_to_string(self.repo().join(name))?;
                Ok((name.to_owned(), text))
            })
            .collect()
    }

    fn version(&self) -> Result<()> {
        let output = self.command(&self.opencode).arg("--version").output()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        ensure!(
            version == VERSION,
            "this is OpenCode {version}; the suite is for {VERSION}"
        );
        Ok(())
    }

    fn install(&self) -> Result<()> {
        let done = self.takeup(&["agents", "install", "opencode"])?;
        ensure!(done["ok"] == json!(true), "installing failed: {done}");
        println!("ok: the plugin is installed");
        Ok(())
    }

    fn killed(&self) -> Result<()> {
        let mut child = self.start(
            "begin\n#call bash {\"command\":\"git takeup start 'Fix login' && echo two > src/a\",\"description\":\"x\"}\n\
             #call bash {\"command\":\"echo $TAKEUP_SESSION > started; echo $$ > pid; exec sleep 300\",\"description\":\"x\"}\n",
        )?;
        let started = self.repo().join("pid");
        let deadline = Instant::now() + PATIENCE;
        while !started.is_file() {
            ensure!(
                Instant::now() < deadline,
                "the turn does not come to its second tool"
            );
            ensure!(
                child.try_wait()?.is_none(),
                "the turn ended before its second tool: {}",
                self.said()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        let live = self.candidate("fix-login")?;
        ensure!(
            live["verdict"] == "in-use",
            "a running session is in use: {live}"
        );
        child.kill()?;
        child.wait()?;
        // The shell's child lives on under another parent.
        let orphan = std::fs::read_to_string(&started)?;
        self.sh(&format!("kill {} && rm started pid", orphan.trim()))?;
        let left = self.candidate("fix-login")?;
        let reasons = left["reasons"].to_string();
        ensure!(
            left["verdict"] == "stale-task",
            "the tree changed since its record: {left}"
        );
        for code in ["session-crashed", "effect-unknown", "content-changed"] {
            ensure!(reasons.contains(code), "no reason {code}: {reasons}");
        }
        println!("ok: a killed session is interrupted and crashed, and its open call is listed");
        Ok(())
    }

    fn refused(&self) -> Result<()> {
        self.model.take_system();
        let answers = self.turn(
            "go on\n#call takeup_resume {\"action\":\"inspect\"}\n\
             #call takeup_resume {\"action\":\"resume\",\"taskId\":\"fix-login\",\"confirmed\":true}\n",
        )?;
        let [(_, seen), (_, refused)] = answers.as_slice() else {
            bail!("two answers were expected: {answers:?}")
        };
        ensure!(seen["resume"]["status"] == "stale-task", "{seen}");
        ensure!(
            refused["ok"] == json!(false),
            "a stale task was taken up by the model's word: {refused}"
        );
        ensure!(
            refused["resume"]["candidates"]
                .to_string()
                .contains("src/a"),
            "the changed path is not named"
        );
        ensure!(
            self.model
                .requests()
                .iter()
                .any(|request| request.to_string().contains("takeup_resume")),
            "the tool is not among the model's tools"
        );
        let system = self.model.take_system();
        ensure!(
            system.contains("fix-login"),
            "the notice is not in front of the model: {system}"
        );
        println!("ok: the notice reaches the model, and a stale task is refused with its paths");
        Ok(())
    }

    fn taken_up(&self) -> Result<()> {
        self.turn(
            "begin\n#call bash {\"command\":\"git takeup start 'Second task' && echo three > src/a\",\"description\":\"x\"}\n",
        )?;
        let left = self.candidate("second-task")?;
        ensure!(left["verdict"] == "resume-verification", "{left}");
        let answers = self.turn(
            "go on\n#call takeup_resume {\"action\":\"resume\",\"taskId\":\"second-task\",\"confirmed\":true}\n",
        )?;
        let [(_, taken)] = answers.as_slice() else {
            bail!("one answer was expected: {answers:?}")
        };
        ensure!(taken["resume"]["status"] == "resumed", "{taken}");
        ensure!(taken["nextAction"] == "evaluate", "{taken}");
        let holder = self.candidate("second-task")?;
        ensure!(
            holder["identity"]["sessionId"] == taken["sessionId"],
            "another session holds it: {holder}"
        );
        println!("ok: a second session takes the task up");
        Ok(())
    }

    /// Asks OpenCode's server.
    fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let output = self
            .command("curl")
            .args([
                "-sS",
                "-m60",
                "--fail-with-body",
                "-X",
                "POST",
                "-H",
                "content-type: application/json",
            ])
            .arg("-d")
            .arg(body.to_string())
            .arg(format!("http://127.0.0.1:{SERVER}{path}"))
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "{path}: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_str(&said).unwrap_or_else(|_| json!(said)))
    }

    fn compacted(&mut self) -> Result<()> {
        self.server = Some(
            self.command(&self.opencode)
                .args(["serve", "--port", SERVER])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?,
        );
        let deadline = Instant::now() + PATIENCE;
        // A request for a session that comes before it is ready is never answered.
        let health = format!("http://127.0.0.1:{SERVER}/global/health");
        while !self
            .command("curl")
            .args(["-s", "-m2", &health])
            .output()?
            .status
            .success()
        {
            ensure!(Instant::now() < deadline, "the server does not start");
            std::thread::sleep(Duration::from_millis(250));
        }
        let session = self.ask("/session", &json!({"title": "long"}))?;
        let id = session["id"].as_str().context("a session without an id")?;
        let say = |text: &str| json!({"parts": [{"type": "text", "text": text}]});
        self.ask(&format!("/session/{id}/message"), &say("hello"))?;
        let begun = self.model.take();
        ensure!(
            begun.contains("fix-login"),
            "the notice is not in a turn of the server"
        );
        self.ask(
            &format!("/session/{id}/summarize"),
            &json!({"providerID": "fake", "modelID": "fake-1"}),
        )?;
        let summarised = self.model.take();
        ensure!(
            summarised.contains("fix-login"),
            "the notice is not in front of the model that summarises: {summarised}"
        );
        self.ask(&format!("/session/{id}/message"), &say("go on"))?;
        ensure!(
            self.model.take_system().contains("fix-login"),
            "the notice is gone after the compaction"
        );
        if let Some(server) = &mut self.server {
            server.kill()?;
            server.wait()?;
        }
        self.server = None;
        println!("ok: compaction keeps the notice");
        Ok(())
    }

    /// Without the program, and with one that fails or hangs, OpenCode works, and its log has one line of it a run.
    fn without_program(&self) -> Result<()> {
        // The turn beside a hanging program lasts longer than the plugin waits for it.
        let broken = [
            ("missing", None, "echo works"),
            (
                "failing",
                Some("#!/bin/sh\necho nonsense; exit 3\n"),
                "echo works",
            ),
            (
                "hanging",
                Some("#!/bin/sh\nexec sleep 30\n"),
                "sleep 12; echo works",
            ),
        ];
        for (what, script, command) in broken {
            std::fs::remove_file(self.bin())?;
            if let Some(script) = script {
                takeup_core::files::write_atomic(&self.bin(), script.as_bytes(), 0o755)?;
            } else {
                // Nothing to be found under this name, even if this machine has it installed.
                std::os::unix::fs::symlink("/nowhere", self.bin())?;
            }
            let before = self.log_lines()?;
            let call = json!({"command": command, "description": "x"});
            let answers = self.turn(&format!("go\n#call bash {call}\n"))?;
            ensure!(
                matches!(answers.as_slice(), [(_, said)] if said.to_string().contains("works")),
                "with a {what} program the turn gave {answers:?}"
            );
            let lines = self.log_lines()? - before;
            ensure!(lines == 1, "a {what} program left {lines} lines in the log");
        }
        std::fs::remove_file(self.bin())?;
        self.put_program()?;
        println!("ok: a missing, failing or hanging program costs one line in the log");
        Ok(())
    }

    /// How many lines of OpenCode's log speak of the program.
    fn log_lines(&self) -> Result<usize> {
        let folder = self.folder.path().join("home/.local/share/opencode/log");
        let mut count = 0;
        for entry in folder.read_dir()? {
            let text = std::fs::read_to_string(entry?.path())?;
            count += text
                .lines()
                .filter(|line| line.contains("git takeup does not answer"))
                .count();
        }
        Ok(count)
    }

    fn removed(&self, mut before: BTreeMap<String, String>) -> Result<()> {
        ensure!(
            self.repo().join(".opencode/plugins/takeup.js").is_file(),
            "the plugin is not where it was put"
        );
        let done = self.takeup(&["agents", "uninstall", "opencode"])?;
        ensure!(done["ok"] == json!(true), "{done}");
        let mut after = self.files()?;
        // The only file that the turns were told to change.
        before.remove("src/a");
        after.remove("src/a");
        ensure!(after == before, "files differ: {:?}", after.keys());
        for folder in [".agent-context", ".opencode/plugins"] {
            ensure!(
                !self.repo().join(folder).exists(),
                "{folder} is left behind"
            );
        }
        println!("ok: nothing of the plugin is left");
        Ok(())
    }
}
