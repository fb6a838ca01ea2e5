//! The one printer: where text meets the terminal. Strangers' text has had its control characters taken out before; what
//! was overlooked stops here ([`text::styled`]).
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use takeup_core::text;
use takeup_core::time::Time;
use unicode_width::UnicodeWidthStr as _;

/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Good news.
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
/// Something to look at.
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Bad news.
pub(crate) const RED: Style = AnsiColor::Red.on_default();
/// Commands.
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// Puts a style around a text.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Why something that was printed on standard output did not get there, the first time it happened.
static LOST: OnceLock<io::ErrorKind> = OnceLock::new();

/// Returns why standard output did not take everything; `None` where it did, and where its reader went away.
pub(crate) fn lost() -> Option<io::ErrorKind> {
    LOST.get().copied()
}

/// Prints on standard output. A reader that went away is no failure; any other is kept for [`lost`].
pub(crate) fn out(text: &str) {
    let mut stream = anstream::stdout().lock();
    let written = stream
        .write_all(text::styled(text).as_bytes())
        .and_then(|()| stream.flush());
    note(written.as_ref().err());
}

/// Prints on standard output for a hook, which never fails.
pub(crate) fn out_where_possible(text: &str) {
    let mut stream = io::stdout().lock();
    let _done: io::Result<()> = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush());
}

/// Prints bytes on standard output as they are. Fails also where the reader went away; other failures are kept for
/// [`lost`].
pub(crate) fn out_raw(bytes: &[u8]) -> io::Result<()> {
    let mut stream = io::stdout().lock();
    let written = stream.write_all(bytes).and_then(|()| stream.flush());
    note(written.as_ref().err());
    written
}

/// Prints a JSON document and a line end on standard output.
pub(crate) fn out_json(mut json: String) {
    json.push('\n');
    // A reader that went away is no failure, and any other is kept.
    let _done: io::Result<()> = out_raw(text::escaped_json(&json).as_bytes());
}

fn note(error: Option<&io::Error>) {
    if let Some(error) = error
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.kind());
    }
}

/// Prints on standard error. A reader that went away is no failure.
pub(crate) fn err(text: &str) {
    let mut stream = anstream::stderr().lock();
    let _done: io::Result<()> = stream
        .write_all(text::styled(text).as_bytes())
        .and_then(|()| stream.flush());
}

/// Returns the width of the terminal, 80 where there is none; never less than 40.
pub(crate) fn width() -> usize {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return 80;
    }
    rustix::termios::tcgetwinsize(&stdout)
        .ok()
        .map(|size| usize::from(size.ws_col))
        // A terminal that nobody gave a size says none.
        .filter(|columns| *columns > 0)
        .unwrap_or(80)
        .clamp(40, 160)
}

/// Says how long ago something was, in one unit, such as `3 minutes ago`.
pub(crate) fn ago(now: Time, then: Time) -> String {
    let seconds = now.since(then) / 1000;
    if seconds < -60 {
        return "in the future".to_owned();
    }
    let (number, unit) = match seconds {
        ..5 => return "just now".to_owned(),
        5..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        86_400..2_592_000 => (seconds / 86_400, "day"),
        2_592_000..31_536_000 => (seconds / 2_592_000, "month"),
        _ => (seconds / 31_536_000, "year"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural} ago")
}

/// Says how long ago something was, and of what is an hour old and more also at what time of the user's clock.
pub(crate) fn when(now: Time, then: Time) -> String {
    let long = ago(now, then);
    if now.since(then) < 3_600_000 {
        return long;
    }
    let local = |time: Time| {
        let moment = jiff::Timestamp::from_millisecond(time.millis()).ok()?;
        Some(moment.to_zoned_datetime(jiff::tz::TimeZone::system()))
    };
    match (local(now), local(then)) {
        (Some(today), Some(then)) if today.date() == then.date() => {
            format!("{long}, {}", then.strftime("%H:%M"))
        }
        (_, Some(then)) => format!("{long}, {}", then.strftime("%F %H:%M")),
        (_, None) => long,
    }
}

/// Breaks a text without styles into lines of at most `width` columns, at spaces where there are any.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let gap = usize::from(!line.is_empty());
            if !line.is_empty() && line.width() + gap + word.width() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// Writes a text below a first column: `label` padded to `column`, then the text wrapped beside it.
pub(crate) fn field(label: &str, column: usize, text: &str) -> String {
    let room = width().saturating_sub(column).max(20);
    let mut result = String::new();
    for (number, line) in wrap(text, room).into_iter().enumerate() {
        let head = if number == 0 { label } else { "" };
        let pad = column.saturating_sub(head.width());
        // Writing to a string cannot fail.
        let _: std::fmt::Result = writeln!(result, "{}{}{line}", paint(DIM, head), " ".repeat(pad));
    }
    result
}

/// Cuts a text to `width` columns and marks the cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut result = String::new();
    let mut used = 0;
    for c in text.chars() {
        let mut buffer = [0; 4];
        let columns = c.encode_utf8(&mut buffer).width();
        if used + columns + 1 > width {
            break;
        }
        used += columns;
        result.push(c);
    }
    result.push('…');
    result
}

/// Aligns rows in columns two spaces apart; the last column is not padded. Cells may hold styles.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let plain = |cell: &str| anstream::adapter::strip_str(cell).to_string().width();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| plain(cell))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if column + 1 < row.len() {
                let wide = widths.get(column).copied().unwrap_or(0);
                line.push_str(&" ".repeat(wide.saturating_sub(plain(cell)) + 2));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Quotes words so that the line can be pasted into a POSIX shell.
pub(crate) fn shell<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    text::command_line(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_in_one_unit() {
        let now = Time::from_millis(10_000_000_000);
        for (millis, text) in [
            (0, "just now"),
            (61_000, "1 minute ago"),
            (7_200_000, "2 hours ago"),
            (172_800_000, "2 days ago"),
        ] {
            assert_eq!(ago(now, Time::from_millis(now.millis() - millis)), text);
        }
        assert_eq!(
            ago(now, Time::from_millis(now.millis() + 100_000)),
            "in the future"
        );
    }

    #[test]
    fn what_is_older_has_its_time_of_day() {
        let now = Time::from_millis(10_000_000_000);
        let then = |millis| when(now, Time::from_millis(now.millis() - millis));
        assert_eq!(then(3_599_000), "59 minutes ago");
        // The zone is that of the machine: minutes are the same in most, and the day may be another one an hour ago.
        for (millis, begin) in [
            (3_600_000, "1 hour ago, "),
            (172_800_000, "2 days ago, 1970-"),
        ] {
            let said = then(millis);
            assert!(said.starts_with(begin), "{said}");
            assert_eq!(said.matches(':').count(), 1, "{said}");
        }
    }

    #[test]
    fn lines_wrap_and_are_cut_by_columns() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("abc", 3), "abc");
    }

    #[test]
    fn commands_are_safe_to_paste() {
        assert_eq!(
            shell(["git", "takeup", "resume", "a b; rm"]),
            "git takeup resume 'a b; rm'"
        );
    }
}
