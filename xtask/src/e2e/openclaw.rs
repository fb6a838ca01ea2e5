//! OpenClaw 2026.9.6 with a gateway of its own, against a model that does what the prompt says.
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

/// How long anything is waited for: a gateway under load takes half a minute to start.
const PATIENCE: Duration = Duration::from_mins(3);

struct Stage {
    folder: tempfile::TempDir,
    client: PathBuf,
    path: OsString,
    gateway: u16,
    children: Vec<Child>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Children of this run only; one that has ended already is no failure.
        for child in &mut self.children {
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// Runs the suite.
pub(crate) fn run(clients: &Path) -> anyhow::Result<()> {
    let program = takeup()?;
    let node = clients.join("node26/node_modules/node/bin");
    let client = clients.join("openclaw/node_modules/.bin/openclaw");
    ensure!(node.join("node").exists(), "no node in {}", node.display());
    ensure!(client.exists(), "there is no {}", client.display());
    let folder = tempfile::tempdir()?;
    for name in ["home", "state", "workspace", "repo", "bin"] {
        std::fs::create_dir_all(folder.path().join(name))?;
    }
    std::os::unix::fs::symlink(program, folder.path().join("bin/git-takeup"))?;
    let mut paths = vec![folder.path().join("bin"), node];
    paths.extend(client.parent().map(Path::to_path_buf));
    paths.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
    let mut stage = Stage {
        folder,
        client,
        path: std::env::join_paths(paths)?,
        gateway: free_port()?,
        children: Vec::new(),
    };
    let model = stage.model()?;
    stage.repository()?;
    let config = stage.configuration(model)?;

    step("install");
    stage.takeup(&["agents", "install", "openclaw", "--user"])?;
    stage.client(&["config", "validate"])?;
    let skill = stage.client(&["skills", "info", "takeup", "--json"])?;
    let skill: Value = serde_json::from_str(&skill)?;
    ensure!(
        skill.get("eligible") == Some(&json!(true)),
        "the skill is not eligible: {skill}"
    );

    step("a turn: the model calls a script of the skill, and its session is known");
    stage.takeup(&[
        "start",
        "Fix the parser",
        "--no-checks",
        "--session",
        "s1",
        "--agent",
        "claude-code",
    ])?;
    stage.start_gateway()?;
    let script = stage.path_of("state/skills/takeup/scripts/inspect.sh");
    stage.client(&[
        "agent",
        "--session-key",
        "agent:main:main",
        "--message",
        &format!("look\nRUN: {script}\nRUN: env | grep TAKEUP"),
    ])?;
    stage.seen("fix-the-parser", "the script's answer")?;
    stage.seen("TAKEUP_OPENCLAW_SESSION=", "the session's id in commands")?;

    step("a task is started, and the gateway dies in a call");
    let begin = "do it\nRUN: git takeup start 'Write the lexer' --no-checks\n\
        RUN: echo x > lexer.txt; git takeup save\nRUN: echo > started; sleep 300";
    let mut turn = stage.client_command(&[
        "agent",
        "--session-key",
        "agent:main:work",
        "--message",
        begin,
    ]);
    let turn = turn.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    stage.children.push(turn);
    let started = stage.folder.path().join("repo/started");
    wait("the call has begun", || Ok(started.exists()))?;
    let state = stage.state_of("agent:main:work")?;
    ensure!(state == "live", "it is seen as {state}, not live");
    stage.kill_gateway()?;
    let state = stage.state_of("agent:main:work")?;
    ensure!(state == "crashed", "it is seen as {state}, not crashed");

    step("the tree changes, and the recovery turn is told before it goes on");
    write(&stage.folder.path().join("repo/a.txt"), "changed\n")?;
    stage.start_gateway()?;
    wait("the recovery turn", || {
        Ok(stage.log().contains("interrupted by a gateway restart"))
    })?;
    stage.seen("write-the-lexer: stale-task", "the verdict")?;
    stage.seen("a.txt", "the changed path")?;

    step("hand-over in");
    stage.takeup(&["handover", "fix-the-parser", "--to", "openclaw"])?;
    wait("the handed-over session", || {
        Ok(stage.state_of("agent:main:takeup-fix-the-parser").is_ok())
    })?;
    stage.kill_gateway()?;

    step("uninstall");
    stage.takeup(&["agents", "uninstall", "openclaw", "--user"])?;
    let left = std::fs::read_to_string(stage.path_of("state/openclaw.json"))?;
    ensure!(left == config, "the configuration is not as it was");
    println!("passed");
    Ok(())
}

fn step(what: &str) {
    println!("· {what}");
}

fn takeup() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "-q", "-p", "git-takeup"])
        .status()?;
    ensure!(built.success(), "the program does not build");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(target.join("debug/git-takeup").canonicalize()?)
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    File::create(path)?.write_all(text.as_bytes())?;
    Ok(())
}

