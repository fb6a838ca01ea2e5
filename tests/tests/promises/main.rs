//! The eight promises, one module each, through the real program. A module's first lines say where else a promise is proved.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests: a failure ends the test"
)]
mod compatibility;
mod homes;
mod hostile;
mod look;
mod mcp;
mod p1_never_a_wrong_yes;
mod p2_one_winner;
mod p3_no_lost_record;
mod p4_corrupt_is_never_empty;
mod p5_looking_is_not_writing;
mod p6_the_repository_stays_as_it_is;
mod p7_a_commit_is_never_blocked;
mod p8_secrets_stay_out;
mod readers;
mod world;

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");

/// A source of numbers that gives the same ones for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
    }
}
