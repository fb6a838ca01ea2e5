//! Whether a call of ours is reached in a shell script.
//!
//! A script is read as simple commands with what is around them. That is enough to see what a person does to switch lines
//! off: a comment, an `exit` above, an `if false` around, a text that is only shown. What a condition comes to is not worked
//! out, beyond the usual ways to write "never".
mod reader;

use bstr::ByteSlice as _;

use self::reader::Reader;
use super::entry::{Entry, has_live_call};
use super::stub;

/// One simple command.
#[derive(Debug)]
struct Command {
    /// Its text, without comments.
    text: Vec<u8>,
    /// The same with blanks for what is between quotes.
    bare: Vec<u8>,
    /// Its line, from one.
    line: usize,
    /// It comes behind `&&`, `||` or `|`.
    chained: bool,
    /// It runs beside the script: before `|`, or not waited for.
    apart: bool,
    /// Nothing but groups are around it.
    on_top: bool,
    /// Why it is never reached, if that can be seen.
    never: Option<String>,
}

/// What is around a command.
#[derive(Debug)]
struct Around {
    kind: Kind,
    line: usize,
    /// It is never reached.
    never: bool,
    /// It stands behind `&&`, `||` or `|`.
    chained: bool,
    /// The number of the first command inside.
    first: usize,
}

impl Around {
    /// Tells whether what is inside is reached as what is around it.
    fn is_plain(&self) -> bool {
        self.kind == Kind::Group && !self.chained
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `{`.
    Group,
    /// `(`.
    Subshell,
    /// The body of a function.
    Function,
    If,
    Loop,
    Case,
}

/// What a script says up to its end, or up to a place in it.
#[derive(Debug, Default)]
struct Script {
    commands: Vec<Command>,
    around: Vec<Around>,
    /// The line in which a text begins that has no end.
    open_text: Option<usize>,
}

/// Tells whether a script calls us for an event, by our text or by a line of a person's. `recorded` is the digest of our text
/// when it was put in.
pub(super) fn call_in(content: &[u8], event: &str, recorded: Option<&str>) -> Entry {
    if let Some(found) = stub::find(content) {
        let before = Script::read(stub::before(content, found));
        if let Some(why) = before.keeps_from() {
            return Entry::Idle(why);
        }
        let text = stub::text_of(content, found);
        return if !stub::is_as_written(text, event, recorded) {
            Entry::Idle("takeup's lines in it were changed".to_owned())
        } else if stub::find(stub::behind(content, found)).is_some() {
            Entry::Idle("takeup's lines are in it twice".to_owned())
        } else {
            Entry::Runs
        };
    }
    line_in(content, event)
}

/// Tells whether our text in a script stands inside another command, which would be broken were it taken out, or is taken for
/// a part of a text.
pub(super) fn is_wrapped(content: &[u8]) -> Option<String> {
    let found = stub::find(content)?;
    Script::read(stub::before(content, found)).wraps()
}

/// Tells whether a script calls us for an event by a line of a person's. Of other languages it is only known that the words
/// are there.
pub(super) fn line_in(content: &[u8], event: &str) -> Entry {
    if !stub::is_shell(content) {
        return if has_live_call(content, event) {
            Entry::Runs
        } else {
            Entry::Missing
        };
    }
    let script = Script::read(content);
    let mut found = Entry::Missing;
    for command in &script.commands {
        if command.calls_us(event) {
            match &command.never {
                None => return Entry::Runs,
                Some(why) => found = Entry::Idle(why.clone()),
            }
        }
        if command.ends() {
            // What follows is never reached.
            let why = command.ends_before();
            let below = script
                .commands
                .iter()
                .filter(|other| other.line > command.line);
            if found == Entry::Missing && below.into_iter().any(|other| other.calls_us(event)) {
                found = Entry::Idle(why);
            }
            return found;
        }
    }
    found
}

impl Command {
    fn words(&self) -> impl Iterator<Item = &[u8]> {
        let is_setting = |word: &[u8]| {
            word.split_once_str("=").is_some_and(|(name, _)| {
                !name.is_empty()
                    && name
                        .iter()
                        .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            })
        };
        self.text
            .fields_with(char::is_whitespace)
            .skip_while(move |word| is_setting(word))
    }

    /// Tells whether a script ends here.
    fn ends(&self) -> bool {
        if self.chained || self.apart || !self.on_top || self.never.is_some() {
            return false;
        }
        let mut words = self.words();
        match words.next() {
            Some(b"exit" | b"return") => true,
            // With redirections alone it replaces nothing.
            Some(b"exec") => words.next().is_some_and(|word| {
                // bash chooses the number itself for `{name}`.
                let named = word
                    .strip_prefix(b"{")
                    .and_then(|rest| rest.split_once_str("}"));
                let word = named.map_or(word, |(_, behind)| behind);
                let word = word.trim_start_with(|c| c.is_ascii_digit());
                !word.starts_with(b">") && !word.starts_with(b"<") && !word.starts_with(b"&>")
            }),
            _ => false,
        }
    }

    fn ends_before(&self) -> String {
        format!(
            "it ends before, in line {}: {}",
            self.line,
            shown(&self.text)
        )
    }

