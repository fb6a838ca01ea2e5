//! OpenClaw with a gateway of its own, against a model that does what the prompt says: the current release, whose sessions lie
//! in databases, and the last one with files, which knows no plugin of ours.
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::model::Model;

/// How long anything is waited for: a gateway under load takes half a minute to start.
const PATIENCE: Duration = Duration::from_mins(3);

/// Arguments of `e2e openclaw`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this release
    #[arg(long, value_name = "VERSION")]
    only: Option<String>,
    /// The program to test [default: target/debug/git-takeup]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Leave the network on
    #[arg(long)]
    with_network: bool,
}

/// A release and how it differs.
struct Release {
    version: &'static str,
    /// Its folder among the clients.
    folder: &'static str,
    /// It has plugins with the hooks that ours needs, takes an interrupted turn up by itself, and knows a folder for commands
    /// beside the workspace.
    current: bool,
}

const RELEASES: [Release; 2] = [
    Release {
        version: "2026.9.6",
        folder: "openclaw",
        current: true,
    },
    Release {
        version: "2026.7.1",
        folder: "openclaw-legacy",
        current: false,
    },
];

struct Stage {
    folder: tempfile::TempDir,
    client: PathBuf,
    path: OsString,
    gateway: u16,
    children: Vec<Child>,
    model: Model,
    release: &'static Release,
    program: PathBuf,
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Children of this run only; one that has ended already is no failure.
        for child in &mut self.children {
            let below = descendants(child.id());
            let _ended = child.kill();
            let _reaped = child.wait();
            for pid in below {
                let _ended = Command::new("kill").args(["-9", &pid.to_string()]).output();
            }
        }
    }
}

/// Runs the suite with every release that is asked for.
pub(crate) fn run(args: &Args, clients: &Path) -> anyhow::Result<()> {
    if super::without_network(args.with_network)? {
        return Ok(());
    }
    for release in &RELEASES {
        if args
            .only
            .as_deref()
            .is_none_or(|only| only == release.version)
        {
            println!("OpenClaw {}", release.version);
            one(release, args, clients)?;
        }
    }
    Ok(())
}

fn one(release: &'static Release, args: &Args, clients: &Path) -> anyhow::Result<()> {
    let node = clients.join("node26/node_modules/node/bin");
    let client = clients
        .join(release.folder)
        .join("node_modules/.bin/openclaw");
    ensure!(node.join("node").exists(), "no node in {}", node.display());
    ensure!(client.exists(), "there is no {}", client.display());
    let folder = tempfile::tempdir()?;
    for name in ["home", "state", "workspace", "repo", "bin"] {
        std::fs::create_dir_all(folder.path().join(name))?;
    }
    let mut paths = vec![folder.path().join("bin"), node];
    paths.extend(client.parent().map(Path::to_path_buf));
    paths.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
    let mut stage = Stage {
        folder,
        client,
        path: std::env::join_paths(paths)?,
        gateway: free_port()?,
        children: Vec::new(),
        model: Model::start()?,
        release,
        program: super::program(args.program.as_ref())?,
    };
    let version = stage.client(&["--version"])?;
    ensure!(
        version.contains(release.version),
        "this is {version}; the suite is for {}",
        release.version
    );
    stage.repository()?;
    let config = stage.configuration()?;

    stage.installed()?;
    stage.a_turn()?;
    stage.killed()?;
    stage.restarted()?;
    stage.handed_over()?;
    stage.kill_gateway()?;
    stage.without_program()?;

    step("uninstall");
    let before = stage.listing()?;
    stage.takeup(&["agents", "uninstall", "openclaw", "--user"])?;
    let left = std::fs::read_to_string(stage.path_of("state/openclaw.json"))?;
    ensure!(
        left == config,
        "the configuration is not as it was:\n{left}"
    );
    let after = stage.listing()?;
    ensure!(
        before.iter().any(|name| name.contains("takeup"))
            && !after.iter().any(|name| name.contains("takeup")),
        "files are left: {after:?}"
    );
    println!("passed");
    Ok(())
}

