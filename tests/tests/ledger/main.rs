//! The ledger under kills, full disks, damage and races, with real processes, and with a reader of its own as the judge.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests: a failure ends the test"
)]
mod damage;
mod kills;
mod locks;
mod reader;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A command of the child program on a ledger.
fn child(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ledger-child"));
    command
        .arg(folder)
        .args(args)
        .stdin(Stdio::null())
        .env_remove("TAKEUP_FAULT")
        .env_remove("TAKEUP_FAULT_LOG");
    command
}

/// What a child said was acknowledged.
fn acknowledged(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.strip_prefix("ack "))
        .map(ToOwned::to_owned)
        .collect()
}

/// Starts a child with its output caught.
fn spawn(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the child can be started")
}

/// Waits until a condition holds. A condition that never holds ends the test after two minutes.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed().as_secs() < 120, "waited in vain for {what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for item in std::fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let to = to.join(item.file_name());
        if item.file_type().unwrap().is_dir() {
            copy(&item.path(), &to);
        } else {
            std::fs::copy(item.path(), &to).unwrap();
        }
    }
}

fn overwrite(path: &Path, bytes: impl AsRef<[u8]>) {
    use std::io::Write as _;
    std::fs::File::create(path)
        .unwrap()
        .write_all(bytes.as_ref())
        .unwrap();
}
