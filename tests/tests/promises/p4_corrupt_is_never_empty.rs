//! Promise 4: corrupt is never empty.
//!
//! Here: every file of ours, in the ledger and in the user's state folder, damaged in every way that disks and people know;
//! each damage is told by the path, what is healthy goes on, nothing ends in a panic or not at all, and what was left on other
//! content is never a yes. Every byte of the ledger's frames: `ledger/damage.rs` and the tests of `takeup_core::ledger`; the
//! agents' stores: the tests of the adapters; readers by themselves, with random bytes: `readers.rs`.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use takeup_core::ledger::Ledger;

use super::Dice;
use super::world::World;

/// A way in which a file is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// Bits are turned.
    Flipped,
    /// The end is gone.
    Cut,
    /// As long as before, and nothing in it.
    Zeroed,
    /// Nothing in it at all.
    Emptied,
    /// The content of another file of ours.
    Swapped,
    /// A folder in its place.
    Folder,
    /// A pipe in its place, which nobody writes to.
    Pipe,
    /// Bytes that are no text.
    Noise,
}

impl Damage {
    const ALL: [Self; 8] = [
        Self::Flipped,
        Self::Cut,
        Self::Zeroed,
        Self::Emptied,
        Self::Swapped,
        Self::Folder,
        Self::Pipe,
        Self::Noise,
    ];

    fn does(self, path: &Path, other: &Path, dice: &mut Dice) {
        let bytes = std::fs::read(path).unwrap();
        std::fs::remove_file(path).unwrap();
        let size = bytes.len() as u64;
        let new = match self {
            Self::Flipped => {
                let mut bytes = bytes;
                for _ in 0..3 {
                    let at = usize::try_from(dice.roll(size.max(1))).unwrap();
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << dice.roll(8);
                    }
                }
                bytes
            }
            Self::Cut => bytes[..bytes.len() * 2 / 3].to_vec(),
            Self::Zeroed => vec![0; bytes.len()],
            Self::Emptied => Vec::new(),
            Self::Swapped => std::fs::read(other).unwrap(),
            Self::Noise => bytes.iter().map(|_| dice.roll(256) as u8).collect(),
            Self::Folder => return std::fs::create_dir_all(path).unwrap(),
            Self::Pipe => {
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                return rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
            }
        };
        std::fs::write(path, new).unwrap();
    }

    /// A change of bytes that can make another sound text of it, where no sum stands beside.
    const fn may_be_sound(self) -> bool {
        matches!(self, Self::Flipped)
    }
}

/// What a file is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A record with a sum.
    Sealed,
    /// A record without one.
    Record,
    /// What can be made anew, or holds nothing that is asked for.
    Aid,
}

fn role(name: &str) -> Role {
    let last = name.rsplit('/').next().unwrap();
    match last {
        "journal.jsonl" | "state.json" | "state.old.json" | "journal.old.jsonl" | "done.json" => {
            Role::Sealed
        }
        "repository-id" | "worktree-id" | "places.json" | "manifest.json" => Role::Record,
        _ if last.ends_with(".status.json") => Role::Record,
        _ => Role::Aid,
    }
}

/// The files below a folder, by their path below it.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_path_buf()];
    while let Some(next) = todo.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.is_file() {
                found.push(
                    path.strip_prefix(folder)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
    }
    found.sort();
    found
}

/// A world with everything of ours in it, and two generations of the ledger.
fn full() -> World {
    let world = World::lived();
    world.run(&["hooks", "install"]).exits(0);
    world
        .run(&["agents", "install", "claude-code", "--user"])
        .exits(0);
    let ledger = Ledger::at(world.ours());
    for number in 0..150 {
        let note = takeup_tests::ledger::note("held", &format!("note {number}"));
        takeup_tests::ledger::put(&ledger, note).unwrap();
    }
    world
}

/// Asks, and returns all that was said and the answer where it is one.
fn ask(world: &World, words: &[&str], context: &str) -> (String, Option<Value>) {
    let ran = world
        .bounded(world.program().args(words))
        .ended_well(format_args!("{context}: {words:?}"));
    let answer = serde_json::from_str(&ran.stdout).ok();
    (ran.stdout + &ran.stderr, answer)
}

/// The tasks of an answer with session and verdict.
fn tasks(answer: &Value) -> BTreeSet<(String, String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    answer["data"]["candidates"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            (
                word(&one["identity"]["taskId"]),
                word(&one["identity"]["sessionId"]),
                word(&one["verdict"]),
            )
        })
        .collect()
}