impl Stage {
    fn installed(&mut self) -> anyhow::Result<()> {
        step("the skill waits for the program");
        self.put_program()?;
        self.takeup(&["agents", "install", "openclaw", "--user"])?;
        self.client(&["config", "validate"])?;
        let eligible = |stage: &Self| -> anyhow::Result<bool> {
            let skill = stage.client(&["skills", "info", "takeup", "--json"])?;
            let skill: Value = serde_json::from_str(json_of(&skill))?;
            skill
                .get("eligible")
                .and_then(Value::as_bool)
                .with_context(|| format!("nothing says whether it is eligible: {skill}"))
        };
        ensure!(eligible(self)?, "the skill is not eligible");
        std::fs::remove_file(self.bin())?;
        ensure!(
            !eligible(self)?,
            "the skill is eligible without the program"
        );
        self.put_program()
    }

    fn a_turn(&mut self) -> anyhow::Result<()> {
        step(
            "a turn: the notice is there, the model calls a script of the skill, and its session is known",
        );
        self.takeup(&[
            "start",
            "Fix the parser",
            "--no-checks",
            "--session",
            "s1",
            "--agent",
            "claude-code",
        ])?;
        self.start_gateway()?;
        self.model.take();
        self.turn("agent:main:hello", "hello")?;
        ensure!(
            self.model.take().contains("fix-the-parser"),
            "the notice is not in front of the model"
        );
        let script = self.path_of("state/skills/takeup/scripts/inspect.sh");
        self.turn(
            "agent:main:main",
            &format!(
                "look\n{}\n{}",
                exec(&script),
                exec("env | grep TAKEUP || true")
            ),
        )?;
        let given = self.model.take();
        ensure!(
            given.contains("inspect") && given.contains("takeup.reply.v1")
                || given.contains("candidates"),
            "the model was not given the script's answer: {given}"
        );
        ensure!(
            !self.release.current || given.contains("TAKEUP_OPENCLAW_SESSION="),
            "commands are not told the session's id"
        );
        Ok(())
    }

    fn killed(&mut self) -> anyhow::Result<()> {
        step("a task is begun, and the gateway dies in a call");
        let prompt = format!(
            "do it\n{}\n{}\n{}",
            exec("git takeup start 'Write the lexer' --no-checks"),
            exec("echo x > lexer.txt; git takeup save"),
            exec("echo > started; sleep 300")
        );
        let child = self
            .client_command(&[
                "agent",
                "--session-key",
                "agent:main:work",
                "--message",
                &prompt,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.children.push(child);
        let started = self.folder.path().join("repo/started");
        wait("the call has begun", || Ok(started.exists()))?;
        let state = self.state_of("agent:main:work")?;
        ensure!(state == "live", "it is seen as {state}, not live");
        self.kill_gateway()?;
        let state = self.state_of("agent:main:work")?;
        ensure!(state == "crashed", "it is seen as {state}, not crashed");
        Ok(())
    }

    fn restarted(&mut self) -> anyhow::Result<()> {
        write(&self.folder.path().join("repo/a.txt"), "changed\n")?;
        self.model.take();
        self.start_gateway()?;
        let mut given = String::new();
        if self.release.current {
            step("the tree changed, and the turn that is taken up by itself is told so first");
            wait("the recovery turn", || {
                given.push_str(&self.model.take());
                Ok(given.contains("interrupted by a gateway restart"))
            })?;
        } else {
            step("the tree changed, and the next turn of the session is told so first");
            self.turn("agent:main:work", "go on")?;
            given = self.model.take();
        }
        for (text, what) in [
            ("write-the-lexer", "the task"),
            ("stale-task", "the verdict"),
            ("a.txt", "the changed path"),
        ] {
            // Commands of the earlier release are not told their session, so a task that they begin is not known to be its
            // own, and the notice about it is one line.
            let due = self.release.current || text != "a.txt";
            ensure!(
                !due || given.contains(text),
                "the model was not given {what}: {text}\n{given}"
            );
        }
        Ok(())
    }

    fn handed_over(&mut self) -> anyhow::Result<()> {
        step("hand-over in");
        let told = self.takeup(&["handover", "fix-the-parser", "--to", "openclaw"])?;
        if !self.release.current {
            // Its gateway cannot be asked for a session: the command that sends the document is named.
            ensure!(
                told.contains("--message-file")
                    && told.contains("agent:main:takeup-fix-the-parser"),
                "no command is named: {told}"
            );
            return Ok(());
        }
        wait("the handed-over session", || {
            Ok(self.state_of("agent:main:takeup-fix-the-parser").is_ok())
        })
    }

    fn without_program(&mut self) -> anyhow::Result<()> {
        step("without the program, and with one that fails, a turn works");
        for script in [None, Some("#!/bin/sh\necho nonsense >&2; exit 3\n")] {
            std::fs::remove_file(self.bin())?;
            match script {
                Some(script) => {
                    takeup_core::files::write_atomic(&self.bin(), script.as_bytes(), 0o755)?;
                }
                None => std::os::unix::fs::symlink("/nowhere", self.bin())?,
            }
            self.start_gateway()?;
            self.model.take();
            self.turn(
                "agent:main:plain",
                &format!("go\n{}", exec("echo it-works")),
            )?;
            ensure!(
                self.model.take().contains("it-works"),
                "the turn did not come to its end"
            );
            self.kill_gateway()?;
            let log = std::fs::read_to_string(self.path_of("gateway.log"))?;
            let lines = log
                .lines()
                .filter(|line| line.contains("git-takeup does not answer"))
                .count();
            // The hook of the earlier release is not loaded at all where the program is missing.
            let due = usize::from(self.release.current || script.is_some());
            ensure!(lines == due, "{lines} lines of it in the log:\n{log}");
        }
        std::fs::remove_file(self.bin())?;
        self.put_program()
    }
}

fn exec(command: &str) -> String {
    format!("#call exec {}", json!({"command": command}))
}

/// What a client printed, from the first brace on: it may warn before.
fn json_of(printed: &str) -> &str {
    printed
        .find('{')
        .and_then(|start| printed.get(start..))
        .unwrap_or(printed)
}

/// Every process below one.
fn descendants(pid: u32) -> Vec<u32> {
    let listed = Command::new("ps").args(["-eo", "pid=,ppid="]).output();
    let listed = listed.map(|output| output.stdout).unwrap_or_default();
    let pairs: Vec<(u32, u32)> = String::from_utf8_lossy(&listed)
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        })
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        found.extend(
            pairs
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
    }
    found.split_off(1)
}

