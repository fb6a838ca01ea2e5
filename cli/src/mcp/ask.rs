//! A person's yes, through the client.
//!
//! Up to 2025-11-25 the server asks the client with `elicitation/create` while the call waits. From 2026-07-28 on a
//! server may not ask; the call ends with the question and a state, and comes back with the state and the answer. The
//! state is an opaque word for what is kept here, so there is nothing to forge: it names one question of one call, and
//! is spent by the first use, whatever the answer. A server that was started anew knows no old words, and asks again.
// Roots are deprecated from 2026-07-28 on; clients of that version may still be asked for them.
#![expect(deprecated, reason = "the list of roots has no successor")]
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    BooleanSchema, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequests, InputResponses, ListRootsRequest,
    PrimitiveSchemaDefinition, ProtocolVersion,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use takeup_core::error::Exit;
use takeup_core::text;

use crate::reply::{Failure, Next};

/// How many questions may wait; the oldest is forgotten first.
const MOST_WAITING: usize = 64;

/// The field of the form.
const FIELD: &str = "confirm";
/// The key of the form among the answers.
const FORM: &str = "yes";
/// The key of the roots among the answers.
const ROOTS: &str = "roots";

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// What exactly is confirmed; a yes holds for this and nothing else.
    pub subject: String,
    /// One line of what was found.
    pub what: String,
    /// The question with all that has to be known to answer it.
    pub message: String,
    /// What a yes does, as a label.
    pub label: String,
    /// The command by which a person can say it on a terminal.
    pub command: String,
    /// All is as it was left: where the user's settings let the caller's own word count, it is enough. What changed has to
    /// be shown to a person.
    pub is_plain: bool,
}

/// What a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Yes.
    Yes,
    /// No.
    No,
    /// The question was put away without an answer.
    Nothing,
}

/// What a client sends back with a state.
pub(super) enum Came {
    /// The answer to a question.
    Answer(Question, Said),
    /// The client's roots.
    Roots(Vec<String>),
}

/// What a waiting state stands for.
#[derive(Debug)]
enum Waits {
    Answer(Question),
    Roots,
}

/// The states that were given out and not yet spent.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<VecDeque<(String, String, Waits)>>);

impl Waiting {
    fn put(&self, call: &str, waits: Waits) -> String {
        let state = format!("ask-{}", ulid::Ulid::generate().to_string().to_lowercase());
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MOST_WAITING {
            waiting.pop_front();
        }
        waiting.push_back((state.clone(), call.to_owned(), waits));
        state
    }

    /// Returns what to send so that the client asks its person.
    pub(super) fn question(&self, call: &str, question: &Question) -> (InputRequests, String) {
        let state = self.put(call, Waits::Answer(question.clone()));
        (InputRequests::from([request(question)]), state)
    }

    /// Returns what to send so that the client says its roots.
    pub(super) fn roots(&self, call: &str) -> (InputRequests, String) {
        let request = InputRequest::ListRoots(ListRootsRequest::default());
        let state = self.put(call, Waits::Roots);
        (InputRequests::from([(ROOTS.to_owned(), request)]), state)
    }

    /// Spends a state. `call` is the call that it was given for: the same words have to come back with it.
    pub(super) fn spend(
        &self,
        state: &str,
        call: &str,
        answers: &InputResponses,
    ) -> Result<Came, Failure> {
        let found = {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let index = waiting.iter().position(|(known, _, _)| known == state);
            index.and_then(|index| waiting.remove(index))
        };
        match found {
            Some((_, for_call, waits)) if for_call == call => Ok(match waits {
                Waits::Answer(question) => Came::Answer(question, said_in(answers)),
                Waits::Roots => Came::Roots(answers.get(ROOTS).map_or_else(Vec::new, uris)),
            }),
            _ => Err(Failure::new(
                "state-spent",
                Exit::Conflict,
                "this answer belongs to no question that waits",
            )
            .hint("make the call again without a state; it asks anew")),
        }
    }
}

/// Reads the URIs out of a client's roots.
fn uris(value: &Value) -> Vec<String> {
    value
        .get("roots")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|root| root.get("uri")?.as_str().map(str::to_owned))
        .collect()
}

/// Returns the question as one of the requests that an answer to the client carries.
pub(super) fn request(question: &Question) -> (String, InputRequest) {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(question)));
    (FORM.to_owned(), request)
}

/// Finds what the person said among a client's answers.
pub(super) fn said_in(answers: &InputResponses) -> Said {
    answers.get(FORM).map_or(Said::Nothing, said_by_value)
}

fn said_by_value(value: &Value) -> Said {
    serde_json::from_value::<ElicitResult>(value.clone())
        .map_or(Said::Nothing, |answer| said(&answer))
}