/// Damages each file below `top` in each way; `asks` are the questions that such a file has to do with.
fn each(world: &World, top: &Path, asks: impl Fn(&str) -> Vec<&'static [&'static str]>) {
    let healthy = {
        let (_, answer) = ask(world, &["inspect", "--json"], "healthy");
        tasks(&answer.unwrap())
    };
    assert!(healthy.len() >= 3, "{healthy:?}");
    let all = files(top);
    let aside = world.scratch.path().join("aside");
    let mut dice = Dice(4);
    for name in &all {
        let path = top.join(name);
        let others: Vec<PathBuf> = all
            .iter()
            .filter(|other| {
                // The snapshot is a sound older generation of itself: a writer may put it there, too.
                let sound = name == "state.old.json" && *other == "state.json";
                *other != name && !sound && std::fs::metadata(top.join(other)).unwrap().len() > 40
            })
            .map(|other| top.join(other))
            .collect();
        // Each damage once, and what another file holds with each other file.
        let swaps = others.iter().map(|other| (Damage::Swapped, other));
        let damages = Damage::ALL.into_iter().zip(std::iter::repeat(&others[0]));
        for (damage, other) in damages.chain(swaps.skip(1)) {
            let context = format!("{name} {damage:?} with {}", other.display());
            std::fs::copy(&path, &aside).unwrap();
            let before = std::fs::read(&path).unwrap();
            damage.does(&path, other, &mut dice);
            let changed = !path.is_file() || std::fs::read(&path).unwrap() != before;
            let file = path.file_name().unwrap().to_str().unwrap();
            let mut told = false;
            for words in asks(name) {
                let (said, answer) = ask(world, words, &context);
                // An older snapshot is sound by itself: what is told is that the journal does not follow it.
                let older = name == "state.json" && other.ends_with("state.old.json");
                told |= said.contains(file) || (older && said.contains("does not follow"));
                if words[0] == "inspect" {
                    let answer = answer.unwrap_or_else(|| panic!("{context}: {said}"));
                    let found = tasks(&answer);
                    assert!(
                        !found.iter().any(|(task, _, verdict)| task == "stale"
                            && verdict == "resume-verification"),
                        "{context}: a wrong yes: {found:?}"
                    );
                    let gone = healthy.iter().any(|(task, session, _)| {
                        !found.iter().any(|one| one.0 == *task && one.1 == *session)
                    });
                    assert!(
                        !gone || said.contains(file),
                        "{context}: {found:?} is all, and nothing is said: {said}"
                    );
                }
            }
            let must = match role(name) {
                Role::Sealed => changed,
                Role::Record => changed && !damage.may_be_sound(),
                Role::Aid => false,
            };
            assert!(told || !must, "{context}: nobody says a word of it");
            if path.is_dir() {
                std::fs::remove_dir(&path).unwrap();
            } else {
                std::fs::remove_file(&path).unwrap();
            }
            std::fs::rename(&aside, &path).unwrap();
        }
    }
}

const INSPECT: &[&str] = &["inspect", "--json"];
const DOCTOR: &[&str] = &["doctor", "--json"];

#[test]
fn damage_in_the_ledger_is_told_and_the_healthy_goes_on() {
    let world = full();
    each(&world, &world.ours(), |name| match role(name) {
        _ if name.starts_with("archive/") => vec![&["show", "done", "--json"], DOCTOR],
        Role::Sealed | Role::Record => vec![INSPECT, DOCTOR],
        Role::Aid => vec![INSPECT],
    });
}

#[test]
fn damage_in_the_state_folder_is_told_and_the_healthy_goes_on() {
    let world = full();
    world
        .run(&["bg", "run", "--name", "other", "--", "true"])
        .exits(0);
    world.run(&["bg", "wait", "other"]).exits(0);
    each(&world, &world.state(), |name| {
        if name.starts_with("tasks/") {
            vec![&["bg", "list", "--json"], &["bg", "output", "build"]]
        } else if name.starts_with("installed/") {
            vec![
                &["agents", "status", "claude-code", "--user", "--json"],
                DOCTOR,
            ]
        } else {
            vec![&["--all", "--json"], DOCTOR]
        }
    });
}

/// Records that can still be written are written, beside damage, and are read back.
#[test]
fn work_goes_on_beside_a_damaged_record() {
    for name in [
        "journal.jsonl",
        "state.json",
        "state.old.json",
        "archive/done.json",
    ] {
        for damage in [Damage::Flipped, Damage::Cut, Damage::Zeroed, Damage::Noise] {
            let world = full();
            let context = format!("{name} {damage:?}");
            let other = world.ours().join("repository-id");
            damage.does(&world.ours().join(name), &other, &mut Dice(7));
            let (said, _) = ask(
                &world,
                &[
                    "start",
                    "afterwards",
                    "--session",
                    "a1",
                    "--no-checks",
                    "--json",
                ],
                &context,
            );
            let (found, _) = ask(&world, &["inspect", "--json"], &context);
            assert!(found.contains("afterwards"), "{context}: {said}\n{found}");
        }
    }
}

/// A record of ours in the place of another is sound by its sum, and of a kind that is not expected there.
#[test]
fn a_record_of_another_kind_among_the_spare_ones_is_told() {
    let world = full();
    for (name, other) in [
        ("journal.old.jsonl", "state.json"),
        ("journal.old.jsonl", "archive/done.json"),
        ("state.old.json", "journal.jsonl"),
        ("state.old.json", "archive/done.json"),
    ] {
        let path = world.ours().join(name);
        let before = std::fs::read(&path).unwrap();
        std::fs::copy(world.ours().join(other), &path).unwrap();
        let (said, _) = ask(&world, DOCTOR, name);
        assert!(said.contains(name), "{other} as {name}: {said}");
        std::fs::write(&path, before).unwrap();
    }
}
