//! Where something stands in the way, its cause is named.
use super::*;

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_truncated_index_is_named_as_damaged() {
    let scratch = Scratch::new(PROGRAM);
    fs::create_dir(scratch.repo().join("src")).unwrap();
    scratch.write("src/x.c", "x\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "-q", "-m", "second"]);
    leave(&scratch, &scratch.repo(), "t1", "s1");
    let index = scratch.repo().join(".git/index");
    let whole = fs::read(&index).unwrap();
    let mut damaged = 0;
    for length in (5..whole.len()).step_by(7) {
        fs::write(&index, &whole[..length]).unwrap();
        let said = scratch.takeup(&["inspect", "--json"]).json();
        let Some(why) = said["data"]["incomplete"].as_str() else {
            // Every entry is there.
            let found = &said["data"]["candidates"][0]["verdict"];
            assert_eq!(found, "resume-verification", "{length}");
            continue;
        };
        damaged += 1;
        assert!(why.contains(".git/index is damaged"), "{length}: {why}");
    }
    assert!(damaged > 10, "{damaged} of {} bytes", whole.len());
    fs::write(&index, &whole).unwrap();
    assert_eq!(verdict(&scratch, &scratch.repo()), "resume-verification");
    // One without a checksum is whole.
    scratch.git(&[
        "-c",
        "index.skipHash=true",
        "rm",
        "-q",
        "--cached",
        "src/x.c",
    ]);
    scratch.git(&["-c", "index.skipHash=true", "add", "src/x.c"]);
    assert!(fs::read(&index).unwrap().ends_with(&[0; 20]));
    assert_eq!(verdict(&scratch, &scratch.repo()), "resume-verification");
}

#[test]
fn the_step_to_look_says_what_could_not_be_seen() {
    let scratch = Scratch::new(PROGRAM);
    scratch
        .takeup(&["start", "t1", "--session", "s1", "--no-checks"])
        .exits(0);
    scratch.write(".gitattributes", "*.txt filter=own\n");
    scratch.git(&["config", "filter.own.clean", "cat"]);
    scratch.write("new.txt", "behind the filter\n");
    for command in ["next", "evaluate"] {
        let ran = scratch.takeup(&[command, "t1", "--session", "s1"]);
        let page = words(&ran.stdout);
        assert!(
            page.contains("could not be seen whole"),
            "{command}: {page}"
        );
        assert!(page.contains("filter"), "{command}: {page}");
        let ran = scratch
            .takeup(&[command, "t1", "--session", "s1", "--json"])
            .json();
        let why = ran["data"]["incomplete"].as_str().unwrap();
        assert!(why.contains("filter"), "{why}");
    }
}

#[test]
fn a_repository_that_took_the_place_of_another_is_said_to_be_one() {
    let scratch = Scratch::new(PROGRAM);
    leave(&scratch, &scratch.repo(), "t1", "s1");
    fs::remove_dir_all(scratch.repo().join(".git")).unwrap();
    let all = scratch
        .takeup_in(&scratch.path(), &["--all"])
        .exits(0)
        .stdout;
    assert!(words(&all).contains("is no repository any more"), "{all}");
    scratch.git(&["init", "-q"]);
    for said in [&["inspect"][..], &[]] {
        let page = scratch.takeup(said).exits(0).stdout;
        assert!(words(&page).contains("in another repository"), "{page}");
    }
    let all = scratch.takeup(&["--all"]).exits(0).stdout;
    assert!(
        words(&all).contains("holds another repository now"),
        "{all}"
    );
    assert!(!all.contains("is gone\n"), "{all}");
    // Elsewhere nothing of the kind is said.
    let other = scratch.path().join("other");
    fs::create_dir(&other).unwrap();
    scratch.git_in(&other, &["init", "-q"]);
    let page = scratch.takeup_in(&other, &["inspect"]).exits(0).stdout;
    assert!(!page.contains("in another repository"), "{page}");
}

/// What is proposed for another place means that place, wherever it is typed.
#[test]
fn the_commands_of_every_place_at_once_name_their_place() {
    let scratch = Scratch::new(PROGRAM);
    let other = scratch.path().join("an other");
    scratch.git_in(&scratch.path(), &["clone", "-q", "repo", "an other"]);
    for place in [&scratch.repo(), &other] {
        leave(&scratch, place, "t1", "s1");
        let done = ["start", "done", "--session", "s2", "--no-checks"];
        scratch.takeup_in(place, &done).exits(0);
        let done = ["finish", "done", "--session", "s2"];
        scratch.takeup_in(place, &done).exits(0);
    }
    let commands = |ran: &Value| -> Vec<String> {
        let places = ran["data"]["places"].as_array().unwrap();
        let left = places.iter().flat_map(|place| {
            let candidates = place["inspection"]["candidates"].as_array().unwrap();
            candidates
                .iter()
                .filter(|one| one["identity"]["sessionId"] != "s2")
        });
        left.map(|one| one["next"]["command"].as_str().unwrap().to_owned())
            .collect()
    };
    let ran = scratch.takeup(&["--all", "--json"]).exits(0).json();
    let resume = |words: &str| format!("{words} takeup resume t1 --from s1 --confirm");
    let there = resume(&format!("git -C '{}'", other.display()));
    let mut told = commands(&ran);
    told.sort();
    assert_eq!(told, [there.clone(), resume("git")]);
    let page = scratch.takeup(&["--all"]).exits(0).stdout;
    let closed = format!(
        "1 closed session: git -C '{}' takeup inspect --all",
        other.display()
    );
    assert!(words(&page).contains(&closed), "{page}");
    assert!(
        page.contains("1 closed session: git takeup inspect --all"),
        "{page}"
    );
    // Typed elsewhere, it takes up the one that is meant.
    let mut shell = std::process::Command::new("sh");
    scratch.dress(&mut shell);
    let typed = there + " --session s3";
    let status = shell
        .args(["-c", &typed])
        .current_dir(scratch.home())
        .status();
    assert!(status.unwrap().success(), "{typed}");
    let left = commands(&scratch.takeup(&["--all", "--json"]).exits(0).json());
    assert!(left.contains(&resume("git")), "{left:?}");
}

#[test]
fn a_tree_that_a_partial_clone_left_out_is_named_with_the_way_to_fetch_it() {
    let scratch = Scratch::new(PROGRAM);
    scratch.git(&["config", "uploadpack.allowFilter", "true"]);
    scratch.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let source = format!("file://{}", scratch.repo().display());
    let clone = [
        "clone",
        "-q",
        "--filter=tree:0",
        "--no-checkout",
        &source,
        "partial",
    ];
    scratch.git_in(&scratch.path(), &clone);
    let partial = scratch.path().join("partial");
    let page = words(&scratch.takeup_in(&partial, &["inspect"]).exits(0).stdout);
    assert!(page.contains("partial clone"), "{page}");
    let (_, rest) = page.split_once("`git ").unwrap();
    let (fetch, _) = rest.split_once('`').unwrap();
    scratch.git_in(&partial, &fetch.split(' ').collect::<Vec<_>>());
    let page = scratch.takeup_in(&partial, &["inspect"]).exits(0).stdout;
    assert!(!page.contains("could not be seen"), "{page}");
}
