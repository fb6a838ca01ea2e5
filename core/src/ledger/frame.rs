//! The frame around every record of the ledger: a JSON object on one line that ends with its own checksum.
//!
//! `{…,"sum":"<64 hexadecimal digits>"}`: `sum` is the SHA-256 over every byte of the line before `,"sum":`. In a line of
//! the journal those bytes hold `prev`, the sum of the line before, so the lines make a chain. The frame is the same in
//! every version of the format, so that a record of a newer version is told from a damaged one.
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::issue::IssueKind;

/// The version of the format that is read and written here.
pub(super) const VERSION: u32 = 1;

/// A checksum: 64 lower-case hexadecimal digits.
pub(super) type Sum = String;

/// The sum that stands before the first line.
pub(super) fn origin() -> Sum {
    "0".repeat(64)
}

const MARK: &[u8] = b",\"sum\":\"";
const DIGITS: usize = 64;
const END: &[u8] = b"\"}";

/// Puts a record into its frame; the newline is not part of it. Returns the line and its sum.
pub(super) fn seal(record: &impl Serialize) -> serde_json::Result<(Vec<u8>, Sum)> {
    let mut line = serde_json::to_vec(record)?;
    line.pop();
    let sum = sum_of(&line);
    line.extend_from_slice(MARK);
    line.extend_from_slice(sum.as_bytes());
    line.extend_from_slice(END);
    Ok((line, sum))
}

pub(super) fn sum_of(bytes: &[u8]) -> Sum {
    crate::text::hex(&Sha256::digest(bytes))
}

/// Checks the frame of a line without its newline and returns the sum it ends with.
pub(super) fn check(line: &[u8]) -> Result<&str, IssueKind> {
    if line.contains(&0) {
        return Err(IssueKind::Zeroed);
    }
    let parts = line
        .strip_suffix(END)
        .and_then(|line| line.split_last_chunk::<DIGITS>())
        .and_then(|(line, sum)| Some((line.strip_suffix(MARK)?, sum)));
    let Some((content, sum)) = parts else {
        return Err(IssueKind::Corrupt);
    };
    if sum_of(content).as_bytes() == sum {
        std::str::from_utf8(sum).map_err(|_| IssueKind::Corrupt)
    } else {
        Err(IssueKind::Checksum)
    }
}

/// Why a record with a sound frame is not read.
#[derive(Debug)]
pub(super) struct Newer {
    /// The version it names, or `None` where it names this one and still is not understood.
    pub(super) version: Option<u32>,
}

/// Reads a record whose frame was checked. What is not understood then was written by another version.
pub(super) fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, Newer> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    let version = || {
        serde_json::from_slice::<Versioned>(line)
            .ok()
            .map(|versioned| versioned.v)
    };
    match serde_json::from_slice::<T>(line) {
        Ok(record) => Ok(record),
        Err(_) => Err(Newer {
            version: version().filter(|version| *version != VERSION),
        }),
    }
}

/// Finds whole records inside a damaged line, such as two that are glued because the newline between them is gone.
pub(super) fn salvage(line: &[u8]) -> Vec<&[u8]> {
    use bstr::ByteSlice as _;
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(b"{\"v\":") {
        let (_, from) = rest.split_at(start);
        let end = from
            .find(MARK)
            .map(|mark| mark + MARK.len() + DIGITS + END.len());
        let whole = end
            .and_then(|end| from.get(..end))
            .filter(|record| check(record).is_ok());
        let (taken, behind) = match whole {
            Some(record) => (Some(record), record.len()),
            None => (None, 1),
        };
        found.extend(taken);
        rest = from.get(behind..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Sample {
        v: u32,
        text: String,
    }

    fn sample(text: &str) -> Vec<u8> {
        let record = Sample {
            v: VERSION,
            text: text.to_owned(),
        };
        seal(&record).unwrap().0
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let line = sample("a \"quoted\" text, ü");
        assert!(check(&line).is_ok());
        for at in 0..line.len() {
            for flip in [1_u8, 0x20, 0x80, 0xff] {
                let mut other = line.clone();
                other[at] ^= flip;
                assert!(check(&other).is_err(), "byte {at} with {flip}");
            }
            assert!(check(&line[..at]).is_err());
        }
    }

    #[test]
    fn glued_records_are_found_again() {
        let (one, two) = (sample("one"), sample("{\"v\":1 two"));
        let mut glued = b"rubbish\0".to_vec();
        glued.extend_from_slice(&one);
        glued.push(b'X');
        glued.extend_from_slice(&two);
        glued.extend_from_slice(&one[..20]);
        assert_eq!(salvage(&glued), [one.as_slice(), two.as_slice()]);
    }
}
