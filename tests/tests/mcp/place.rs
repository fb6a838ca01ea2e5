//! Where a call is meant, and who calls.
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use takeup_tests::Scratch;

use crate::client::{Client, NEWEST, PROGRAM};

/// Makes a second repository beside the first and returns its path.
fn second(scratch: &Scratch) -> String {
    let other = scratch.path().join("other tree");
    std::fs::create_dir_all(other.join("sub")).unwrap();
    scratch.git_in(&other, &["init", "-q", "-b", "main"]);
    other.to_str().unwrap().to_owned()
}

fn root_of(content: &Value) -> &str {
    content["data"]["repository"]["root"].as_str().unwrap()
}

fn uri(path: &str) -> String {
    format!("file://{}", path.replace(' ', "%20"))
}

/// Calls `takeup_inspect` as a client with these roots.
fn with_roots(client: &mut Client, roots: &[String]) -> Value {
    let id = client.ask(
        "tools/call",
        json!({"name": "takeup_inspect", "arguments": {}}),
    );
    let asked = client.asked("roots/list");
    let roots: Vec<Value> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
    client.answer(&asked["id"], json!({ "roots": roots }));
    client.answer_to(id)["result"]["structuredContent"].clone()
}

#[test]
fn the_argument_comes_first_then_roots_then_the_environment_then_the_folder() {
    let scratch = Scratch::new(PROGRAM);
    let here = scratch.repo().to_str().unwrap().to_owned();
    let other = second(&scratch);
    let project = [("CLAUDE_PROJECT_DIR", other.as_str())];
    let start = |capabilities: Value, vars: &[(&str, &str)]| {
        Client::named(&scratch, "2025-11-25", capabilities, "x", vars)
    };

    let mut client = start(json!({}), &[]);
    assert_eq!(root_of(&client.done("takeup_inspect", json!({}))), here);
    let mut client = start(json!({}), &project);
    assert_eq!(root_of(&client.done("takeup_inspect", json!({}))), other);
    let mut client = start(json!({"roots": {}}), &project);
    assert_eq!(root_of(&with_roots(&mut client, &[uri(&here)])), here);
    let argument = json!({"repository": format!("{other}/sub")});
    assert_eq!(root_of(&client.done("takeup_inspect", argument)), other);
    // Roots that are no repositories, or no files, say nothing.
    let mut client = start(json!({"roots": {}}), &[]);
    let nothing = [
        "file:///".to_owned(),
        "https://example.invalid/x".to_owned(),
    ];
    assert_eq!(root_of(&with_roots(&mut client, &nothing)), here);
}

#[test]
fn what_ties_the_server_to_one_repository_does_not_bind_its_calls() {
    let scratch = Scratch::new(PROGRAM);
    let other = second(&scratch);
    let git = scratch.repo().join(".git");
    let vars = [("GIT_DIR", git.to_str().unwrap())];
    let mut client = Client::named(&scratch, "2025-11-25", json!({}), "x", &vars);
    let found = client.done("takeup_inspect", json!({"repository": other}));
    assert_eq!(root_of(&found), other);
}

#[test]
fn several_roots_are_a_question_and_the_list() {
    let scratch = Scratch::new(PROGRAM);
    let here = scratch.repo().to_str().unwrap().to_owned();
    let other = second(&scratch);
    let mut client = Client::shaken(
        &scratch,
        "2025-11-25",
        json!({"roots": {"listChanged": true}}),
    );
    let asked_back = with_roots(&mut client, &[uri(&here), uri(&other)]);
    assert_eq!(asked_back["error"]["code"], "ambiguous-place");
    assert_eq!(asked_back["exit"], 3);
    assert_eq!(asked_back["data"]["repositories"], json!([here, other]));
    let found = client.done("takeup_inspect", json!({"repository": other}));
    assert_eq!(root_of(&found), other);
    // Two roots in one work tree are one place.
    client.notify("notifications/roots/list_changed", json!({}));
    let found = with_roots(&mut client, &[uri(&format!("{other}/sub")), uri(&other)]);
    assert_eq!(root_of(&found), other);
    // They are not asked for again.
    let found = client.done("takeup_inspect", json!({}));
    assert_eq!(root_of(&found), other);
}

