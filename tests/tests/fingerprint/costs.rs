//! What a look must not do, stated on its counters; and looks under bad conditions.
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use takeup_core::fingerprint::{Counters, FingerprintError, Look, Method, Options, Progress, look};
use takeup_tests::fingerprint::repo::Repo;

/// A repository of `files` files in several folders, of whose metadata git and we can be sure.
fn settled(files: usize) -> Repo {
    let repo = Repo::new();
    for number in 0..files {
        repo.write(format!("d{}/f{number}", number % 7), format!("{number}\n"));
    }
    repo.write(".gitignore", "ignored/\n");
    repo.commit();
    std::fs::create_dir_all(repo.path(".git/takeup")).unwrap();
    await_settled(&repo);
    repo
}

/// Lets git write its index anew until its metadata is older than itself.
fn await_settled(repo: &Repo) {
    for _ in 0..2_000 {
        let look = uncached(repo);
        assert_eq!(look.method, Method::Engine, "{:?}", look.fallback);
        if look.counters.files_read == 0 {
            return;
        }
        repo.git([
            "update-index",
            "-q",
            "--really-refresh",
            "--force-write-index",
        ]);
    }
    panic!("the index does not settle");
}

fn with(repo: &Repo, change: impl FnOnce(&mut Options<'_>)) -> Look {
    let mut options = Options::reading_only(&repo.env);
    change(&mut options);
    look(&repo.place(), &options).unwrap()
}

fn uncached(repo: &Repo) -> Look {
    with(repo, |options| options.use_cache = false)
}

fn cached(repo: &Repo) -> Look {
    with(repo, |options| options.write_cache = true)
}

/// Looks with the cache until it has nothing left to learn.
fn learned(repo: &Repo) -> Counters {
    // What changed within the last 50 ms is not remembered yet.
    let settled = std::time::Instant::now() + std::time::Duration::from_millis(150);
    let mut last = cached(repo).counters;
    for _ in 0..20_000 {
        let now = cached(repo).counters;
        if now == last && now.files_read == 0 && std::time::Instant::now() > settled {
            return now;
        }
        last = now;
    }
    panic!("the cache does not settle: {last:?}");
}

#[test]
fn a_clean_tree_reads_no_content_and_starts_no_program() {
    let repo = settled(60);
    let counters = uncached(&repo).counters;
    assert_eq!(
        (counters.files_read, counters.bytes_read, counters.programs),
        (0, 0, 0)
    );
    assert_eq!(counters.entries, 61);
    // The root and seven folders.
    assert_eq!(counters.directories, 8);
    let counters = learned(&repo);
    assert_eq!((counters.directories, counters.files_read), (0, 0));
    assert_eq!(counters.cache_hits, 8);
}

#[test]
fn ten_changed_files_read_ten_files() {
    let repo = settled(60);
    for number in 0..10 {
        repo.write(format!("d{}/f{number}", number % 7), "changed\n");
    }
    // A second pass may follow where the change was a moment ago; one pass reads ten.
    let counters = uncached(&repo).counters;
    assert_eq!(counters.files_read, 10);
    assert_eq!(counters.bytes_read, 80);
    let counters = learned(&repo);
    assert_eq!((counters.files_read, counters.directories), (0, 0));
}

#[test]
fn an_ignored_folder_is_not_entered() {
    let repo = settled(10);
    let before = uncached(&repo).counters;
    for number in 0..3_000 {
        repo.write(format!("ignored/{}/x{number}", number % 50), "x");
    }
    let after = uncached(&repo).counters;
    assert_eq!(after.directories, before.directories);
    assert_eq!(after.files_read, 0);
    assert!(after.stats <= before.stats + 2, "{before:?} {after:?}");
}

#[test]
fn files_that_were_touched_and_are_equal_are_read_once() {
    let repo = settled(60);
    let clean = uncached(&repo);
    for number in 0..60 {
        repo.write(format!("d{}/f{number}", number % 7), format!("{number}\n"));
    }
    let first = cached(&repo);
    assert_eq!(first.record, clean.record);
    assert_eq!(first.counters.files_read, 60);
    assert_eq!(learned(&repo).files_read, 0);
    // Believing nothing reads it all.
    let all = with(&repo, |options| options.verify = true);
    assert_eq!(all.record, clean.record);
    assert_eq!(all.counters.files_read, 61);
}

#[test]
fn nothing_is_written_but_the_cache_and_that_only_where_there_are_records() {
    let repo = Repo::new();
    repo.write("a", "1");
    repo.commit();
    repo.write("b", "2");
    let state = || {
        let mut all = Vec::new();
        let mut folders = vec![repo.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let meta = entry.metadata().unwrap();
                if meta.is_dir() {
                    folders.push(entry.path());
                }
                // By git, the times of an object may move: git tells the object that it was asked for again.
                let object = entry.path().starts_with(repo.path(".git/objects"));
                let time = (!object).then(|| (meta.ctime(), meta.ctime_nsec()));
                all.push((entry.path(), meta.ino(), meta.size(), time));
            }
        }
        all.sort();
        all
    };
    let before = state();
    cached(&repo);
    with(&repo, |options| options.verify = true);
    with(&repo, |options| options.method = Some(Method::Git));
    assert_eq!(state(), before);
    std::fs::create_dir_all(repo.path(".git/takeup")).unwrap();
    let before = state();
    uncached(&repo);
    assert_eq!(state(), before, "a look that promises not to write wrote");
}