    fn calls_us(&self, event: &str) -> bool {
        let first = self.words().next().unwrap_or_default();
        let name = first.rsplit_str("/").next().unwrap_or_default();
        if matches!(
            name,
            b"echo" | b"printf" | b":" | b"cat" | b"true" | b"false" | b"[" | b"test"
        ) {
            return false;
        }
        let hands_on = matches!(
            name,
            b"sh"
                | b"bash"
                | b"dash"
                | b"ash"
                | b"ksh"
                | b"eval"
                | b"env"
                | b"nice"
                | b"nohup"
                | b"setsid"
                | b"timeout"
                | b"exec"
        ) || self.text.contains_str("$(")
            || self.text.contains(&b'`');
        let text = if hands_on { &self.text } else { &self.bare };
        has_live_call(text, event)
    }
}

fn shown(text: &[u8]) -> String {
    crate::text::one_line(&text.to_str_lossy(), 60)
}

/// Tells whether a condition is one of the usual ways to write "never".
fn is_never(condition: &[u8]) -> bool {
    let plain: Vec<u8> = condition
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'"' | b'\''))
        .collect();
    let words: Vec<&[u8]> = plain.fields_with(char::is_whitespace).collect();
    let inside: &[&[u8]] = match words.as_slice() {
        [b"false" | b"/bin/false" | b"/usr/bin/false"] | [b"!", b"true" | b":"] => return true,
        [b"test", inside @ ..] | [b"[", inside @ .., b"]"] | [b"[[", inside @ .., b"]]"] => inside,
        _ => return false,
    };
    let number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    match inside {
        [] => true,
        [one, b"=" | b"==" | b"-eq", other] => number(one) && number(other) && one != other,
        _ => false,
    }
}

impl Script {
    /// Says why nothing that stands at the end is reached, if that can be seen.
    fn keeps_from(&self) -> Option<String> {
        let ends = self.commands.iter().find(|command| command.ends());
        ends.map(Command::ends_before).or_else(|| self.wraps())
    }

    /// Says what the end stands inside of.
    fn wraps(&self) -> Option<String> {
        if let Some(line) = self.open_text {
            return Some(format!("it is part of a text that begins in line {line}"));
        }
        let around = self.around.iter().find(|around| !around.is_plain())?;
        let what = match around.kind {
            Kind::Group | Kind::Subshell => "a group of commands",
            Kind::Function => "a function",
            Kind::If | Kind::Case => "a condition",
            Kind::Loop => "a loop",
        };
        Some(format!(
            "it stands inside {what} that begins in line {}",
            around.line
        ))
    }

