//! A client of the MCP server: requests and answers, one a line.
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::world::World;

/// A client and its server.
pub(crate) struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    /// Everything that came from the server.
    pub(crate) heard: String,
}

impl Client {
    /// Starts a server in the repository and shakes hands.
    pub(crate) fn of(world: &World) -> Self {
        Self::with(world, &[])
    }

    /// The same with variables.
    pub(crate) fn with(world: &World, vars: &[(&str, &str)]) -> Self {
        let mut server = world
            .program()
            .envs(vars.iter().copied())
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = server.stdin.take().unwrap();
        let output = BufReader::new(server.stdout.take().unwrap());
        let mut client = Self {
            server,
            input,
            output,
            next: 0,
            heard: String::new(),
        };
        client.request(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "some-client", "version": "1"}}),
        );
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// Sends a request and returns its result, or its error.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "{method}: the server ended"
            );
            self.heard.push_str(&line);
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.next && message.get("method").is_none() {
                return message.get("result").unwrap_or(&message["error"]).clone();
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
    }
}
