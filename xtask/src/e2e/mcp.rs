//! The MCP server under real clients: each has its entry written by `agents install mcp`, lists and calls our tools by the
//! word of a model of ours, and is put back byte for byte.
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// The model, for node: it speaks the four protocols of the clients.
const MODEL: &str = include_str!("model.mjs");

/// Arguments of `e2e mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program under test
    #[arg(long, default_value = "target/debug/takeup-under-test")]
    program: PathBuf,
    /// Only these clients
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// How one client is run.
struct Client {
    /// Its program.
    program: &'static str,
    /// The agent's id.
    agent: &'static str,
    /// What stands before a tool's name.
    prefix: &'static str,
    /// Its settings before ours: file below the home, text with `PORT` and `REPO` in it.
    settings: &'static [(&'static str, &'static str)],
    /// Its variables.
    variables: &'static [(&'static str, &'static str)],
    /// Its arguments; `PROMPT` stands for the prompt, which is else its standard input.
    arguments: &'static [&'static str],
    /// Its servers find their session's id.
    names_session: bool,
}

const CLIENTS: [Client; 5] = [
    Client {
        program: "codex",
        agent: "codex",
        prefix: "mcp__takeup::",
        settings: &[(
            ".codex/config.toml",
            "# mine\nmodel = \"fake-1\"\nmodel_provider = \"fake\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n[model_providers.fake]\nname = \"Fake\"\nbase_url = \"http://127.0.0.1:PORT/v1\"\nwire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\n[projects.\"REPO\"]\ntrust_level = \"trusted\"\n",
        )],
        variables: &[("FAKE_KEY", "k")],
        arguments: &["exec", "--json", "-"],
        names_session: true,
    },
    Client {
        program: "claude",
        agent: "claude-code",
        prefix: "mcp__takeup__",
        settings: &[
            (".claude.json", "{\n  \"autoUpdates\": false\n}\n"),
            (".claude/settings.json", "{}\n"),
        ],
        variables: &[
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:PORT"),
            ("ANTHROPIC_API_KEY", "sk-ant-fake"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("IS_SANDBOX", "1"),
        ],
        arguments: &[
            "-p",
            "--output-format",
            "json",
            "--allowedTools",
            "mcp__takeup__takeup_inspect mcp__takeup__takeup_start mcp__takeup__takeup_resume",
        ],
        names_session: true,
    },
    Client {
        program: "gemini",
        agent: "gemini",
        prefix: "mcp_takeup_",
        settings: &[
            (
                ".gemini/settings.json",
                "{\n  // mine\n  \"security\": { \"auth\": { \"selectedType\": \"gemini-api-key\" } },\n  \"general\": { \"disableAutoUpdate\": true },\n  \"privacy\": { \"usageStatisticsEnabled\": false }\n}\n",
            ),
            (
                ".gemini/trustedFolders.json",
                "{ \"REPO\": \"TRUST_FOLDER\" }\n",
            ),
        ],
        variables: &[
            ("GEMINI_API_KEY", "k"),
            ("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:PORT"),
        ],
        arguments: &[
            "--yolo",
            "-m",
            "gemini-2.5-pro",
            "--output-format",
            "json",
            "-p",
            "PROMPT",
        ],
        names_session: false,
    },
    Client {
        program: "copilot",
        agent: "copilot",
        prefix: "takeup-",
        settings: &[(
            ".copilot/config.json",
            "{ \"trusted_folders\": [\"REPO\"] }\n",
        )],
        variables: &[
            ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:PORT/v1"),
            ("COPILOT_PROVIDER_API_KEY", "k"),
            ("COPILOT_MODEL", "fake-1"),
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_AUTO_UPDATE", "false"),
        ],
        arguments: &["--allow-all-tools", "-p", "PROMPT"],
        names_session: true,
    },
    Client {
        program: "pi",
        agent: "pi",
        prefix: "mcp__takeup__",
        settings: &[(
            ".pi/agent/models.json",
            "{ \"providers\": { \"fake\": { \"baseUrl\": \"http://127.0.0.1:PORT/v1\", \"api\": \"openai-completions\", \"apiKey\": \"k\", \"models\": [{ \"id\": \"fake-1\", \"name\": \"Fake\", \"reasoning\": false, \"input\": [\"text\"], \"cost\": { \"input\": 0, \"output\": 0, \"cacheRead\": 0, \"cacheWrite\": 0 }, \"contextWindow\": 100000, \"maxTokens\": 4096 }] } } }\n",
        )],
        variables: &[("PI_OFFLINE", "1")],
        arguments: &[
            "--approve",
            "-p",
            "--provider",
            "fake",
            "--model",
            "fake-1",
            "PROMPT",
        ],
        names_session: false,
    },
];

/// Runs every client that is there: below `others`, with the node of `node26`.
pub(crate) fn run(args: &Args, clients: &Path) -> Result<()> {
    let clients = clients.canonicalize()?;
    let node = clients.join("node26/node_modules/node/bin");
    let clients = clients.join("others/node_modules/.bin");
    let folder = tempfile::tempdir()?;
    let program = args
        .program
        .canonicalize()
        .with_context(|| format!("{} is not built", args.program.display()))?;
    let bin = folder.path().join("bin");
    std::fs::create_dir_all(&bin)?;
    std::os::unix::fs::symlink(program, bin.join("git-takeup"))?;
    let path = std::env::var("PATH").unwrap_or_default();
    let path = [&bin, &node, &clients]
        .map(|folder| folder.display().to_string())
        .join(":")
        + ":"
        + &path;
    let mut model = Model::start(folder.path())?;
    println!("| client | | seconds | session | without a person |\n|---|---|---|---|---|");
    let mut failed = 0;
    for client in &CLIENTS {
        if !args.only.is_empty() && !args.only.iter().any(|name| name == client.program) {
            continue;
        }
        if !clients.join(client.program).exists() {
            println!("| {} | skipped: not installed | | | |", client.program);
            continue;
        }
        let begun = Instant::now();
        let outcome = one(client, &path, folder.path(), &mut model);
        let seconds = begun.elapsed().as_secs_f64();
        match outcome {
            Ok(session) => println!("| {} | passed | {seconds:.1} | {session} |", client.program),
            Err(error) => {
                failed += 1;
                println!(
                    "| {} | FAILED: {error:#} | {seconds:.1} | |",
                    client.program
                );
            }
        }
    }
    ensure!(failed == 0, "{failed} failed");
    Ok(())
}

/// One client, in a home and a repository of its own. Returns the session under which its task stands, and how it refused.
fn one(client: &Client, path: &str, folder: &Path, model: &mut Model) -> Result<String> {
    let place = Place {
        home: folder.join(client.program).join("home"),
        repo: folder.join(client.program).join("repo"),
        path: path.to_owned(),
    };
    let fill = |text: &str| {
        text.replace("PORT", &model.port.to_string())
            .replace("REPO", &place.repo.display().to_string())
    };
    std::fs::create_dir_all(&place.repo)?;
    for (name, text) in client.settings {
        write(&place.home.join(name), &fill(text))?;
    }
    place.quiet("git", &["init", "-q", "-b", "main"])?;
    write(&place.repo.join("a.txt"), "one\n")?;
    place.quiet("git", &["add", "."])?;
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
    place.quiet("git", &[&who[..], &["commit", "-qm", "first"]].concat())?;
    place.quiet("git-takeup", &["start", "Left behind", "--session", "s1"])?;

    let before = picture(&place.home)?;
    place.quiet("git-takeup", &["agents", "install", "mcp", "--user"])?;
    ensure!(picture(&place.home)? != before, "no entry was written");
    let prompt = [
        "inspect {}",
        "start {\"title\":\"By the client\"}",
        "resume {\"task\":\"left-behind\"}",
    ]
    .map(|call| format!("#call {}takeup_{call}", client.prefix))
    .join("\n");
    let turn = format!("go\n{prompt}\n");
    model.forget()?;
    place.turn(client, &turn, &fill)?;
    let seen = model.seen()?.replace('\\', "");
    ensure!(
        seen.contains("resume-verification"),
        "the verdict did not reach the model"
    );
    // Nobody is at this client: it cannot ask, or answers the question by itself, and never with a yes.
    let refusal = ["confirmation-needed", "declined", "not-answered"]
        .into_iter()
        .find(|code| {
            // Some clients show their model the text, some the structured content.
            let said = [format!("error ({code})"), format!("\"code\":\"{code}\"")];
            said.iter().any(|said| seen.contains(said))
        })
        .context("the refusal did not reach the model")?;
    let shown = place.json(&["show", "by-the-client", "--json"])?;
    let candidate = shown
        .pointer("/data/candidates/0")
        .context("the client began no task")?;
    let text = |pointer: &str| {
        candidate
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    ensure!(
        text("/agent") == client.agent,
        "the agent is {:?}",
        text("/agent")
    );
    // Codex does not say when its sessions end, so that one of them is gone proves no crash.
    let gone = match client.agent {
        "codex" => "unknown",
        _ => "crashed",
    };
    ensure!(
        text("/liveness/state") == gone,
        "a client that is gone is {:?}",
        text("/liveness/state")
    );
    let session = text("/identity/sessionId").to_owned();
    ensure!(
        !client.names_session || session.len() == 36,
        "the session is {session:?}, and not the client's own"
    );
    let left = place.json(&["inspect", "left-behind", "--json"])?;
    ensure!(
        left.pointer("/data/candidates/0/identity/sessionId") == Some(&Value::from("s1")),
        "the task changed hands without a yes"
    );

    place.quiet("git-takeup", &["agents", "uninstall", "mcp", "--user"])?;
    for (name, text) in client.settings {
        let now = std::fs::read_to_string(place.home.join(name))?;
        // A client writes into its own settings; what we put there has to be gone.
        ensure!(
            now == fill(text) || !now.contains("git-takeup"),
            "{name} still names our program"
        );
    }
    Ok(format!("{session} | {refusal}"))
}

/// Where a client runs.
struct Place {
    home: PathBuf,
    repo: PathBuf,
    path: String,
}

impl Place {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env("TERM", "dumb")
            .env("LANG", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir(&self.repo)
            .stdin(Stdio::null());
        command
    }

    fn quiet(&self, program: &str, words: &[&str]) -> Result<()> {
        let output = self.command(program).args(words).output()?;
        ensure!(
            output.status.success(),
            "{program} {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    fn json(&self, words: &[&str]) -> Result<Value> {
        let output = self.command("git-takeup").args(words).output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Runs one turn of the client with the prompt.
    fn turn(&self, client: &Client, prompt: &str, fill: &dyn Fn(&str) -> String) -> Result<()> {
        let mut command = Command::new("timeout");
        let outer = self.command(client.program);
        command.env_clear().current_dir(&self.repo);
        for (name, value) in outer.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        for (name, value) in client.variables {
            command.env(name, fill(value));
        }
        let as_argument = client.arguments.contains(&"PROMPT");
        command.args(["180", client.program]);
        command.args(client.arguments.iter().map(
            |word| {
                if *word == "PROMPT" { prompt } else { word }
            },
        ));
        let input = self.repo.join("../prompt");
        write(&input, if as_argument { "" } else { prompt })?;
        let output = command.stdin(std::fs::File::open(input)?).output()?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("the client ended with {}: {}", output.status, error.trim());
        }
        Ok(())
    }
}

/// The model's process.
struct Model {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl Model {
    fn start(folder: &Path) -> Result<Self> {
        let (script, log) = (folder.join("model.mjs"), folder.join("requests.jsonl"));
        write(&script, MODEL)?;
        write(&log, "")?;
        let mut process = Command::new("node")
            .args([&script, &log])
            .stdout(Stdio::piped())
            .spawn()
            .context("node cannot be started")?;
        let mut line = String::new();
        let output = process.stdout.take().context("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().parse().context("the model named no port")?;
        Ok(Self { process, port, log })
    }

    fn forget(&self) -> Result<()> {
        write(&self.log, "")
    }

    fn seen(&self) -> Result<String> {
        Ok(std::fs::read_to_string(&self.log)?)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _killed = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// Returns the files below a folder with their text.
fn picture(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(current) = todo.pop() {
        for entry in std::fs::read_dir(current)? {
            let path = entry?.path();
            if path.is_dir() {
                todo.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                files.push((path, bytes));
            }
        }
    }
    files.sort();
    Ok(files)
}

#[expect(
    clippy::disallowed_methods,
    reason = "scratch files need no durability"
)]
fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)?;
    Ok(())
}