#[test]
fn in_the_newest_version_roots_come_with_the_next_call() {
    let scratch = Scratch::new(PROGRAM);
    let other = second(&scratch);
    let mut client = Client::shaken(&scratch, NEWEST, json!({"roots": {}}));
    let call = json!({"name": "takeup_inspect", "arguments": {}});
    let result = client.request("tools/call", call.clone())["result"].clone();
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["inputRequests"]["roots"]["method"], "roots/list");
    let mut again = call;
    again["requestState"] = result["requestState"].clone();
    again["inputResponses"] = json!({"roots": {"roots": [{"uri": uri(&other)}]}});
    let result = client.request("tools/call", again)["result"].clone();
    assert_eq!(root_of(&result["structuredContent"]), other);
    let found = client.done("takeup_inspect", json!({}));
    assert_eq!(root_of(&found), other);
}

#[test]
fn each_agent_is_known_by_its_own_signs() {
    let scratch = Scratch::new(PROGRAM);
    let inherited = ("CLAUDE_CODE_SESSION_ID", "outer");
    let other = second(&scratch);
    for (name, vars, meta, expected) in [
        (
            "claude-code",
            vec![inherited],
            json!({}),
            Some(("claude-code", "outer")),
        ),
        (
            "github-copilot-developer",
            vec![inherited, ("COPILOT_AGENT_SESSION_ID", "inner")],
            json!({}),
            Some(("copilot", "inner")),
        ),
        (
            "codex-mcp-client",
            vec![inherited],
            json!({"x-codex-turn-metadata": {"session_id": "turn", "workspaces": {other.clone(): {}}}}),
            Some(("codex", "turn")),
        ),
        ("gemini-cli-mcp-client", vec![inherited], json!({}), None),
        (
            "gemini-cli-mcp-client",
            vec![inherited, ("TAKEUP_SESSION", "named")],
            json!({}),
            Some(("gemini", "named")),
        ),
    ] {
        let mut client = Client::named(&scratch, "2025-06-18", json!({}), name, &vars);
        let answer = client.request(
            "tools/call",
            json!({"name": "takeup_start", "arguments": {"title": format!("For {name} {}", vars.len())}, "_meta": meta}),
        );
        let data = answer["result"]["structuredContent"]["data"].clone();
        let session = data["identity"]["sessionId"].as_str().unwrap();
        if let Some((agent, id)) = expected {
            assert_eq!(
                (data["agent"].as_str().unwrap(), session),
                (agent, id),
                "{data}"
            );
            assert_eq!(data["sessionMadeUp"], false);
        } else {
            assert_eq!(data["agent"], "gemini");
            assert_ne!(session, "outer");
            assert_eq!(data["sessionMadeUp"], true);
        }
        if name.starts_with("codex") {
            assert_eq!(data["identity"]["repositoryRoot"], other);
        }
    }
}

