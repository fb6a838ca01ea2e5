//! The text that is put into a hook, and how it is found again.
//!
//! The text is a shell function between two marker lines. It never hinders: it returns 0 whatever happens, ends the
//! program after two seconds, and says one line at the most. How a program failed it leaves in the file `hook-failed` of
//! the ledger's folder, through no link, and in no folder of another user: the file would be in its owner's way. The shell watches by itself: `timeout` would be one more program to wait for,
//! three times as long. A program that has recorded, and looks at the content afterwards, is not waited for: it says so by
//! SIGUSR1 ([`super::release`]). The shell that waits is one of its own, so that no trap of the script around is touched.
//! Nothing that git was given open is handed on, so that nobody waits for the recorder. It runs where the program is gone
//! or cannot be executed, and without PATH or HOME. The logic lives in the program, so the text rarely changes. One thing
//! is decided here, since starting the program takes longer than git shall wait for nothing: whether takeup is used in the
//! repository at all. A linked work tree's git folder lies two below the common one and names it in `commondir`
//! (gitrepository-layout(5)).

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use bstr::ByteSlice as _;
use sha2::{Digest as _, Sha256};

/// The version of the text.
const VERSION: u32 = 5;
/// How the first line of our text begins.
const BEGIN: &str = "# >>> takeup hook ";
/// The last line of our text.
const END: &str = "# <<< takeup hook <<<";
/// Stands in the first line where a line end had to be put before it.
const JOINED: &str = "joined ";
/// The last line where a kept hook was run first.
const EXIT: &str = "exit \"$takeup_status\"";
/// What is added to the name of a hook that is kept beside ours.
pub(super) const KEPT: &str = ".takeup-kept";

const FUNCTION: &str = r#"takeup_hook() {
	[ "${TAKEUP_HOOKS:-1}" != 0 ] && [ "${TAKEUP_SKIP:-0}" != 1 ] || return 0
	takeup_git=${GIT_COMMON_DIR:-${GIT_DIR:-.git}}
	[ ! -e "$takeup_git/commondir" ] || takeup_git=$takeup_git/../..
	[ ! -d "$takeup_git" ] || [ -e "$takeup_git/takeup/repository-id" ] || return 0
	takeup_program=@PROGRAM@
	[ -x "$takeup_program" ] || takeup_program=$(command -v git-takeup 2>/dev/null) || return 0
	(
		takeup_goes_on=
		trap 'takeup_goes_on=1' USR1
		TAKEUP_STUB=pid:$$ "$takeup_program" hook git "$@" &
		takeup_pid=$!
		(
			takeup_sleep=
			trap '[ -z "$takeup_sleep" ] || kill "$takeup_sleep"; exit 0' TERM
			sleep 2 &
			takeup_sleep=$!
			wait "$takeup_sleep" && kill -9 "$takeup_pid"
		) &
		takeup_watch=$!
		[ -n "$takeup_goes_on" ] || wait "$takeup_pid"
		takeup_ended=$?
		kill "$takeup_watch"
		[ "$takeup_ended" = 0 ] || [ -n "$takeup_goes_on" ] || {
			umask 077
			takeup_note=$takeup_git/takeup/hook-failed
			[ -O "$takeup_git/takeup" ] && [ ! -L "$takeup_git/takeup" ] && [ ! -L "$takeup_note" ] && { [ ! -e "$takeup_note" ] || [ -f "$takeup_note" ]; } && printf '%s\n' "$1 $takeup_ended $takeup_program" >"$takeup_note"
			exit 1
		}
	) </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- || echo 'takeup: this was not recorded; git takeup doctor says why' >&2
	return 0
}
"#;

/// Quotes for the shell, always with single quotes.
fn single_quoted(text: &[u8]) -> Vec<u8> {
    [b"'", &text.replace("'", r"'\''")[..], b"'"].concat()
}

/// Returns the program that our text calls. `None` where there is none of our text.
pub(super) fn program_of(text: &[u8]) -> Option<PathBuf> {
    let (_, mut rest) = text.split_once_str("takeup_program='")?;
    let mut program = Vec::new();
    loop {
        let (part, behind) = rest.split_once_str("'")?;
        program.extend_from_slice(part);
        let Some(more) = behind.strip_prefix(br"\''") else {
            return Some(PathBuf::from(OsString::from_vec(program)));
        };
        program.push(b'\'');
        rest = more;
    }
}

/// Stands in the text where the program is put, byte for byte.
const PROGRAM: &str = "@PROGRAM@";

fn function(program: &Path) -> Vec<u8> {
    FUNCTION
        .as_bytes()
        .replace(PROGRAM, single_quoted(program.as_os_str().as_bytes()))
}

