//! What git puts into the environment of its hooks, and programs on PATH.
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::env::Env;

/// The variables that tie a process to one repository, as `git rev-parse --local-env-vars` lists them. A child that
/// inherits them works on the wrong repository, and has destroyed the user's index for several tools.
pub const LOCAL_VARIABLES: [&str; 15] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Removes from the environment of a child whatever would tie it to the repository whose hook we are in.
pub fn clean_git_environment(command: &mut Command) {
    for name in LOCAL_VARIABLES {
        command.env_remove(name);
    }
}

/// Returns the environment without whatever would tie us to the repository whose hook we are in.
pub fn clean_environment(env: &Env) -> Env {
    let kept = env
        .vars()
        .filter(|(name, _)| !LOCAL_VARIABLES.iter().any(|local| name == local));
    Env::of(kept, &env.cwd)
}

/// Finds a program on PATH. Entries of PATH that are not absolute are passed by: they would run what a repository holds.
pub fn find_program(env: &Env, name: &str) -> Option<PathBuf> {
    let path = env.var("PATH").map_or_else(
        || "/usr/local/bin:/usr/bin:/bin".into(),
        std::ffi::OsStr::to_os_string,
    );
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

/// Tells whether a file is there, behind links too, that somebody may execute.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
