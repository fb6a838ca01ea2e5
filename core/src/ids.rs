//! Identifiers. No function takes a bare string where one of these is meant.
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {what}: {reason}")]
pub struct InvalidId {
    /// The kind of identifier that was expected.
    pub what: &'static str,
    /// The text, cut to 80 characters.
    pub text: String,
    /// The rule it breaks.
    pub reason: &'static str,
}

fn invalid(what: &'static str, text: &str, reason: &'static str) -> InvalidId {
    InvalidId {
        what,
        text: text.chars().take(80).collect(),
        reason,
    }
}

/// The longest identifier that is accepted, in bytes.
const LONGEST: usize = 512;

/// Accepts any printable text: identifiers of other agents are theirs to choose.
fn check_printable(what: &'static str, text: &str) -> Result<(), InvalidId> {
    if text.trim().is_empty() {
        return Err(invalid(what, text, "it is empty"));
    }
    if text.len() > LONGEST {
        return Err(invalid(what, text, "it is longer than 512 bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(invalid(what, text, "it holds a control character"));
    }
    Ok(())
}

/// Accepts lower-case letters, digits and inner hyphens.
fn check_slug(what: &'static str, text: &str) -> Result<(), InvalidId> {
    check_printable(what, text)?;
    if !text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    {
        return Err(invalid(what, text, "only a-z, 0-9 and '-' are allowed"));
    }
    if text.starts_with('-') {
        return Err(invalid(what, text, "it starts with '-'"));
    }
    Ok(())
}

fn check_hex(what: &'static str, text: &str) -> Result<(), InvalidId> {
    if text.is_empty()
        || text.len() > 64
        || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    {
        return Err(invalid(what, text, "it is not lower-case hexadecimal"));
    }
    Ok(())
}

fn check_oid(what: &'static str, text: &str) -> Result<(), InvalidId> {
    check_hex(what, text)?;
    if text.len() != 40 && text.len() != 64 {
        return Err(invalid(what, text, "it has neither 40 nor 64 digits"));
    }
    Ok(())
}

fn check_fingerprint(what: &'static str, text: &str) -> Result<(), InvalidId> {
    let (tree, beyond) = text
        .split_once('+')
        .map_or((text, None), |(tree, beyond)| (tree, Some(beyond)));
    check_oid(what, tree)?;
    match beyond {
        Some(beyond) if beyond.len() != 64 => {
            Err(invalid(what, text, "the part after '+' is no SHA-256"))
        }
        Some(beyond) => check_hex(what, beyond),
        None => Ok(()),
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            #[doc = concat!("Makes a ", $what, " of `text`; fails when the text breaks the rule of the type.")]
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                $check($what, &text)?;
                Ok(Self(text))
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                Self::new(text).map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string"})
            }
        }
    };
}

text_id!(
    /// The stable slug of a task, unique in one repository's ledger.
    TaskId, "task id", check_slug
);
text_id!(
    /// The id of one conversation of one agent, as that agent writes it.
    SessionId, "session id", check_printable
);
text_id!(
    /// The short name of an agent: `opencode`, `jcode`, `claude-code`, or `person` for somebody at a terminal.
    AgentId, "agent id", check_slug
);
text_id!(
    /// The random id of a repository, kept in its common git folder (`docs/formats/place.md`).
    RepositoryId, "repository id", check_slug
);
text_id!(
    /// The random id of one work tree, kept in its own git folder (`docs/formats/place.md`).
    WorktreeId, "worktree id", check_slug
);
text_id!(
    /// The id of a background task: when it was started, and two words. Sorts by time; safe as a file name.
    BackgroundId, "background task id", check_slug
);
text_id!(
    /// The id of a request for a person's decision.
    ReviewId, "review id", check_printable
);
text_id!(
    /// A git object id, 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
    Oid, "object id", check_oid
);
text_id!(
    /// What the tree's content was: the id of the tree git would commit, and, where no tree can hold all of it,
    /// `+` and a SHA-256 over the rest (`docs/concepts.md`, The fingerprint). Equal when both parts are.
    Fingerprint, "fingerprint", check_fingerprint
);

impl AgentId {
    /// Returns the id under which a person at a terminal is known.
    pub fn person() -> Self {
        Self("person".to_owned())
    }
}

impl SessionId {
    /// Returns the id under which a person without a session is known.
    pub fn terminal() -> Self {
        Self("terminal".to_owned())
    }

