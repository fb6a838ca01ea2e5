//! Files that change while they are read, damage of every kind, and what is never opened.
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use takeup_core::agent::{Agent as _, SessionQuery};
use takeup_core::env::Env;
use takeup_core::time::FixedClock;

use crate::Jcode;
use crate::home::{Home, Key, Part};
use crate::list::{Depth, list};
use crate::load::load;
use crate::processes::fake::Fake;
use crate::vectors::{expected, fixture, id};

pub(crate) fn put(path: &Path, bytes: &[u8]) {
    takeup_core::files::write_atomic(path, bytes, 0o600).unwrap();
}

/// A copy of the vectors that a test may spoil.
fn copied() -> (tempfile::TempDir, Home) {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &target);
            } else {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture("home"), folder.path());
    let home = Home::at(folder.path());
    (folder, home)
}

fn jcode() -> Jcode {
    let now = "2026-05-02T08:00:00Z".parse().unwrap();
    Jcode::with(Fake::default(), FixedClock(now))
}

fn words() -> Vec<String> {
    let names = expected("names.json");
    names["sessions"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect()
}

/// A small generator, so that a failure can be repeated by its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most.max(1) as u64).unwrap()
    }
}

/// Spoils bytes in one of the ways files are spoilt.
fn spoil(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => {
            let end = (at + random.below(64)).min(bytes.len());
            bytes[at..end].fill(0);
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        3 => {
            let end = (at + random.below(200)).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        4 => {
            let end = (at + random.below(200)).min(bytes.len());
            bytes.drain(at..end);
        }
        5 => bytes.extend(std::iter::repeat_n(0, random.below(4096))),
        6 => bytes.insert(at, b'\n'),
        _ => bytes.insert(at, [0xe4, 0xff, b'"', b'{', b'\\'][random.below(5)]),
    }
}

/// Spoilt files never end in a panic or a hang, and a message whose bytes are still whole on a line of a journal, or in a
/// snapshot that is still whole, is never lost.
#[test]
fn no_damage_panics_or_hides_a_message_that_is_still_whole() {
    let (_folder, home) = copied();
    let keys: Vec<Key> = words().iter().map(|word| id(word)).collect();
    let mut random = Random(0x5eed_0000_0000_0007);
    let mut damaged = 0;
    for round in 0..2_000 {
        let key = &keys[random.below(keys.len())];
        let parts = [Part::Snapshot(key), Part::Journal(key), Part::Backup(key)];
        let part = parts[random.below(parts.len())];
        let path = home.path(part);
        let Ok(original) = std::fs::read(&path) else {
            continue;
        };
        if original.is_empty() {
            continue;
        }
        let mut bytes = original.clone();
        for _ in 0..=random.below(3) {
            if !bytes.is_empty() {
                spoil(&mut bytes, &mut random);
            }
        }
        put_fast(&path, &bytes);
        let loaded = load(&home, key).ok().flatten();
        damaged += usize::from(
            loaded
                .as_ref()
                .is_some_and(|loaded| !loaded.issues.is_empty()),
        );
        for wanted in readable(&home, key) {
            let found = loaded
                .as_ref()
                .is_some_and(|loaded| loaded.messages.iter().any(|message| message.raw == wanted));
            assert!(found, "round {round}, {}: lost {wanted}", path.display());
        }
        put_fast(&path, &original);
    }
    assert!(damaged > 500, "the damage was noticed {damaged} times");
}

#[expect(
    clippy::disallowed_methods,
    reason = "thousands of scratch files need no durability"
)]
fn put_fast(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}

/// What can be read without any cleverness: the messages of a snapshot that parses, else of a backup that does, and of
/// every journal line that parses; by their first appearance, so that none is wanted twice.
fn readable(home: &Home, key: &Key) -> Vec<String> {
    let parse = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    let texts = |bytes: &[u8], list: &str| -> Vec<(String, String)> {
        // The bytes of each message as they stand there.
        #[derive(serde::Deserialize)]
        struct Object<'a> {
            #[serde(borrow, default)]
            messages: Vec<&'a serde_json::value::RawValue>,
            #[serde(borrow, default)]
            append_messages: Vec<&'a serde_json::value::RawValue>,
        }
        let Ok(object) = serde_json::from_slice::<Object<'_>>(bytes) else {
            return Vec::new();
        };
        let list = if list == "messages" {
            object.messages
        } else {
            object.append_messages
        };
        list.into_iter()
            .filter_map(|raw| {
                let value = parse(raw.get().as_bytes())?;
                let name = value.as_object()?.get("id").and_then(|id| id.as_str());
                Some((
                    name.unwrap_or_else(|| raw.get()).to_owned(),
                    raw.get().to_owned(),
                ))
            })
            .collect()
    };
    let read = |part: Part<'_>| std::fs::read(home.path(part)).unwrap_or_default();
    let snapshot = read(Part::Snapshot(key));
    let mut all = if parse(&snapshot).is_some() {
        texts(&snapshot, "messages")
    } else {
        texts(&read(Part::Backup(key)), "messages")
    };
    for line in read(Part::Journal(key)).split(|byte| *byte == b'\n') {
        if parse(line).is_some_and(|line| line["meta"].is_object()) {
            all.extend(texts(line, "append_messages"));
        }
    }
    let mut seen = BTreeSet::new();
    all.into_iter()
        .filter(|(name, _)| seen.insert(name.clone()))
        .map(|(_, raw)| raw)
        .collect()
}