#[test]
fn a_cache_of_another_place_or_time_changes_no_answer() {
    let one = settled(20);
    one.write("d0/f0", "one\n");
    one.write("new", "one\n");
    learned(&one);
    let old = std::fs::read(one.path(".git/takeup/look.cache")).unwrap();
    one.write("d0/f0", "two\n");
    one.write("new", "two\n");
    one.remove("d1/f1");
    let right = uncached(&one).record;
    one.write(".git/takeup/look.cache", &old);
    assert_eq!(cached(&one).record, right);
    let two = settled(20);
    let right = uncached(&two).record;
    two.write(".git/takeup/look.cache", &old);
    assert_eq!(cached(&two).record, right);
    // A folder, a pipe or a link in its place are no cache either.
    two.remove(".git/takeup/look.cache");
    std::fs::create_dir_all(two.path(".git/takeup/look.cache/x")).unwrap();
    assert_eq!(cached(&two).record, right);
}

/// Puts content in place at once, as editors do.
#[expect(clippy::disallowed_methods, reason = "a writer of the tree under test")]
fn replace(repo: &Repo, name: &str, content: &str) {
    let beside = repo.base().join("beside");
    takeup_tests::fingerprint::repo::put(&beside, content.as_bytes());
    std::fs::rename(beside, repo.path(name)).unwrap();
}

#[test]
fn a_tree_under_a_writer_gives_the_state_of_a_moment_or_none() {
    let repo = Repo::new();
    let id = |number: u64| {
        git2::Oid::hash_object(git2::ObjectType::Blob, format!("{number:08}").as_bytes())
            .unwrap()
            .to_string()
    };
    // The writer writes `a` first and `z` after it: a state in which `z` is ahead never was.
    for name in ["a", "m/x", "z"] {
        repo.write(name, "00000000");
    }
    repo.commit();
    let stop = AtomicBool::new(false);
    let last = std::sync::atomic::AtomicU64::new(0);
    let (mut whole, mut none) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                last.store(number, Ordering::Relaxed);
                replace(&repo, "a", &format!("{number:08}"));
                replace(&repo, "z", &format!("{number:08}"));
            }
        });
        for _ in 0..100 {
            let look = uncached(&repo);
            if look.record.fingerprint.is_none() {
                assert!(look.record.incomplete.is_some());
                none += 1;
                continue;
            }
            let oid_of = |name: &str| {
                look.record
                    .deviations
                    .iter()
                    .find(|deviation| deviation.path == name)
                    .map_or_else(
                        || id(0),
                        |deviation| deviation.oid.as_ref().unwrap().to_string(),
                    )
            };
            whole.push((oid_of("a"), oid_of("z")));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let last = last.into_inner();
    let numbers: std::collections::HashMap<String, u64> =
        (0..=last).map(|number| (id(number), number)).collect();
    for (a, z) in &whole {
        let (a, z) = (numbers[a], numbers[z]);
        assert!(a == z || a == z + 1, "a {a} z {z}");
    }
    println!(
        "{} of a moment, {none} that said they could not tell, {last} writes",
        whole.len()
    );
    // At rest it is told again.
    assert_eq!(uncached(&repo).record.incomplete, None);
}

#[test]
fn an_interrupt_ends_the_look() {
    let repo = settled(5);
    let flag = AtomicBool::new(true);
    for method in [None, Some(Method::Git)] {
        let mut options = Options::reading_only(&repo.env);
        options.interrupt = Some(&flag);
        options.method = method;
        let error = look(&repo.place(), &options).unwrap_err();
        assert!(matches!(error, FingerprintError::Interrupted), "{error}");
    }
}

#[test]
fn large_files_tell_how_far_they_are_and_can_be_interrupted() {
    let repo = settled(3);
    repo.write("large", vec![7; 5 << 20]);
    let flag = AtomicBool::new(false);
    let seen = std::sync::Mutex::new(Vec::new());
    let progress = |progress: &Progress| {
        seen.lock().unwrap().push(progress.clone());
        flag.store(true, Ordering::Relaxed);
    };
    let mut options = Options::reading_only(&repo.env);
    options.large = 1 << 20;
    options.progress = Some(&progress);
    options.interrupt = Some(&flag);
    let error = look(&repo.place(), &options).unwrap_err();
    assert!(matches!(error, FingerprintError::Interrupted));
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (seen[0].size, seen[0].path.as_os_str()),
        (5 << 20, "large".as_ref())
    );
}

