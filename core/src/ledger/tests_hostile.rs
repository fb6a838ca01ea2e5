//! Every record mutated, files mutated at random, and random histories against a small model.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::tests::{CLOCK, actor, id, kinds, note, noted, notes, overwrite, put, start, try_put};
use super::*;
use crate::status::Status;

/// A folder where flushing is cheap, if there is one.
fn fast_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        if item.file_type().unwrap().is_dir() {
            copy(&item.path(), &to.join(item.file_name()));
        } else {
            fs::copy(item.path(), to.join(item.file_name())).unwrap();
        }
    }
}

#[test]
fn every_byte_of_every_record_is_guarded() {
    let folder = fast_folder();
    let ledger = noted(folder.path(), 20);
    put(&ledger, start("done", Status::Completed));
    ledger
        .archive(&CLOCK, Ledger::PATIENCE, &actor(), |_| true)
        .unwrap();
    for number in 21..26 {
        put(&ledger, note("t", &format!("{number}")));
    }
    let whole = ledger.read().unwrap();
    assert_eq!(ledger.examine().unwrap(), []);
    let files = [
        "journal.jsonl",
        "state.json",
        "journal.old.jsonl",
        "state.old.json",
        "archive/done.json",
    ];
    let mut tried = 0;
    for name in files {
        let path = ledger.dir().join(name);
        let bytes = fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(3) {
            let mut damaged = bytes.clone();
            // One bit, another one at each place, and a zero now and then.
            damaged[at] = if at % 5 == 0 {
                0
            } else {
                bytes[at] ^ (1 << (at % 8))
            };
            overwrite(&path, &damaged);
            let context = format!("{name}, byte {at}");
            // A change behind the last record that makes no other text of it is none.
            assert!(!ledger.examine().unwrap().is_empty(), "{context}");
            let view = ledger.read().unwrap();
            let (kept, all) = (notes(&view, "t"), notes(&whole, "t"));
            let lost: Vec<&String> = all.iter().filter(|text| !kept.contains(text)).collect();
            let most = usize::from(name == "journal.jsonl") * 2;
            assert!(lost.len() <= most, "{context}: {lost:?}");
            assert!(
                kept.iter().all(|text| all.contains(text)),
                "{context}: invented"
            );
            assert!(
                kept.is_sorted_by_key(|text| text.parse::<u32>().unwrap()),
                "{context}: out of order"
            );
            if name == "state.json" {
                assert_eq!(view.state, whole.state, "{context}");
            }
            tried += 1;
        }
        overwrite(&path, &bytes);
    }
    assert!(tried > 1_500, "{tried}");
    assert_eq!(ledger.read().unwrap(), whole);
}

/// A small generator: the same mutations in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % most.max(1)
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        let length = self.below(200).min(bytes.len().saturating_sub(at));
        match self.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + length)),
            2 => bytes[at..at + length].fill(0),
            3 => {
                let part = bytes[at..at + length].to_vec();
                let to = self.below(bytes.len());
                bytes.splice(to..to, part);
            }
            4 => {
                let junk: Vec<u8> = (0..length)
                    .map(|_| u8::try_from(self.below(256)).unwrap())
                    .collect();
                bytes.splice(at..at, junk);
            }
            5 => bytes.splice(at..at, b"\n".iter().copied()).for_each(drop),
            6 => {
                let pieces: [&[u8]; 6] = [
                    b"{\"v\":",
                    b",\"sum\":\"",
                    b"18446744073709551616",
                    &[b'['; 300],
                    b"{\"v\":1,\"seq\":-1}\n",
                    b"\xff\xfe",
                ];
                let piece = pieces[self.below(pieces.len())];
                bytes.splice(at..at, piece.iter().copied()).for_each(drop);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = byte.wrapping_add(1);
                }
            }
        }
    }
}

