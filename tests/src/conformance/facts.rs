//! Formats, the facts they can carry, and the answer that is right without a fact.
use serde::Deserialize;
use takeup_core::verdict::{ReasonCode, Verdict};

/// A format a story is told in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Our own ledger.
    Ledger,
    /// The records of OpenCode++.
    Sidecar,
    /// OpenCode's database.
    Opencode,
    /// jcode's home.
    Jcode,
    /// OpenClaw's databases.
    Openclaw,
    /// OpenClaw's files up to 2026.7.1.
    OpenclawFiles,
    /// jcode's home, with our hooks.
    JcodeHooks,
    /// OpenClaw's databases, with our plugin.
    OpenclawPlugin,
}

impl Format {
    /// Every format, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Ledger,
        Self::Sidecar,
        Self::Opencode,
        Self::Jcode,
        Self::Openclaw,
        Self::OpenclawFiles,
        Self::JcodeHooks,
        Self::OpenclawPlugin,
    ];

    /// Tells whether a task has a recorded status there; elsewhere a session is simply there.
    pub const fn holds_statuses(self) -> bool {
        matches!(self, Self::Ledger | Self::Sidecar)
    }

    /// Tells whether our hooks are in the agent.
    pub const fn is_hooked(self) -> bool {
        matches!(self, Self::JcodeHooks | Self::OpenclawPlugin)
    }

    /// Tells whether the content is recorded at the end of a turn, and not before.
    pub const fn records_turns(self) -> bool {
        matches!(
            self,
            Self::Opencode | Self::JcodeHooks | Self::OpenclawPlugin
        )
    }

    /// Returns the name on the command line and in the corpus.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Sidecar => "sidecar",
            Self::Opencode => "opencode",
            Self::Jcode => "jcode",
            Self::Openclaw => "openclaw",
            Self::OpenclawFiles => "openclaw-files",
            Self::JcodeHooks => "jcode-hooks",
            Self::OpenclawPlugin => "openclaw-plugin",
        }
    }
}

/// Something a format may be unable to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    /// What the content was.
    Content,
    /// Which commit, branch, index, stash and operation there was.
    Movement,
    /// That a task is over, or who took it up.
    Closing,
    /// Questions to a person.
    Review,
    /// Calls that did not end.
    Calls,
    /// Which process the session is.
    Process,
    /// That a session that ended in good order left something unfinished.
    Ended,
    /// That a task was marked stale.
    Marked,
    /// The place, apart from its path.
    Place,
    /// Which commit a clean tree was.
    Clean,
    /// That a commit of what was left is no change.
    Commit,
    /// What git is told to overlook, and what no tree holds.
    Overlooked,
    /// The content of a task that is over.
    ClosedContent,
    /// That the end of a record is missing.
    Checksum,
    /// What has to be proved, and evidence.
    Proof,
    /// What the content was before a session did anything.
    Begun,
    /// That a turn began and its end was never recorded, apart from the calls in it.
    Turns,
}

impl Fact {
    /// Every fact, in the order of the letters in the table.
    pub const ALL: [Self; 17] = [
        Self::Content,
        Self::Movement,
        Self::Closing,
        Self::Review,
        Self::Calls,
        Self::Process,
        Self::Ended,
        Self::Marked,
        Self::Place,
        Self::Clean,
        Self::Commit,
        Self::Overlooked,
        Self::ClosedContent,
        Self::Checksum,
        Self::Proof,
        Self::Begun,
        Self::Turns,
    ];

    /// Returns the letter in the table.
    pub fn letter(self) -> char {
        let index = Self::ALL.iter().position(|fact| *fact == self).unwrap_or(0);
        ('a'..='z').nth(index).unwrap_or('?')
    }
}

