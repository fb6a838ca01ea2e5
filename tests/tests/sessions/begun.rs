//! Hooks record where takeup is used; where it is not, that is said.
use takeup_tests::Scratch;

use super::{here, scratch};

fn install(scratch: &Scratch, words: &[&str]) -> String {
    let words = [&["agents", "install"][..], words].concat();
    scratch.takeup(&words).exits(0).stdout
}

#[test]
fn where_nothing_is_recorded_the_way_to_it_is_named() {
    let scratch = scratch();
    here(&scratch, &["owl"]);
    let way = "`git takeup init`";
    // What is installed for a user records in every repository where takeup is used.
    assert!(install(&scratch, &["jcode", "--user"]).contains(way));
    assert!(install(&scratch, &["opencode"]).contains(way));
    let status = ["agents", "status", "opencode"];
    assert!(scratch.takeup(&status).exits(0).stdout.contains(way));
    let inspected = scratch.takeup(&["inspect"]).exits(0).stdout;
    assert!(
        inspected.contains("never recorded") || inspected.contains("ever recorded"),
        "{inspected}"
    );
    assert!(inspected.contains(way), "{inspected}");
    scratch.takeup(&["init"]).exits(0);
    assert!(!scratch.takeup(&status).exits(0).stdout.contains(way));
    assert!(!scratch.takeup(&["inspect"]).exits(0).stdout.contains(way));
    // What has no hooks records nothing anywhere.
    assert!(!install(&scratch, &["skills"]).contains(way));
}
