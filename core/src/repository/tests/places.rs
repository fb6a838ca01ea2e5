//! Tokens, whereabouts and the index of known places.
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use super::{Scratch, git};
use crate::env::Env;
use crate::error::Explain as _;
use crate::ids::WorktreeId;
use crate::repository::{
    Tokens, add_place, create_tokens, discover, forget_gone_places, known_places, new_tokens,
    place_record, put_tokens, tokens, whereabouts,
};
use crate::time::Time;
use crate::verdict::{Sharing, Whereabouts};

#[test]
fn tokens_are_made_once_however_many_make_them_and_damage_is_no_absence() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    let place = discover(&scratch.env, &root).unwrap();
    assert_eq!(tokens(&place).unwrap(), Tokens::default());
    assert!(!place.state().exists(), "looking made a folder");
    assert_eq!(place_record(&place).unwrap_err().code(), "not-initialised");
    let barrier = std::sync::Barrier::new(8);
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    create_tokens(&place).unwrap()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(made.iter().all(|pair| pair == &made[0]));
    let read = tokens(&place).unwrap();
    assert_eq!((read.repository.unwrap(), read.worktree.unwrap()), made[0]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.state()), 0o700);
    assert_eq!(mode(&place.state().join("repository-id")), 0o600);
    assert_eq!(fs::read_dir(place.state()).unwrap().count(), 2);
    assert_eq!(git(&root, &["status", "--porcelain"]), "");

    for damage in [&b""[..], b"\0\0\0\0", b"no end", b"../evil\n"] {
        fs::write(place.state().join("worktree-id"), damage).unwrap();
        assert_eq!(tokens(&place).unwrap_err().code(), "token-damaged");
        assert_eq!(create_tokens(&place).unwrap_err().code(), "token-damaged");
    }
}

/// The place at `start`, and how it relates to a record.
fn seen(scratch: &Scratch, start: &Path, recorded: &crate::identity::PlaceRecord) -> Whereabouts {
    let place = discover(&scratch.env, start).unwrap();
    whereabouts(&place, &tokens(&place).unwrap(), recorded).unwrap()
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(done.success());
}

#[test]
fn moved_copied_and_linked_places_are_told_apart() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    let place = discover(&scratch.env, &root).unwrap();
    create_tokens(&place).unwrap();
    let recorded = place_record(&place).unwrap();
    assert_eq!(seen(&scratch, &root, &recorded), Whereabouts::Same);

    symlink(&root, scratch.top.join("link")).unwrap();
    assert_eq!(
        seen(&scratch, &scratch.top.join("link"), &recorded),
        Whereabouts::Same
    );

    let other = scratch.repository("other", &[]);
    assert_eq!(
        seen(&scratch, &other, &recorded),
        Whereabouts::OtherRepository
    );
    create_tokens(&discover(&scratch.env, &other).unwrap()).unwrap();
    assert_eq!(
        seen(&scratch, &other, &recorded),
        Whereabouts::OtherRepository
    );

    let copied = scratch.top.join("copy");
    copy(&root, &copied);
    assert_eq!(seen(&scratch, &copied, &recorded), Whereabouts::Copied);
    assert_eq!(seen(&scratch, &root, &recorded), Whereabouts::Same);

    let moved = scratch.top.join("moved");
    fs::rename(&root, &moved).unwrap();
    assert_eq!(seen(&scratch, &moved, &recorded), Whereabouts::Relocated);
    // Made after the move: the old path is gone, and still it is a copy.
    let late = scratch.top.join("late");
    copy(&moved, &late);
    assert_eq!(seen(&scratch, &late, &recorded), Whereabouts::CopyOfGone);
    // Something else at the old path does not make the moved one a copy.
    scratch.repository("r", &[]);
    assert_eq!(seen(&scratch, &moved, &recorded), Whereabouts::Relocated);

    // A copy that was given tokens of its own is another repository.
    let place = discover(&scratch.env, &copied).unwrap();
    let renewed = new_tokens(&place).unwrap();
    put_tokens(&place, &renewed).unwrap();
    assert_ne!(renewed.0, recorded.repository_id);
    assert_eq!(
        seen(&scratch, &copied, &recorded),
        Whereabouts::OtherRepository
    );
    let own = place_record(&place).unwrap();
    assert_eq!(seen(&scratch, &copied, &own), Whereabouts::Same);
}

