//! The plugin's record of one task in one session.
use std::path::{Component, Path, PathBuf};

use takeup_core::status::Status;

use super::json::{Json, Object};
use super::names::{slug, trim};

/// The schema of identity records.
pub(super) const SCHEMA: &str = "opencode-plusplus.task-resume.v1";

/// Our own key in the record; the plugin keeps keys it does not know.
pub const OWN_KEY: &str = "takeup";

/// The keys that have to be there, in the order in which the plugin looks at them.
const REQUIRED: &[&str] = &[
    "schemaVersion",
    "sessionId",
    "repositoryRoot",
    "taskId",
    "baseWorkingTreeFingerprint",
    "latestWorkingTreeFingerprint",
    "status",
    "updatedAt",
];

/// An identity, checked and normalised as the plugin does on reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// The record as it stands.
    pub object: Object,
    /// The session.
    pub session: String,
    /// The root, lexically normalised.
    pub root: PathBuf,
    /// The task.
    pub task: String,
    /// The fingerprint when the task began.
    pub base: String,
    /// The fingerprint at the last write.
    pub latest: String,
    /// The status.
    pub status: Status,
    /// The last write, as it stands.
    pub updated_at: String,
    /// The session that took it up.
    pub resumed_to: Option<String>,
}

impl Identity {
    /// Checks a record in the plugin's order. `here` is what relative roots are relative to.
    ///
    /// # Errors
    /// What is wrong with the record.
    pub fn check(object: &Object, here: &Path) -> Result<Self, String> {
        for key in REQUIRED {
            if object.text(key).is_none_or(|text| trim(text).is_empty()) {
                return Err(format!("{key} must be a text that is not blank"));
            }
        }
        let text = |key: &str| object.text(key).unwrap_or_default();
        if text("schemaVersion") != SCHEMA {
            return Err(format!("its schema is not {SCHEMA}"));
        }
        let Some(status) = status_of(text("status")) else {
            return Err("its status is none that is known".to_owned());
        };
        if object
            .get("revision")
            .is_some_and(|value| value.number().is_none())
        {
            return Err("revision must be a number".to_owned());
        }
        let resumed_to = match object.get("resumedToSessionId") {
            None => None,
            Some(value) => match value.text() {
                Some(text) if !trim(text).is_empty() => Some(trim(text).to_owned()),
                Some(_) | None => {
                    return Err("resumedToSessionId must be a text that is not blank".to_owned());
                }
            },
        };
        Ok(Self {
            object: object.clone(),
            session: trim(text("sessionId")).to_owned(),
            root: lexical(here, text("repositoryRoot")),
            task: slug(text("taskId")),
            base: trim(text("baseWorkingTreeFingerprint")).to_owned(),
            latest: trim(text("latestWorkingTreeFingerprint")).to_owned(),
            status,
            updated_at: text("updatedAt").to_owned(),
            resumed_to,
        })
    }

    /// Returns the agent whose session it is, where that is not OpenCode.
    pub fn own_agent(&self) -> Option<&str> {
        self.object.get(OWN_KEY)?.object()?.text("agent")
    }

    /// Returns the commit that was HEAD at the last write, where that write was ours.
    pub fn own_head(&self) -> Option<&str> {
        self.own_write()?.text("head")
    }

    /// Tells whether the last write was ours, to show what the ledger held.
    pub fn shows_ledger(&self) -> bool {
        let shows = self.own_write().and_then(|own| own.get("ledger"));
        shows == Some(&Json::Bool(true))
    }

    /// Returns our own notes, where the last write was ours.
    fn own_write(&self) -> Option<&Object> {
        let own = self.object.get(OWN_KEY)?.object()?;
        (own.revision().is_some() && own.revision() == self.object.revision()).then_some(own)
    }
}

/// Reads a status word.
fn status_of(word: &str) -> Option<Status> {
    Status::ALL.into_iter().find(|status| status.code() == word)
}

/// Makes a path absolute and takes `.` and `..` out, without a look at the disk.
fn lexical(here: &Path, text: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in here.join(text).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(part),
        }
    }
    path
}

/// What a new identity consists of.
#[derive(Clone, Copy, Debug)]
pub struct NewIdentity<'a> {
    /// The task.
    pub task: &'a str,
    /// The session.
    pub session: &'a str,
    /// The root.
    pub root: &'a str,
    /// The fingerprint when the task began.
    pub base: &'a str,
    /// The present fingerprint.
    pub latest: &'a str,
    /// The status.
    pub status: Status,
    /// Now.
    pub at: &'a str,
}

