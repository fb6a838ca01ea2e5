//! The program `git-takeup`, which git runs as `git takeup`.
use std::process::ExitCode;

fn main() -> ExitCode {
    git_takeup::main()
}