#[test]
fn files_mutated_at_random_end_in_no_panic_and_invent_nothing() {
    let folder = fast_folder();
    let base = folder.path().join("base");
    let ledger = noted(&base, 20);
    put(&ledger, start("done", Status::Completed));
    ledger
        .archive(&CLOCK, Ledger::PATIENCE, &actor(), |_| true)
        .unwrap();
    for number in 21..26 {
        put(&ledger, note("t", &format!("{number}")));
    }
    let all = notes(&ledger.read().unwrap(), "t");
    let names = [
        "journal.jsonl",
        "state.json",
        "journal.old.jsonl",
        "state.old.json",
        "archive/done.json",
    ];
    let mut dice = Dice(0x0070_6974_6b61);
    for round in 0..600 {
        let scratch = folder.path().join("scratch");
        copy(ledger.dir(), &scratch);
        for _ in 0..=dice.below(3) {
            let path = scratch.join(names[dice.below(names.len())]);
            let mut bytes = fs::read(&path).unwrap();
            for _ in 0..=dice.below(3) {
                dice.mutate(&mut bytes);
            }
            overwrite(&path, &bytes);
        }
        let mutated = Ledger::at(&scratch);
        let view = mutated.read().unwrap();
        let kept = view
            .state
            .tasks
            .get(&id("t"))
            .map(|entry| {
                entry
                    .notes
                    .iter()
                    .map(|note| note.text.clone())
                    .collect::<Vec<_>>()
            })
            .unwrap_or_default();
        assert!(
            kept.iter().all(|text| all.contains(text)),
            "round {round}: {kept:?}"
        );
        assert!(
            kept.windows(2).all(|pair| pair[0] != pair[1]),
            "round {round}: {kept:?}"
        );
        drop(mutated.examine().unwrap());
        drop(mutated.read_archive(&id("done")));
        // Whatever it is, a record can be added, and is there.
        put(&mutated, start("t", Status::Active));
        for number in 0..9 {
            put(&mutated, note("t", &format!("new {number}")));
        }
        let after = notes(&mutated.read().unwrap(), "t");
        assert_eq!(after.len(), kept.len() + 9, "round {round}");
        fs::remove_dir_all(&scratch).unwrap();
    }
}

/// What is done to a ledger in a random history.
#[derive(Clone, Debug)]
enum Act {
    Start(u8),
    Note(u8),
    Finish(u8),
    Archive,
    Refuse,
    /// Half a record at the end, as after a crash.
    Tear(u8),
    /// The newline of the last record is gone.
    Unterminate,
    ZeroSnapshot,
    DropSnapshot,
    /// As after a new snapshot that was stopped before its last step.
    StopSnapshot,
    DropLock,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(
        prop_oneof![
            3 => (0_u8..4).prop_map(Act::Start),
            12 => (0_u8..4).prop_map(Act::Note),
            2 => (0_u8..4).prop_map(Act::Finish),
            1 => Just(Act::Archive),
            1 => Just(Act::Refuse),
            1 => (1_u8..200).prop_map(Act::Tear),
            1 => Just(Act::Unterminate),
            1 => Just(Act::ZeroSnapshot),
            1 => Just(Act::DropSnapshot),
            1 => Just(Act::StopSnapshot),
            1 => Just(Act::DropLock),
        ],
        1..60,
    )
}

/// The model: notes of the tasks that are there, and whether they are finished; the archived ones.
#[derive(Debug, Default, PartialEq, Eq)]
struct Model {
    tasks: BTreeMap<String, (bool, Vec<String>)>,
    archived: BTreeMap<String, Vec<String>>,
}

impl Model {
    fn of(ledger: &Ledger) -> Self {
        let view = ledger.read().unwrap();
        let texts = |entry: &TaskEntry| {
            entry
                .notes
                .iter()
                .map(|note| note.text.clone())
                .collect::<Vec<_>>()
        };
        Self {
            tasks: view
                .state
                .tasks
                .iter()
                .map(|(id, entry)| (id.to_string(), (entry.is_closed(), texts(entry))))
                .collect(),
            archived: view
                .state
                .archived
                .iter()
                .map(|id| {
                    (
                        id.to_string(),
                        texts(&ledger.read_archive(id).unwrap().unwrap()),
                    )
                })
                .collect(),
        }
    }
}