/// The list out of heads and tails says what the whole files say.
#[test]
fn heads_and_tails_agree_with_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    std::fs::create_dir_all(folder.path().join("sessions")).unwrap();
    let mut random = Random(11);
    let long =
        "words of a longer answer, \\\"quoted\\\" and },{\\\"id\\\": or ],\\\"status\\\" in it; ";
    for number in 0..60_usize {
        let key = Key::new(&format!("session_fox_17776000{number:05}_{number:016x}")).unwrap();
        let messages: Vec<String> = (0..20 + random.below(60))
            .map(|index| {
                let text = long.repeat(1 + random.below(if number % 9 == 0 { 200 } else { 12 }));
                let (role, block) = match index % 4 {
                    0 => ("user", format!(r#"{{"type":"text","text":"{index} {text}"}}"#)),
                    1 => ("assistant", format!(r#"{{"type":"tool_use","id":"c{index}","name":"bash","input":{{"list":[{{"id":"n","role":"user","content":[]}}],"command":"{text}"}}}}"#)),
                    2 => ("user", format!(r#"{{"type":"tool_result","tool_use_id":"c{}","content":"{text}"}}"#, index - 1)),
                    _ => ("assistant", format!(r#"{{"type":"text","text":"{text}"}}"#)),
                };
                format!(r#"{{"id":"m{index}","role":"{role}","content":[{block}],"timestamp":"2026-05-01T10:00:00.5Z"}}"#)
            })
            .collect();
        let status = [
            "\"Active\"",
            "\"Closed\"",
            "{\"Crashed\":{\"message\":\"x],\\\"y\"}}",
        ][number % 3];
        let environments =
            vec![r#"{"captured_at":"x","a":[],"b":"}],"}"#; random.below(9)].join(",");
        let text = format!(
            r#"{{"id":"{}","parent_id":null,"title":"t],\"{number}","created_at":"2026-05-01T10:00:00Z","updated_at":"2026-05-01T10:{number:02}:00Z","messages":[{}],"working_dir":"/repo","status":{status},"last_pid":7,"is_debug":false,"saved":false,"env_snapshots":[{environments}],"replay_events":[{{"l":[]}}]}}"#,
            key.as_str(),
            messages.join(",")
        );
        put(&home.path(Part::Snapshot(&key)), text.as_bytes());
        if number % 4 == 0 {
            let line = |index: usize, role: &str, block: &str| {
                format!(
                    r#"{{"meta":{{"title":"later","updated_at":"2026-05-01T11:{number:02}:{index:02}Z","is_canary":false,"status":"Active","is_debug":false,"saved":false,"working_dir":"/repo"}},"append_messages":[{{"id":"j{index}","role":"{role}","content":[{block}]}}]}}"#
                )
            };
            let mut journal = Vec::new();
            for index in 0..random.below(40) {
                let call = format!(
                    r#"{{"type":"tool_use","id":"jc{index}","name":"bash","input":{{"command":"{long}"}}}}"#
                );
                let result = format!(
                    r#"{{"type":"tool_result","tool_use_id":"jc{index}","content":"{long}"}}"#
                );
                journal.push(line(2 * index, "assistant", &call));
                if index % 5 != 4 {
                    journal.push(line(2 * index + 1, "user", &result));
                }
            }
            put(
                &home.path(Part::Journal(&key)),
                (journal.join("\n") + "\n").as_bytes(),
            );
        }
    }
    let listing = list(&home);
    assert!(listing.issues.is_empty());
    let mut light = 0;
    let mut settled = 0;
    for brief in &listing.briefs {
        let whole = load(&home, &brief.key).unwrap().unwrap();
        let tail = listing.names.deepen(&home, brief, Depth::Tail).unwrap();
        let tail = tail.as_ref().unwrap_or(brief);
        light += usize::from(brief.depth == Depth::Fields && tail.depth == Depth::Tail);
        for brief in [brief, tail] {
            let fields = |meta: &crate::wire::Meta| {
                format!(
                    "{:?}",
                    (
                        &meta.title,
                        meta.updated_at,
                        &meta.status,
                        meta.last_pid,
                        &meta.working_dir
                    )
                )
            };
            assert_eq!(fields(&brief.meta), fields(&whole.meta), "{:?}", brief.key);
            let last = whole.messages.last().unwrap();
            let by_model = last.role == "assistant" && !last.raw.contains("\"tool_use\"");
            assert!(!brief.settled || by_model, "{:?}", brief.key);
        }
        settled += usize::from(brief.depth == Depth::Fields && brief.settled);
        let open = crate::calls::open_calls(&whole.messages);
        let newest = |calls: &[crate::calls::OpenCall]| calls.last().cloned();
        assert_eq!(newest(&tail.open), newest(&open), "{:?}", brief.key);
    }
    assert!(light > 30, "head and tail were enough for {light}");
    assert!(settled > 5, "the last word was seen in {settled}");
}

#[test]
fn a_journal_that_grows_and_a_snapshot_that_is_replaced_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    std::fs::create_dir_all(folder.path().join("sessions")).unwrap();
    let key = Key::new("session_fox_1777629600000_0000000000000000").unwrap();
    let message = |number: usize| {
        format!(
            r#"{{"id":"m{number}","role":"user","content":[{{"type":"text","text":"{number}"}}]}}"#
        )
    };
    let snapshot = |count: usize| {
        let messages: Vec<String> = (0..count).map(message).collect();
        format!(
            r#"{{"id":"{}","created_at":"2026-05-01T10:00:00Z","updated_at":"2026-05-01T10:00:00.{count:09}Z","messages":[{}],"status":"Active","last_pid":7}}"#,
            key.as_str(),
            messages.join(",")
        )
    };
    let path = home.path(Part::Snapshot(&key));
    let journal = home.path(Part::Journal(&key));
    put_fast(&path, snapshot(1).as_bytes());
    let written = std::sync::atomic::AtomicUsize::new(1);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write as _;
            for number in 1..600 {
                if number % 7 == 0 {
                    // As jcode does: a temporary file, a rename, then the journal goes.
                    let temporary = path.with_extension("tmp.1.1");
                    put_fast(&temporary, snapshot(number + 1).as_bytes());
                    #[expect(clippy::disallowed_methods, reason = "the writer under test")]
                    std::fs::rename(&temporary, &path).unwrap();
                    let _gone = std::fs::remove_file(&journal);
                } else {
                    let line = format!(
                        "{{\"meta\":{{\"updated_at\":\"2026-05-01T10:00:00.{:09}Z\",\"is_canary\":false,\"status\":\"Active\",\"is_debug\":false,\"saved\":false}},\"append_messages\":[{}]}}\n",
                        number + 1,
                        message(number)
                    );
                    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&journal).unwrap();
                    file.write_all(line.as_bytes()).unwrap();
                }
                written.store(number + 1, Ordering::SeqCst);
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut looks = 0;
        loop {
            let last = done.load(Ordering::SeqCst);
            let before = written.load(Ordering::SeqCst);
            let loaded = load(&home, &key).unwrap().unwrap();
            let ids: Vec<&str> = loaded
                .messages
                .iter()
                .filter_map(|m| m.id.as_deref())
                .collect();
            assert!(ids.len() >= before, "{} of {before} are there", ids.len());
            for (number, id) in ids.iter().enumerate() {
                assert_eq!(*id, format!("m{number}"), "in order, none twice");
            }
            looks += 1;
            if last {
                break;
            }
        }
        assert!(looks > 0 && written.load(Ordering::SeqCst) == 600);
    });
}

/// The kernel itself says which files were opened.
#[test]
fn only_listed_files_are_opened_and_credentials_never() {
    use rustix::fs::inotify;
    let (folder, home) = copied();
    let secrets = [
        "auth.json",
        "openai-auth.json",
        "google_credentials.json",
        "servers.json",
        "sessions/auth.env",
    ];
    for secret in secrets {
        put(&folder.path().join(secret), b"{\"access\":\"secret\"}");
    }
    std::os::unix::fs::symlink(
        "../auth.json",
        folder
            .path()
            .join("sessions/session_sly_1777629600000_1.json"),
    )
    .unwrap();
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    let mut folders = Vec::new();
    for name in [
        "",
        "sessions",
        "active_pids",
        "streaming_pids",
        "internal_pids",
        "todos",
    ] {
        let path = folder.path().join(name);
        let number = inotify::add_watch(
            &watch,
            &path,
            inotify::WatchFlags::OPEN
                | inotify::WatchFlags::CLOSE_WRITE
                | inotify::WatchFlags::CREATE
                | inotify::WatchFlags::MODIFY
                | inotify::WatchFlags::DELETE
                | inotify::WatchFlags::MOVE,
        )
        .unwrap();
        folders.push((number, name));
    }
    let env = Env::of([("JCODE_HOME", home.root()), ("HOME", home.root())], "/");
    let jcode = jcode();
    let found = jcode.sessions(&env, &SessionQuery::default());
    assert!(found.items.len() > 20);
    for word in words()
        .iter()
        .chain(["auth".to_owned(), "../auth".to_owned(), "ghost".to_owned()].iter())
    {
        let _shown = jcode.session(&env, word, 5);
        let _document = jcode.recover(&env, word);
    }
    let _state = jcode.integration(&env, &takeup_core::integration::Scope::User);
    let _detection = jcode.detect(&env);
    let mut opened = BTreeSet::new();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 1 << 14];
    let mut reader = inotify::Reader::new(&watch, &mut buffer);
    while let Ok(event) = reader.next() {
        let name = event
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let (_, folder) = folders
            .iter()
            .find(|(number, _)| *number == event.wd())
            .unwrap();
        assert!(
            event.events().contains(inotify::ReadFlags::OPEN),
            "looking changed {folder}/{name}: {:?}",
            event.events()
        );
        if !event.events().contains(inotify::ReadFlags::ISDIR) {
            opened.insert(format!("{folder}/{name}"));
        }
    }
    assert!(opened.len() > 40, "the kernel told of {}", opened.len());
    for path in &opened {
        let allowed = path == "/config.toml"
            || path == "/mcp.json"
            || [
                "sessions/session_",
                "sessions/imported_",
                "active_pids/session_",
                "streaming_pids/session_",
                "todos/session_",
            ]
            .iter()
            .any(|start| path.starts_with(start));
        assert!(allowed, "{path} was opened");
    }
    let wrong: Vec<&String> = opened.iter().filter(|path| path.contains("auth")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Looking works where nothing can be written, and writing says so.
#[test]
fn a_home_that_cannot_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, home) = copied();
    let modes = |mode: u32| {
        for name in ["sessions", "active_pids", ""] {
            std::fs::set_permissions(
                folder.path().join(name),
                std::fs::Permissions::from_mode(mode),
            )
            .unwrap();
        }
    };
    modes(0o555);
    let env = Env::of([("JCODE_HOME", home.root())], "/");
    assert!(jcode().sessions(&env, &SessionQuery::default()).items.len() > 20);
    if rustix::process::geteuid().is_root() {
        println!("skipped: root may write everywhere");
    } else {
        let error = jcode().recover_as_session(&env, "koala").unwrap_err();
        assert_eq!(takeup_core::error::Explain::code(&error), "file-permission");
    }
    modes(0o755);
}

/// What is asked for is in the answer, and nothing is read for the rest.
#[test]
fn a_question_for_some_gives_all_of_them() {
    use takeup_core::process::LivenessKind;
    let (_folder, home) = copied();
    let env = Env::of([("JCODE_HOME", home.root())], "/");
    let ask = |states: &[LivenessKind], unfinished: bool| {
        let query = SessionQuery {
            states: states.to_vec(),
            unfinished,
            ..SessionQuery::default()
        };
        jcode().sessions(&env, &query).items
    };
    let all = ask(&[], false);
    for states in [
        &[LivenessKind::Crashed][..],
        &[LivenessKind::Ended, LivenessKind::Unknown],
        &[LivenessKind::Live],
    ] {
        let wanted: Vec<_> = all
            .iter()
            .filter(|session| states.contains(&session.liveness.kind()))
            .cloned()
            .collect();
        assert_eq!(ask(states, false), wanted);
    }
    let unfinished = |sessions: Vec<takeup_core::agent::Session>| -> Vec<_> {
        sessions
            .into_iter()
            .filter(|session| session.interruption.is_some())
            .collect()
    };
    assert_eq!(unfinished(ask(&[], true)), unfinished(all.clone()));
    assert!(ask(&[], true).len() < all.len());
}
