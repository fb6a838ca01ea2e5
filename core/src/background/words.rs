//! Names people can say.

const FIRST: [&str; 64] = [
    "amber", "ancient", "autumn", "bold", "brave", "bright", "brisk", "calm", "clear", "clever",
    "cobalt", "copper", "coral", "crimson", "crisp", "deep", "distant", "eager", "early", "easy",
    "faint", "fair", "fleet", "gentle", "golden", "grand", "green", "happy", "hidden", "icy",
    "indigo", "ivory", "jade", "jolly", "keen", "kind", "late", "light", "little", "lively",
    "lucky", "mellow", "merry", "misty", "modest", "noble", "olive", "pale", "plain", "proud",
    "quick", "quiet", "rapid", "royal", "ruby", "silent", "silver", "simple", "steady", "still",
    "sunny", "swift", "warm", "wild",
];

const SECOND: [&str; 64] = [
    "alder", "anchor", "aspen", "badger", "barley", "beacon", "birch", "brook", "canyon", "cedar",
    "clover", "comet", "condor", "coyote", "crane", "delta", "ember", "falcon", "fern", "finch",
    "fjord", "garnet", "glacier", "harbor", "hazel", "heron", "island", "juniper", "kestrel",
    "lagoon", "lark", "lemur", "linden", "lynx", "maple", "marten", "meadow", "meteor", "mistral",
    "moss", "nebula", "orchid", "osprey", "otter", "panda", "pebble", "plover", "poppy", "prairie",
    "quartz", "raven", "ridge", "river", "robin", "sparrow", "spruce", "summit", "thicket",
    "tundra", "valley", "walnut", "willow", "wren", "zephyr",
];

/// Makes a name of a random number.
pub(super) fn name(random: u64) -> String {
    let pick = |words: &[&'static str; 64], number: u64| {
        words
            .get(usize::try_from(number % 64).unwrap_or(0))
            .copied()
            .unwrap_or("plain")
    };
    format!("{}-{}", pick(&FIRST, random), pick(&SECOND, random >> 6))
}
