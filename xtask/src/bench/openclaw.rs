//! Listing sessions out of a generated OpenClaw database, beside reading the file and counting the rows.
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::json;
use takeup_sqlite::rusqlite::Connection;

use super::{Contender, markdown, pair, release_program};

/// Arguments of `bench openclaw`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many sessions
    #[arg(long, default_value_t = 10_000)]
    sessions: usize,

    /// Kilobytes of each session's entry: what OpenClaw keeps of the prompt of every skill
    #[arg(long, default_value_t = 14)]
    entry: usize,

    /// Counted rounds
    #[arg(long, default_value_t = 11)]
    rounds: usize,
}

/// Measures.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let program = release_program()?;
    let scratch = tempfile::tempdir()?;
    let state = scratch.path().join("state");
    for name in ["here", "elsewhere"] {
        let made = Command::new("git")
            .args(["init", "-q"])
            .arg(scratch.path().join(name))
            .status()?;
        ensure!(made.success(), "git init failed");
    }
    let here = scratch.path().join("here").canonicalize()?;
    let elsewhere = scratch.path().join("elsewhere").canonicalize()?;
    let database = generate(&state, &here, args)?;
    let contender = |name: &str, program: &Path, folder: &Path, words: &[&str]| {
        let (program, folder) = (program.to_path_buf(), folder.to_path_buf());
        let (state, home) = (state.clone(), scratch.path().to_path_buf());
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Contender {
            name: name.to_owned(),
            make: Box::new(move || {
                let mut command = Command::new(&program);
                command
                    .args(&words)
                    .current_dir(&folder)
                    .env("HOME", &home)
                    .env("OPENCLAW_STATE_DIR", &state);
                command
            }),
        }
    };
    let list = ["sessions", "--agent", "openclaw", "--json"];
    let all = [&list[..], &["--limit", "0"]].concat();
    let contenders = [
        contender(
            "every byte read (cat)",
            Path::new("cat"),
            &here,
            &[&database],
        ),
        contender("git-takeup version", &program, &here, &["version"]),
        contender("sessions, the newest 30", &program, &here, &list),
        contender("sessions, all of them here", &program, &here, &all),
        contender(
            "sessions, all of them elsewhere",
            &program,
            &elsewhere,
            &all,
        ),
        contender(
            "sessions show ID",
            &program,
            &here,
            &["sessions", "show", "00000007-0000"],
        ),
    ];
    println!(
        "{} sessions with entries of {} KB\n\n{}",
        args.sessions,
        args.entry,
        markdown(&pair(&contenders, args.rounds)?)
    );
    Ok(())
}

/// Writes a database in the shape of 2026.9: of each twenty sessions one died in a call, the others ended.
#[expect(
    clippy::indexing_slicing,
    reason = "objects that are made here are indexed by name"
)]
fn generate(state: &Path, here: &Path, args: &Args) -> anyhow::Result<String> {
    let folder = state.join("agents/main/agent");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("openclaw-agent.sqlite");
    let mut db = Connection::open(&path)?;
    db.execute_batch(
        "create table session_nodes(session_key text primary key, current_session_id text,
           entry_json text, entry_valid integer, updated_at integer, status text,
           created_at integer, label text, display_name text, archived_at integer,
           parent_session_key text, spawned_by text);
         create table transcript_events(session_id text, seq integer, event_json text,
           created_at integer, event_zstd blob, event_utf8_bytes integer,
           primary key(session_id, seq));",
    )?;
    let filler = "a skill with a description and a location; ".repeat(args.entry * 1024 / 43);
    let call = json!([{"type": "toolCall", "id": "c", "name": "exec", "arguments": {"command": "cargo test"}}]);
    let transaction = db.transaction()?;
    for number in 0..args.sessions {
        let id = format!("{number:08}-0000");
        let died = number % 20 == 0;
        let status = if died { "running" } else { "done" };
        let mut entry = json!({"sessionId": id, "skillsSnapshot": {"prompt": filler},
            "activeWriterRunId": "run", "status": status});
        if !died {
            entry["lastRunId"] = json!("run");
        }
        transaction.execute(
            "insert into session_nodes(session_key, current_session_id, entry_json, entry_valid,
               updated_at, status, created_at) values (?1, ?2, ?3, 1, ?4, ?5, ?4)",
            (
                format!("agent:main:s{number}"),
                &id,
                entry.to_string(),
                1_777_600_000_000 + i64::try_from(number)?,
                status,
            ),
        )?;
        let message = |role: &str, content: serde_json::Value, stop: &str| {
            json!({"type": "message",
                "message": {"role": role, "content": content, "stopReason": stop}})
        };
        let mut events = vec![
            json!({"type": "session", "version": 4, "id": id, "cwd": here}),
            json!({"type": "model_change", "modelId": "m"}),
            message("user", json!(format!("Step {number} of the work")), ""),
            message("assistant", call.clone(), "toolUse"),
        ];
        if !died {
            let result = json!([{"type": "text", "text": "ok"}]);
            let mut answer = message("toolResult", result.clone(), "");
            answer["message"]["toolCallId"] = json!("c");
            events.push(answer);
            events.push(message("assistant", result, "stop"));
        }
        for (seq, event) in events.iter_mut().enumerate() {
            if seq > 0 {
                event["id"] = json!(format!("e{seq}"));
                event["parentId"] = json!(format!("e{}", seq - 1));
                event["timestamp"] = json!("2026-05-01T10:00:00.000Z");
            }
            transaction.execute(
                "insert into transcript_events(session_id, seq, event_json) values (?1, ?2, ?3)",
                (&id, i64::try_from(seq)?, event.to_string()),
            )?;
        }
    }
    transaction.commit()?;
    let path = path.to_str().context("the folder is not UTF-8")?;
    Ok(path.to_owned())
}