fn between_markers(joined: bool, body: &[u8]) -> Vec<u8> {
    let joined = if joined { JOINED } else { "" };
    let begin = format!(
        "{BEGIN}{VERSION} {joined}>>> put here by: git takeup hooks install; taken out by: git takeup hooks uninstall\n"
    );
    [begin.as_bytes(), body, END.as_bytes(), b"\n"].concat()
}

/// Returns the text to put into a shell script that stays where it is.
fn block(event: &str, program: &Path) -> Vec<u8> {
    let body = [&function(program)[..], call(event).as_bytes()].concat();
    between_markers(false, &body)
}

/// The line that calls the function.
fn call(event: &str) -> String {
    format!("takeup_hook {event} \"$@\"\n")
}

/// Returns a whole hook file. A hook kept beside it is run first.
pub(super) fn file(event: &str, program: &Path, kept: bool) -> Vec<u8> {
    let text = if kept {
        block_with_kept(event, program)
    } else {
        block(event, program)
    };
    [b"#!/bin/sh\n", &text[..]].concat()
}

/// Returns the text of a file that is ours alone and runs the hook kept beside it first, whose exit status counts; pre-commit
/// and prek give this file another ending.
fn block_with_kept(event: &str, program: &Path) -> Vec<u8> {
    let function = function(program);
    let rest = format!(
        "takeup_kept=${{0%.legacy}}{KEPT}\ntakeup_status=0\nif [ -x \"$takeup_kept\" ]; then\n\t\"$takeup_kept\" \"$@\"\n\ttakeup_status=$?\nfi\n{call}{EXIT}\n",
        call = call(event),
    );
    between_markers(false, &[&function[..], rest.as_bytes()].concat())
}

/// Puts our text into a shell script, after its first line where that names the shell. `None` where the script cannot
/// bear it: see [`bears_insertion`].
pub(super) fn inserted(script: &[u8], event: &str, program: &Path) -> Option<Vec<u8>> {
    if !bears_insertion(script) {
        return None;
    }
    let at = if script.starts_with(b"#!") {
        script.iter().position(|byte| *byte == b'\n')? + 1
    } else {
        0
    };
    let (head, tail) = script.split_at_checked(at)?;
    Some([head, &block(event, program), tail].concat())
}

/// Tells whether lines can be put at the beginning of a script without changing what it does: it is text for a shell of
/// the Bourne family, and does not hand itself to another interpreter, which would read our lines too.
fn bears_insertion(script: &[u8]) -> bool {
    if script.contains(&b'\r') || !is_shell(script) || script.trim().is_empty() {
        return false;
    }
    // Taken out of it again, our text would leave what a file of ours alone leaves.
    if is_empty_file(script) {
        return false;
    }
    if script.starts_with(b"#!") && !script.contains(&b'\n') {
        return false;
    }
    !script.lines().any(|line| {
        line.contains_str("exec") && (line.contains_str("$0") || line.contains_str("${0"))
    })
}

/// Tells whether a script is text for a shell of the Bourne family; one that names no interpreter is.
pub(super) fn is_shell(script: &[u8]) -> bool {
    if script.contains(&0) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(script) else {
        return false;
    };
    let first = text.lines().next().unwrap_or_default();
    let Some(interpreter) = first.strip_prefix("#!") else {
        return true;
    };
    let mut words = interpreter.split_whitespace();
    let mut shell = words.next().unwrap_or_default();
    if shell.ends_with("/env") {
        shell = words.next().unwrap_or_default();
    }
    let name = shell.rsplit('/').next().unwrap_or_default();
    matches!(name, "sh" | "bash" | "dash" | "ash" | "ksh" | "mksh")
}

/// Tells whether a program may ask for the name it was called by: run under another name it would do something else. Of one
/// that is no text it cannot be seen.
pub(super) fn asks_its_name(script: &[u8]) -> bool {
    if script.contains(&0) || std::str::from_utf8(script).is_err() {
        return true;
    }
    let signs = [
        "basename",
        "##*/",
        "argv[0]",
        "process.argv[1]",
        "argv0",
        "PROGRAM_NAME",
        "__FILE__",
        "ARGV0",
    ];
    if signs.iter().any(|sign| script.contains_str(sign)) {
        return true;
    }
    // For its folder alone a script may ask.
    let asks_folder = |at: usize, length: usize| {
        let before = script.get(..at).unwrap_or_default();
        let before = before.trim_end_with(|c| matches!(c, ' ' | '"' | '\'' | '-'));
        let behind = script.get(at + length..).unwrap_or_default();
        before.ends_with(b"dirname") || (length == 3 && behind.starts_with(b"%/*}"))
    };
    ["$0", "${0"].iter().any(|name| {
        let mut found = script.find_iter(name);
        found.any(|at| !asks_folder(at, name.len()))
    })
}