/// Runs this test binary's test of that name again as another user, below `folder`.
fn as_nobody(test: &str, repo: &Repo, limit: Option<&str>) {
    if !rustix::process::getuid().is_root() && limit.is_none() {
        println!("skipped: another user can be tried by root only");
        return;
    }
    let program = std::env::current_exe().unwrap();
    let copy = repo.base().join("test-program");
    takeup_tests::copy_program(&program, &copy);
    let mut command = std::process::Command::new("sh");
    command
        .arg("-c")
        .arg(format!(
            "{}exec \"$0\" --exact --ignored {test}",
            limit.unwrap_or("")
        ))
        .arg(copy)
        .env("TAKEUP_TEST_ROOT", &repo.root)
        .env("TAKEUP_TEST_PRINT", print_of(repo))
        .env("HOME", repo.base().join("home"))
        .current_dir(repo.base());
    if rustix::process::getuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

/// The fingerprint, where root can see it.
fn print_of(repo: &Repo) -> String {
    uncached(repo)
        .record
        .fingerprint
        .map_or_else(String::new, |print| print.as_str().to_owned())
}

fn open_to_all(repo: &Repo) {
    let mut folders = vec![repo.base().to_path_buf()];
    while let Some(folder) = folders.pop() {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
}

fn incomplete_at_root() {
    let root = std::path::PathBuf::from(std::env::var_os("TAKEUP_TEST_ROOT").unwrap());
    let env = takeup_core::env::Env::of_process();
    let git_dir = root.join(".git");
    let place = takeup_core::repository::Place {
        root,
        git_dir: git_dir.clone(),
        common_dir: git_dir,
    };
    let look = look(&place, &Options::reading_only(&env)).unwrap();
    assert_eq!(look.record.fingerprint, None);
    assert!(look.record.incomplete.is_some());
}

#[test]
#[ignore = "run by the tests below as another user"]
fn child_sees_an_incomplete_look() {
    incomplete_at_root();
}

#[test]
fn an_unreadable_file_makes_the_look_incomplete() {
    let repo = settled(3);
    repo.write("closed", "1");
    open_to_all(&repo);
    std::fs::set_permissions(repo.path("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
    as_nobody("costs::child_sees_an_incomplete_look", &repo, None);
}

#[test]
fn an_unreadable_folder_makes_the_look_incomplete() {
    let repo = settled(3);
    repo.write("closed/x", "1");
    open_to_all(&repo);
    std::fs::set_permissions(repo.path("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
    as_nobody("costs::child_sees_an_incomplete_look", &repo, None);
}

#[test]
#[ignore = "run by the test below with few handles"]
fn child_runs_out_of_handles() {
    let root = std::path::PathBuf::from(std::env::var_os("TAKEUP_TEST_ROOT").unwrap());
    let env = takeup_core::env::Env::of_process();
    let git_dir = root.join(".git");
    let place = takeup_core::repository::Place {
        root,
        git_dir: git_dir.clone(),
        common_dir: git_dir,
    };
    // All but a few handles are taken; whatever comes of it, it is no fingerprint of less than everything.
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    let right = std::env::var("TAKEUP_TEST_PRINT").ok();
    for _ in 0..12 {
        match look(&place, &Options::reading_only(&env)) {
            Err(_) => {}
            Ok(look) => match look.record.fingerprint {
                None => assert!(look.record.incomplete.is_some()),
                Some(seen) => assert_eq!(Some(seen.as_str()), right.as_deref()),
            },
        }
        taken.pop();
    }
}

#[test]
fn without_handles_there_is_an_error_or_no_fingerprint() {
    let repo = settled(3);
    repo.write("d9/new", "1");
    open_to_all(&repo);
    as_nobody(
        "costs::child_runs_out_of_handles",
        &repo,
        Some("ulimit -n 40; "),
    );
}

#[test]
fn pipes_in_place_of_rules_do_not_hang() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let repo = settled(3);
    repo.write("sub/x", "1");
    for name in ["sub/.gitignore", "sub/.gitattributes"] {
        mknodat(CWD, repo.path(name), FileType::Fifo, Mode::RUSR, 0).unwrap();
    }
    let seen = uncached(&repo);
    assert_eq!(seen.record.incomplete, None);
    assert_eq!(seen.record.deviations.len(), 1);
    let by_git = with(&repo, |options| options.method = Some(Method::Git));
    assert_eq!(by_git.record.fingerprint, None);
}

#[test]
fn names_as_long_as_they_can_be() {
    let repo = settled(2);
    let name = "n".repeat(255);
    repo.write(&name, "1");
    let deep = vec!["d".repeat(200); 15].join("/");
    repo.write(format!("{deep}/{name}"), "1");
    let seen = uncached(&repo);
    assert_eq!(seen.record.incomplete, None);
    assert_eq!(seen.record.deviations.len(), 2);
}