#[test]
fn the_session_lives_as_long_as_the_client_does() {
    // The client is a process of its own here: it runs the server, and dies.
    let scratch = Scratch::new(PROGRAM);
    let script = "import subprocess, sys, json\n\
        server = subprocess.Popen([sys.argv[1], 'mcp'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n\
        def send(message):\n    server.stdin.write((json.dumps(message) + '\\n').encode()); server.stdin.flush()\n\
        send({'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}}})\n\
        server.stdout.readline()\n\
        send({'jsonrpc': '2.0', 'id': 2, 'method': 'tools/call', 'params': {'name': 'takeup_start', 'arguments': {'title': 'Fix login', 'session': 's1'}}})\n\
        print(server.stdout.readline().decode(), flush=True)\n\
        sys.stdin.read()\n";
    let Some(mut client) = python(&scratch, script) else {
        return;
    };
    let mut line = String::new();
    BufReader::new(client.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(started["result"]["isError"], false, "{started}");
    let seen = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let candidate = &seen["data"]["candidates"][0];
    assert_eq!(candidate["verdict"], "in-use", "{candidate}");
    client.kill().unwrap();
    client.wait().unwrap();
    let seen = scratch.takeup(&["inspect", "--json"]).exits(0).json();
    let candidate = &seen["data"]["candidates"][0];
    assert_eq!(candidate["liveness"]["state"], "crashed", "{candidate}");
    assert_eq!(candidate["verdict"], "resume-verification");
}

fn python(scratch: &Scratch, script: &str) -> Option<std::process::Child> {
    let mut command = Command::new("python3");
    scratch.dress(&mut command);
    let started = command
        .args(["-c", script, PROGRAM])
        .current_dir(scratch.repo())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    if started.is_err() {
        println!("skipped: there is no python3 to be a client");
    }
    started.ok()
}

#[test]
fn a_model_is_never_a_person() {
    let scratch = Scratch::new(PROGRAM);
    for (name, agent) in [
        ("cursor-vscode", "cursor"),
        ("claude-code", "claude-code"),
        ("Zed", "zed"),
        ("Visual Studio Code", "visual-studio-code"),
        ("", "mcp-client"),
    ] {
        let mut client = Client::named(&scratch, "2025-11-25", json!({}), name, &[]);
        let title = format!("For {agent} {}", name.len());
        let checks = json!({"title": title, "checks": ["true"]});
        // Before it has begun anything its session is not known, and it is no person all the same.
        scratch
            .takeup(&["start", &format!("Of a person {name}"), "--session", "p"])
            .exits(0);
        let tasks = client.done("takeup_inspect", json!({}));
        let task = tasks["data"]["candidates"][0]["identity"]["taskId"].clone();
        let note = client.done("takeup_note", json!({"text": "x", "task": task}));
        assert_eq!(
            note["data"]["note"]["by"],
            json!({"agent": agent, "id": "unnamed"})
        );
        let started = client.done("takeup_start", checks);
        let session = started["data"]["identity"]["sessionId"].clone();
        assert_eq!(started["data"]["agent"], agent, "{started}");
        assert_eq!(started["data"]["plan"]["checks"][0]["source"], "session");
        let note = client.done("takeup_note", json!({"text": "y"}));
        assert_eq!(
            note["data"]["note"]["by"],
            json!({"agent": agent, "id": session})
        );
        let plan = json!({"action": "add", "command": "make"});
        let plan = client.done("takeup_check_plan", plan);
        assert_eq!(plan["data"]["plan"]["checks"][1]["source"], "session");
        assert_eq!(
            plan["data"]["taskId"],
            started["data"]["identity"]["taskId"]
        );
    }
}

/// A folder's name may hold what no JSON text holds as it is: the session that was made up there is known again all the same.
#[test]
fn a_made_up_session_is_remembered_wherever_it_is() {
    use std::os::unix::ffi::OsStrExt as _;

    let scratch = Scratch::new(PROGRAM);
    for name in [&b"back\\slash"[..], b"new\nline", b"no\xfftext"] {
        let folder = scratch.path().join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir(&folder).unwrap();
        scratch.git_in(&folder, &["init", "-q"]);
        scratch.git_in(&folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
        let written = takeup_core::paths::text_of_path(&folder);
        let mut client = Client::shaken(&scratch, "2025-11-25", json!({}));
        let call = |more: Value| {
            let mut arguments = json!({"repository": written});
            arguments
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            arguments
        };
        let arguments = call(json!({"title": "One"}));
        let started = client.done("takeup_start", arguments);
        let session = started["data"]["identity"]["sessionId"].clone();
        let saved = client.done("takeup_save", call(json!({})));
        assert_eq!(
            saved["data"]["identities"][0]["sessionId"], session,
            "{saved}"
        );
        assert_eq!(saved["data"]["identities"][0]["repositoryRoot"], written);
    }
}