impl NewIdentity<'_> {
    /// Writes the identity over what is there: known keys set, an existing one keeps its base, unknown keys stay.
    pub fn over(&self, found: Option<&Object>) -> Object {
        let mut object = found.cloned().unwrap_or_default();
        let kept_base = object.text("baseWorkingTreeFingerprint").map(str::to_owned);
        let revision = object.revision().unwrap_or(0);
        object.set("schemaVersion", SCHEMA);
        object.set("sessionId", self.session);
        object.set("repositoryRoot", self.root);
        object.set("taskId", self.task);
        object.set(
            "baseWorkingTreeFingerprint",
            kept_base.as_deref().unwrap_or(self.base),
        );
        object.set("latestWorkingTreeFingerprint", self.latest);
        object.set("status", self.status.code());
        object.set("updatedAt", self.at);
        object.set("revision", revision + 1);
        object
    }
}

/// Notes in our own key that this write is ours, whether it shows what the ledger holds, and which commit was HEAD; bound to the
/// revision, so that a later write of the plugin makes it void.
pub fn note_write(object: &mut Object, head: Option<&str>, shows_ledger: bool) {
    let Some(revision) = object.revision() else {
        return;
    };
    let mut own = own_notes(object);
    own.set_some("head", head);
    object.set(
        OWN_KEY,
        own.with("revision", revision).with("ledger", shows_ledger),
    );
}

/// Notes in our own key that the session is another agent's.
pub fn note_agent(object: &mut Object, agent: &str) {
    let own = own_notes(object).with("agent", agent);
    object.set(OWN_KEY, own);
}

fn own_notes(object: &Object) -> Object {
    object
        .get(OWN_KEY)
        .and_then(Json::object)
        .cloned()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Object {
        NewIdentity {
            task: "fix-login",
            session: "ses_1",
            root: "/repo",
            base: "b",
            latest: "l",
            status: Status::Active,
            at: "2026-03-01T10:00:00.000Z",
        }
        .over(None)
    }

    #[test]
    fn a_new_record_has_the_plugins_keys_in_its_order() {
        assert_eq!(
            Json::Object(good()).compact(),
            r#"{"schemaVersion":"opencode-plusplus.task-resume.v1","sessionId":"ses_1","repositoryRoot":"/repo","taskId":"fix-login","baseWorkingTreeFingerprint":"b","latestWorkingTreeFingerprint":"l","status":"active","updatedAt":"2026-03-01T10:00:00.000Z","revision":1}"#
        );
    }

    #[test]
    fn checks_come_in_the_plugins_order() {
        let check = |object: &Object| Identity::check(object, Path::new("/here"));
        let mut object = good();
        assert_eq!(check(&object).unwrap().task, "fix-login");
        object.set("resumedToSessionId", " ");
        assert!(
            check(&object)
                .unwrap_err()
                .starts_with("resumedToSessionId")
        );
        object.set("revision", "1");
        assert!(check(&object).unwrap_err().starts_with("revision"));
        object.set("status", "weird");
        assert!(check(&object).unwrap_err().contains("status"));
        object.set("schemaVersion", "opencode-plusplus.task-resume.v2");
        assert!(check(&object).unwrap_err().contains("schema"));
        for key in REQUIRED.iter().rev() {
            object.set(key, " \u{feff}\n");
            assert!(check(&object).unwrap_err().starts_with(key));
        }
    }

    #[test]
    fn what_is_read_is_normalised() {
        let mut object = good();
        object.set("repositoryRoot", "../a/./b/");
        object.set("taskId", " Fix: Login ");
        object.set("sessionId", " ses_1\n");
        let identity = Identity::check(&object, Path::new("/here")).unwrap();
        assert_eq!(identity.root, Path::new("/a/b"));
        assert_eq!(identity.task, "fix-login");
        assert_eq!(identity.session, "ses_1");
    }

    #[test]
    fn our_notes_are_void_after_a_write_of_the_plugin() {
        let mut object = good();
        note_write(&mut object, Some("abc"), true);
        let read = |object: &Object| Identity::check(object, Path::new("/")).unwrap();
        assert_eq!(read(&object).own_head(), Some("abc"));
        assert!(read(&object).shows_ledger());
        object.set("revision", 2);
        assert_eq!(read(&object).own_head(), None);
        assert!(!read(&object).shows_ledger());
        note_write(&mut object, None, false);
        assert!(!read(&object).shows_ledger());
    }
}
