//! The program, built once more beside the tests, so that they always run what was just built.
use std::process::ExitCode;

fn main() -> ExitCode {
    git_takeup::main()
}
