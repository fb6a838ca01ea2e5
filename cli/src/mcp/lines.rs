//! Lines in, messages out: what a client sends is read here, so that whatever it is gets an answer. A client that waits
//! for one that never comes hangs.
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::Value;
use takeup_core::text;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The longest message.
const LONGEST: usize = 16 << 20;

/// How much of the beginning of a longer one is kept, and of its end: what says whom it belongs to stands in one of the two.
const BEGINNING: usize = 64 << 10;
const END: usize = 1 << 10;

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
    /// The end of a line that is too long, of which `line` is the beginning.
    end: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads from here.
    pub(super) fn new(read: R) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            too_long: false,
            end: Vec::new(),
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
            let part = available.get(..take).unwrap_or_default();
            if self.too_long || self.line.len().saturating_add(take) > LONGEST {
                if !self.too_long {
                    let end = self.line.len().saturating_sub(END);
                    self.end = self.line.split_off(end);
                    self.line.truncate(BEGINNING);
                    self.line.shrink_to_fit();
                }
                self.too_long = true;
                self.end.extend_from_slice(part);
                self.end.drain(..self.end.len().saturating_sub(END));
            } else {
                self.line.extend_from_slice(part);
            }
            self.read.consume(take);
            if at_end || line_end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Some(if std::mem::take(&mut self.too_long) {
                    let end = std::mem::take(&mut self.end);
                    vec![Came::invalid(
                        "the message is too long",
                        id_of_long(&line, &end),
                    )]
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

/// Reads the id of a request by its beginning and its end: where its parameters come last, it stands before them; where they do
/// not, it is what it ends with. An answer has an id, too, and is not answered.
fn id_of_long(beginning: &[u8], end: &[u8]) -> Option<RequestId> {
    let mut known = Beginning::default();
    let mut reader = serde_json::Deserializer::from_slice(beginning);
    // It breaks off somewhere; what was read till then is known.
    drop(reader.deserialize_map(&mut known));
    if !known.is_request {
        return None;
    }
    known.id.or_else(|| {
        let rest = end.trim_ascii_end().strip_suffix(b"}")?;
        let key = b"\"id\"";
        let at = rest.windows(key.len()).rposition(|window| window == key)?;
        let (before, property) = rest.split_at_checked(at)?;
        let value = property.strip_prefix(key)?.trim_ascii_start();
        let is_next = before.trim_ascii_end().ends_with(b",");
        let value = value.strip_prefix(b":").filter(|_| is_next)?;
        serde_json::from_slice(value).ok()
    })
}

/// What the beginning of a message says.
#[derive(Default)]
struct Beginning {
    id: Option<RequestId>,
    is_request: bool,
}

impl<'de> Visitor<'de> for &mut Beginning {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "id" {
                self.id = Some(map.next_value()?);
            } else {
                self.is_request |= key == "method";
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
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

    #[test]
    fn what_is_too_long_is_refused_with_its_id_and_the_next_line_is_read() {
        let long = "x".repeat(LONGEST);
        let request = |before: &str, after: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",{before}\"params\":{{\"a\":\"{long}\",\"id\":9}}{after}}}\n"
            )
        };
        let method = "\"method\":\"tools/call\",";
        for (line, expected) in [
            (request(&format!("\"id\":7,{method}"), ""), Some("7")),
            (
                request(method, ",\"jsonrpc\":\"2.0\",\"id\": \"a\" "),
                Some("a"),
            ),
            (request(method, ""), None),
            // The answer to a question of ours: its id is not one of the client's.
            (
                format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{long}\"}}\n"),
                None,
            ),
            (format!("{{\"result\":\"{long}\",\"id\":7}}\n"), None),
            (format!("{long}\n"), None),
        ] {
            let text = format!("{line}{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}\n");
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            let mut lines = Lines::new(text.as_bytes());
            let came = runtime.block_on(lines.next()).unwrap();
            let [Came::Refused(error, id)] = came.as_slice() else {
                panic!("{came:?}");
            };
            assert_eq!(error.code.0, -32600);
            assert_eq!(id.as_ref().map(ToString::to_string).as_deref(), expected);
            let next = runtime.block_on(lines.next()).unwrap();
            assert!(matches!(next.as_slice(), [Came::Message(_)]), "{next:?}");
        }
    }
}