    /// Returns the id that stands for a session of an agent which nobody named.
    pub fn unnamed() -> Self {
        Self("unnamed".to_owned())
    }
}

impl Fingerprint {
    /// Puts a fingerprint together from a tree id and the digest of what no tree can hold.
    pub fn from_parts(tree: &Oid, beyond: Option<&[u8; 32]>) -> Self {
        let tree = tree.as_str();
        Self(beyond.map_or_else(
            || tree.to_owned(),
            |digest| format!("{tree}+{}", crate::text::hex(digest)),
        ))
    }

    /// Returns the tree id, the part before `+`.
    pub fn tree(&self) -> &str {
        self.0
            .split_once('+')
            .map_or(self.0.as_str(), |(tree, _)| tree)
    }

    /// Returns the first ten digits, and `+` where there is a second part, for people.
    pub fn short(&self) -> String {
        let tree = self.tree().get(..10).unwrap_or_else(|| self.tree());
        if self.0.contains('+') {
            format!("{tree}+")
        } else {
            tree.to_owned()
        }
    }
}

impl TaskId {
    /// Makes the slug of a title: lower-case ASCII letters and digits, everything else one hyphen, 56 characters at the
    /// most (the length of OpenCode++'s slugs). A title without any such character gives `task-` and eight digits of its
    /// SHA-256, so that different titles rarely meet.
    pub fn from_title(title: &str) -> Self {
        use sha2::{Digest, Sha256};
        let mut slug = String::new();
        for c in title.chars().flat_map(char::to_lowercase) {
            if c.is_ascii_alphanumeric() {
                slug.push(c);
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        slug.truncate(56);
        let slug = slug.trim_end_matches('-');
        if slug.is_empty() {
            let digest = crate::text::hex(&Sha256::digest(title.as_bytes()));
            let digest: String = digest.chars().take(8).collect();
            return Self(format!("task-{digest}"));
        }
        Self(slug.to_owned())
    }
}

/// One conversation of one agent.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct SessionRef {
    /// The agent.
    pub agent: AgentId,
    /// The agent's own id of the conversation.
    pub id: SessionId,
}

impl SessionRef {
    /// Makes a reference.
    pub const fn new(agent: AgentId, id: SessionId) -> Self {
        Self { agent, id }
    }

    /// Returns the reference under which a person at a terminal acts who belongs to no session.
    pub fn person() -> Self {
        Self::new(AgentId::person(), SessionId::terminal())
    }

    /// Returns the reference under which an agent acts whose session is not known; a person's is the terminal.
    pub fn of_agent(agent: AgentId) -> Self {
        let is_person = agent == AgentId::person();
        Self::new(
            agent,
            if is_person {
                SessionId::terminal()
            } else {
                SessionId::unnamed()
            },
        )
    }

    /// Tells whether this names no session in particular.
    pub fn is_nobody_special(&self) -> bool {
        *self == Self::of_agent(self.agent.clone())
    }
}

impl fmt::Display for SessionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.agent, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_stable_and_never_empty() {
        for (title, slug) in [
            ("Fix login timeout", "fix-login-timeout"),
            ("  --Fix: `login`!  ", "fix-login"),
            ("t1", "t1"),
            ("Ünïcode", "n-code"),
        ] {
            assert_eq!(TaskId::from_title(title).as_str(), slug);
        }
        let long = TaskId::from_title(&"ab ".repeat(50));
        assert!(long.as_str().len() <= 56 && !long.as_str().ends_with('-'));
        assert!(TaskId::from_title("修复登录").as_str().starts_with("task-"));
        assert_ne!(TaskId::from_title("修复登录"), TaskId::from_title("修复"));
    }

    #[test]
    fn identifiers_refuse_what_could_harm() {
        assert!(SessionId::new("ses_\u{1b}[31m").is_err());
        assert!(SessionId::new(" ").is_err());
        assert!(TaskId::new("../etc").is_err());
        assert!(TaskId::new("-x").is_err());
        assert!(Fingerprint::new("zz").is_err());
        assert!(Fingerprint::new("a".repeat(40)).is_ok());
        assert!(Fingerprint::new(format!("{}+{}", "a".repeat(40), "b".repeat(64))).is_ok());
        assert!(Fingerprint::new(format!("{}+{}", "a".repeat(40), "b".repeat(3))).is_err());
    }
}
