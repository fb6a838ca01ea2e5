//! Lines in, messages out: what a client sends is read here, so that whatever it is gets an answer. A client that waits
//! for one that never comes hangs.
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId};
use serde::Deserialize;
use serde_json::Value;
use takeup_core::text;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The longest message.
const LONGEST: usize = 16 << 20;

/// The methods that are served: where one of them comes out as unknown, its parameters did not fit.
const SERVED: [&str; 13] = [
    "initialize",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// The lines of a client. A read that is given up loses nothing.
pub(super) struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads from here.
    pub(super) fn new(read: R) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            too_long: false,
        }
    }

    /// Returns what the next line holds; `None` at the end. What stands there without a line end is a line, too.
    pub(super) async fn next(&mut self) -> Option<Vec<Came>> {
        loop {
            let available = self.read.fill_buf().await.ok()?;
            let at_end = available.is_empty();
            if at_end && self.line.is_empty() && !self.too_long {
                return None;
            }
            let line_end = available.iter().position(|byte| *byte == b'\n');
            let take = line_end.map_or(available.len(), |index| index.saturating_add(1));
            if self.too_long || self.line.len().saturating_add(take) > LONGEST {
                self.too_long = true;
                self.line = Vec::new();
            } else {
                self.line
                    .extend_from_slice(available.get(..take).unwrap_or_default());
            }
            self.read.consume(take);
            if at_end || line_end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Some(if std::mem::take(&mut self.too_long) {
                    vec![Came::invalid("the message is too long", None)]
                } else {
                    read(&line)
                });
            }
        }
    }
}

/// What a line holds.
#[derive(Debug)]
pub(super) enum Came {
    /// A message.
    Message(Box<ClientJsonRpcMessage>),
    /// Something to be answered with an error; with the id where it can be read.
    Refused(ErrorData, Option<RequestId>),
}

impl Came {
    fn invalid(why: &'static str, id: Option<RequestId>) -> Self {
        Self::Refused(ErrorData::new(ErrorCode::INVALID_REQUEST, why, None), id)
    }
}

/// The part of a message that says what an answer belongs to.
#[derive(Deserialize)]
struct Head {
    id: Option<RequestId>,
}

/// Reads the messages of a line: one, several where it is a batch, none where it is empty.
fn read(line: &[u8]) -> Vec<Came> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Vec::new();
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Array(batch)) if !batch.is_empty() => {
            batch.into_iter().filter_map(message).collect()
        }
        Ok(value) => message(value).into_iter().collect(),
        Err(error) => {
            // Half an emoji and what is nested too deep are passed by here, so the id can be read all the same.
            let id = serde_json::from_slice::<Head>(line).ok();
            let why = format!("this is no JSON that can be read: {error}");
            let parse_error = ErrorData::new(ErrorCode::PARSE_ERROR, why, None);
            vec![Came::Refused(parse_error, id.and_then(|head| head.id))]
        }
    }
}

/// The error for a method that nobody serves.
fn unknown(method: &str) -> ErrorData {
    let why = format!("there is no method {method:?}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
}

/// Reads a message. `None`: there is nothing to answer.
fn message(value: Value) -> Option<Came> {
    let has = |key: &str| value.get(key).is_some();
    let id: Option<RequestId> = value
        .get("id")
        .and_then(|id| serde_json::from_value(id.clone()).ok());
    // Neither a notification nor an answer is answered.
    let asks_nothing = (has("method") && !has("id")) || has("result") || has("error");
    let method = value
        .get("method")
        .and_then(Value::as_str)
        .and_then(|method| SERVED.into_iter().find(|served| *served == method));
    let is_of_version = value.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    let named = value.get("method").and_then(Value::as_str);
    let named = text::one_line(named.unwrap_or_default(), 200);
    let misfit = |method: &str, id| {
        let why = format!("the parameters of {method} are missing or do not fit");
        Came::Refused(ErrorData::invalid_params(why, None), id)
    };
    match serde_json::from_value::<ClientJsonRpcMessage>(value) {
        Ok(ClientJsonRpcMessage::Request(request))
            if matches!(request.request, ClientRequest::CustomRequest(_)) =>
        {
            Some(match method {
                Some(method) => misfit(method, Some(request.id)),
                None => Came::Refused(unknown(&named), Some(request.id)),
            })
        }
        Ok(message) => Some(Came::Message(Box::new(message))),
        Err(_) if asks_nothing => None,
        Err(_) if !is_of_version => Some(Came::invalid("`jsonrpc` has to be \"2.0\"", id)),
        Err(_) => Some(match method {
            Some(method) if id.is_some() => misfit(method, id),
            _ => Came::invalid("this is no request", id),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the codes and ids of the errors, and `None` for a message.
    fn seen(line: &str) -> Vec<Option<(i32, String)>> {
        let came = read(line.as_bytes()).into_iter();
        came.map(|came| match came {
            Came::Message(_) => None,
            Came::Refused(error, id) => Some((
                error.code.0,
                id.map_or_else(|| "null".to_owned(), |id| id.to_string()),
            )),
        })
        .collect()
    }

    #[test]
    fn whatever_cannot_be_read_is_refused_with_the_id_where_it_can() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}{}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        for (line, expected) in [
            ("not json", (-32700, "null")),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#,
                (-32700, "null"),
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"cut emoji \ud83d"}}"#,
                (-32700, "3"),
            ),
            (deep.as_str(), (-32700, "5")),
            ("[]", (-32600, "null")),
            ("{}", (-32600, "null")),
            (r#"{"id":1,"method":"ping"}"#, (-32600, "1")),
            (
                r#"{"jsonrpc":"1.0","id":2,"method":"tools/list"}"#,
                (-32600, "2"),
            ),
            (
                r#"{"jsonrpc":2.0,"id":4,"method":"no/such"}"#,
                (-32600, "4"),
            ),
            (
                r#"{"jsonrpc":"2.0","id":6,"method":"no/such"}"#,
                (-32601, "6"),
            ),
            (r#"{"jsonrpc":"2.0","id":7}"#, (-32600, "7")),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":[1]}"#,
                (-32602, "a"),
            ),
            (
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call"}"#,
                (-32602, "8"),
            ),
        ] {
            assert_eq!(
                seen(line),
                [Some((expected.0, expected.1.to_owned()))],
                "{line}"
            );
        }
        for line in [
            "",
            "\r\n",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#,
            r#"{"method":"notifications/cancelled"}"#,
        ] {
            assert_eq!(seen(line), [], "{line}");
        }
    }

    #[test]
    fn a_batch_is_its_messages() {
        let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},7,{"jsonrpc":"2.0","id":2,"method":"tools/list"}]"#;
        assert_eq!(seen(batch), [None, Some((-32600, "null".to_owned())), None]);
        assert_eq!(
            seen("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n"),
            [None]
        );
    }
}
