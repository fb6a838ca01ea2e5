//! What agents say of their own work at the end, and whether git agrees.
use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::SessionRef;
use crate::text;

/// What somebody said of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who.
    pub by: SessionRef,
    /// The sentence.
    pub text: String,
    /// How it stands.
    pub standing: Standing,
}

/// How a claim stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Something was seen that says otherwise.
    Contradicted {
        /// What.
        by: String,
    },
    /// Something was seen that agrees.
    Confirmed {
        /// What.
        by: String,
    },
    /// Nothing here tells.
    Unchecked,
}

/// Kinds of claims that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Everything is pushed.
    Pushed,
    /// Everything is committed; the tree is clean.
    Committed,
    /// The tests, or the checks, pass.
    Passes,
}

/// What was seen, to hold claims against. `None` is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimFacts {
    /// Commits on the branch that its upstream does not have.
    pub unpushed: Option<u64>,
    /// Paths that differ from HEAD.
    pub uncommitted: Option<u64>,
    /// Checks of the plan that are proved on the present content, and how many there are.
    pub proved: Option<(u64, u64)>,
}

impl ClaimFacts {
    /// Says how a claim stands against what was seen.
    pub fn hold(&self, kind: ClaimKind) -> Standing {
        let number = match kind {
            ClaimKind::Pushed => self
                .unpushed
                .map(|count| (count, "commits that are not pushed")),
            ClaimKind::Committed => self
                .uncommitted
                .map(|count| (count, "paths that are not committed")),
            ClaimKind::Passes => {
                return match self.proved {
                    Some((proved, all)) if all > 0 && proved < all => Standing::Contradicted {
                        by: format!(
                            "only {proved} of {all} checks are proved on the present content"
                        ),
                    },
                    Some((_, all)) if all > 0 => Standing::Confirmed {
                        by: format!("checks proved on the present content: {all} of {all}"),
                    },
                    Some(_) | None => Standing::Unchecked,
                };
            }
        };
        match number {
            Some((0, what)) => Standing::Confirmed {
                by: format!("there are no {what}"),
            },
            Some((count, what)) => Standing::Contradicted {
                by: format!("{what}: {count}"),
            },
            None => Standing::Unchecked,
        }
    }
}

/// Words that make a sentence no claim of what is done.
const NOT_YET: &[&str] = &[
    "not ",
    "n't ",
    "n’t ",
    "will ",
    "would ",
    "should ",
    "could ",
    "can ",
    "must ",
    "once ",
    "if ",
    "when ",
    "before ",
    "after ",
    "until ",
    "unless ",
    "need",
    "want",
    "going to",
    "ready to",
    "to be ",
    "please",
    "todo",
    "let me",
    "let's",
    "next",
    "never",
    "without",
    "no longer",
    "fail",
    "?",
];

/// Finds the sentences of an English text that claim what [`ClaimFacts`] can check, at most 20. Careful rather than thorough:
/// a sentence that may speak of the future, or deny, is none.
///
/// ```
/// use takeup_core::handover::{ClaimKind, claims_in};
/// let found = claims_in("I fixed it. All changes are committed and pushed. Next, tests should pass.");
/// let kinds: Vec<ClaimKind> = found.iter().map(|(kind, _)| *kind).collect();
/// assert_eq!(kinds, [ClaimKind::Pushed, ClaimKind::Committed]);
/// ```
pub fn claims_in(text: &str) -> Vec<(ClaimKind, String)> {
    const MOST: usize = 20;
    let clean = text::clean(text, 200_000);
    let mut found = Vec::new();
    let mut rest = clean.as_str();
    while !rest.is_empty() && found.len() < MOST {
        let end = end_of_sentence(rest);
        let (sentence, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = behind;
        let sentence = text::one_line(sentence, 300);
        let lower = sentence.to_lowercase().replace('’', "'");
        if NOT_YET.iter().any(|word| lower.contains(word)) {
            continue;
        }
        found.extend(kinds_of(&lower).map(|kind| (kind, sentence.clone())));
    }
    found.truncate(MOST);
    found
}

fn end_of_sentence(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '\n' => true,
            '.' | '!' | '?' | ';' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            return at + c.len_utf8();
        }
    }
    text.len()
}

fn kinds_of(lower: &str) -> impl Iterator<Item = ClaimKind> {
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let has = |word: &str| words.contains(&word);
    let pushed = has("pushed");
    let committed = has("committed")
        || has("clean") && (has("tree") || has("status"))
        || lower.contains("nothing to commit");
    let passes = (has("tests") || has("checks") || has("suite") || has("test"))
        && (has("pass") || has("passes") || has("passed") || has("passing") || has("green"));
    [
        pushed.then_some(ClaimKind::Pushed),
        committed.then_some(ClaimKind::Committed),
        passes.then_some(ClaimKind::Passes),
    ]
    .into_iter()
    .flatten()
}