    fn read(content: &[u8]) -> Self {
        Reader::new().read(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "git-takeup hook git post-commit \"$@\" || :\n";

    fn reached(script: &str) -> Option<bool> {
        match line_in(script.as_bytes(), "post-commit") {
            Entry::Missing => None,
            Entry::Runs => Some(true),
            Entry::Idle(_) => Some(false),
        }
    }

    /// The judge is the shell: a program of that name tells whether it was called.
    fn called(script: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            crate::files::write_atomic(&path, text.as_bytes(), 0o755).unwrap();
            path
        };
        put("git-takeup", "#!/bin/sh\necho called >&9\n");
        let script = put("script", script);
        // Scripts ask for variables, and `CI` is set where tests like to run.
        let output = std::process::Command::new("sh")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .args(["-c", "exec 9>&1 >/dev/null; PATH=$1:$PATH; . \"$2\"", "sh"])
            .args([folder.path(), &script])
            .stderr(std::process::Stdio::null())
            .output()
            .unwrap();
        output.stdout.starts_with(b"called")
    }

    #[test]
    fn a_line_that_is_reached_counts() {
        for around in [
            "@",
            "#!/bin/sh\nset -e\n@exit 0\n",
            "[ -n \"$CI\" ] && exit 0\n@",
            "test -n x || { echo no; exit 0; }\n@",
            "if [ -z x ]; then exit 1; fi\n@",
            "if [ -z x ]\nthen\n  exit 1\nelse\n@fi\n",
            "case x in\n  y) exit 0 ;;\n  (z) exit 1;;\nesac\n@",
            "f() { exit 3; }\n@",
            "f()\n{\n  return 3\n}\n( exit 3 )\n@",
            "exec 2>&1\nexec 3>/dev/null\n@",
            "echo 'exit\n exit 0\n' # exit\n@",
            "cat <<EOF\nexit 0\nEOF\n@",
            "cat <<-'EOF' && :\n\texit 0\n\tEOF\n@",
            "x=$(echo \"a) b\"; exit 0)\necho ${x#a} `exit 1` $((1+(2)))\n@",
            "for i in 1; do\n  : exit\ndone\n@",
            "while read -r x; do exit 1; done </dev/null\n@",
            "true && @",
            "( @) </dev/null >&2\n",
            "if command -v git-takeup >/dev/null; then\n@fi\n",
            "sh -c 'git-takeup hook git post-commit'\n",
            "x=$(git-takeup hook git post-commit)\n",
            "if false; then :; else\n@fi\n",
            "if false; then :; fi\n@",
            "if { test -z x || false; } && true; then\nexit 0\nfi\n@",
            "while { false; }; do\n{ exit 1; }\ndone\n@",
            "echo 'it'\\''s' \"\\\"\" \\\n exit 0\n@",
            "A=b git-takeup hook git post-commit\n",
            "command -v sh >/dev/null ||\n  exit 0\n@",
            "[ -n \"$NOTHING\" ] &&\n  exit 0\n@",
            "test -n x || # why\n\n  { echo no; exit 0; }\n@",
            "echo x |\n  exit 3\n@",
            "{ echo hi; exit 0; } 2>&1 | cat\n@",
            "{ exit 0; } &\n@",
            "exit 3 | cat\n@",
            "exit 0 &\n@",
            "( exit 0 ) | cat\n@",
            "msg=$(cat <<EOF\nit's done\nEOF\n)\n@",
            "msg=\"$(cat <<'EOF'\nit's (done\nEOF\n)\"\n@",
            "x=$(\n  # don't care\n  echo hi\n)\n@",
            "x=$((1 << 2))\n@",
            "cat << \"END OF IT\"\nexit 0 'x\nEND OF IT\n@",
        ] {
            let script = around.replace('@', LINE);
            assert!(called(&script), "{script}");
            assert_eq!(reached(&script), Some(true), "{script}");
        }
    }

    #[test]
    fn a_line_that_is_not_reached_is_told_from_one_that_is_not_there() {
        for around in [
            "exit 0\n@",
            "echo; exit\n@",
            "return 0\n@",
            "exec true\n@",
            "X=1 exec true x\n@",
            "{ exit 0; }\n@",
            "if false; then\n@fi\n",
            "if [ 0 = 1 ]\nthen\n  if true; then\n@  fi\nfi\n",
            "while false; do\n@done\n",
            "false && @",
            "false && {\n@}\n",
            "if ! true; then\n:\n@fi\n",
            "false &&\n  @",
        ] {
            let script = around.replace('@', LINE);
            assert!(!called(&script), "{script}");
            assert_eq!(reached(&script), Some(false), "{script}");
        }
        for script in [
            "echo \"run: git-takeup hook git post-commit\"\n",
            "echo run: git-takeup hook git post-commit\n",
            "printf '%s\\n' 'git-takeup hook git post-commit'\n",
            "# git-takeup hook git post-commit\n",
            ": <<'EOF'\ngit-takeup hook git post-commit\nEOF\n",
            "x='\ngit-takeup hook git post-commit\n'\n",
            "git-takeup hook git post-commit-msg\n",
        ] {
            assert!(
                script.contains("post-commit-msg") == called(script),
                "{script}"
            );
            assert_eq!(reached(script), None, "{script}");
        }
    }

    /// bash has a few words of its own.
    #[test]
    fn a_named_descriptor_ends_no_script() {
        let script = format!("exec {{lock}}>/dev/null\n{LINE}");
        assert_eq!(reached(&script), Some(true));
        assert_eq!(reached(&format!("(( x = 1 << 2 ))\n{LINE}")), Some(true));
    }

    #[test]
    fn our_text_is_looked_at_with_what_is_around_it() {
        let program = std::path::Path::new("/usr/bin/git-takeup");
        let ours = stub::inserted(b"#!/bin/sh\necho theirs\n", "post-commit", program).unwrap();
        let ours = String::from_utf8(ours).unwrap();
        let judge = |text: &str| call_in(text.as_bytes(), "post-commit", None) == Entry::Runs;
        assert!(judge(&ours));
        let kept = stub::file("post-commit", program, true);
        assert_eq!(call_in(&kept, "post-commit", None), Entry::Runs);
        let block = ours.split_once('\n').unwrap().1;
        let block = block.strip_suffix("echo theirs\n").unwrap();
        for changed in [
            ours.replace("\ntakeup_hook post", "\n# takeup_hook post"),
            ours.replace("#!/bin/sh\n", "#!/bin/sh\nexit 0\n"),
            format!("#!/bin/sh\nif false; then\n{block}fi\n"),
            format!("#!/bin/sh\nf() {{\n{block}}}\n"),
            format!("#!/bin/sh\n: <<'X'\n{block}X\n"),
            format!("#!/bin/sh\n: '\n{block}"),
            format!("#!/bin/sh\n{block}{block}"),
            ours.replace("return 0\n}", "return 1\n}"),
            ours.replace("# <<< takeup hook <<<\n", ""),
        ] {
            assert!(!judge(&changed), "{changed}");
            assert!(stub::find(changed.as_bytes()).is_some(), "{changed}");
        }
        // Of another version only its digest tells.
        let other = ours.replace("takeup hook 5 ", "takeup hook 4 ");
        let found = stub::find(other.as_bytes()).unwrap();
        let digest = stub::digest(stub::text_of(other.as_bytes(), found));
        let by = |digest| call_in(other.as_bytes(), "post-commit", digest);
        assert_eq!(by(Some(&digest)), Entry::Runs);
        assert_eq!(by(None), Entry::Runs);
        assert_ne!(by(Some("0")), Entry::Runs);
    }
}
