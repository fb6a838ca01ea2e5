//! What has to be proved before a task is finished.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::SessionRef;
use crate::time::Time;

/// The checks of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// The plan is empty on purpose.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_checks: bool,
    /// What was changed since the task began, by whom and when, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// When.
    pub at: Time,
    /// By whom.
    pub by: SessionRef,
    /// What.
    pub change: EditKind,
    /// The check's command; `None` where the change is about no single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The check's negative control after the change, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_fail: Option<String>,
}

/// What a change of a plan did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EditKind {
    /// A check came in.
    Added,
    /// Source or negative control of a check changed.
    Changed,
    /// A check was taken out.
    Removed,
    /// Somebody said that nothing is to be checked.
    Emptied,
}

impl Plan {
    /// Notes what differs from the plan that was there before.
    pub fn note_edits(&mut self, before: &Self, by: &SessionRef, at: Time) {
        let edit = |change, command: Option<&Check>| Edit {
            at,
            by: by.clone(),
            change,
            command: command.map(|check| check.command.clone()),
            must_fail: command
                .filter(|_| change != EditKind::Removed)
                .and_then(|check| check.must_fail.clone()),
        };
        let named = |plan: &Self, check: &Check| {
            let mut checks = plan.checks.iter();
            checks.find(|known| known.command == check.command).cloned()
        };
        let mut edits = Vec::new();
        for check in &before.checks {
            match named(self, check) {
                None => edits.push(edit(EditKind::Removed, Some(check))),
                Some(now) if &now != check => edits.push(edit(EditKind::Changed, Some(&now))),
                Some(_) => {}
            }
        }
        let added = self
            .checks
            .iter()
            .filter(|check| named(before, check).is_none());
        edits.extend(added.map(|check| edit(EditKind::Added, Some(check))));
        if self.no_checks && !before.no_checks {
            edits.push(edit(EditKind::Emptied, None));
        }
        self.edits.extend(edits);
    }
}

impl Edit {
    /// Says it in words.
    pub fn words(&self) -> String {
        let command = self.command.as_deref().unwrap_or_default();
        let control = match &self.must_fail {
            Some(control) => format!(", with {control} that has to fail"),
            None => String::new(),
        };
        match self.change {
            EditKind::Added => format!("planned the check {command}{control}"),
            EditKind::Changed => format!("planned the check {command} anew{control}"),
            EditKind::Removed => format!("took the check {command} out of the plan"),
            EditKind::Emptied => "said that nothing is to be checked".to_owned(),
        }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// The command, as it is matched with evidence: one shell line, masked.
    pub command: String,
    /// Where it came from: `person`, `session`, or the file that proposed it.
    pub source: String,
    /// A command that has to fail for the check to count (negative control).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_fail: Option<String>,
}

use crate::evidence::{Evidence, EvidenceSource};
use crate::ids::Fingerprint;
use crate::redact;

impl Check {
    /// Tells whether a command given as words, and run without a shell, is what the shell would make of this line. Never so
    /// where the shell does more with the line than split it at its blanks and quotes (POSIX, Shell Command Language, 2.2
    /// to 2.6): `echo a; false` is no call of `echo`.
    pub fn is_run_by(&self, words: &[String]) -> bool {
        is_words_alone(&self.command)
            && shlex::split(&self.command).is_some_and(|split| split == words)
    }
}

/// Tells whether a line is words and quotes alone.
fn is_words_alone(line: &str) -> bool {
    let mut open = None;
    let quoted = line.chars().all(|c| match (open, c) {
        (Some(quote), _) if quote == c => {
            open = None;
            true
        }
        (Some('"'), '$' | '`' | '\\') => false,
        (Some(_), _) => true,
        (None, '\'' | '"') => {
            open = Some(c);
            true
        }
        (None, c) => !";&|<>()$`\\*?[]{}#~!\n\r".contains(c),
    });
    let first = line.split_whitespace().next();
    quoted && open.is_none() && first.is_some_and(|first| !first.contains('='))
}

/// Where a check stands for the present content.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// It passed on exactly this content.
    Fresh,
    /// It never ran.
    Missing,
    /// It failed on this content.
    Failed,
    /// It ran on other content.
    Outdated,
    /// The content changed while it ran, or could not be seen: it speaks of nothing.
    Unsteady,
    /// Its negative control did not fail (it passed too, could not be run, or was killed): the check proves nothing.
    NoControl,
    /// It is only reported, and reports do not count here.
    OnlyReported,
    /// It ran in another folder than the top of the work tree alone, where its words may mean something else.
    Elsewhere,
}

