//! The ledger: reading it, adding to it, and what finished tasks cost; beside the bare system calls and a bare JSON parser.
use std::convert::Infallible;
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use takeup_core::boundary::Boundary;
use takeup_core::fingerprint::{
    DEFINITION, Deviation, DeviationKind, Provenance, ProvenanceEvent, TreeRecord,
};
use takeup_core::identity::{Before, Identity, Note, PlaceRecord, Recorded, Task};
use takeup_core::ids::{
    AgentId, Fingerprint, Oid, RepositoryId, SessionId, SessionRef, TaskId, WorktreeId,
};
use takeup_core::ledger::{Actor, Change, Ledger, Transition};
use takeup_core::plan::Plan;
use takeup_core::redact::Masker;
use takeup_core::status::Status;
use takeup_core::time::{SystemClock, Time};

/// Arguments of `bench ledger`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Counted rounds
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Open tasks in the ledger
    #[arg(long, default_value_t = 50)]
    tasks: usize,
    /// Finished tasks in the archive
    #[arg(long, default_value_t = 5_000)]
    archived: usize,
    /// The folder to measure in, since flushing is what counts; a new one in it is used and removed
    #[arg(long, default_value = ".")]
    folder: std::path::PathBuf,
}

fn session() -> anyhow::Result<SessionRef> {
    Ok(SessionRef::new(
        AgentId::new("jcode")?,
        SessionId::new("session_fox_1777629600000")?,
    ))
}

fn recorded(deviations: usize) -> anyhow::Result<Recorded> {
    let oid = Oid::new("0123456789".repeat(4))?;
    Ok(Recorded {
        tree: TreeRecord {
            definition: DEFINITION,
            excluded: vec![".agent-context".to_owned()],
            fingerprint: Some(Fingerprint::new("0123456789".repeat(4))?),
            incomplete: None,
            head: Some(oid.clone()),
            branch: Some("main".to_owned()),
            index_tree: Some(oid.to_string()),
            operation: None,
            submodules: Vec::new(),
            stash: None,
            deviations: (0..deviations)
                .map(|number| Deviation {
                    path: format!("src/some/folder/file-{number}.rs"),
                    kind: DeviationKind::Modified,
                    staged: false,
                    mode: Some("100644".to_owned()),
                    oid: Some(oid.clone()),
                    is_new: false,
                })
                .collect(),
            deviations_left_out: 0,
        },
        provenance: Provenance {
            event: ProvenanceEvent::Save,
            at: Time::EPOCH,
            by: None,
            provisional: false,
            after: None,
        },
    })
}

fn start(name: &str, status: Status) -> anyhow::Result<Transition> {
    let task_id = TaskId::new(name)?;
    Ok(Transition {
        at: Time::EPOCH,
        actor: Actor {
            session: session()?,
            pid: 1,
        },
        operation: "start".to_owned(),
        changes: vec![
            Change::Task {
                task: Task {
                    task_id: task_id.clone(),
                    title: format!("The task {name}"),
                    boundary: Boundary::default(),
                    plan: Plan::default(),
                    created_at: Time::EPOCH,
                },
            },
            Change::Identity {
                identity: Box::new(Identity {
                    task_id: task_id.clone(),
                    session: session()?,
                    place: PlaceRecord {
                        repository_id: RepositoryId::new("r")?,
                        worktree_id: WorktreeId::new("w")?,
                        root: "/home/somebody/projects/project".to_owned(),
                        device: 1,
                        inode: 2,
                    },
                    status,
                    base: Some(recorded(3)?),
                    before: Before::default(),
                    latest: Some(recorded(10)?),
                    process: None,
                    closing: None,
                    open_effects: Vec::new(),
                    inherited_effects: Vec::new(),
                    resumed_from: None,
                    resumed_to: None,
                    closed_by: None,
                    created_at: Time::EPOCH,
                    updated_at: Time::EPOCH,
                    revision: 1,
                }),
            },
            Change::Note {
                task_id,
                note: Note {
                    at: Time::EPOCH,
                    by: session()?,
                    text: "a note of ordinary length, as people write them".to_owned(),
                },
            },
        ],
    })
}

fn put(ledger: &Ledger, transition: Transition) -> anyhow::Result<Duration> {
    ledger
        .transact(&SystemClock, Ledger::PATIENCE, |_| {
            Ok::<_, Infallible>((Some(transition), ()))
        })
        .map(|committed| committed.held)
        .map_err(|error| anyhow!("{error}"))
}

/// Times `work` over `rounds` and prints median, minimum and maximum. Returns the median.
fn time(
    name: &str,
    rounds: usize,
    mut work: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        let begun = Instant::now();
        work()?;
        if round > 0 {
            times.push(begun.elapsed());
        }
    }
    times.sort();
    let at = |place: usize| times.get(place).copied().unwrap_or_default();
    println!(
        "| {name} | {:.3} | {:.3} | {:.3} |",
        at(rounds / 2).as_secs_f64() * 1e3,
        at(0).as_secs_f64() * 1e3,
        at(rounds - 1).as_secs_f64() * 1e3
    );
    Ok(at(rounds / 2))
}

