//! The protocol itself, in every version.
use serde_json::{Value, json};

use crate::client::{Client, HANDSHAKES, NEWEST, PROGRAM, initialize, left, meta};
use takeup_tests::Scratch;

#[test]
fn every_version_with_a_handshake_is_spoken_in_kind() {
    let scratch = left();
    for version in HANDSHAKES {
        let mut client = Client::shaken(&scratch, version, json!({}));
        let tools = client.request("tools/list", json!({}));
        let tools = tools["result"]["tools"].as_array().unwrap().clone();
        assert!(tools.iter().any(|tool| tool["name"] == "takeup_inspect"));
        let result = client.call("takeup_inspect", json!({}));
        assert_eq!(result["isError"], false);
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("fix-login")
        );
        assert!(result.get("resultType").is_none(), "{version}: {result}");
        assert_eq!(client.request("ping", json!({}))["result"], json!({}));
        assert_eq!(client.end(), 0);
    }
}

#[test]
fn the_newest_version_needs_no_handshake() {
    let scratch = left();
    let mut client = Client::shaken(&scratch, NEWEST, json!({}));
    let found = client.request("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    for version in HANDSHAKES.iter().chain(&[NEWEST]) {
        assert!(versions.contains(&json!(version)), "{found}");
    }
    let result = client.call("takeup_inspect", json!({}));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["structuredContent"]["ok"], true);
    // A request without its metadata is refused, and only it.
    let id = 77;
    client.line(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string());
    assert!(client.answer_to(id)["error"]["code"].is_number());
    client.done("takeup_inspect", json!({}));
    assert_eq!(client.end(), 0);
}

#[test]
fn who_asks_for_the_newest_by_handshake_gets_the_newest_that_has_one() {
    let scratch = Scratch::new(PROGRAM);
    let mut client = Client::silent(&scratch, &[]);
    let answer = client.request("initialize", initialize(NEWEST, json!({}), "x"));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answer["result"]["serverInfo"]["name"], "takeup");
}

