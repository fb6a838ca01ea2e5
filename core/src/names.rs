//! Names that people can say, for sessions that bring none: two words, as jcode's are one.
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

const FIRST: [&str; 64] = [
    "amber", "ancient", "autumn", "bold", "brave", "bright", "calm", "clear", "clever", "cold",
    "coral", "crisp", "curious", "daring", "deep", "distant", "eager", "early", "fair", "fleet",
    "fresh", "gentle", "golden", "grand", "green", "happy", "hidden", "honest", "humble", "icy",
    "keen", "kind", "late", "light", "lively", "lucky", "mellow", "misty", "modest", "noble",
    "nimble", "open", "pale", "patient", "plain", "polite", "proud", "quick", "quiet", "rapid",
    "rare", "ready", "royal", "sharp", "silent", "silver", "smooth", "steady", "sunny", "swift",
    "tidy", "vivid", "warm", "wise",
];

const SECOND: [&str; 64] = [
    "acorn", "anchor", "badger", "beacon", "birch", "bison", "brook", "canyon", "cedar", "comet",
    "condor", "coyote", "crane", "delta", "dolphin", "ember", "falcon", "fern", "finch", "fjord",
    "forest", "fox", "glacier", "grove", "harbor", "hawk", "hazel", "heron", "ibis", "island",
    "jaguar", "juniper", "kestrel", "lagoon", "lantern", "lark", "lynx", "maple", "marten",
    "meadow", "mesa", "moon", "oak", "orchid", "otter", "owl", "panda", "pebble", "pine", "puffin",
    "quartz", "raven", "reef", "river", "robin", "sable", "spruce", "stork", "summit", "tiger",
    "valley", "willow", "wolf", "wren",
];

/// Returns a name such as `quiet-otter` that `taken` does not know. When all 4,096 are taken a number is added.
pub fn memorable(taken: impl Fn(&str) -> bool) -> String {
    let seed = RandomState::new().build_hasher().finish();
    pick(seed, taken)
}

fn pick(seed: u64, taken: impl Fn(&str) -> bool) -> String {
    let count = (FIRST.len() * SECOND.len()) as u64;
    for step in 0..count {
        // 1,657 shares no factor with 4,096, so every pair is tried once.
        let number = seed.wrapping_add(step.wrapping_mul(1_657)) % count;
        let name = name(number);
        if !taken(&name) {
            return name;
        }
    }
    (2..u64::MAX)
        .map(|round| format!("{}-{round}", name(seed % count)))
        .find(|name| !taken(name))
        .unwrap_or_default()
}

fn name(number: u64) -> String {
    let word = |words: &[&'static str], number: u64| {
        usize::try_from(number)
            .ok()
            .and_then(|index| words.get(index % words.len()))
            .copied()
            .unwrap_or("takeup")
    };
    format!(
        "{}-{}",
        word(&FIRST, number / SECOND.len() as u64),
        word(&SECOND, number)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_given_once_and_then_numbered() {
        let mut taken = BTreeSet::new();
        for _ in 0..4_096 {
            let name = pick(7, |name| taken.contains(name));
            assert!(taken.insert(name));
        }
        assert!(pick(7, |name| taken.contains(name)).ends_with("-2"));
    }
}
