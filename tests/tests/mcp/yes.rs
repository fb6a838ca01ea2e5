//! A person's yes: through the client in both generations of the protocol, and never by the model's own word.
use serde_json::{Value, json};
use takeup_tests::Scratch;

use crate::client::{Client, NEWEST, holder, left};

fn can_ask() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn resume() -> Value {
    json!({"name": "takeup_resume", "arguments": {"task": "fix-login", "session": "s2"}})
}

fn ticked() -> Value {
    json!({"action": "accept", "content": {"confirm": true}})
}

#[test]
fn a_ticked_yes_takes_the_task_up() {
    for (version, capability) in [
        ("2025-06-18", json!({"elicitation": {}})),
        ("2025-11-25", can_ask()),
    ] {
        let scratch = left();
        scratch.write("a.txt", "three\n");
        scratch.write("new \u{1b}[31m.txt", "x");
        let mut client = Client::shaken(&scratch, version, capability);
        let id = client.ask("tools/call", resume());
        let question = client.asked("elicitation/create");
        let message = question["params"]["message"].as_str().unwrap();
        for part in ["fix-login", "Fix login", "s1", "stale-task", "a.txt"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(!message.contains('\u{1b}'));
        let schema = &question["params"]["requestedSchema"];
        assert_eq!(schema["required"], json!(["confirm"]));
        assert_eq!(schema["properties"]["confirm"]["type"], "boolean");
        assert!(schema["properties"]["confirm"].get("default").is_none());
        assert_eq!(
            holder(&scratch, "fix-login"),
            "s1",
            "nothing happens before the yes"
        );
        client.answer(&question["id"], ticked());
        let result = client.answer_to(id)["result"].clone();
        assert_eq!(result["isError"], false, "{result}");
        let data = &result["structuredContent"]["data"];
        assert_eq!(data["verdict"], "stale-task");
        assert_eq!(data["identity"]["sessionId"], "s2");
        assert_eq!(data["source"]["resumedToSessionId"], "s2");
        assert_eq!(holder(&scratch, "fix-login"), "s2");
        // The same call again is no new question and gives the same answer.
        let again = client.done("takeup_resume", resume()["arguments"].clone());
        assert_eq!(again["data"]["identity"], data["identity"]);
    }
}

#[test]
fn anything_but_a_ticked_yes_changes_nothing() {
    let scratch = left();
    for (answer, code) in [
        (json!({"action": "decline"}), "declined"),
        (
            json!({"action": "accept", "content": {"confirm": false}}),
            "declined",
        ),
        (json!({"action": "cancel"}), "not-answered"),
        (json!({"action": "accept", "content": {}}), "not-answered"),
        (json!({"action": "accept"}), "not-answered"),
        (
            json!({"action": "accept", "content": {"confirm": "yes"}}),
            "not-answered",
        ),
    ] {
        let mut client = Client::shaken(&scratch, "2025-11-25", can_ask());
        let id = client.ask("tools/call", resume());
        let question = client.asked("elicitation/create");
        client.answer(&question["id"], answer.clone());
        let result = client.answer_to(id)["result"].clone();
        assert_eq!(result["isError"], true);
        assert_eq!(
            result["structuredContent"]["error"]["code"], code,
            "{answer}"
        );
        assert_eq!(holder(&scratch, "fix-login"), "s1", "{answer}");
    }
}

#[test]
fn a_client_that_refuses_the_question_gets_the_command_for_a_person() {
    let scratch = left();
    let mut client = Client::shaken(&scratch, "2025-11-25", can_ask());
    let id = client.ask("tools/call", resume());
    let question = client.asked("elicitation/create");
    client.line(
        &json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "no"}})
            .to_string(),
    );
    let content = client.answer_to(id)["result"]["structuredContent"].clone();
    assert_eq!(content["error"]["code"], "confirmation-needed");
    assert_eq!(holder(&scratch, "fix-login"), "s1");
}