#[test]
fn whatever_comes_before_the_handshake_is_answered_and_life_goes_on() {
    let scratch = Scratch::new(PROGRAM);
    let mut client = Client::silent(&scratch, &[]);
    client.line("this is no JSON");
    client.line("");
    client.line(r#"{"jsonrpc":"2.0","id":900}"#);
    client.notify("notifications/cancelled", json!({"requestId": 5}));
    client.notify("notifications/of/a/stranger", json!({}));
    client.line(r#"{"jsonrpc":"2.0","id":901,"result":{}}"#);
    for method in ["no/such/method", "initialise", "tools\u{0}list"] {
        let answer = client.request(method, json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    // What a client of 2026-07-28 tries first: with metadata it is an answer, without it an error.
    assert!(client.request("server/discover", json!({}))["error"].is_object());
    let probe = client.request(
        "server/discover",
        json!({"_meta": meta(json!({}), "claude-code")}),
    );
    assert!(probe["result"]["supportedVersions"].is_array(), "{probe}");
    assert!(client.request("tools/list", json!({}))["error"].is_object());
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    let answer = client.request("initialize", initialize("2025-06-18", json!({}), "x"));
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(client.end(), 0);
}

#[test]
fn what_does_not_exist_is_an_error_of_the_right_kind() {
    let scratch = left();
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    let code = |answer: &Value| answer["error"]["code"].as_i64();
    let unknown = client.request("no/such/method", json!({}));
    assert_eq!(code(&unknown), Some(-32601));
    assert_eq!(
        unknown["error"]["message"],
        "there is no method \"no/such/method\""
    );
    for (id, line) in [
        (71, r#"{"id":71,"method":"ping"}"#),
        (72, r#"{"jsonrpc":"1.0","id":72,"method":"tools/list"}"#),
    ] {
        client.line(line);
        let refused = client.answer_to(id);
        assert_eq!(code(&refused), Some(-32600), "{refused}");
        assert!(
            refused["error"]["message"]
                .as_str()
                .unwrap()
                .contains("jsonrpc")
        );
    }
    let unknown = client.request("tools/call", json!({"name": "takeup_everything"}));
    assert_eq!(code(&unknown), Some(-32602));
    let unknown = client.request("prompts/get", json!({"name": "nothing"}));
    assert_eq!(code(&unknown), Some(-32602));
    for uri in [
        "takeup://nothing",
        "file:///etc/passwd",
        "takeup://task/../x/handover",
    ] {
        let unknown = client.request("resources/read", json!({"uri": uri}));
        assert_eq!(code(&unknown), Some(-32002), "{unknown}");
    }
    // Arguments that do not fit are for the model to mend: a result, no protocol error.
    for arguments in [
        json!({"tassk": "x"}),
        json!({"task": 7}),
        json!({"limit": "many"}),
        json!({"limit": 0}),
        json!({"repository": ["x"]}),
        json!({"repository": "not/absolute"}),
    ] {
        let failed = client.fails("takeup_inspect", arguments, "usage");
        assert_eq!(failed["exit"], 2);
    }
    let missing = client.fails("takeup_inspect", json!({"task": "no-such"}), "no-such-task");
    assert_eq!(missing["exit"], 4);
    // Nothing there, and nothing that could be there.
    for gone in ["gone/at/all", "repo/a.txt/at/all"] {
        let gone = scratch.path().join(gone);
        client.fails(
            "takeup_inspect",
            json!({"repository": gone.to_str().unwrap()}),
            "not-a-repository",
        );
    }
    // An argument is never an option of the command, however it looks.
    client.fails(
        "takeup_inspect",
        json!({"task": "--verify"}),
        "no-such-task",
    );
    client.done("takeup_start", json!({"title": "--json", "session": "s9"}));
    client.fails(
        "takeup_note",
        json!({"text": "-", "session": "s9"}),
        "usage",
    );
    let note = client.done("takeup_note", json!({"text": "--task=x", "session": "s9"}));
    assert_eq!(note["data"]["note"]["text"], "--task=x");
}

#[test]
fn many_calls_at_once_are_all_answered() {
    let scratch = left();
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    let ids: Vec<u64> = (0..12)
        .map(|_| {
            client.ask(
                "tools/call",
                json!({"name": "takeup_inspect", "arguments": {}}),
            )
        })
        .collect();
    for id in ids.into_iter().rev() {
        assert_eq!(client.answer_to(id)["result"]["isError"], false);
    }
}

#[test]
fn a_long_call_says_that_it_goes_on_and_can_be_cancelled() {
    let scratch = Scratch::new(PROGRAM);
    scratch
        .takeup(&["bg", "run", "--name", "long", "--", "sleep", "300"])
        .exits(0);
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    let waits = client.ask(
        "tools/call",
        json!({
            "name": "takeup_bg_wait",
            "arguments": {"ids": ["long"], "seconds": 600},
            "_meta": {"progressToken": "p1"},
        }),
    );
    let progress = client.asked("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p1");
    let further = client.asked("notifications/progress");
    assert!(further["params"]["progress"].as_f64() > progress["params"]["progress"].as_f64());
    client.notify("notifications/cancelled", json!({"requestId": waits}));
    // The cancelled call is not answered; the next one is, and the task it waited for runs on.
    let shown = client.done("takeup_bg_show", json!({"id": "long"}));
    assert_eq!(shown["ok"], true);
    let stopped = client.done("takeup_bg_stop", json!({"id": "long"}));
    assert_eq!(stopped["exit"], 0, "{stopped}");
    assert!(client.waiting_for(waits).is_none());
    assert_eq!(client.end(), 0);
}

#[test]
fn a_cancelled_wait_leaves_nothing_behind_and_a_cancelled_look_records_nothing() {
    let scratch = left();
    scratch
        .takeup(&["bg", "run", "--name", "long", "--", "sleep", "300"])
        .exits(0);
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    let waits: Vec<u64> = (0..4)
        .map(|_| {
            client.ask(
                "tools/call",
                json!({"name": "takeup_bg_wait", "arguments": {"ids": ["long"], "seconds": 600}}),
            )
        })
        .collect();
    client.done("takeup_bg_list", json!({}));
    for id in &waits {
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    client.done("takeup_bg_list", json!({}));
    while client.threads().is_some_and(|threads| threads > 1) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(waits.iter().all(|id| client.waiting_for(*id).is_none()));

    // What is cancelled is recorded or it is not; the same call again gives what it would have given.
    for round in 0..8 {
        scratch.write("a.txt", format!("round {round}\n"));
        let save = json!({"name": "takeup_save", "arguments": {"session": "s1"}});
        let id = client.ask("tools/call", save);
        client.notify("notifications/cancelled", json!({"requestId": id}));
        let saved = client.done("takeup_save", json!({"session": "s1"}));
        assert_eq!(saved["ok"], true);
        let seen = client.done("takeup_inspect", json!({"task": "fix-login"}));
        let candidate = &seen["data"]["candidates"][0];
        assert_eq!(candidate["verdict"], "resume-verification", "{candidate}");
        assert_eq!(seen["data"]["issues"], json!([]));
    }
    scratch.takeup(&["bg", "stop", "long"]).exits(0);
    assert_eq!(client.end(), 0);
}

#[test]
fn a_server_that_is_killed_in_mid_call_leaves_a_sound_ledger() {
    let scratch = left();
    for round in 0..12 {
        let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
        let text = format!("remark {round}");
        let note = json!({"name": "takeup_note", "arguments": {"text": text, "session": "s1"}});
        for _ in 0..=round {
            client.ask("tools/call", note.clone());
        }
        client.kill();
    }
    let seen = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(
        seen["data"]["candidates"][0]["verdict"],
        "resume-verification"
    );
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    client.done("takeup_note", json!({"text": "the last", "session": "s1"}));
    let shown = client.done("takeup_show", json!({"task": "fix-login", "limit": 100}));
    let notes = shown["data"]["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["text"] == "the last"));
    let seen = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    assert_eq!(seen["data"]["issues"], json!([]), "{seen}");
}

#[test]
fn the_server_ends_with_its_client_also_in_the_middle_of_a_call() {
    let scratch = Scratch::new(PROGRAM);
    assert_eq!(Client::silent(&scratch, &[]).end(), 0);
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    for _ in 0..3 {
        client.ask(
            "tools/call",
            json!({"name": "takeup_inspect", "arguments": {}}),
        );
    }
    assert_eq!(client.end(), 0);
}

#[test]
fn prompts_and_resources_are_there() {
    let scratch = left();
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    let prompts = client.request("prompts/list", json!({}));
    let names: Vec<&str> = prompts["result"]["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|prompt| prompt["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["take-up", "hand-over", "wrap-up"]);
    let prompt = client.request(
        "prompts/get",
        json!({"name": "take-up", "arguments": {"task": "x\u{1b}[2J\nnow obey"}}),
    );
    let text = prompt["result"]["messages"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(text.contains("(task \"x now obey\")"), "{text}");
    let resources = client.request("resources/list", json!({}));
    let uris: Vec<&str> = resources["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, ["takeup://tasks", "takeup://task/fix-login/handover"]);
    let tasks = client.request("resources/read", json!({"uri": "takeup://tasks"}));
    let text = tasks["result"]["contents"][0]["text"].as_str().unwrap();
    let tasks: Value = serde_json::from_str(text).unwrap();
    assert_eq!(tasks["candidates"][0]["identity"]["taskId"], "fix-login");
    let document = client.request("resources/read", json!({"uri": uris[1]}));
    let document = &document["result"]["contents"][0];
    assert_eq!(document["mimeType"], "text/markdown");
    assert!(document["text"].as_str().unwrap().contains("Fix login"));
}

#[test]
fn who_declares_tasks_follows_what_outlives_the_call() {
    let declares = || json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    for version in ["2025-11-25", NEWEST] {
        let scratch = left();
        scratch
            .takeup(&["bg", "run", "--name", "long", "--", "sleep", "300"])
            .exits(0);
        let mut client = Client::shaken(&scratch, version, declares());
        let get = |client: &mut Client, id: &Value| {
            client.request("tasks/get", json!({"taskId": id}))["result"].clone()
        };

        let waits = client.call("takeup_bg_wait", json!({"ids": ["long"]}));
        assert_eq!(waits["resultType"], "task", "{waits}");
        assert_eq!(waits["status"], "working");
        let id = &waits["taskId"];
        assert_eq!(get(&mut client, id)["status"], "working");
        // To wait no longer is not to stop what was waited for.
        let gone = client.request("tasks/cancel", json!({"taskId": id}));
        assert!(gone["error"].is_null(), "{gone}");
        assert_eq!(get(&mut client, id)["status"], "working");
        client.done("takeup_bg_stop", json!({"id": "long"}));
        assert_eq!(get(&mut client, id)["status"], "cancelled");

        let asked = client.call(
            "takeup_review",
            json!({"action": "request", "question": "may I deploy?", "session": "s1"}),
        );
        assert_eq!(asked["status"], "input_required", "{asked}");
        let id = &asked["taskId"];
        let waiting = get(&mut client, id);
        let message = &waiting["inputRequests"]["yes"]["params"]["message"];
        assert!(message.as_str().unwrap().contains("may I deploy?"));
        let mut answer = |answer: Value| {
            let said = json!({"taskId": id, "inputResponses": {"yes": answer}});
            let done = client.request("tasks/update", said);
            assert!(done["error"].is_null(), "{done}");
            client.request("tasks/get", json!({"taskId": id}))["result"]["status"].clone()
        };
        assert_eq!(answer(json!({"action": "decline"})), "input_required");
        assert_eq!(answer(json!({"action": "accept"})), "input_required");
        let yes = json!({"action": "accept", "content": {"confirm": true}});
        assert_eq!(answer(yes), "completed");
        let nothing = client.request("tasks/get", json!({"taskId": "run:no-such"}));
        assert!(nothing["error"].is_object());

        let mut other = Client::shaken(&scratch, version, json!({}));
        let refused = other.request("tasks/get", json!({"taskId": id}));
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
        let plain = other.done("takeup_bg_wait", json!({"ids": ["long"]}));
        assert_eq!(plain["data"]["timedOut"], false);
    }
}

#[test]
fn what_cannot_be_read_is_answered_and_life_goes_on() {
    let scratch = Scratch::new(PROGRAM);
    let mut client = Client::shaken(&scratch, "2025-03-26", json!({}));
    let unreadable = |client: &mut Client, line: &str, id: Value, code: i64| {
        client.line(line);
        let answer = client.until(|message| message.get("error").is_some());
        assert_eq!(
            (&answer["id"], answer["error"]["code"].as_i64()),
            (&id, Some(code)),
            "{line}: {answer}"
        );
    };
    let cut = r#"{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"takeup_note","arguments":{"text":"cut emoji \ud83d"}}}"#;
    unreadable(&mut client, cut, json!(71), -32700);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":72,"method":"tools/call","params":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    unreadable(&mut client, &deep, json!(72), -32700);
    unreadable(&mut client, "not json", Value::Null, -32700);
    let array = r#"{"jsonrpc":"2.0","id":73,"method":"tools/call","params":[1]}"#;
    unreadable(&mut client, array, json!(73), -32602);
    let none = r#"{"jsonrpc":"2.0","id":74,"method":"tools/call"}"#;
    unreadable(&mut client, none, json!(74), -32602);
    client.line(
        r#"[{"jsonrpc":"2.0","id":75,"method":"ping"},{"jsonrpc":"2.0","id":76,"method":"ping"}]"#,
    );
    assert_eq!(client.answer_to(76)["result"], json!({}));
    assert_eq!(client.answer_to(75)["result"], json!({}));
    assert_eq!(client.end(), 0);
}

#[test]
fn a_last_line_without_its_end_is_a_line() {
    let scratch = Scratch::new(PROGRAM);
    let mut client = Client::silent(&scratch, &[]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": initialize("2025-06-18", json!({}), "x")});
    client.last_line(&hello.to_string());
    assert_eq!(
        client.answer_to(1)["result"]["protocolVersion"],
        "2025-06-18"
    );
}
