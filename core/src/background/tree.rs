//! Which processes belong to a task: what descends from it, and what carries its mark.
use std::collections::BTreeSet;

use rustix::process::Signal;

use crate::ids::BackgroundId;
use crate::process::{ProcessError, ProcessIdentity, Processes, Signalled};

/// The variable that every process of a task finds in its environment: the task's id.
pub const MARK: &str = "TAKEUP_BG";

/// Tells whether a process says that it belongs to another task. One that says nothing, or does not show it, does not.
fn is_other(processes: &dyn Processes, pid: u32, id: &BackgroundId) -> bool {
    processes
        .variable(pid, MARK)
        .is_some_and(|mark| mark != id.as_str())
}

/// Returns what descends from `root` and belongs to the task: not the tasks that were started from inside it, which are
/// their own.
pub(super) fn below(
    processes: &dyn Processes,
    root: u32,
    id: &BackgroundId,
) -> Result<Vec<ProcessIdentity>, ProcessError> {
    let mut others = BTreeSet::new();
    let mut members = Vec::new();
    // Parents come before their children.
    for process in processes.descendants(root)? {
        let parent = processes.parent(process.pid)?;
        if parent.is_some_and(|parent| others.contains(&parent))
            || is_other(processes, process.pid, id)
        {
            others.insert(process.pid);
        } else {
            members.push(process);
        }
    }
    Ok(members)
}

/// Returns what belongs to a task whose supervisor is gone: the command, what descends from it, and what carries the
/// task's mark with what descends from that.
pub(super) fn scattered(
    processes: &dyn Processes,
    command: Option<&ProcessIdentity>,
    id: &BackgroundId,
    me: u32,
) -> Result<Vec<ProcessIdentity>, ProcessError> {
    let mut members: Vec<ProcessIdentity> = Vec::new();
    let mut roots: Vec<ProcessIdentity> = Vec::new();
    if let Some(command) = command
        && processes
            .identify(command.pid)?
            .is_some_and(|found| found.is(command))
    {
        roots.push(command.clone());
    }
    roots.extend(processes.everyone()?.into_iter().filter(|process| {
        process.pid != me
            && processes
                .variable(process.pid, MARK)
                .is_some_and(|mark| mark == id.as_str())
    }));
    for root in roots {
        let descendants = below(processes, root.pid, id)?;
        for process in std::iter::once(root).chain(descendants) {
            if process.pid != me && members.iter().all(|known| known.pid != process.pid) {
                members.push(process);
            }
        }
    }
    Ok(members)
}

/// Returns the members that were not asked to end and have lost whoever started them: made by one that was asked, between the look
/// at all of them and its end. What has its parent still is that one's business: it may tidy up.
pub(super) fn unasked_orphans(
    processes: &dyn Processes,
    members: &[ProcessIdentity],
    asked: &[ProcessIdentity],
) -> Vec<ProcessIdentity> {
    members
        .iter()
        .filter(|process| asked.iter().all(|known| !known.is(process)))
        .filter(|process| {
            let parent = processes.parent(process.pid);
            parent.is_ok_and(|parent| members.iter().all(|member| Some(member.pid) != parent))
        })
        .cloned()
        .collect()
}

/// Sends a signal to each; what is not there any more is no failure. Returns what could not be signalled.
pub(super) fn signal_all(
    processes: &dyn Processes,
    members: &[ProcessIdentity],
    signal: Signal,
) -> Vec<(ProcessIdentity, ProcessError)> {
    members
        .iter()
        .filter_map(|process| match processes.signal(process, signal) {
            Ok(Signalled::Sent | Signalled::NotThere(_)) => None,
            Err(error) => Some((process.clone(), error)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::FakeProcesses;

    fn pids(found: &[ProcessIdentity]) -> Vec<u32> {
        let mut pids: Vec<u32> = found.iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn what_was_started_in_the_moment_of_the_question_is_asked_when_its_parent_is_gone() {
        let table = FakeProcesses::new()
            .with(10, 1, 1, "git-takeup")
            .with(11, 10, 2, "sh")
            .with(12, 11, 3, "sleep")
            .with(13, 10, 4, "late");
        let all = table.descendants(10).unwrap();
        assert_eq!(pids(&all), [11, 12, 13]);
        let asked: Vec<_> = all
            .iter()
            .filter(|process| process.pid == 11)
            .cloned()
            .collect();
        // 12 is still its parent's, 13 nobody's any more.
        assert_eq!(pids(&unasked_orphans(&table, &all, &asked)), [13]);
        assert_eq!(unasked_orphans(&table, &all, &all), []);
    }

    #[test]
    fn a_task_inside_a_task_is_not_part_of_it() {
        let mut table = FakeProcesses::new()
            .with(10, 1, 1, "git-takeup")
            .with(11, 10, 2, "sh")
            .with(12, 11, 3, "make")
            .with(20, 10, 4, "git-takeup")
            .with(21, 20, 5, "server")
            .with(22, 21, 6, "worker");
        for (pid, mark) in [(11, "a"), (12, "a"), (20, "b"), (21, "b")] {
            let process = table.table.get_mut(&pid).unwrap();
            process.variables.insert(MARK.to_owned(), mark.into());
        }
        let a = BackgroundId::new("a").unwrap();
        let b = BackgroundId::new("b").unwrap();
        assert_eq!(pids(&below(&table, 10, &a).unwrap()), [11, 12]);
        // With its supervisor gone, the mark finds it; what hides its environment is found through its parent.
        assert_eq!(
            pids(&scattered(&table, None, &b, 99).unwrap()),
            [20, 21, 22]
        );
        let command = table.identify(11).unwrap();
        assert_eq!(
            pids(&scattered(&table, command.as_ref(), &a, 99).unwrap()),
            [11, 12]
        );
        // A number that was given out again leads to nobody.
        let mut stranger = command.unwrap();
        stranger.start_ticks = 7;
        table.table.get_mut(&11).unwrap().variables.clear();
        table.table.get_mut(&12).unwrap().variables.clear();
        assert!(
            scattered(&table, Some(&stranger), &a, 99)
                .unwrap()
                .is_empty()
        );
    }
}
