//! Moments, and the clock that is passed in wherever one is needed.
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment in UTC with millisecond precision, written as `2026-03-04T05:06:07.089Z`.
///
/// The shape is that of OpenCode++, which compares these strings as text, so it is always written with three digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// 1970-01-01T00:00:00.000Z.
    pub const EPOCH: Self = Self(0);

    /// Returns the moment `millis` milliseconds after the Unix epoch, clamped to the years 1 to 9998.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(-62_135_596_800_000, 253_370_764_799_999))
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Returns how many milliseconds lie between `earlier` and this moment; negative when `earlier` is later.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(stamp) => write!(f, "{stamp:.3}"),
            Err(_) => write!(f, "1970-01-01T00:00:00.000Z"),
        }
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>()
            .map(|stamp| Self::from_millis(stamp.as_millisecond()))
            .map_err(|error| format!("not a time: {error}"))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// Tells the time. Passed in, so that tests are deterministic.
pub trait Clock {
    /// Returns the present moment.
    fn now(&self) -> Time;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock that is passed in everywhere else"
)]
impl Clock for SystemClock {
    fn now(&self) -> Time {
        // The machine's clock may say anything; what no calendar has is cut off.
        let now = std::time::SystemTime::now();
        let millis = |span: std::time::Duration| i64::try_from(span.as_millis());
        Time::from_millis(match now.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => millis(since).unwrap_or(i64::MAX),
            Err(before) => millis(before.duration()).map_or(i64::MIN, |span| -span),
        })
    }
}

/// A clock that stands still, for tests.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub Time);

impl Clock for FixedClock {
    fn now(&self) -> Time {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_three_digits_and_read_back() {
        let time: Time = "2026-03-04T05:06:07.089Z".parse().unwrap();
        assert_eq!(time.to_string(), "2026-03-04T05:06:07.089Z");
        assert_eq!(Time::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert!("yesterday".parse::<Time>().is_err());
        for extreme in [i64::MIN, i64::MAX] {
            let time = Time::from_millis(extreme);
            assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
        }
    }
}