fn wait(what: &str, mut is_so: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !is_so()? {
        ensure!(Instant::now() < end, "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(250));
    }
    Ok(())
}

impl Stage {
    fn path_of(&self, below: &str) -> String {
        self.folder.path().join(below).display().to_string()
    }

    /// Nothing of the caller's environment but what is named here.
    fn dressed(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("env");
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.path_of("home"))
            .env("TERM", "dumb")
            .env("LANG", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env("OPENCLAW_STATE_DIR", self.path_of("state"))
            .env("OPENCLAW_CONFIG_PATH", self.path_of("state/openclaw.json"))
            .env("OPENCLAW_OFFLINE", "1")
            .env("OPENCLAW_NO_AUTO_UPDATE", "1")
            .env("OPENCLAW_DISABLE_BONJOUR", "1")
            .current_dir(self.path_of("repo"))
            .stdin(Stdio::null())
            .arg(program);
        command
    }

    fn output(command: &mut Command) -> anyhow::Result<String> {
        let output = command.output()?;
        ensure!(
            output.status.success(),
            "{command:?}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn takeup(&self, words: &[&str]) -> anyhow::Result<String> {
        Self::output(self.dressed("git-takeup").args(words))
    }

    fn client_command(&self, words: &[&str]) -> Command {
        let mut command = self.dressed(&self.client);
        command.args(words);
        command
    }

    fn client(&self, words: &[&str]) -> anyhow::Result<String> {
        Self::output(&mut self.client_command(words))
    }

    fn repository(&self) -> anyhow::Result<()> {
        write(&self.folder.path().join("repo/a.txt"), "one\n")?;
        let author = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
        for words in [
            &["init", "-q", "-b", "main", "."][..],
            &["add", "a.txt"],
            &[&author[..], &["commit", "-qm", "first"]].concat(),
        ] {
            Self::output(self.dressed("git").args(words))?;
        }
        Ok(())
    }

    /// Starts the model and returns its port.
    fn model(&mut self) -> anyhow::Result<u16> {
        let port = free_port()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/model.mjs");
        let mut child = self
            .dressed("node")
            .arg(script)
            .arg(port.to_string())
            .arg(self.path_of("log"))
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("its output is piped")?;
        self.children.push(child);
        let ready = BufReader::new(stdout).lines().next().transpose()?;
        ensure!(
            ready.as_deref() == Some("ready"),
            "the model does not start"
        );
        Ok(port)
    }

    fn configuration(&self, model: u16) -> anyhow::Result<String> {
        let config = format!(
            r#"// a comment that has to stay
{{
  gateway: {{ mode: "local", port: {}, bind: "loopback", auth: {{ mode: "token", token: "t" }} }},
  agents: {{ defaults: {{ workspace: {:?}, cwd: {:?}, model: {{ primary: "test/test-1" }}, skipBootstrap: true, heartbeat: {{ every: "0m" }} }} }},
  models: {{ providers: {{ test: {{ baseUrl: "http://127.0.0.1:{model}/v1", apiKey: "k", api: "openai-completions",
    models: [{{ id: "test-1", name: "Test", reasoning: false, input: ["text"], cost: {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }}, contextWindow: 200000, maxTokens: 8192 }}] }} }} }},
}}
"#,
            self.gateway,
            self.path_of("workspace"),
            self.path_of("repo"),
        );
        write(&self.folder.path().join("state/openclaw.json"), &config)?;
        Ok(config)
    }

    fn start_gateway(&mut self) -> anyhow::Result<()> {
        let log = File::create(self.path_of("gateway.log"))?;
        let child = self
            .client_command(&["gateway", "run"])
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.children.push(child);
        let url = format!("http://127.0.0.1:{}/readyz", self.gateway);
        wait("the gateway is ready", || {
            let answer = self.dressed("curl").args(["-s", "-m1", &url]).output()?;
            Ok(String::from_utf8_lossy(&answer.stdout).contains("\"ready\":true"))
        })
    }

    /// Kills the gateway by the process number in its lease: what was started here may be its parent only.
    fn kill_gateway(&self) -> anyhow::Result<()> {
        let query = "const { DatabaseSync } = require('node:sqlite'); \
            const db = new DatabaseSync(process.argv[1], { readOnly: true }); \
            const row = db.prepare('select payload_json p from state_leases where scope = ?').get('gateway-owner'); \
            console.log(JSON.parse(row.p).owner.pid)";
        let database = self.path_of("state/state/openclaw.sqlite");
        let pid = Self::output(self.dressed("node").args(["-e", query, &database]))?;
        let pid = pid.trim().to_owned();
        Self::output(self.dressed("kill").args(["-9", &pid]))?;
        wait("the gateway is gone", || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            Ok(state.is_empty() || state.contains(") Z "))
        })
    }

    fn state_of(&self, name: &str) -> anyhow::Result<String> {
        let list = self.takeup(&["sessions", "--agent", "openclaw", "--json"])?;
        let list: Value = serde_json::from_str(&list)?;
        let sessions = list.pointer("/data/sessions").and_then(Value::as_array);
        let session = sessions
            .into_iter()
            .flatten()
            .find(|session| session.pointer("/name").and_then(Value::as_str) == Some(name))
            .with_context(|| format!("no session {name} in {list:#}"))?;
        let state = session.pointer("/liveness/state").and_then(Value::as_str);
        Ok(state.context("it has no state")?.to_owned())
    }

    /// What the model was given so far; nothing before the first request.
    fn log(&self) -> String {
        std::fs::read_to_string(self.path_of("log")).unwrap_or_default()
    }

    /// Demands that the model was given a text.
    fn seen(&self, text: &str, what: &str) -> anyhow::Result<()> {
        ensure!(
            self.log().contains(text),
            "the model was not given {what}: {text}"
        );
        Ok(())
    }
}