/// Measures in a folder of its own.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(&args.folder)?;
    let ledger = Ledger::at(folder.path().join("takeup"));
    for number in 0..args.tasks {
        put(&ledger, start(&format!("open-{number}"), Status::Dirty)?)?;
    }
    println!(
        "| {} open tasks | median ms | min | max |\n|---|---|---|---|",
        args.tasks
    );
    let read = time("read the ledger", args.rounds, || {
        ledger
            .read()
            .map(|_| ())
            .map_err(|error| anyhow!("{error}"))
    })?;
    let bare = time(
        "read the same files, parse them as any JSON",
        args.rounds,
        || {
            for name in ["state.json", "journal.jsonl"] {
                let text = std::fs::read(ledger.dir().join(name)).unwrap_or_default();
                for line in text
                    .split(|byte| *byte == b'\n')
                    .filter(|line| !line.is_empty())
                {
                    serde_json::from_slice::<serde_json::Value>(line)?;
                }
            }
            Ok(())
        },
    )?;
    let mut number = 0;
    let mut held = Vec::new();
    let append = time("add a record", args.rounds, || {
        number += 1;
        held.push(put(
            &ledger,
            start(&format!("open-{}", number % args.tasks), Status::Dirty)?,
        )?);
        Ok(())
    })?;
    let line = std::fs::read(ledger.dir().join("journal.jsonl"))
        .unwrap_or_default()
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::len)
        .max()
        .unwrap_or(4_000);
    let flush = time(
        "append as many bytes to a file and flush it",
        args.rounds,
        || {
            let mut file = File::options()
                .create(true)
                .append(true)
                .open(folder.path().join("bare"))?;
            file.write_all(&vec![b'x'; line])?;
            Ok(file.sync_data()?)
        },
    )?;
    held.sort();
    println!(
        "\nread: {:.2} times the bare parser",
        read.as_secs_f64() / bare.as_secs_f64()
    );
    println!(
        "add: {:.2} times the bare flush",
        append.as_secs_f64() / flush.as_secs_f64()
    );
    println!(
        "the lock was held for {:.3} ms in the median, {:.3} ms at the most",
        held.get(held.len() / 2)
            .copied()
            .unwrap_or_default()
            .as_secs_f64()
            * 1e3,
        held.last().copied().unwrap_or_default().as_secs_f64() * 1e3
    );
    archive(args, &ledger, read)?;
    redact(args)
}

fn archive(args: &Args, ledger: &Ledger, before: Duration) -> anyhow::Result<()> {
    let batch = Transition {
        changes: Vec::new(),
        ..start("x", Status::Completed)?
    };
    for chunk in (0..args.archived).collect::<Vec<_>>().chunks(500) {
        let mut batch = batch.clone();
        for number in chunk {
            batch
                .changes
                .extend(start(&format!("done-{number}"), Status::Completed)?.changes);
        }
        put(ledger, batch)?;
        let actor = Actor {
            session: session()?,
            pid: 1,
        };
        ledger.archive(&SystemClock, Ledger::PATIENCE, &actor, |_| true)?;
    }
    // A few more records, so that the journal holds none of the batches.
    for number in 0..64 {
        put(
            ledger,
            start(&format!("open-{}", number % args.tasks), Status::Dirty)?,
        )?;
    }
    println!(
        "\n| {} finished tasks in the archive | median ms | min | max |\n|---|---|---|---|",
        args.archived
    );
    let after = time("read the ledger", args.rounds, || {
        ledger
            .read()
            .map(|_| ())
            .map_err(|error| anyhow!("{error}"))
    })?;
    println!(
        "\nread: {:.2} times as without them",
        after.as_secs_f64() / before.as_secs_f64()
    );
    Ok(())
}

/// Masks ten megabytes of three kinds, beside a search for one word in them.
fn redact(args: &Args) -> anyhow::Result<()> {
    const SIZE: usize = 10 << 20;
    let rounds = (args.rounds / 40).max(3);
    let log = "2026-03-04T05:06:07Z INFO request 0123456789abcdef from 10.0.0.1 took 12 ms, commit 89abcdef\n";
    let secret = format!(
        "export API_{}={} # and https://user:{}@host/\n",
        "TOKEN",
        "a1".repeat(12),
        "pw"
    );
    println!("\n| 10 MB of text | median ms | min | max |\n|---|---|---|---|");
    let text = log.repeat(SIZE / log.len());
    time("search a log for a word", rounds, || {
        std::hint::black_box(text.contains("no such word"));
        Ok(())
    })?;
    let masker = Masker::default();
    for (name, piece) in [
        ("mask a log without secrets", log),
        ("mask lines of secrets", secret.as_str()),
        ("mask what is made to be slow", "token=$http://a:1/"),
    ] {
        let text = piece.repeat(SIZE / piece.len());
        time(name, rounds, || {
            std::hint::black_box(masker.text(&text).count);
            Ok(())
        })?;
    }
    let command = "cargo test --workspace -- --nocapture";
    time("mask a short command", args.rounds, || {
        std::hint::black_box(masker.text(command).count);
        Ok(())
    })?;
    Ok(())
}