/// Only an explicit yes in the form is a yes: a client that accepts by itself has ticked nothing.
fn said(answer: &ElicitResult) -> Said {
    let ticked = answer
        .content
        .as_ref()
        .and_then(|content| content.get(FIELD))
        .and_then(Value::as_bool);
    match (&answer.action, ticked) {
        (ElicitationAction::Accept, Some(true)) => Said::Yes,
        (ElicitationAction::Accept, Some(false)) | (ElicitationAction::Decline, _) => Said::No,
        _ => Said::Nothing,
    }
}

fn form(question: &Question) -> ElicitRequestParams {
    let field = BooleanSchema::new()
        .title(question.label.clone())
        .description("a person's yes");
    let schema = ElicitationSchema::builder()
        .required_property(FIELD, PrimitiveSchemaDefinition::Boolean(field))
        .build_unchecked();
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: text::clean(&question.message, 4_000),
        requested_schema: schema,
    }
}

/// Tells whether the client's person can be asked with a form.
pub(super) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    context
        .client_capabilities()
        .and_then(|capabilities| capabilities.elicitation)
        .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// Tells whether the server itself may ask, as the protocol allowed before 2026-07-28.
pub(super) fn may_ask(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_none_or(|version| version < ProtocolVersion::V_2026_07_28)
}

/// Asks while the call waits. Fails where the client does not answer as the protocol says.
pub(super) async fn ask(
    context: &RequestContext<RoleServer>,
    question: &Question,
) -> Result<Said, Failure> {
    match context.peer.create_elicitation(form(question)).await {
        Ok(answer) => Ok(said(&answer)),
        Err(_) => Err(nobody(question)),
    }
}

/// The answer where nobody can be asked: what a person has to run.
pub(super) fn nobody(question: &Question) -> Failure {
    let mut failure = Failure::new(
        "confirmation-needed",
        Exit::Confirm,
        format!("{}; a person has to confirm", question.what),
    )
    .hint("ask the person to run the command; do not run it yourself");
    failure.next = Some(Next::new("confirm", question.command.clone()));
    failure
}

/// The answer after anything but a yes.
pub(super) fn refused(said: Said) -> Failure {
    match said {
        Said::No => Failure::new(
            "declined",
            Exit::No,
            "the person said no; nothing was changed",
        ),
        Said::Yes | Said::Nothing => Failure::new(
            "not-answered",
            Exit::No,
            "the person put the question away; nothing was changed",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question() -> Question {
        Question {
            subject: "ok-1".to_owned(),
            what: "it".to_owned(),
            message: "it?".to_owned(),
            label: "Do it".to_owned(),
            command: "git takeup it".to_owned(),
            is_plain: false,
        }
    }

    fn answers(value: Value) -> InputResponses {
        InputResponses::from([(FORM.to_owned(), value)])
    }

    #[test]
    fn only_a_ticked_yes_is_a_yes() {
        for (value, expected) in [
            (
                json!({"action": "accept", "content": {"confirm": true}}),
                Said::Yes,
            ),
            (
                json!({"action": "accept", "content": {"confirm": false}}),
                Said::No,
            ),
            (
                json!({"action": "accept", "content": {"confirm": "true"}}),
                Said::Nothing,
            ),
            (json!({"action": "accept", "content": {}}), Said::Nothing),
            (json!({"action": "accept"}), Said::Nothing),
            (
                json!({"action": "decline", "content": {"confirm": true}}),
                Said::No,
            ),
            (json!({"action": "cancel"}), Said::Nothing),
            (json!({"action": "yes"}), Said::Nothing),
            (json!(null), Said::Nothing),
        ] {
            assert_eq!(said_by_value(&value), expected, "{value}");
        }
    }

    #[test]
    fn a_state_is_spent_once_and_only_by_its_own_call() {
        let yes = answers(json!({"action": "accept", "content": {"confirm": true}}));
        let waiting = Waiting::default();
        let (_, state) = waiting.question("resume a", &question());
        assert!(waiting.spend("ask-forged", "resume a", &yes).is_err());
        assert!(waiting.spend(&state, "resume b", &yes).is_err());
        assert!(
            waiting.spend(&state, "resume a", &yes).is_err(),
            "another call has spent it"
        );
        let (_, state) = waiting.question("resume a", &question());
        assert!(matches!(
            waiting.spend(&state, "resume a", &yes),
            Ok(Came::Answer(found, Said::Yes)) if found == question()
        ));
        assert!(waiting.spend(&state, "resume a", &yes).is_err());
    }

    #[test]
    fn questions_do_not_pile_up() {
        let waiting = Waiting::default();
        let (_, first) = waiting.question("a", &question());
        for _ in 0..MOST_WAITING {
            let _asked = waiting.question("a", &question());
        }
        assert!(waiting.spend(&first, "a", &answers(json!(null))).is_err());
        assert_eq!(waiting.0.lock().unwrap().len(), MOST_WAITING);
    }
}
