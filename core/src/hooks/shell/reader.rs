//! Reads a shell script as simple commands with what is around them.
use bstr::ByteSlice as _;

use super::{Around, Command, Kind, Script, is_never};

/// Reads a script byte by byte.
#[derive(Debug)]
pub(super) struct Reader {
    script: Script,
    /// The line, from one.
    line: usize,
    /// The command so far, and the same with blanks for what is between quotes.
    text: Vec<u8>,
    bare: Vec<u8>,
    /// The line in which it began.
    began: usize,
    chained: bool,
    /// The condition before lets nothing behind it be reached.
    cut_off: bool,
    /// The next group is the body of a function.
    names_function: bool,
    /// The ends of the texts that begin below this line, and whether tabs before them count for nothing.
    here: Vec<(Vec<u8>, bool)>,
}

impl Reader {
    pub(super) const fn new() -> Self {
        Self {
            script: Script {
                commands: Vec::new(),
                around: Vec::new(),
                open_text: None,
            },
            line: 1,
            text: Vec::new(),
            bare: Vec::new(),
            began: 0,
            chained: false,
            cut_off: false,
            names_function: false,
            here: Vec::new(),
        }
    }

    pub(super) fn read(mut self, content: &[u8]) -> Script {
        let mut at = 0;
        // What is open inside a word, with its line: a quote, or `)` and `}` for an expansion.
        let mut open: Vec<(u8, usize)> = Vec::new();
        while let Some(byte) = content.get(at).copied() {
            let rest = content.get(at + 1..).unwrap_or_default();
            let next = rest.first().copied();
            let inner = open.last().map(|(inner, _)| *inner);
            let mut take = 1;
            match (inner, byte) {
                (Some(b'\''), _) => {
                    if byte == b'\'' {
                        open.pop();
                    }
                    self.push(&[byte], true);
                }
                (_, b'\\') => {
                    take = 2;
                    match next {
                        Some(b'\n') => self.push(b" ", false),
                        Some(next) => self.push(&[byte, next], true),
                        None => {}
                    }
                }
                (_, b'$') if matches!(next, Some(b'(' | b'{')) => {
                    take = 2;
                    let brace = next == Some(b'{');
                    open.push((if brace { b'}' } else { b')' }, self.line));
                    self.push(if brace { b"${" } else { b"$(" }, true);
                }
                (Some(b')'), b'(') => {
                    open.push((b')', self.line));
                    self.push(&[byte], true);
                }
                (Some(end), _) if end == byte => {
                    open.pop();
                    self.push(&[byte], true);
                }
                (Some(b')'), b'<') if next == Some(b'<') => {
                    take = 2;
                    self.text_begins(rest.get(1..).unwrap_or_default());
                    self.push(b"<<", true);
                }
                (Some(b')'), b'\n') if !self.here.is_empty() => {
                    self.push(b"\n", true);
                    take += self.skip_texts(rest);
                }
                (Some(b')'), b'#')
                    if self.text.last().is_none_or(|byte| b" \t\n(".contains(byte)) =>
                {
                    take += rest.iter().take_while(|byte| **byte != b'\n').count();
                }
                (_, b'"' | b'`') | (None | Some(b')'), b'\'') => {
                    open.push((byte, self.line));
                    self.push(&[byte], true);
                }
                (Some(_), _) => self.push(&[byte], true),
                (None, b'#') if self.text.last().is_none_or(u8::is_ascii_whitespace) => {
                    take += rest.iter().take_while(|byte| **byte != b'\n').count();
                }
                (None, b'\n') => {
                    self.finish(b';');
                    take += self.skip_texts(rest);
                }
                (None, b'<') if next == Some(b'<') => {
                    take = 2;
                    let behind = rest.get(1..).unwrap_or_default();
                    if behind.starts_with(b"<") {
                        take = 3;
                    } else {
                        self.text_begins(behind);
                    }
                    self.push(b"<<", false);
                }
                (None, b'(') if next == Some(b')') && !self.text.ends_with(b"=") => {
                    take = 2;
                    self.names_function = true;
                    self.text.clear();
                    self.bare.clear();
                }
                (None, b'&')
                    if self.text.ends_with(b">")
                        || self.text.ends_with(b"<")
                        || next == Some(b'>') =>
                {
                    self.push(&[byte], false);
                }
                (None, b'&' | b'|') if next == Some(byte) => {
                    take = 2;
                    self.finish(byte);
                }
                (None, b'|') => self.finish(b'p'),
                (None, b'&') => self.finish(b'b'),
                (None, b';') => self.finish(b';'),
                (None, b'(') => {
                    self.finish(b'(');
                    self.enter(Kind::Subshell);
                }
                (None, b')') => {
                    self.finish(b';');
                    // That behind a pattern closes nothing.
                    self.leave(Kind::Subshell, b';');
                }
                (None, _) => self.push(&[byte], false),
            }
            let taken = content.get(at..at + take).unwrap_or_default();
            self.line += taken.find_iter("\n").count();
            at += take;
        }
        self.finish(b';');
        if let Some((_, line)) = open.first() {
            self.script.open_text = Some(*line);
        }
        self.script
    }

    fn push(&mut self, bytes: &[u8], quoted: bool) {
        if self.text.is_empty() {
            if !quoted && bytes.trim().is_empty() {
                return;
            }
            self.began = self.line;
        }
        self.text.extend_from_slice(bytes);
        if quoted {
            self.bare.extend(bytes.iter().map(|_| b'_'));
        } else {
            self.bare.extend_from_slice(bytes);
        }
    }

