//! A model on the loopback interface that does what its prompt says: a line `#call TOOL {json}` asks for that tool, one a
//! round; then it says that it is done. It speaks chat completions, which every client of ours understands.
#![expect(
    clippy::indexing_slicing,
    reason = "an index into JSON gives null where there is nothing"
)]
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// The model. It serves until the process ends.
pub(crate) struct Model {
    /// Where it listens.
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    /// Starts it.
    pub(crate) fn start() -> Result<Self> {
        let listener =
            TcpListener::bind("127.0.0.1:0").context("cannot listen on the loopback interface")?;
        let port = listener.local_addr()?.port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                // A client that hangs up in the middle is no failure of the model.
                std::thread::spawn(move || drop(serve(stream, &log)));
            }
        });
        Ok(Self { port, requests })
    }

    /// Returns every request so far: what the client put in front of the model.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns everything that was put in front of it, and forgets it.
    pub(crate) fn take(&self) -> String {
        let requests =
            std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner));
        requests
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Returns what stood before the conversation in any request, and forgets the requests.
    pub(crate) fn take_system(&self) -> String {
        let requests =
            std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner));
        requests
            .iter()
            .flat_map(messages)
            .filter(|message| message["role"] == "system")
            .map(|message| text(&message["content"]))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

fn messages(request: &Value) -> Vec<Value> {
    request["messages"].as_array().cloned().unwrap_or_default()
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

enum Answer {
    Say(String),
    Call(String, String),
}

/// What the last prompt with calls in it asks for next.
fn answer(request: &Value) -> Answer {
    let messages = messages(request);
    if request["tools"].as_array().is_none_or(Vec::is_empty) {
        return Answer::Say("A title".to_owned());
    }
    let prompt = messages.iter().rposition(|message| {
        message["role"] == "user" && text(&message["content"]).contains("#call ")
    });
    let Some(at) = prompt else {
        return Answer::Say("nothing to do".to_owned());
    };
    let prompt = messages
        .get(at)
        .map(|message| text(&message["content"]))
        .unwrap_or_default();
    let done = messages
        .iter()
        .skip(at)
        .filter(|message| message["role"] == "tool")
        .count();
    let call = prompt
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#call "))
        .filter_map(|call| call.split_once(' '))
        .nth(done);
    match call {
        Some((tool, arguments)) => Answer::Call(tool.to_owned(), arguments.to_owned()),
        None => Answer::Say(format!("done after {done} calls")),
    }
}

fn serve(stream: TcpStream, log: &Mutex<Vec<Value>>) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = answer(&request);
    log.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(request.clone());
    let (delta, finish) = match answer {
        Answer::Say(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Answer::Call(tool, arguments) => (
            json!({"role": "assistant", "tool_calls": [{
                "index": 0, "id": format!("call_{}", request["messages"].as_array().map_or(0, Vec::len)),
                "type": "function", "function": {"name": tool, "arguments": arguments},
            }]}),
            "tool_calls",
        ),
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let mut out = stream;
    if request["stream"] != json!(true) {
        let body = json!({"id": "1", "object": "chat.completion", "created": 1, "model": "fake-1",
            "choices": [{"index": 0, "message": delta, "finish_reason": finish}], "usage": usage})
        .to_string();
        write!(
            out,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )?;
        return Ok(());
    }
    write!(
        out,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    )?;
    let chunk = |choices: Value| json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "fake-1", "choices": choices});
    let mut last = chunk(json!([]));
    last["usage"] = usage;
    for event in [
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}])),
        last,
    ] {
        write!(out, "data: {event}\n\n")?;
    }
    write!(out, "data: [DONE]\n\n")?;
    Ok(())
}
