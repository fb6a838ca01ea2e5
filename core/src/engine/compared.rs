//! How the present content relates to what was left.
use super::candidates::Gatherer;
use crate::fingerprint::TreeRecord;
use crate::identity::{Identity, Recorded};
use crate::ids::Fingerprint;
use crate::ledger::View;
use crate::verdict::{Content, Movement, Whereabouts};

impl Gatherer<'_> {
    pub(super) fn present(&self) -> Option<&Fingerprint> {
        self.look.record.fingerprint.as_ref()
    }

    pub(super) fn content(&self, whereabouts: Whereabouts, left: Option<&Recorded>) -> Content {
        if !whereabouts.is_compared() {
            return Content::NotCompared;
        }
        let Some(left) = left else {
            return Content::NeverRecorded;
        };
        if let Some(why) = &left.tree.incomplete {
            return Content::RecordIncomplete(why.clone());
        }
        if let Some(why) = &self.look.record.incomplete {
            return Content::LookIncomplete(why.clone());
        }
        if left.tree.definition != self.look.record.definition
            || left.tree.excluded != self.look.record.excluded
        {
            return Content::RecordIncomplete(
                "it was taken by another definition of content, or with other folders left out"
                    .to_owned(),
            );
        }
        if left.tree.same_content(&self.look.record) {
            Content::Equal
        } else {
            Content::Differs
        }
    }

    /// Compares with what an identity recorded; where a later record of it may be lost, nothing is known.
    pub(super) fn recorded_content(
        &self,
        view: &View,
        whereabouts: Whereabouts,
        identity: &Identity,
    ) -> Content {
        let content = self.content(whereabouts, identity.latest.as_ref());
        if matches!(content, Content::Equal | Content::Differs) && view.state.is_doubtful(identity)
        {
            return Content::RecordIncomplete(
                "the ledger is damaged, and a later record of this session may be lost".to_owned(),
            );
        }
        content
    }

    /// Compares with a tree id that the agent itself recorded.
    pub(super) fn content_of_tree(&self, tree: &str) -> Content {
        if let Some(why) = &self.look.record.incomplete {
            return Content::LookIncomplete(why.clone());
        }
        match self.present() {
            Some(print) if print.as_str() == tree => Content::Equal,
            Some(print) if print.tree() == tree => Content::Blind(
                "the agent's own snapshot is equal, but it cannot tell what lies in submodules and nested repositories".to_owned(),
            ),
            _ => Content::Differs,
        }
    }
}

/// Says what moved beside the content.
pub(super) fn movement(left: Option<&TreeRecord>, there: &TreeRecord) -> Movement {
    let Some(left) = left else {
        return Movement::default();
    };
    let pair = |a: &Option<String>, b: &Option<String>| (a != b).then(|| (a.clone(), b.clone()));
    Movement {
        head: (left.head != there.head).then(|| (left.head.clone(), there.head.clone())),
        branch: pair(&left.branch, &there.branch),
        stash: left.stash != there.stash,
        operation: pair(&left.operation, &there.operation),
        // Where a look did not get so far, nothing is known of it.
        index: matches!((&left.index_tree, &there.index_tree), (Some(a), Some(b)) if a != b),
    }
}
