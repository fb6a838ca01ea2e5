//! Everything that reads bytes of others, with a fixed corpus and seeded changes of it: the same functions that `fuzz/` calls.
//! None of them may panic or hang; what they say is not asked here.
use std::path::{Path, PathBuf};

use takeup_tests::readers::READERS;

use super::Dice;

/// How often each piece of the corpus is changed.
const ROUNDS: usize = 25;

/// What a reader is given first: a few of the shapes that readers fall over, and the pieces in `fixtures/readers/NAME`: files of
/// the real programs, and everything that a fuzzer found once.
fn corpus(reader: &str) -> Vec<Vec<u8>> {
    let mut all = vec![
        Vec::new(),
        vec![b'['; 20_000],
        vec![0; 100],
        b"{\"a\":1e999}\n".to_vec(),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/readers")
        .join(reader);
    let mut pieces: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    pieces.sort();
    assert!(!pieces.is_empty(), "{reader} has no pieces");
    all.extend(pieces.iter().map(|piece| std::fs::read(piece).unwrap()));
    all
}

/// Changes bytes in one of the ways in which disks and strangers do.
fn changed(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.roll(3) {
        let size = bytes.len() as u64;
        let at = usize::try_from(dice.roll(size.max(1)))
            .unwrap()
            .min(bytes.len());
        let to = (at + usize::try_from(dice.roll(40)).unwrap()).min(bytes.len());
        match dice.roll(8) {
            0 | 1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.roll(8);
                }
            }
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..to)),
            4 => bytes[at..to].fill(0),
            5 => {
                let piece = bytes[at..to].to_vec();
                bytes.splice(at..at, piece);
            }
            6 => {
                let words: [&[u8]; 8] = [
                    b"\\ud800",
                    b"-1",
                    b"99999999999999999999",
                    b"null",
                    b"{",
                    b"\"",
                    b"\xff",
                    b"\n",
                ];
                bytes.splice(at..to, dice.pick(&words).iter().copied());
            }
            _ => {
                for byte in &mut bytes[at..to] {
                    *byte = dice.roll(256) as u8;
                }
            }
        }
    }
    bytes
}

#[test]
fn no_reader_falls_over_bytes_of_others() {
    for (name, read) in READERS {
        let mut dice = Dice(name.len() as u64);
        for piece in corpus(name) {
            read(&piece);
            for round in 0..ROUNDS {
                let bytes = changed(&piece, &mut dice);
                let failed = std::panic::catch_unwind(|| read(&bytes)).is_err();
                assert!(
                    !failed,
                    "{name}, round {round}: {:?}",
                    String::from_utf8_lossy(&bytes)
                );
            }
        }
    }
}