    /// Notes the end of a text that begins below this line.
    fn text_begins(&mut self, behind: &[u8]) {
        let (dash, behind) = match behind.strip_prefix(b"-") {
            Some(behind) => (true, behind),
            None => (false, behind),
        };
        let behind = behind.trim_start_with(|c| c == ' ' || c == '\t');
        let quote = behind.first().filter(|byte| b"\"'".contains(byte));
        let word: Vec<u8> = match quote {
            Some(quote) => behind
                .iter()
                .skip(1)
                .copied()
                .take_while(|byte| byte != quote && *byte != b'\n')
                .collect(),
            None => behind
                .iter()
                .copied()
                .take_while(|byte| !byte.is_ascii_whitespace() && !b";&|)<>".contains(byte))
                .filter(|byte| !matches!(byte, b'"' | b'\'' | b'\\'))
                .collect(),
        };
        // A number is shifted by in arithmetic.
        if word.first().is_some_and(|byte| !byte.is_ascii_digit()) {
            self.here.push((word, dash));
        }
    }

    /// Returns the length of the texts that begin here.
    fn skip_texts(&mut self, rest: &[u8]) -> usize {
        let mut length = 0;
        let mut ends = std::mem::take(&mut self.here).into_iter();
        let mut end = ends.next();
        for line in rest.lines_with_terminator() {
            let Some((word, dash)) = &end else { break };
            length += line.len();
            let text = line.trim_end_with(|c| c == '\n');
            let text = if *dash {
                text.trim_start_with(|c| c == '\t')
            } else {
                text
            };
            if text == word.as_slice() {
                end = ends.next();
            }
        }
        if end.is_some() {
            self.script.open_text = Some(self.line);
        }
        length
    }

    fn enter(&mut self, kind: Kind) {
        let kind = if std::mem::take(&mut self.names_function) {
            Kind::Function
        } else {
            kind
        };
        self.script.around.push(Around {
            kind,
            line: if self.began == 0 {
                self.line
            } else {
                self.began
            },
            never: self.cut_off,
            chained: self.chained,
            first: self.script.commands.len(),
        });
    }

    /// Leaves what is around; `by` is what stands behind it.
    fn leave(&mut self, kind: Kind, by: u8) {
        let is_it = |around: &Around| around.kind == kind || around.kind == Kind::Function;
        if self.script.around.last().is_some_and(is_it)
            && let Some(around) = self.script.around.pop()
            && is_apart(by)
        {
            for command in self.script.commands.iter_mut().skip(around.first) {
                command.apart = true;
            }
        }
    }

    /// Ends a command; `by` is what stands behind it: `;` also for line ends, `&` and `|` for the doubled ones, `p` for a
    /// pipe, `b` where it is not waited for.
    fn finish(&mut self, by: u8) {
        if by == b';' && self.chained && self.text.trim().is_empty() {
            // The command goes on in the next line.
            self.text.clear();
            self.bare.clear();
            return;
        }
        let text = std::mem::take(&mut self.text);
        let bare = std::mem::take(&mut self.bare);
        let (mut text, mut bare) = (text.trim(), bare.trim());
        let mut condition = None;
        loop {
            let end = bare.find_byteset(b" \t\n").unwrap_or(bare.len());
            let (word, behind) = bare.split_at_checked(end).unwrap_or_default();
            match word {
                b"if" | b"while" | b"until" => {
                    self.enter(if word == b"if" { Kind::If } else { Kind::Loop });
                    condition = (word != b"until").then_some(self.script.around.len());
                }
                b"for" | b"select" | b"case" => {
                    self.enter(if word == b"case" {
                        Kind::Case
                    } else {
                        Kind::Loop
                    });
                    self.chained = false;
                    return;
                }
                b"function" => {
                    self.names_function = true;
                    if behind.ends_with(b"{") {
                        self.enter(Kind::Group);
                    }
                    return;
                }
                b"{" => self.enter(Kind::Group),
                b"}" => self.leave(Kind::Group, by),
                b"fi" => self.leave(Kind::If, by),
                b"done" => self.leave(Kind::Loop, by),
                b"esac" => self.leave(Kind::Case, by),
                b"else" | b"elif" => {
                    if let Some(around) = self.script.around.last_mut() {
                        around.never = false;
                    }
                }
                b"then" | b"do" => {}
                _ => break,
            }
            text = text.get(end..).unwrap_or_default().trim_start();
            bare = behind.trim_start();
        }
        if !text.is_empty() {
            self.command(text, bare, by);
        }
        if matches!(by, b';' | b'b')
            && condition == Some(self.script.around.len())
            && is_never(text)
            && let Some(around) = self.script.around.last_mut()
        {
            around.never = true;
        }
        match by {
            b'&' => self.cut_off |= is_never(text),
            b'|' => self.cut_off = matches!(text, b"true" | b":"),
            b'(' if text.is_empty() => {}
            _ => self.cut_off = false,
        }
        self.chained = match by {
            b'(' => text.is_empty() && self.chained,
            by => !matches!(by, b';' | b'b'),
        };
    }

    fn command(&mut self, text: &[u8], bare: &[u8], by: u8) {
        let line = self.began;
        let around = self.script.around.iter().find(|around| around.never);
        let never = match around {
            Some(around) => Some(format!(
                "it stands inside a condition that never holds, which begins in line {}",
                around.line
            )),
            None if self.cut_off => Some(format!(
                "it stands behind a condition that never holds, in line {line}"
            )),
            None => None,
        };
        self.script.commands.push(Command {
            text: text.to_vec(),
            bare: bare.to_vec(),
            line,
            chained: self.chained,
            apart: is_apart(by),
            on_top: self.script.around.iter().all(Around::is_plain),
            never,
        });
    }
}

/// Tells whether a command runs beside the script, by what stands behind it.
const fn is_apart(by: u8) -> bool {
    matches!(by, b'p' | b'b')
}
