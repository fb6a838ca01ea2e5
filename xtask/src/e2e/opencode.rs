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
/// The first turn in a fresh home takes half a minute on a busy machine.
const PATIENCE: Duration = Duration::from_mins(5);

/// Arguments of `e2e opencode`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder into which `npm install opencode-ai@1.18.33 @opencode-ai/plugin@1.18.33 @opencode-ai/sdk` was run
    #[arg(long, env = "TAKEUP_E2E_OPENCODE", value_name = "DIR")]
    clients: Option<PathBuf>,
    /// The program to test [default: target/debug/git-takeup]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Leave the network on
    #[arg(long)]
    with_network: bool,
}

/// Runs the suite; without the client it is skipped with a line that says so.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Some(clients) = &args.clients else {
        println!("skipped: no OpenCode; name its folder with --clients or TAKEUP_E2E_OPENCODE");
        return Ok(());
    };
    if !args.with_network && std::env::var_os("TAKEUP_E2E_OFFLINE").is_none() {
        return offline();
    }
    let modules = clients.join("node_modules");
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
    let program = match &args.program {
        Some(program) => program.clone(),
        None => std::env::current_dir()?.join("target/debug/git-takeup"),
    };
    ensure!(program.is_file(), "{} is not built", program.display());
    let suite = Suite::new(
        opencode.canonicalize()?,
        program.canonicalize()?,
        &modules.canonicalize()?,
    )?;
    suite.version()?;
    suite.install()?;
    suite.killed()?;
    suite.refused()?;
    suite.taken_up()?;
    suite.removed()?;
    println!("opencode {VERSION}: all of it holds");
    Ok(())
}

/// Runs the same again in a network of its own that has the loopback interface only.
fn offline() -> Result<()> {
    let this = std::env::current_exe()?;
    let status = Command::new("unshare")
        .args(["-rn", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""])
        .arg(this)
        .args(std::env::args_os().skip(1))
        .env("TAKEUP_E2E_OFFLINE", "1")
        .status()
        .context(
            "cannot switch the network off (needs `unshare` and `ip`); --with-network leaves it on",
        )?;
    ensure!(status.success(), "the suite failed");
    Ok(())
}

struct Suite {
    folder: tempfile::TempDir,
    opencode: PathBuf,
    model: Model,
}

impl Suite {
    fn new(opencode: PathBuf, program: PathBuf, modules: &Path) -> Result<Self> {
        let suite = Self {
            folder: tempfile::tempdir()?,
            opencode,
            model: Model::start()?,
        };
        for folder in ["bin", "home/.config/opencode", "repo/src", "repo/.opencode"] {
            std::fs::create_dir_all(suite.folder.path().join(folder))?;
        }
        std::os::unix::fs::symlink(program, suite.folder.path().join("bin/git-takeup"))?;
        let settings = json!({
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
        // OpenCode would fetch its own plugin package into each settings folder.
        for folder in ["repo/.opencode", "home/.config/opencode"] {
            let folder = suite.folder.path().join(folder);
            std::fs::create_dir_all(folder.join("node_modules"))?;
            for entry in modules.read_dir()? {
                let entry = entry?;
                let name = entry.file_name();
                if !name.to_string_lossy().starts_with("opencode") && name != ".bin" {
                    std::os::unix::fs::symlink(
                        entry.path(),
                        folder.join("node_modules").join(name),
                    )?;
                }
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
            .stderr(Stdio::null())
            .spawn()?)
    }

    /// Runs a whole turn and returns what each tool answered.
    fn turn(&self, prompt: &str) -> Result<Vec<(String, Value)>> {
        let output = self.start(prompt)?.wait_with_output()?;
        ensure!(output.status.success(), "the turn failed: {prompt}");
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
                "the turn ended before its second tool"
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

    fn removed(&self) -> Result<()> {
        let mut before = self.files()?;
        ensure!(
            before.remove(".opencode/plugins/takeup.js").is_some(),
            "the plugin is not where it was put"
        );
        let done = self.takeup(&["agents", "uninstall", "opencode"])?;
        ensure!(done["ok"] == json!(true), "{done}");
        ensure!(
            self.files()? == before,
            "files are left: {:?}",
            self.files()?.keys()
        );
        println!("ok: nothing of the plugin is left");
        Ok(())
    }
}