#[test]
fn work_trees_are_told_apart_also_when_a_slot_is_used_again() {
    let scratch = Scratch::new();
    let root = scratch.repository("r", &[]);
    git(&root, &["worktree", "add", "-q", "../w", "-b", "w"]);
    let linked = scratch.top.join("w");
    let place = discover(&scratch.env, &linked).unwrap();
    create_tokens(&place).unwrap();
    let recorded = place_record(&place).unwrap();
    assert_eq!(seen(&scratch, &linked, &recorded), Whereabouts::Same);
    assert_eq!(seen(&scratch, &root, &recorded), Whereabouts::OtherWorktree);

    // A copied folder of a linked work tree shares the slot, and cannot be given a token of its own.
    let copied = scratch.top.join("w-copy");
    copy(&linked, &copied);
    assert_eq!(
        seen(&scratch, &copied, &recorded),
        Whereabouts::Shared(Sharing::Link)
    );
    let error = new_tokens(&discover(&scratch.env, &copied).unwrap()).unwrap_err();
    assert_eq!(error.code(), "shared-git-folder");
    fs::remove_dir_all(&copied).unwrap();

    git(&root, &["worktree", "move", "../w", "../w2"]);
    let moved = scratch.top.join("w2");
    assert_eq!(seen(&scratch, &moved, &recorded), Whereabouts::Relocated);
    git(&root, &["worktree", "move", "../w2", "../w"]);
    assert_eq!(seen(&scratch, &linked, &recorded), Whereabouts::Same);

    git(&root, &["worktree", "remove", "../w"]);
    assert_eq!(seen(&scratch, &root, &recorded), Whereabouts::WorktreeGone);
    git(&root, &["worktree", "add", "-q", "../w", "w"]);
    let again = discover(&scratch.env, &linked).unwrap();
    assert_eq!(again.git_dir, place.git_dir, "the slot is used again");
    assert_eq!(
        seen(&scratch, &linked, &recorded),
        Whereabouts::WorktreeGone
    );
    create_tokens(&again).unwrap();
    assert_eq!(
        seen(&scratch, &linked, &recorded),
        Whereabouts::WorktreeGone
    );

    // Removed by hand: git still has the slot, and the token with it.
    let recorded = place_record(&again).unwrap();
    fs::remove_dir_all(&linked).unwrap();
    assert_eq!(seen(&scratch, &root, &recorded), Whereabouts::WorktreeGone);
}

#[test]
fn known_places_are_kept_bounded_marked_and_never_lost_to_damage() {
    let scratch = Scratch::new();
    let home = scratch.top.join("home");
    let env = Env::of([("TAKEUP_HOME", home.as_os_str())], &scratch.top);
    assert!(known_places(&env).items.is_empty());
    let now = Time::from_millis(1_700_000_000_000);
    let mut places = Vec::new();
    for name in ["a", "b"] {
        let place = discover(&scratch.env, &scratch.repository(name, &[])).unwrap();
        create_tokens(&place).unwrap();
        let record = place_record(&place).unwrap();
        places.push((place, record));
    }
    for (n, (place, record)) in (0_i64..).zip(&places) {
        add_place(&env, place, record, Time::from_millis(now.millis() + n)).unwrap();
    }
    let file = home.join("state/places.json");
    let before = fs::metadata(&file).unwrap();
    add_place(&env, &places[0].0, &places[0].1, now).unwrap();
    assert_eq!(
        fs::metadata(&file).unwrap().ino(),
        before.ino(),
        "written again for nothing"
    );

    fs::rename(scratch.top.join("a"), scratch.top.join("a2")).unwrap();
    let found = known_places(&env);
    let listed: Vec<_> = found
        .items
        .iter()
        .map(|place| (place.root.rsplit('/').next().unwrap(), place.gone))
        .collect();
    assert_eq!(listed, [("b", false), ("a", true)]);
    assert_eq!(forget_gone_places(&env, false).unwrap().len(), 1);
    assert_eq!(known_places(&env).items.len(), 2);
    assert_eq!(forget_gone_places(&env, true).unwrap().len(), 1);
    assert_eq!(known_places(&env).items.len(), 1);

    let many: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (env, place) = (&env, &places[1].0);
                let mut record = places[1].1.clone();
                record.root = format!("{}-{n}", record.root);
                record.worktree_id = WorktreeId::new(format!("w{n}")).unwrap();
                scope.spawn(move || add_place(env, place, &record, now))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(many.iter().all(Result::is_ok));
    assert_eq!(known_places(&env).items.len(), 9);

    let whole = fs::read(&file).unwrap();
    for (damage, kind) in [
        (
            whole[..whole.len() / 2].to_vec(),
            crate::issue::IssueKind::Torn,
        ),
        (vec![0; 100], crate::issue::IssueKind::Zeroed),
        (
            b"{\"version\":9,\"places\":[]}".to_vec(),
            crate::issue::IssueKind::UnknownVersion,
        ),
    ] {
        fs::write(&file, &damage).unwrap();
        let found = known_places(&env);
        assert!(found.items.is_empty());
        assert_eq!(found.issues[0].kind, kind);
        add_place(&env, &places[0].0, &places[0].1, now).unwrap_err();
        assert_eq!(fs::read(&file).unwrap(), damage, "damage was written over");
    }
}