/// Our text inside a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where it begins.
    start: usize,
    /// Where it ends.
    end: usize,
    joined: bool,
}

/// Finds our text, whichever version wrote it.
pub(super) fn find(content: &[u8]) -> Option<Found> {
    let start = content
        .find_iter(BEGIN)
        .find(|at| *at == 0 || content.get(at - 1) == Some(&b'\n'))?;
    let text = content.get(start..)?;
    let line = text.lines().next()?;
    let joined = line.contains_str(format!(" {JOINED}>>>"));
    let found = |length: usize| Found {
        start,
        end: start + length,
        joined,
    };
    let mut length = 0;
    let mut called = None;
    for line in text.lines_with_terminator() {
        if length > 0 && line.starts_with_str(BEGIN) {
            break;
        }
        length += line.len();
        let line = line.trim_ascii_end();
        if line == END.as_bytes() {
            return Some(found(length));
        }
        if line == EXIT.as_bytes()
            || (line.starts_with(b"takeup_hook ") && line.ends_with(b" \"$@\""))
        {
            called = Some(length);
        }
    }
    // Its last line was taken out: it goes as far as the function is called.
    called.map(found)
}

/// Returns what stands before our text.
pub(super) fn before(content: &[u8], found: Found) -> &[u8] {
    content.get(..found.start).unwrap_or_default()
}

/// Returns what stands behind our text.
pub(super) fn behind(content: &[u8], found: Found) -> &[u8] {
    content.get(found.end..).unwrap_or_default()
}

/// Tells whether our text, the lines between the markers among them, is what was put in. `recorded` is its digest then; of
/// another version's text without a record it is only known that the function is called.
pub(super) fn is_as_written(text: &[u8], event: &str, recorded: Option<&str>) -> bool {
    if recorded.is_some_and(|recorded| recorded == digest(text)) {
        return true;
    }
    if !text.starts_with_str(format!("{BEGIN}{VERSION} ")) {
        let called = text
            .lines_with_terminator()
            .any(|line| line == call(event).as_bytes());
        return recorded.is_none() && called;
    }
    program_of(text).is_some_and(|program| {
        text == block(event, &program) || text == block_with_kept(event, &program)
    })
}

/// Returns the digest by which our text is known again.
pub(super) fn digest(text: &[u8]) -> String {
    crate::text::hex(&Sha256::digest(text))
}

/// Returns our text.
pub(super) fn text_of(content: &[u8], found: Found) -> &[u8] {
    content.get(found.start..found.end).unwrap_or_default()
}

/// Takes our text out. What remains is byte for byte what was there before.
pub(super) fn removed(content: &[u8], found: Found) -> Vec<u8> {
    let head = content.get(..found.start).unwrap_or_default();
    let head = if found.joined {
        head.strip_suffix(b"\n").unwrap_or(head)
    } else {
        head
    };
    [head, content.get(found.end..).unwrap_or_default()].concat()
}

/// Takes our text out, however often it is there.
pub(super) fn without(content: &[u8]) -> Vec<u8> {
    let mut rest = content.to_vec();
    while let Some(found) = find(&rest) {
        rest = removed(&rest, found);
    }
    rest
}

/// Tells whether a file without our text in it is ours alone: nothing but the line that names the shell remains.
pub(super) fn is_empty_file(rest: &[u8]) -> bool {
    rest == b"#!/bin/sh\n"
}

/// Adds hooks named in the configuration (git 2.54 and later) to the text of a configuration file. The command is one
/// line that defines the function and calls it last: git appends the hook's arguments to it.
pub(super) fn config_added(config: &[u8], events: &[&str], program: &Path) -> Vec<u8> {
    let lines = FUNCTION
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("\n");
    // As git-config(1) wants a value between double quotes.
    let in_config = |text: &[u8]| {
        text.replace("\\", "\\\\")
            .replace("\"", "\\\"")
            .replace("\n", "\\n")
    };
    let program = in_config(&single_quoted(program.as_os_str().as_bytes()));
    let section = |event: &&str| {
        let name = config_name(event);
        let command = in_config(joined_line(&lines, event).as_bytes()).replace(PROGRAM, &program);
        let head = format!("[hook \"{name}\"]\n\tevent = {event}\n\tcommand = \"");
        [head.as_bytes(), &command, b"\"\n"].concat()
    };
    let body: Vec<u8> = events.iter().flat_map(section).collect();
    let joined = !config.is_empty() && !config.ends_with(b"\n");
    let gap: &[u8] = if joined { b"\n" } else { b"" };
    [config, gap, &between_markers(joined, &body)].concat()
}

/// Returns the name of our hook for an event in the configuration; it may not be the name of an event itself.
pub(super) fn config_name(event: &str) -> String {
    format!("takeup-{event}")
}