#[test]
fn without_questions_a_person_has_to_run_the_command() {
    for version in ["2024-11-05", "2025-06-18", "2025-11-25", NEWEST] {
        let scratch = left();
        let mut client = Client::shaken(&scratch, version, json!({}));
        for confirmed in [json!(null), json!(true), json!("yes")] {
            let mut arguments = resume()["arguments"].clone();
            if !confirmed.is_null() {
                arguments["confirmed"] = confirmed;
            }
            let content = client.fails("takeup_resume", arguments, "confirmation-needed");
            assert_eq!(content["exit"], 3);
            assert_eq!(content["next"]["action"], "confirm");
            assert_eq!(holder(&scratch, "fix-login"), "s1");
            let command = content["next"]["command"].as_str().unwrap();
            // It says for whom the task is taken up: this client, not who runs the command.
            assert!(
                command.starts_with(
                    "git takeup resume fix-login --from s1 --to s2 --agent some-client "
                ) && command.contains(" --confirm ok-"),
                "{command}"
            );
        }
        // A person runs it, and then it is so.
        let content = client.fails(
            "takeup_resume",
            resume()["arguments"].clone(),
            "confirmation-needed",
        );
        let command = content["next"]["command"].as_str().unwrap();
        let words: Vec<&str> = command.split(' ').skip(2).collect();
        scratch.takeup(&words).exits(0);
        assert_eq!(holder(&scratch, "fix-login"), "s2");
    }
}

/// Calls with a state and an answer, as clients of 2026-07-28 do.
fn again(client: &mut Client, call: &Value, state: &Value, answer: &Value) -> Value {
    let mut call = call.clone();
    call["requestState"] = state.clone();
    call["inputResponses"] = json!({ "yes": answer });
    client.request("tools/call", call)["result"].clone()
}

fn question(client: &mut Client, call: &Value) -> Value {
    let result = client.request("tools/call", call.clone())["result"].clone();
    assert_eq!(result["resultType"], "input_required", "{result}");
    let request = &result["inputRequests"]["yes"];
    assert_eq!(request["method"], "elicitation/create");
    assert!(
        request["params"]["message"]
            .as_str()
            .unwrap()
            .contains("fix-login")
    );
    result["requestState"].clone()
}

#[test]
fn in_the_newest_version_the_answer_comes_with_the_next_call() {
    let scratch = left();
    let mut client = Client::shaken(&scratch, NEWEST, can_ask());
    let state = question(&mut client, &resume());
    assert_eq!(holder(&scratch, "fix-login"), "s1");
    let result = again(&mut client, &resume(), &state, &ticked());
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(holder(&scratch, "fix-login"), "s2");
}

#[test]
fn in_the_newest_version_a_no_is_a_no() {
    let scratch = left();
    let mut client = Client::shaken(&scratch, NEWEST, can_ask());
    for (answer, code) in [
        (json!({"action": "decline"}), "declined"),
        (json!({"action": "cancel"}), "not-answered"),
        (json!(null), "not-answered"),
        (json!({"action": "accept", "content": {}}), "not-answered"),
    ] {
        let state = question(&mut client, &resume());
        let result = again(&mut client, &resume(), &state, &answer);
        assert_eq!(result["structuredContent"]["error"]["code"], code);
        // The no is spent too: the same state with a yes is worth nothing.
        let result = again(&mut client, &resume(), &state, &ticked());
        assert_eq!(result["structuredContent"]["error"]["code"], "state-spent");
        assert_eq!(holder(&scratch, "fix-login"), "s1");
    }
}

#[test]
fn a_state_that_is_forged_replayed_or_of_another_call_is_worth_nothing() {
    let scratch = left();
    scratch
        .takeup(&["start", "Other", "--session", "s3"])
        .exits(0);
    let mut client = Client::shaken(&scratch, NEWEST, can_ask());
    let other = json!({"name": "takeup_resume", "arguments": {"task": "other", "session": "s2"}});
    let spent = |result: &Value| result["structuredContent"]["error"]["code"] == "state-spent";

    let forged = again(&mut client, &resume(), &json!("ask-01jd"), &ticked());
    assert!(spent(&forged), "{forged}");
    let state = question(&mut client, &resume());
    let moved = again(&mut client, &other, &state, &ticked());
    assert!(spent(&moved), "{moved}");
    let state = question(&mut client, &resume());
    let mut stranger = Client::shaken(&scratch, NEWEST, can_ask());
    let elsewhere = again(&mut stranger, &resume(), &state, &ticked());
    assert!(spent(&elsewhere), "{elsewhere}");
    assert_eq!(holder(&scratch, "fix-login"), "s1");

    let result = again(&mut client, &resume(), &state, &ticked());
    assert_eq!(result["isError"], false, "{result}");
    // Somebody leaves the task again; the old yes does not count for it.
    let back =
        json!({"name": "takeup_resume", "arguments": {"task": "fix-login", "session": "s4"}});
    let replayed = again(&mut client, &back, &state, &ticked());
    assert!(spent(&replayed), "{replayed}");
    let replayed = again(&mut client, &resume(), &state, &ticked());
    assert!(spent(&replayed), "{replayed}");
}

