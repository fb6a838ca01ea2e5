//! The file `log`: what hooks could not say on the terminal.
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::files;
use crate::text;
use crate::time::Clock;

/// When the file has this many bytes it becomes `log.old`.
const LONGEST: u64 = 256 << 10;
/// The longest message, in characters.
const MESSAGE: usize = 2_000;

/// Appends one line. There is nobody to tell a failure to, so there is none.
pub(super) fn append(folder: &Path, clock: &dyn Clock, operation: &str, message: &str) {
    let path = folder.join("log");
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(
            (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK)
                .bits()
                .cast_signed(),
        )
        .open(&path);
    let Ok(mut file) = file else { return };
    let line = format!(
        "{} {} {}: {}\n",
        clock.now(),
        std::process::id(),
        text::one_line(operation, 40),
        text::one_line(message, MESSAGE)
    );
    // One call, so that lines of several processes do not mix.
    drop(file.write_all(line.as_bytes()));
    let long = file.metadata().is_ok_and(|data| data.size() > LONGEST);
    // Who does not get the lock leaves the rotation to who has it.
    if long && file.try_lock().is_ok() {
        let same = std::fs::symlink_metadata(&path)
            .is_ok_and(|there| file.metadata().is_ok_and(|data| data.ino() == there.ino()));
        if same {
            drop(files::rename(&path, &folder.join("log.old")));
        }
    }
}