impl Proof {
    /// Returns the word for people and JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::Outdated => "outdated",
            Self::Unsteady => "unsteady",
            Self::NoControl => "no-control",
            Self::OnlyReported => "only-reported",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// Judges one check by its evidence, oldest first. The last run on the present content decides; where there is none, the
/// last run says why it does not count. A run that is known to have been in another folder than the top of the work tree is
/// none of the planned check: neither its success nor its failure counts.
///
/// `present` is `None` when the look was incomplete: then nothing is fresh.
pub fn prove<'a>(
    check: &Check,
    evidence: &'a [Evidence],
    present: Option<&Fingerprint>,
    count_reported: bool,
) -> (Proof, Option<&'a Evidence>) {
    let of_command =
        |run: &&Evidence| run.command == check.command && !redact::is_masked(&run.command);
    let mut runs = evidence
        .iter()
        .filter(|run| of_command(run) && run.elsewhere().is_none())
        .rev()
        .peekable();
    let Some(last) = runs.peek().copied() else {
        return match evidence.iter().rfind(of_command) {
            Some(run) => (Proof::Elsewhere, Some(run)),
            None => (Proof::Missing, None),
        };
    };
    let mut reported = None;
    for run in runs {
        if present.is_none() || run.content() != present {
            continue;
        }
        if run.source == EvidenceSource::Reported && !count_reported {
            reported.get_or_insert(run);
            continue;
        }
        if !run.outcome.passed() {
            return (Proof::Failed, Some(run));
        }
        let controlled = match (&check.must_fail, &run.control) {
            (None, _) => true,
            (Some(_), Some(control)) => control.said_no(),
            (Some(_), None) => false,
        };
        return (
            if controlled {
                Proof::Fresh
            } else {
                Proof::NoControl
            },
            Some(run),
        );
    }
    if let Some(run) = reported {
        return (Proof::OnlyReported, Some(run));
    }
    (
        if last.content().is_none() {
            Proof::Unsteady
        } else {
            Proof::Outdated
        },
        Some(last),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Outcome;
    use crate::ids::{AgentId, SessionId, SessionRef, TaskId};
    use crate::time::Time;

    fn print(digit: char) -> Fingerprint {
        Fingerprint::new(digit.to_string().repeat(40)).unwrap()
    }

    fn planned() -> Check {
        Check {
            command: "test".to_owned(),
            source: "person".to_owned(),
            must_fail: None,
        }
    }

    fn run(code: i32, before: char, after: char) -> Evidence {
        Evidence {
            task_id: TaskId::new("t").unwrap(),
            by: SessionRef::new(AgentId::person(), SessionId::new("s").unwrap()),
            command: "test".to_owned(),
            folder: None,
            outcome: Outcome::Exited { code },
            started_at: Time::from_millis(0),
            finished_at: Time::from_millis(1),
            before: Some(print(before)),
            after: Some(print(after)),
            stdout: None,
            stderr: None,
            source: EvidenceSource::Observed,
            control: None,
        }
    }

    #[test]
    fn only_a_passing_run_on_this_content_is_proof() {
        let check = planned();
        let present = print('a');
        let judge = |runs: &[Evidence]| prove(&check, runs, Some(&present), false).0;
        assert_eq!(judge(&[]), Proof::Missing);
        assert_eq!(judge(&[run(0, 'a', 'a')]), Proof::Fresh);
        assert_eq!(judge(&[run(0, 'a', 'a'), run(1, 'a', 'a')]), Proof::Failed);
        assert_eq!(judge(&[run(1, 'a', 'a'), run(0, 'a', 'a')]), Proof::Fresh);
        assert_eq!(judge(&[run(0, 'b', 'b')]), Proof::Outdated);
        assert_eq!(judge(&[run(0, 'a', 'b')]), Proof::Unsteady);
        // Content that came back is proved again by its own run.
        assert_eq!(judge(&[run(0, 'a', 'a'), run(1, 'b', 'b')]), Proof::Fresh);
        assert_eq!(
            prove(&check, &[run(0, 'a', 'a')], None, false).0,
            Proof::Outdated
        );
        let other = Check {
            command: "other".to_owned(),
            ..check.clone()
        };
        assert_eq!(
            prove(&other, &[run(0, 'a', 'a')], Some(&present), false).0,
            Proof::Missing
        );
        let reported = Evidence {
            source: EvidenceSource::Reported,
            ..run(0, 'a', 'a')
        };
        assert_eq!(judge(std::slice::from_ref(&reported)), Proof::OnlyReported);
        assert_eq!(
            prove(&check, &[reported], Some(&present), true).0,
            Proof::Fresh
        );
    }

    #[test]
    fn what_ran_in_another_folder_is_no_run_of_the_check() {
        let check = planned();
        let present = print('a');
        let judge = |runs: &[Evidence]| prove(&check, runs, Some(&present), false).0;
        let at = |folder: &str, code| Evidence {
            folder: Some(folder.to_owned()),
            ..run(code, 'a', 'a')
        };
        assert_eq!(judge(&[at("sub", 0)]), Proof::Elsewhere);
        assert_eq!(judge(&[at("sub", 1)]), Proof::Elsewhere);
        assert_eq!(judge(&[at("/elsewhere", 0)]), Proof::Elsewhere);
        assert_eq!(judge(&[at(".", 0), at("sub", 1)]), Proof::Fresh);
        assert_eq!(judge(&[at(".", 1), at("sub", 0)]), Proof::Failed);
        assert_eq!(judge(&[run(1, 'a', 'a'), at("sub", 0)]), Proof::Failed);
        assert_eq!(judge(&[run(0, 'b', 'b'), at("sub", 0)]), Proof::Outdated);
        // Records from before folders were kept count as they did.
        assert_eq!(judge(&[at("sub", 1), run(0, 'a', 'a')]), Proof::Fresh);
    }

    #[test]
    fn a_check_that_cannot_fail_proves_nothing() {
        let check = Check {
            command: "test".to_owned(),
            source: "person".to_owned(),
            must_fail: Some("bad".to_owned()),
        };
        let present = print('a');
        let with = |control| {
            let run = Evidence {
                control,
                ..run(0, 'a', 'a')
            };
            prove(&check, &[run], Some(&present), false).0
        };
        let exit = |code| Some(Outcome::Exited { code });
        assert_eq!(with(exit(1)), Proof::Fresh);
        // Who could not be run, or was killed, did not say no.
        let why = "no such file".to_owned();
        for control in [
            None,
            exit(0),
            exit(126),
            exit(127),
            exit(137),
            Some(Outcome::Signalled { signal: 9 }),
            Some(Outcome::NotStarted { why }),
        ] {
            assert_eq!(with(control.clone()), Proof::NoControl, "{control:?}");
        }
    }

    /// The judge is the shell: what a program sees whom it is asked to start so.
    #[test]
    fn words_are_a_line_only_where_the_shell_starts_the_same() {
        let check = |command: &str| Check {
            command: command.to_owned(),
            source: "person".to_owned(),
            must_fail: None,
        };
        for (line, same) in [
            ("printf %s, one two", true),
            ("  printf '%s,'  \"one two\" ''", true),
            ("printf %s, 'a;b|c$d*' \"e'f;\" x=y", true),
            ("printf %s, a; false", false),
            ("printf %s, a && false", false),
            ("printf %s, a > /dev/null", false),
            ("printf %s, \"$HOME\"", false),
            ("printf %s, $HOME", false),
            ("printf %s, /*", false),
            ("printf %s, \"a\\\\b\"", false),
            ("printf %s, a # b", false),
            ("x=y printf %s, a", false),
            ("printf %s, a\nfalse", false),
        ] {
            let words = shlex::split(line).unwrap();
            assert_eq!(check(line).is_run_by(&words), same, "{line}");
            if same {
                let output = |command: &mut std::process::Command| {
                    let output = command.output().unwrap();
                    (output.status.success(), output.stdout)
                };
                let mut by_shell = std::process::Command::new("sh");
                let mut by_words = std::process::Command::new(&words[0]);
                assert_eq!(
                    output(by_shell.args(["-c", line])),
                    output(by_words.args(&words[1..])),
                    "{line}"
                );
            }
        }
        let other = ["printf".to_owned(), "other".to_owned()];
        assert!(!check("printf %s").is_run_by(&other));
    }
}
