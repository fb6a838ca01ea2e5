//! Programs that settings name.
use std::path::Path;

use takeup_core::repository::is_executable;

/// Tells whether a program is named by an absolute path at which none is.
pub(crate) fn is_gone(program: &str) -> bool {
    let path = Path::new(program);
    path.is_absolute() && !is_executable(path)
}

/// As [`is_gone`], of a word as a shell reads it. Of what the shell has to put in (`$HOME`, `~`) nothing is known.
pub(crate) fn is_gone_for_shell(word: &str) -> bool {
    let words = shlex::split(word).unwrap_or_default();
    let [program] = words.as_slice() else {
        return false;
    };
    !program.contains('$') && is_gone(program)
}
