//! Times and sizes as people write them.
use std::time::Duration;

/// The longest time that is taken.
const LONGEST: Duration = Duration::from_hours(100 * 366 * 24);

/// Reads a time such as `90s`, `5m`, `1h 30m` or `2d`; a bare number counts seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return bounded(text, Duration::from_secs(seconds));
    }
    let wrong = || format!("{text:?} is no time; write 90s, 5m, 1h 30m or 2d");
    let mut sum = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at_checked(end).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let end = tail
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end).ok_or_else(wrong)?;
        let piece = match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" | "min" => Duration::from_secs(number.checked_mul(60).ok_or_else(wrong)?),
            "h" => Duration::from_secs(number.checked_mul(3_600).ok_or_else(wrong)?),
            "d" => Duration::from_secs(number.checked_mul(86_400).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        };
        sum = sum.checked_add(piece).ok_or_else(wrong)?;
        rest = tail.trim_start();
    }
    bounded(text, sum)
}

/// Refuses what is longer than any moment we can name.
fn bounded(text: &str, time: Duration) -> Result<Duration, String> {
    if time > LONGEST {
        return Err(format!("{text:?} is longer than a hundred years"));
    }
    Ok(time)
}

/// As [`duration`], and not nothing.
pub(super) fn some_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!(
            "{text:?} leaves no time at all; without it there is no limit"
        )),
        some => Ok(some),
    }
}

/// As [`size`], and not nothing.
pub(super) fn some_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err(format!(
            "{text:?} leaves no room at all; without it there is no limit"
        )),
        some => Ok(some),
    }
}

/// Reads a size such as `512M` or `2GiB`; a bare number counts bytes, units are powers of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; write 65536, 512M or 2G");
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).ok_or_else(wrong)
}

/// Writes how long something took, in at most two units.
pub(super) fn span(millis: i64) -> String {
    let seconds = millis / 1000;
    match seconds {
        ..1 => format!("{millis}ms"),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Writes a number of bytes.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "one decimal for people")]
    let mut value = count as f64 / 1024.0;
    let mut unit = "KiB";
    for name in UNITS {
        unit = name;
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_as_people_write_them() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("2d"), Ok(Duration::from_hours(48)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "1", "5x", "m", "1h30", "-1s", "99999999999999999999d"] {
            assert!(duration(wrong).is_err() || wrong == "1", "{wrong}");
        }
        for wrong in ["99999999999999d", "99999999999999", "36601d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(some_duration("0s").is_err() && some_size("0k").is_err());
        assert_eq!(some_duration("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(some_size("1"), Ok(1));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("17"), Ok(17));
        for wrong in ["", "M", "5x", "-1", "99999999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_and_bytes_are_short() {
        assert_eq!(span(250), "250ms");
        assert_eq!(span(61_000), "1m 01s");
        assert_eq!(span(3_600_000), "1h 00m");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 30), "5.0 GiB");
    }
}
