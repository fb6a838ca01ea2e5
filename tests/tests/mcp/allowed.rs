//! What the user's own settings allow, and a repository's never do.
use serde_json::{Value, json};
use takeup_tests::Scratch;

use crate::client::{Client, NEWEST, PROGRAM, holder, left};

/// Writes the user's settings.
#[expect(
    clippy::disallowed_methods,
    reason = "a test's file needs no durability"
)]
pub(crate) fn user_says(scratch: &Scratch, settings: &str) {
    let folder = scratch.home().join(".config/takeup");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
}

/// Says the same settings in every place that a repository brings along.
fn repository_says(scratch: &Scratch, key: &str, value: &str) {
    scratch.git(&["config", "extensions.worktreeConfig", "true"]);
    for scope in ["--local", "--worktree"] {
        scratch.git(&["config", scope, &format!("takeup.{key}"), value]);
    }
    scratch.write("config.toml", format!("{key} = \"{value}\"\n"));
    scratch.write(".takeup.toml", format!("{key} = \"{value}\"\n"));
    scratch.write(
        ".config/takeup/config.toml",
        format!("{key} = \"{value}\"\n"),
    );
    scratch.write("included", format!("[takeup]\n\t{key} = {value}\n"));
    scratch.git(&["config", "include.path", "../included"]);
}

fn resume(session: &str, confirmed: Value) -> Value {
    json!({"task": "fix-login", "session": session, "confirmed": confirmed})
}

#[test]
fn a_model_s_own_yes_counts_only_by_the_user_s_settings() {
    for version in ["2025-06-18", NEWEST] {
        let scratch = left();
        repository_says(&scratch, "confirm", "caller");
        scratch.takeup(&["save", "--session", "s1"]).exits(0);
        let mut client = Client::shaken(&scratch, version, json!({}));
        client.fails(
            "takeup_resume",
            resume("s2", json!(true)),
            "confirmation-needed",
        );
        assert_eq!(holder(&scratch, "fix-login"), "s1");

        // The user may say it while the server runs.
        user_says(&scratch, "confirm = \"caller\"\n");
        for no in [json!(null), json!(false), json!("true"), json!(1)] {
            client.fails("takeup_resume", resume("s2", no), "confirmation-needed");
        }
        assert_eq!(holder(&scratch, "fix-login"), "s1");
        let resumed = client.done("takeup_resume", resume("s2", json!(true)));
        assert_eq!(resumed["data"]["identity"]["sessionId"], "s2");
        assert_eq!(holder(&scratch, "fix-login"), "s2");
        let again = client.done("takeup_resume", resume("s2", json!(true)));
        assert_eq!(again["data"]["identity"], resumed["data"]["identity"]);

        user_says(&scratch, "confirm = \"person\"\n");
        scratch.takeup(&["save", "--session", "s2"]).exits(0);
        let mut further = resume("s3", json!(true));
        further["from"] = json!("s2");
        client.fails("takeup_resume", further, "confirmation-needed");
        assert_eq!(holder(&scratch, "fix-login"), "s2");
    }
}

#[test]
fn the_caller_s_word_lifts_no_rule() {
    let scratch = left();
    user_says(&scratch, "confirm = \"caller\"\n");
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    // Two sessions call at once, each with its own word: one wins.
    let calls: Vec<u64> = ["s2", "s3"]
        .iter()
        .map(|session| {
            let arguments = resume(session, json!(true));
            client.ask(
                "tools/call",
                json!({"name": "takeup_resume", "arguments": arguments}),
            )
        })
        .collect();
    let results: Vec<Value> = calls
        .into_iter()
        .map(|id| client.answer_to(id)["result"]["structuredContent"].clone())
        .collect();
    let won = results.iter().filter(|result| result["ok"] == true).count();
    assert_eq!(won, 1, "{results:?}");
    let lost = results.iter().find(|result| result["ok"] == false).unwrap();
    assert_eq!(lost["exit"], 5, "{lost}");

    // A question to a person stays in the way of the task, and the word decides it only for the content of the moment.
    let winner = holder(&scratch, "fix-login");
    let asked = client.done(
        "takeup_review",
        json!({"action": "request", "question": "may I?", "session": winner}),
    );
    let mut further = resume("s4", json!(true));
    further["from"] = json!(winner);
    client.fails("takeup_resume", further, "human-review");
    let review = &asked["data"]["review"]["reviewId"];
    let decided = client.done(
        "takeup_review",
        json!({"action": "approve", "review": review, "confirmed": true}),
    );
    assert_eq!(decided["ok"], true);
}