fn step(what: &str) {
    println!("· {what}");
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

    fn configuration(&self) -> anyhow::Result<String> {
        let model = self.model.port;
        // The earlier release knows no folder for commands beside the workspace.
        let folders = if self.release.current {
            format!(
                "workspace: {:?}, cwd: {:?}",
                self.path_of("workspace"),
                self.path_of("repo")
            )
        } else {
            format!("workspace: {:?}", self.path_of("repo"))
        };
        let config = format!(
            r#"// a comment that has to stay
{{
  gateway: {{ mode: "local", port: {}, bind: "loopback", auth: {{ mode: "token", token: "t" }} }},
  agents: {{ defaults: {{ {folders}, model: {{ primary: "test/test-1" }}, skipBootstrap: true, heartbeat: {{ every: "0m" }} }} }},
  models: {{ providers: {{ test: {{ baseUrl: "http://127.0.0.1:{model}/v1", apiKey: "k", api: "openai-completions",
    models: [{{ id: "test-1", name: "Test", reasoning: false, input: ["text"], cost: {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }}, contextWindow: 200000, maxTokens: 8192 }}] }} }} }},
}}
"#,
            self.gateway,
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

    /// Kills the gateway: what was started here may be its parent only.
    fn kill_gateway(&mut self) -> anyhow::Result<()> {
        for mut child in std::mem::take(&mut self.children) {
            let below = descendants(child.id());
            child.kill()?;
            child.wait()?;
            for pid in below {
                let pid = pid.to_string();
                Self::output(self.dressed("sh").args(["-c", "kill -9 $0 || true", &pid]))?;
                wait("a process is gone", || {
                    let state =
                        std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                    Ok(state.is_empty() || state.contains(") Z "))
                })?;
            }
        }
        Ok(())
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin/git-takeup")
    }

    fn put_program(&self) -> anyhow::Result<()> {
        std::os::unix::fs::symlink(&self.program, self.bin())?;
        Ok(())
    }

    fn turn(&self, key: &str, prompt: &str) -> anyhow::Result<String> {
        self.client(&["agent", "--session-key", key, "--message", prompt])
    }

    /// Every file and folder of ours could be in: the state folder's own, and the work tree's.
    fn listing(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for folder in ["state", "state/skills", "state/hooks", "repo", "workspace"] {
            let Ok(entries) = std::fs::read_dir(self.path_of(folder)) else {
                continue;
            };
            for entry in entries {
                let entry = entry?;
                found.push(
                    entry
                        .path()
                        .strip_prefix(self.folder.path())?
                        .display()
                        .to_string(),
                );
            }
        }
        Ok(found)
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
}