#[test]
fn a_yes_is_for_what_was_shown() {
    let scratch = left();
    let mut client = Client::shaken(&scratch, NEWEST, can_ask());
    let state = question(&mut client, &resume());
    scratch.write("a.txt", "changed while the person thought\n");
    let result = again(&mut client, &resume(), &state, &ticked());
    assert_eq!(
        result["structuredContent"]["error"]["code"], "changed-since-shown",
        "{result}"
    );
    assert_eq!(result["structuredContent"]["exit"], 5);
    assert_eq!(holder(&scratch, "fix-login"), "s1");
}

#[test]
fn two_clients_with_a_yes_each_and_one_wins() {
    for _ in 0..3 {
        let scratch = left();
        let mut clients: Vec<Client> = (0..2)
            .map(|_| Client::shaken(&scratch, "2025-11-25", can_ask()))
            .collect();
        let calls: Vec<u64> = clients
            .iter_mut()
            .zip(["s2", "s3"])
            .map(|(client, session)| {
                client.ask(
                    "tools/call",
                    json!({"name": "takeup_resume", "arguments": {"task": "fix-login", "session": session}}),
                )
            })
            .collect();
        let questions: Vec<Value> = clients
            .iter_mut()
            .map(|client| client.asked("elicitation/create"))
            .collect();
        for (client, question) in clients.iter_mut().zip(&questions) {
            client.answer(&question["id"], ticked());
        }
        let results: Vec<Value> = clients
            .iter_mut()
            .zip(calls)
            .map(|(client, id)| client.answer_to(id)["result"]["structuredContent"].clone())
            .collect();
        let won: Vec<&Value> = results
            .iter()
            .filter(|result| result["ok"] == true)
            .collect();
        assert_eq!(won.len(), 1, "{results:?}");
        let lost = results.iter().find(|result| result["ok"] == false).unwrap();
        assert_eq!(lost["exit"], 5, "{lost}");
        assert_eq!(
            holder(&scratch, "fix-login"),
            won[0]["data"]["identity"]["sessionId"].as_str().unwrap()
        );
    }
}

#[test]
fn a_client_that_goes_away_before_its_person_answered_leaves_everything_as_it_was() {
    let scratch = left();
    let before = scratch
        .takeup(&["log", "fix-login", "--json"])
        .exits(0)
        .json();
    let mut client = Client::shaken(&scratch, "2025-11-25", can_ask());
    client.ask("tools/call", resume());
    client.asked("elicitation/create");
    client.end();
    let mut client = Client::shaken(&scratch, "2025-11-25", can_ask());
    let id = client.ask("tools/call", resume());
    client.asked("elicitation/create");
    client.notify("notifications/cancelled", json!({"requestId": id}));
    client.done("takeup_inspect", json!({}));
    drop(client);
    assert_eq!(holder(&scratch, "fix-login"), "s1");
    let after = scratch
        .takeup(&["log", "fix-login", "--json"])
        .exits(0)
        .json();
    assert_eq!(before["data"], after["data"]);
}

fn asked_for_review() -> (Scratch, String) {
    let scratch = left();
    let review = scratch
        .takeup(&[
            "review",
            "request",
            "may I deploy fix-login?",
            "--session",
            "s1",
            "--json",
        ])
        .exits(0)
        .json();
    let id = review["data"]["review"]["reviewId"]
        .as_str()
        .unwrap()
        .to_owned();
    (scratch, id)
}

fn state(scratch: &Scratch, review: &str) -> String {
    let shown = scratch
        .takeup(&["review", "show", review, "--json"])
        .exits(0)
        .json();
    let state = &shown["data"]["reviews"][0]["review"]["state"];
    state["state"]
        .as_str()
        .map_or_else(|| state.to_string(), str::to_owned)
}