#[test]
fn commands_are_started_where_the_user_allows_it() {
    let scratch = left();
    repository_says(&scratch, "mcpRun", "true");
    let marker = scratch.path().join("ran");
    let touch = json!({"command": ["touch", marker.to_str().unwrap()]});
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    client.fails("takeup_bg_run", touch.clone(), "not-allowed");
    assert!(!marker.exists());

    user_says(&scratch, "mcpRun = true\n");
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    let tools = client.request("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let run = tools.iter().find(|tool| tool["name"] == "takeup_bg_run");
    assert_eq!(run.unwrap()["annotations"]["readOnlyHint"], false);
    let started = client.done("takeup_bg_run", touch);
    crate::tools::fits(&tools, "takeup_bg_run", &started);
    let id = started["data"]["task"]["id"].clone();
    let waited = client.done("takeup_bg_wait", json!({"ids": [id]}));
    assert_eq!(waited["data"]["timedOut"], false);
    assert!(marker.exists());

    // The words of the command are words: no shell reads them, and none of them is an option of ours.
    let words = json!(["printf", "%s|", "--json", "$(id)", "a b", "--"]);
    let started = client.done(
        "takeup_bg_run",
        json!({"command": words, "name": "--name", "session": "s1"}),
    );
    let id = started["data"]["task"]["id"].clone();
    client.done("takeup_bg_wait", json!({"ids": [id]}));
    let printed = client.done("takeup_bg_output", json!({"id": id}));
    assert!(
        printed.to_string().contains("--json|$(id)|a b|--|"),
        "{printed}"
    );

    // What it printed is for the model to read, as data: masked, and without what a terminal would obey.
    let token = format!("ghp_{}", "a1".repeat(18));
    let script = format!("printf 'one\\n\\033[31mtwo\\033[0m\\n{token}\\n'");
    let started = client.done("takeup_bg_run", json!({"command": ["sh", "-c", script]}));
    let id = started["data"]["task"]["id"].clone();
    client.done("takeup_bg_wait", json!({"ids": [id]}));
    let shown = client.call("takeup_bg_output", json!({"id": id}));
    let text = shown["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\n| one\n| two\n"), "{text}");
    assert!(!shown.to_string().contains(&token), "{shown}");

    for (arguments, code) in [
        (json!({"command": []}), "usage"),
        (json!({"command": "touch x"}), "usage"),
        (
            json!({"command": ["true"], "ready": "cmd:touch x"}),
            "usage",
        ),
        (
            json!({"command": ["no-such-program-at-all"]}),
            "command-not-found",
        ),
    ] {
        let result = client.call("takeup_bg_run", arguments.clone());
        assert_eq!(result["isError"], true, "{arguments}: {result}");
        assert_eq!(
            result["structuredContent"]["error"]["code"], code,
            "{arguments}"
        );
    }
}

#[test]
fn a_started_task_outlives_client_and_server_and_is_found_again() {
    let scratch = Scratch::new(PROGRAM);
    user_says(&scratch, "mcpRun = true\n");
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    let command = json!({"command": ["sleep", "300"], "name": "long"});
    client.done("takeup_bg_run", command);
    client.kill();
    let mut client = Client::shaken(&scratch, NEWEST, json!({}));
    let listed = client.done("takeup_bg_list", json!({"running": true}));
    assert_eq!(listed["data"]["tasks"][0]["name"], "long", "{listed}");
    client.done("takeup_bg_stop", json!({"id": "long"}));
    let listed = client.done("takeup_bg_list", json!({"running": true}));
    assert_eq!(listed["data"]["tasks"], json!([]));
}

#[test]
fn the_caller_s_word_is_not_for_what_nobody_was_shown() {
    let scratch = left();
    user_says(&scratch, "confirm = \"caller\"\n");
    scratch.write("x.txt", "of somebody\n");
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    let refused = client.fails(
        "takeup_resume",
        resume("s2", json!(true)),
        "confirmation-needed",
    );
    assert_eq!(holder(&scratch, "fix-login"), "s1");
    let command = refused["next"]["command"].as_str().unwrap();
    assert!(
        command.contains("--to s2 ") && command.contains(" --confirm ok-"),
        "{command}"
    );
    // Where the person can be asked, the person is.
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({"elicitation": {}}));
    let arguments = resume("s2", json!(true));
    let id = client.ask(
        "tools/call",
        json!({"name": "takeup_resume", "arguments": arguments}),
    );
    let asked = client.asked("elicitation/create");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("x.txt"), "{message}");
    client.answer(&asked["id"], json!({"action": "decline"}));
    assert_eq!(client.answer_to(id)["result"]["isError"], true);
    assert_eq!(holder(&scratch, "fix-login"), "s1");
}

/// Who looks later can tell a person's yes from a model's.
#[test]
fn a_model_s_own_yes_is_recorded_as_its_own() {
    let scratch = left();
    user_says(&scratch, "confirm = \"caller\"\n");
    let words = ["review", "request", "may I?", "--session", "s1", "--json"];
    let asked = scratch.takeup(&words).exits(0).json();
    let id = asked["data"]["review"]["reviewId"].as_str().unwrap();
    let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
    let arguments = json!({"action": "approve", "review": id, "confirmed": true});
    let done = client.done("takeup_review", arguments);
    let decision = &done["data"]["review"]["state"]["decision"];
    assert_eq!(decision["by"], decision["session"]["agent"], "{done:#}");
}
