//! The command line as a person or script meets it.
use takeup_tests::Scratch;

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");

#[test]
fn the_version_is_printed_for_people_and_machines() {
    let scratch = Scratch::empty(PROGRAM);
    let people = scratch.takeup_in(&scratch.home(), &["version"]).exits(0);
    assert_eq!(
        people.stdout,
        format!("git-takeup {}\n", env!("CARGO_PKG_VERSION"))
    );
    let machines = scratch
        .takeup_in(&scratch.home(), &["version", "--json"])
        .exits(0)
        .json();
    assert_eq!(machines["data"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(machines["ok"], true);
}

#[test]
fn wrong_usage_is_exit_2_and_json_when_asked() {
    let scratch = Scratch::empty(PROGRAM);
    scratch
        .takeup_in(&scratch.home(), &["no-such-command"])
        .exits(2);
    let answer = scratch
        .takeup_in(&scratch.home(), &["no-such-command", "--json"])
        .exits(2)
        .json();
    assert_eq!(answer["error"]["code"], "usage");
}
