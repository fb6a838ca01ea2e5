//! A client of our own that knows nothing of the server's library: lines of JSON in and out.
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use takeup_tests::Scratch;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");
/// The protocol versions with a handshake.
pub(crate) const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The protocol version without one.
pub(crate) const NEWEST: &str = "2026-07-28";

/// A client with its server.
pub(crate) struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
    /// What came while something else was awaited.
    waiting: VecDeque<Value>,
    /// Sent with every request from 2026-07-28 on.
    meta: Option<Value>,
}

impl Client {
    /// Starts a server in the repository; says nothing yet.
    pub(crate) fn silent(scratch: &Scratch, vars: &[(&str, &str)]) -> Self {
        let mut command = scratch.program_in(&scratch.repo());
        command
            .arg("mcp")
            .envs(vars.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut server = command.spawn().expect("the server starts");
        let input = server.stdin.take();
        let output = BufReader::new(server.stdout.take().expect("its output is piped"));
        Self {
            server,
            input,
            output,
            next_id: 0,
            waiting: VecDeque::new(),
            meta: None,
        }
    }

    /// Starts a server and shakes hands.
    pub(crate) fn shaken(scratch: &Scratch, version: &str, capabilities: Value) -> Self {
        Self::named(scratch, version, capabilities, "some-client", &[])
    }

    /// Starts a server with variables, as a client of that name.
    pub(crate) fn named(
        scratch: &Scratch,
        version: &str,
        capabilities: Value,
        name: &str,
        vars: &[(&str, &str)],
    ) -> Self {
        let mut client = Self::silent(scratch, vars);
        if version == NEWEST {
            client.meta = Some(meta(capabilities, name));
        } else {
            let answer = client.request("initialize", initialize(version, capabilities, name));
            assert_eq!(answer["result"]["protocolVersion"], version);
            client.notify("notifications/initialized", json!({}));
        }
        client
    }

    /// Sends a line as it is.
    pub(crate) fn line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is open");
        writeln!(input, "{line}").expect("the server reads");
    }

    /// Sends a line that does not end, and closes the input.
    pub(crate) fn last_line(&mut self, line: &str) {
        let mut input = self.input.take().expect("the input is open");
        input.write_all(line.as_bytes()).expect("the server reads");
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id.
    pub(crate) fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        if let Some(meta) = &self.meta {
            let merged = params["_meta"].as_object().cloned().unwrap_or_default();
            let mut meta = meta.clone();
            meta.as_object_mut().unwrap().extend(merged);
            params["_meta"] = meta;
        }
        self.next_id += 1;
        let id = self.next_id;
        self.line(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    /// Answers a request of the server.
    pub(crate) fn answer(&mut self, id: &Value, result: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    /// Returns the next message for which `wanted` holds; keeps the others.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(index).unwrap();
        }
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("the server writes");
            assert!(read > 0, "the server ended; waiting: {:?}", self.waiting);
            let message: Value = serde_json::from_str(&line).expect("only JSON comes out");
            if wanted(&message) {
                return message;
            }
            self.waiting.push_back(message);
        }
    }

    /// Returns the answer to a request.
    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Returns the next request of the server.
    pub(crate) fn asked(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == method)
    }

    /// Sends a request and returns its answer.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer_to(id)
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that has to succeed and returns the structured content.
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that has to fail and returns the structured content.
    pub(crate) fn fails(&mut self, tool: &str, arguments: Value, code: &str) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let content = result["structuredContent"].clone();
        assert_eq!(content["error"]["code"], code, "{content}");
        content
    }

    /// Closes the server's input and returns its exit status.
    pub(crate) fn end(mut self) -> i32 {
        self.input = None;
        let status = self.server.wait().expect("the server ends");
        status.code().unwrap_or(-1)
    }

    /// Kills the server in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.server.kill().expect("the server can be killed");
        self.server.wait().expect("the server ends");
    }

    /// Returns how many threads the server has, where the system tells.
    pub(crate) fn threads(&self) -> Option<usize> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.server.id()));
        tasks.ok().map(Iterator::count)
    }

    /// Returns an answer that came while something else was awaited.
    pub(crate) fn waiting_for(&self, id: u64) -> Option<&Value> {
        self.waiting
            .iter()
            .find(|message| message["id"] == id && message.get("method").is_none())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        // It ends by itself; where a test failed, it may still wait for an answer.
        let _killed = self.server.kill();
        let _ended = self.server.wait();
    }
}

/// Returns the parameters of `initialize`.
pub(crate) fn initialize(version: &str, capabilities: Value, name: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": {"name": name, "version": "1"},
    })
}

/// Returns the metadata of every request from 2026-07-28 on.
pub(crate) fn meta(capabilities: Value, name: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// Returns a scratch in which session `s1` left task `fix-login` with one changed file.
pub(crate) fn left() -> Scratch {
    let scratch = Scratch::new(PROGRAM);
    scratch
        .takeup(&["start", "Fix login", "--session", "s1"])
        .exits(0);
    scratch.write("a.txt", "two\n");
    scratch.takeup(&["save", "--session", "s1"]).exits(0);
    scratch
}

/// Returns who holds a task by the ledger's word: the session of its only open identity.
pub(crate) fn holder(scratch: &Scratch, task: &str) -> String {
    let inspection = scratch.takeup(&["inspect", task, "--json"]).exits(0).json();
    let open: Vec<&str> = inspection["data"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|candidate| candidate["verdict"] != "not-resumable")
        .map(|candidate| candidate["identity"]["sessionId"].as_str().unwrap())
        .collect();
    assert_eq!(open.len(), 1, "{inspection}");
    open[0].to_owned()
}
