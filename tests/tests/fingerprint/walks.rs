//! Random walks, judged by plain git after every step. A longer one: `cargo xtask soak fingerprint`.
use takeup_tests::fingerprint::walk::Walk;

/// Steps of all walks together; `TAKEUP_WALK_STEPS` and `TAKEUP_WALK_SEED` change them.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn random_walks_agree_with_plain_git() {
    let steps = number("TAKEUP_WALK_STEPS", 400);
    let seed = number("TAKEUP_WALK_SEED", 20_261_129);
    let mut done = 0;
    for walk_number in 0.. {
        let mut walk = Walk::new(seed + walk_number);
        for _ in 0..100 {
            if let Err(difference) = walk.step() {
                panic!("{difference:#?}");
            }
            done += 1;
            if done == steps {
                return;
            }
        }
    }
}