/// The verdict that a deciding reason stands for. Written down once more, so that the program's own rule is judged by it.
pub fn verdict_of(reason: ReasonCode) -> Option<Verdict> {
    use ReasonCode as R;
    Some(match reason {
        R::OtherRepository | R::OtherWorktree | R::WorktreeGone | R::Relocated | R::Copied => {
            Verdict::MismatchedRepository
        }
        R::Completed | R::Abandoned | R::TakenUp => Verdict::NotResumable,
        R::ReviewPending | R::ReviewNotApplied => Verdict::HumanReview,
        R::SessionLive => Verdict::InUse,
        R::ContentEqual => Verdict::ResumeVerification,
        R::ContentChanged
        | R::NeverRecorded
        | R::LookIncomplete
        | R::RecordIncomplete
        | R::FingerprintBlind => Verdict::StaleTask,
        R::LivenessUnknown
        | R::SessionCrashed
        | R::SessionEnded
        | R::MarkedStale
        | R::HeadMoved
        | R::BranchChanged
        | R::StashChanged
        | R::OperationChanged
        | R::IndexChanged
        | R::EffectUnknown
        | R::TurnOpen => return None,
    })
}

/// Where a reason stands in the list: place, end, review, life, content, and then what does not decide.
pub fn rank(reason: ReasonCode) -> usize {
    use ReasonCode as R;
    match reason {
        R::OtherRepository | R::OtherWorktree | R::WorktreeGone | R::Relocated | R::Copied => 0,
        R::Completed | R::Abandoned | R::TakenUp => 1,
        R::ReviewPending | R::ReviewNotApplied => 2,
        R::SessionLive => 3,
        R::ContentEqual
        | R::ContentChanged
        | R::NeverRecorded
        | R::LookIncomplete
        | R::RecordIncomplete
        | R::FingerprintBlind => 4,
        R::MarkedStale => 5,
        R::LivenessUnknown | R::SessionCrashed | R::SessionEnded => 6,
        R::HeadMoved => 7,
        R::BranchChanged => 8,
        R::OperationChanged => 9,
        R::IndexChanged => 10,
        R::StashChanged => 11,
        R::EffectUnknown => 12,
        R::TurnOpen => 13,
    }
}

/// Takes a fact out of the reasons. Tells whether that made a difference.
pub fn without(fact: Fact, reasons: &mut Vec<ReasonCode>) -> bool {
    use ReasonCode as R;
    let before = reasons.clone();
    match fact {
        Fact::Content => {
            for reason in reasons.iter_mut().filter(|reason| rank(**reason) == 4) {
                *reason = R::NeverRecorded;
            }
        }
        Fact::Movement => reasons.retain(|reason| !(7..=11).contains(&rank(*reason))),
        // A session that ended after its work was over is nobody's unfinished work.
        Fact::Closing
            if reasons.contains(&R::SessionEnded)
                && reasons
                    .iter()
                    .any(|one| matches!(one, R::Completed | R::Abandoned)) =>
        {
            reasons.clear();
        }
        Fact::Closing => reasons.retain(|reason| rank(*reason) != 1),
        Fact::Review => reasons.retain(|reason| rank(*reason) != 2),
        Fact::Calls => reasons.retain(|reason| *reason != R::EffectUnknown),
        Fact::Turns => reasons.retain(|reason| *reason != R::TurnOpen),
        Fact::Marked => reasons.retain(|reason| *reason != R::MarkedStale),
        Fact::Process => {
            for reason in reasons.iter_mut() {
                if matches!(rank(*reason), 3 | 6) {
                    *reason = R::LivenessUnknown;
                }
            }
        }
        Fact::Ended if reasons.contains(&R::SessionEnded) => reasons.clear(),
        Fact::ClosedContent if reasons.iter().any(|reason| rank(*reason) == 1) => {
            reasons.retain(|reason| rank(*reason) != 4);
        }
        Fact::Ended
        | Fact::ClosedContent
        | Fact::Place
        | Fact::Clean
        | Fact::Commit
        | Fact::Overlooked
        | Fact::Checksum
        | Fact::Proof
        | Fact::Begun => {}
    }
    reasons.sort_by_key(|reason| rank(*reason));
    *reasons != before
}