#[test]
fn a_review_is_decided_by_the_person_only() {
    let (scratch, id) = asked_for_review();
    let waits = state(&scratch, &id);
    let arguments = json!({"action": "approve", "review": id, "confirmed": true});
    let mut mute = Client::shaken(&scratch, "2025-11-25", json!({}));
    let content = mute.fails("takeup_review", arguments.clone(), "confirmation-needed");
    assert_eq!(
        content["next"]["command"],
        format!("git takeup review approve {id}")
    );
    assert_eq!(state(&scratch, &id), waits);

    let mut client = Client::shaken(&scratch, "2025-11-25", can_ask());
    let call = client.ask(
        "tools/call",
        json!({"name": "takeup_review", "arguments": arguments}),
    );
    let question = client.asked("elicitation/create");
    assert!(
        question["params"]["message"]
            .as_str()
            .unwrap()
            .contains("may I deploy")
    );
    client.answer(&question["id"], json!({"action": "decline"}));
    let declined = client.answer_to(call);
    assert_eq!(
        declined["result"]["structuredContent"]["error"]["code"],
        "declined"
    );
    assert_eq!(state(&scratch, &id), waits);

    let call = client.ask(
        "tools/call",
        json!({"name": "takeup_review", "arguments": arguments}),
    );
    let question = client.asked("elicitation/create");
    client.answer(&question["id"], ticked());
    let approved = client.answer_to(call)["result"]["structuredContent"].clone();
    assert_eq!(approved["ok"], true, "{approved}");
    assert_ne!(state(&scratch, &id), waits);
    let listed = client.done("takeup_review", json!({}));
    assert_eq!(listed["data"]["reviews"], json!([]));

    // That says nothing of the next question, which the task's name means now.
    let next = ["review", "request", "again?", "--session", "s1", "--json"];
    let next = scratch.takeup(&next).exits(0).json();
    let next = next["data"]["review"]["reviewId"].as_str().unwrap();
    for action in ["approve", "reject"] {
        let arguments = json!({"action": action, "review": "fix-login", "confirmed": true});
        mute.fails("takeup_review", arguments, "confirmation-needed");
        assert_eq!(state(&scratch, next), waits);
    }
}

#[test]
fn a_decision_is_for_the_content_that_was_shown() {
    let (scratch, id) = asked_for_review();
    let waits = state(&scratch, &id);
    let call = json!({"name": "takeup_review", "arguments": {"action": "approve", "review": id}});
    let mut client = Client::shaken(&scratch, NEWEST, can_ask());
    let asked = question(&mut client, &call);
    scratch.write("a.txt", "other\n");
    let result = again(&mut client, &call, &asked, &ticked());
    assert_eq!(
        result["structuredContent"]["error"]["code"],
        "changed-since-shown"
    );
    assert_eq!(state(&scratch, &id), waits);
    // Asked anew, the question says that the content changed, and then a yes is for that.
    let asked = question(&mut client, &call);
    let result = again(&mut client, &call, &asked, &ticked());
    assert_eq!(result["isError"], false, "{result}");
    assert_ne!(state(&scratch, &id), waits);
}

#[test]
fn no_person_is_asked_for_a_yes_that_cannot_be_given() {
    let scratch = left();
    let words = [
        "start",
        "other",
        "--session",
        "s9",
        "--no-checks",
        "--avoid",
        "g",
    ];
    scratch.takeup(&words).exits(0);
    scratch.write("g/z", "avoided\n");
    scratch
        .takeup(&["evaluate", "other", "--session", "s9"])
        .exits(3);
    let mut client = Client::shaken(&scratch, "2025-11-25", can_ask());
    let arguments = json!({"action": "approve", "review": "other"});
    let content = client.fails("takeup_review", arguments.clone(), "not-allowed");
    let hint = content["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("git clean -f -- :/g/z"), "{content:#}");
    std::fs::remove_file(scratch.repo().join("g/z")).unwrap();
    let call = json!({"name": "takeup_review", "arguments": arguments});
    let call = client.ask("tools/call", call);
    let question = client.asked("elicitation/create");
    client.answer(&question["id"], ticked());
    let approved = client.answer_to(call)["result"]["structuredContent"].clone();
    assert_eq!(approved["ok"], true, "{approved}");
}

/// Where many take one task up at once, one does, and the others are told who.
#[test]
fn who_comes_too_late_hears_of_the_winner() {
    let scratch = left();
    crate::allowed::user_says(&scratch, "confirm = \"caller\"\n");
    let mut clients: Vec<Client> = (0..8)
        .map(|_| Client::shaken(&scratch, "2025-11-25", json!({})))
        .collect();
    let mut asked = Vec::new();
    for (number, client) in clients.iter_mut().enumerate() {
        let arguments =
            json!({"task": "fix-login", "session": format!("taker-{number}"), "confirmed": true});
        let call = json!({"name": "takeup_resume", "arguments": arguments});
        asked.push(client.ask("tools/call", call));
    }
    let answers: Vec<Value> = clients
        .iter_mut()
        .zip(asked)
        .map(|(client, id)| client.answer_to(id)["result"]["structuredContent"].clone())
        .collect();
    let winner = holder(&scratch, "fix-login");
    let won = answers.iter().filter(|answer| answer["ok"] == true);
    assert_eq!(won.count(), 1, "{answers:#?}");
    for answer in answers.iter().filter(|answer| answer["ok"] != true) {
        assert_ne!(answer["error"]["code"], "changed-since-shown", "{answer:#}");
        assert!(answer["error"].to_string().contains(&winner), "{answer:#}");
    }
}
