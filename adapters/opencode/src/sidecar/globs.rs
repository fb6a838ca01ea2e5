//! The plugin's path patterns.

/// Tells whether a path matches a pattern: `**` any characters, `*` any but `/`, `?` one but `/`, anchored at both ends.
/// `\` counts as `/`, and one leading `./` is taken off, of both.
pub fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<char> = plain(pattern).chars().collect();
    let path: Vec<char> = plain(path).chars().collect();
    // `reached[j]`: the pattern so far matches the first j characters. One row a pattern part: no pattern takes longer.
    let mut reached = vec![false; path.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    let mut rest = pattern.as_slice();
    while let Some((&part, tail)) = rest.split_first() {
        rest = tail;
        let mut next = vec![false; reached.len()];
        if part == '*' {
            let any = tail.first() == Some(&'*');
            if any {
                rest = tail.get(1..).unwrap_or_default();
            }
            let mut running = false;
            for (at, slot) in next.iter_mut().enumerate() {
                let crossed = at
                    .checked_sub(1)
                    .and_then(|before| path.get(before))
                    .is_some_and(|c| any || *c != '/');
                running = reached.get(at).copied().unwrap_or(false) || (running && crossed);
                *slot = running;
            }
        } else {
            for (at, c) in path.iter().enumerate() {
                let fits = if part == '?' { *c != '/' } else { *c == part };
                if fits
                    && reached.get(at).copied().unwrap_or(false)
                    && let Some(slot) = next.get_mut(at + 1)
                {
                    *slot = true;
                }
            }
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

fn plain(text: &str) -> String {
    let text = text.replace('\\', "/");
    text.strip_prefix("./")
        .map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_the_plugin() {
        for (pattern, path, yes) in [
            ("packages/**", "packages/shared/token.ts", true),
            ("packages/**", "packages", false),
            ("packages/*", "packages/shared/token.ts", false),
            ("./src\\*.ts", "src/a.ts", true),
            ("src/?.ts", "src/a.ts", true),
            ("src/?.ts", "src//.ts", false),
            ("**/*.lock", "Cargo.lock", false),
            ("**/*.lock", "a/b/c.lock", true),
            ("a.ts", "axts", false),
            ("*", "a", true),
            ("", "", true),
            ("**", "", true),
        ] {
            assert_eq!(matches(pattern, path), yes, "{pattern} {path}");
        }
        // No pattern takes long.
        assert!(!matches(&"*a".repeat(200), &"a".repeat(150)));
    }
}