/// Makes one line of the function: statements are joined by `;` where the grammar of the shell wants one.
fn joined_line(lines: &str, event: &str) -> String {
    let mut text = String::new();
    for line in lines.lines() {
        text.push_str(line);
        let open = ["{", "(", "then", "else", "&"]
            .iter()
            .any(|end| line.ends_with(end));
        text.push_str(if open { " " } else { "; " });
    }
    format!("{text}takeup_hook {event}")
}

/// Returns the line to put into a hook that somebody else manages. It fails never, is silent where the program is not there,
/// and ends the program after two seconds, as the function does. No single quote is in it, so that it can stand between two.
pub(super) fn line(event: &str) -> String {
    format!(
        r#"(git-takeup hook git {event} "$@" & p=$!; (trap "kill \$s" TERM; sleep 2 & s=$!; wait $s && kill -9 $p) & w=$!; wait $p; kill $w) </dev/null >/dev/null 2>&1 || :"#
    )
}

/// Returns the same line for a place that is handed no arguments.
pub(super) fn line_without_arguments(event: &str) -> String {
    line(event).replace(" \"$@\"", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_found_and_taken_out_to_the_byte() {
        for script in [
            &b"#!/bin/sh\necho hello\n"[..],
            b"#!/usr/bin/env bash\nset -e\nno newline at the end",
            b"echo no first line\n",
            b"#!/bin/sh -e\n\n\n",
        ] {
            let with = inserted(script, "post-commit", Path::new("/usr/bin/git-takeup")).unwrap();
            assert_ne!(with, script);
            assert_eq!(removed(&with, find(&with).unwrap()), script);
        }
        for config in [
            &b""[..],
            b"[core]\n\tbare = false\n",
            b"[core]\n\tbare = false",
        ] {
            let with = config_added(
                config,
                &["post-commit", "post-merge"],
                Path::new("/a b/git-takeup"),
            );
            assert_eq!(removed(&with, find(&with).unwrap()), config);
        }
    }

    #[test]
    fn scripts_that_would_read_our_lines_otherwise_are_left_alone() {
        for script in [
            &b"#!/usr/bin/env python3\nprint(1)\n"[..],
            b"#!/bin/sh\n'''exec' python3 \"$0\" \"$@\"\n'''\n",
            b"#!/bin/sh\r\necho\r\n",
            b"\x7fELF\0\0",
            b"#!/bin/sh",
            b"#!/bin/sh\n",
            b"",
        ] {
            assert_eq!(inserted(script, "post-commit", Path::new("/x")), None);
        }
        assert!(asks_its_name(b"case ${0##*/} in post-commit) ;; esac"));
        for script in [
            "case \"$0\" in */post-checkout) ;; esac",
            "exec real-${0}",
            "$name = $0; $name =~ s/x//;",
            "dirname -- $0; echo $0",
            "\x7fELF\0",
        ] {
            assert!(asks_its_name(script.as_bytes()), "{script}");
        }
        for script in [
            "dir=$(dirname \"$0\")",
            "cd $(dirname -- $0)",
            ". \"${0%/*}/lib\"",
            "echo $1",
        ] {
            assert!(!asks_its_name(script.as_bytes()), "{script}");
        }
    }

    #[test]
    fn the_texts_are_good_shell() {
        use std::io::Write as _;
        // A name in no encoding, with all that a shell and git's configuration read otherwise.
        let program = std::ffi::OsStr::from_bytes(b"/it's \xff \"here\" \\ @\ntoo/git-takeup");
        let program = Path::new(program);
        let config = config_added(b"", &["post-commit"], program);
        let folder = tempfile::tempdir().unwrap();
        let config_file = folder.path().join("config");
        crate::files::write_atomic(&config_file, &config, 0o600).unwrap();
        let git = |key: &str| {
            let output = std::process::Command::new("git")
                .args(["config", "-f"])
                .arg(&config_file)
                .args(["--get", key])
                .output()
                .unwrap();
            assert!(output.status.success());
            output.stdout
        };
        assert_eq!(git("hook.takeup-post-commit.event"), b"post-commit\n");
        for text in [
            file("post-commit", program, true),
            git("hook.takeup-post-commit.command"),
        ] {
            assert_eq!(program_of(&text).as_deref(), Some(program));
        }
        assert_eq!(program_of(line("post-commit").as_bytes()), None);
        for script in [
            file("post-commit", program, false),
            file("post-rewrite", program, true),
            git("hook.takeup-post-commit.command"),
        ] {
            let mut shell = std::process::Command::new("sh")
                .arg("-n")
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            shell.stdin.take().unwrap().write_all(&script).unwrap();
            assert!(
                shell.wait().unwrap().success(),
                "{}",
                String::from_utf8_lossy(&script)
            );
        }
    }
}