fn edit(path: &PathBuf, change: impl FnOnce(&mut Vec<u8>)) {
    if let Ok(mut bytes) = fs::read(path) {
        change(&mut bytes);
        overwrite(path, &bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_random_history_is_what_the_model_says(acts in acts()) {
        let folder = fast_folder();
        let ledger = Ledger::at(folder.path().join("takeup"));
        let journal = ledger.dir().join("journal.jsonl");
        let snapshot = ledger.dir().join("state.json");
        let mut model = Model::default();
        let mut last = 0;
        let mut snapshot_is_damaged = false;
        for (number, act) in acts.into_iter().enumerate() {
            let text = number.to_string();
            match act {
                Act::Start(task) => {
                    let name = format!("t{task}");
                    if !model.tasks.contains_key(&name) && !model.archived.contains_key(&name) {
                        put(&ledger, start(&name, Status::Active));
                        model.tasks.insert(name, (false, Vec::new()));
                    }
                }
                Act::Note(task) => {
                    let name = format!("t{task}");
                    put(&ledger, note(&name, &text));
                    if let Some((_, notes)) = model.tasks.get_mut(&name) {
                        notes.push(text);
                    }
                }
                Act::Finish(task) => {
                    let name = format!("t{task}");
                    if let Some((closed, _)) = model.tasks.get_mut(&name) {
                        put(&ledger, start(&name, Status::Completed));
                        *closed = true;
                    }
                }
                Act::Archive => {
                    ledger.archive(&CLOCK, Ledger::PATIENCE, &actor(), |_| true).unwrap();
                    let closed: Vec<String> = model
                        .tasks
                        .iter()
                        .filter(|(_, (closed, _))| *closed)
                        .map(|(name, _)| name.clone())
                        .collect();
                    for name in closed {
                        let (_, notes) = model.tasks.remove(&name).unwrap();
                        model.archived.insert(name, notes);
                    }
                }
                Act::Refuse => {
                    let refused = ledger.transact(&CLOCK, Ledger::PATIENCE, |_| {
                        Err::<(Option<Transition>, ()), _>("no")
                    });
                    prop_assert!(matches!(refused, Err(TransactError::Decision("no"))));
                }
                Act::Tear(length) => edit(&journal, |bytes| {
                    if bytes.last() == Some(&b'\n') {
                        let part = bytes[..bytes.len().min(usize::from(length))].to_vec();
                        bytes.extend(part.split(|byte| *byte == b'\n').next().unwrap());
                    }
                }),
                Act::Unterminate => edit(&journal, |bytes| {
                    if bytes.last() == Some(&b'\n') {
                        bytes.pop();
                    }
                }),
                Act::ZeroSnapshot => {
                    if !snapshot_is_damaged {
                        edit(&snapshot, |bytes| bytes.fill(0));
                    }
                    snapshot_is_damaged = snapshot.exists();
                }
                Act::DropSnapshot => drop(fs::remove_file(&snapshot)),
                Act::StopSnapshot => {
                    let old = ledger.dir().join("journal.old.jsonl");
                    if !journal.exists() && old.exists() {
                        fs::copy(&old, &journal).unwrap();
                        fs::remove_file(&old).unwrap();
                    }
                }
                Act::DropLock => drop(fs::remove_file(ledger.lock_path())),
            }
            let view = ledger.read().unwrap();
            prop_assert!(view.seq >= last);
            last = view.seq;
            let known = [IssueKind::Torn, IssueKind::Zeroed];
            prop_assert!(kinds(&view).iter().all(|kind| known.contains(kind)), "{:?}", view.issues);
            prop_assert_eq!(&Model::of(&ledger), &model);
        }
        // All that was put aside is still there, and the ledger goes on.
        prop_assert!(try_put(&ledger, note("t0", "end")).is_ok());
    }
}
