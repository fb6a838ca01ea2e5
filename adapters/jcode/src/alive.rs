//! Whether a session is alive, crashed or ended, from jcode's files and the process table. Looking changes nothing.
//!
//! jcode records a bare process number, in the session and in a marker file. Both lie: the number is given out again,
//! zombies and the numbers 0 and 1 pass jcode's own test, markers stay behind, and the owner is often a server that
//! many sessions share. What tells them apart is time: an owner began before it wrote its number down.
use jiff::Timestamp;
use takeup_core::agent::{Interruption, InterruptionReason};
use takeup_core::process::{Liveness, ProcessIdentity};
use takeup_core::time::Time;

use crate::processes::{Look, Processes, Running};
use crate::shown::line;
use crate::wire::Status;

/// How far clocks may differ: a start time is rounded to whole clock ticks, and counted from a boot time in seconds.
const SLACK_MS: i64 = 2_000;

/// How long an active session without a recorded process may be silent before it counts as dead, as in jcode.
const SILENCE_MS: i64 = 120_000;

/// A marker file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// None is there.
    None,
    /// It names a process.
    Pid {
        /// The number.
        pid: u32,
        /// When the file was last written.
        written: Option<Time>,
    },
    /// It does not hold a process number.
    Garbage,
}

/// What is known of a session before the process table is asked.
#[derive(Clone, Debug)]
pub(crate) struct Signs<'a> {
    pub(crate) status: &'a Status,
    pub(crate) last_pid: Option<u32>,
    pub(crate) last_active_at: Option<Timestamp>,
    pub(crate) updated_at: Option<Timestamp>,
    pub(crate) marker: &'a Marker,
    /// A marker says that a response was streaming.
    pub(crate) streaming: bool,
}

/// The answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) liveness: Liveness,
    pub(crate) process: Option<ProcessIdentity>,
    pub(crate) interruption: Option<Interruption>,
}

/// Converts to the precision of the rest of the program.
pub(crate) fn time(moment: Timestamp) -> Time {
    Time::from_millis(moment.as_millisecond())
}

/// What a recorded process number means now.
enum Owner {
    /// It is the owner, alive.
    Alive(String, Option<ProcessIdentity>),
    /// The owner is gone.
    Dead(String),
    /// It cannot be told.
    Unclear(String),
}

fn owner(pid: u32, signs: &Signs<'_>, processes: &dyn Processes) -> Owner {
    if pid == 0 || i32::try_from(pid).is_err() {
        return Owner::Dead(format!("{pid} is no process number"));
    }
    let running = match processes.look(pid) {
        Look::Gone => return Owner::Dead(format!("process {pid} has ended")),
        Look::Unknown(why) => return Owner::Unclear(format!("process {pid}: {why}")),
        Look::Running(running) => running,
    };
    let name = running.name.as_deref().map_or_else(
        || "of unknown name".to_owned(),
        |name| format!("`{}`", line(name, 40)),
    );
    let is_jcode = running
        .name
        .as_deref()
        .is_some_and(|name| name.contains("jcode"));
    if pid == 1 && !is_jcode {
        return Owner::Dead(format!(
            "process 1 ({name}) is the system's first, not jcode"
        ));
    }
    let Some(started) = running.started_at else {
        return Owner::Unclear(format!(
            "process {pid} ({name}) runs, and when it began cannot be seen"
        ));
    };
    // The owner wrote its number down when it marked the session active, at the latest with its last write.
    let recorded = signs.last_active_at.or(signs.updated_at).map(time);
    match recorded {
        Some(recorded) if started.since(recorded) > SLACK_MS => {
            contradicted(pid, &name, is_jcode, started, recorded, signs, running)
        }
        Some(recorded) => Owner::Alive(
            format!(
                "process {pid} ({name}) runs since {started}, before it was recorded at {recorded}"
            ),
            running.identity,
        ),
        None => Owner::Unclear(format!(
            "process {pid} ({name}) runs since {started}, and when it was recorded is not known"
        )),
    }
}

/// The process began after the session says it was recorded: another one has the number now, unless the marker was
/// written later still.
fn contradicted(
    pid: u32,
    name: &str,
    is_jcode: bool,
    started: Time,
    recorded: Time,
    signs: &Signs<'_>,
    running: Running,
) -> Owner {
    let written = match signs.marker {
        Marker::Pid {
            pid: marked,
            written: Some(written),
        } if *marked == pid && started.since(*written) <= SLACK_MS => *written,
        Marker::Pid { .. } | Marker::None | Marker::Garbage => {
            return Owner::Dead(format!(
                "the number {pid} was given out again: {name} runs since {started}, after the owner was recorded at {recorded}"
            ));
        }
    };
    if is_jcode {
        return Owner::Alive(
            format!(
                "process {pid} ({name}) runs since {started}, and its marker was written at {written}"
            ),
            running.identity,
        );
    }
    Owner::Unclear(format!(
        "process {pid} ({name}) runs since {started}: after the session recorded its owner at {recorded}, before its marker was written at {written}"
    ))
}

/// Judges a session.
pub(crate) fn judge(signs: &Signs<'_>, processes: &dyn Processes, now: Time) -> Answer {
    let mut pids = Vec::new();
    if let Marker::Pid { pid, .. } = signs.marker {
        pids.push(*pid);
    }
    if let Some(pid) = signs.last_pid
        && !pids.contains(&pid)
    {
        pids.push(pid);
    }
    match signs.status {
        Status::Active => active(&pids, signs, processes, now),
        Status::Closed => ended("it was closed", signs, None),
        Status::Reloaded => ended("its client was reloaded", signs, None),
        Status::Compacted => ended("it was compacted", signs, None),
        Status::RateLimited => {
            let proof = "jcode's status is RateLimited";
            ended(
                proof,
                signs,
                Some((InterruptionReason::UsageLimit, proof.to_owned())),
            )
        }
        Status::Error(message) => {
            let proof = format!("an error ended it: {}", line(message, 200));
            ended(
                &proof,
                signs,
                Some((InterruptionReason::Error, proof.clone())),
            )
        }
        Status::Crashed(message) => crashed_by_status(message.as_deref()),
        Status::Unknown(word) => unknown(&line(word, 40), &pids, signs, processes),
    }
}

const fn interruption(reason: InterruptionReason, proof: String) -> Interruption {
    Interruption {
        reason,
        proof,
        until: None,
    }
}

fn ended(proof: &str, signs: &Signs<'_>, why: Option<(InterruptionReason, String)>) -> Answer {
    let stale = match signs.marker {
        Marker::None => "",
        Marker::Pid { .. } | Marker::Garbage => "; a marker was left behind",
    };
    Answer {
        liveness: Liveness::Ended {
            proof: format!("{proof}{stale}"),
        },
        process: None,
        interruption: why.map(|(reason, proof)| interruption(reason, proof)),
    }
}

/// jcode has marked it as crashed itself: that means "not closed in order", and its text may say how.
fn crashed_by_status(message: Option<&str>) -> Answer {
    let text = message.map(|text| line(text, 200));
    let proof = text.as_ref().map_or_else(
        || "jcode marked it as crashed".to_owned(),
        |text| format!("jcode marked it as crashed: {text}"),
    );
    let reason = match text.as_deref() {
        Some(text) if text.starts_with("Interrupted (SIGINT)") => InterruptionReason::Cancelled,
        Some(text)
            if text.starts_with("Terminal or window closed")
                || text.starts_with("Client disconnected") =>
        {
            InterruptionReason::Closed
        }
        Some(_) | None => InterruptionReason::Crash,
    };
    Answer {
        liveness: Liveness::Crashed {
            proof: proof.clone(),
        },
        process: None,
        interruption: Some(interruption(reason, proof)),
    }
}

fn active(pids: &[u32], signs: &Signs<'_>, processes: &dyn Processes, now: Time) -> Answer {
    let mut dead = Vec::new();
    let mut unclear = Vec::new();
    for pid in pids {
        match owner(*pid, signs, processes) {
            Owner::Alive(proof, process) => {
                return Answer {
                    liveness: Liveness::Live { proof },
                    process,
                    interruption: None,
                };
            }
            Owner::Dead(proof) => dead.push(proof),
            Owner::Unclear(why) => unclear.push(why),
        }
    }
    if !unclear.is_empty() {
        return Answer {
            liveness: Liveness::Unknown {
                why: unclear.join("; "),
            },
            process: None,
            interruption: None,
        };
    }
    let proof = if dead.is_empty() {
        let silent = signs.updated_at.map(|at| now.since(time(at)));
        match silent {
            Some(silent) if silent <= SILENCE_MS => {
                return Answer {
                    liveness: Liveness::Unknown {
                        why: "no process was recorded, and it was written a moment ago".to_owned(),
                    },
                    process: None,
                    interruption: None,
                };
            }
            _ => "its status is Active, no process was recorded, and nothing was written for more than two minutes".to_owned(),
        }
    } else {
        let streaming = if signs.streaming {
            ", while a response was streaming"
        } else {
            ""
        };
        format!("its status is Active and {}{streaming}", dead.join("; "))
    };
    Answer {
        liveness: Liveness::Crashed {
            proof: proof.clone(),
        },
        process: None,
        interruption: Some(interruption(InterruptionReason::Crash, proof)),
    }
}

/// A status that is not known says nothing; a living owner still does.
fn unknown(word: &str, pids: &[u32], signs: &Signs<'_>, processes: &dyn Processes) -> Answer {
    let mut why = format!("its status `{word}` is not known here");
    for pid in pids {
        match owner(*pid, signs, processes) {
            Owner::Alive(proof, process) => {
                return Answer {
                    liveness: Liveness::Live { proof },
                    process,
                    interruption: None,
                };
            }
            Owner::Dead(proof) | Owner::Unclear(proof) => {
                why.push_str("; ");
                why.push_str(&proof);
            }
        }
    }
    Answer {
        liveness: Liveness::Unknown { why: why.clone() },
        process: None,
        interruption: Some(interruption(InterruptionReason::Unknown, why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::fake::Fake;

    fn at(text: &str) -> Option<Timestamp> {
        text.parse().ok()
    }

    fn state(
        status: &Status,
        marker: &Marker,
        pid: Option<u32>,
        processes: &Fake,
    ) -> (&'static str, String) {
        let signs = Signs {
            status,
            last_pid: pid,
            last_active_at: at("2026-05-01T10:00:00Z"),
            updated_at: at("2026-05-01T11:00:00Z"),
            marker,
            streaming: false,
        };
        let now = "2026-05-01T11:01:00Z".parse().unwrap();
        match judge(&signs, processes, now).liveness {
            Liveness::Live { proof } => ("live", proof),
            Liveness::Ended { proof } => ("ended", proof),
            Liveness::Crashed { proof } => ("crashed", proof),
            Liveness::Unknown { why } => ("unknown", why),
        }
    }

    fn marker(pid: u32, written: &str) -> Marker {
        Marker::Pid {
            pid,
            written: written.parse().ok(),
        }
    }

    #[test]
    fn each_sign_that_lies_is_seen_through() {
        let before = "2026-05-01T09:00:00Z";
        let after = "2026-05-01T10:30:00Z";
        let early = marker(7, "2026-05-01T10:00:00Z");
        let late = marker(7, "2026-05-01T10:45:00Z");
        let none = Marker::None;
        let nobody = Fake::default();
        let owner = Fake::default().running(7, "jcode", before);
        let foreign = Fake::default().running(7, "sleep", after);
        let again = Fake::default().running(7, "jcode", after);
        let init = Fake::default().running(1, "systemd", before);
        let active = Status::Active;
        let cases: [(&Status, &Marker, Option<u32>, &Fake, &str); 15] = [
            (&active, &early, Some(7), &owner, "live"),
            (&active, &none, Some(7), &owner, "live"),
            (&active, &early, Some(7), &nobody, "crashed"),
            (&active, &early, Some(7), &foreign, "crashed"),
            (&active, &none, Some(7), &again, "crashed"),
            (&active, &late, Some(7), &again, "live"),
            (&active, &late, Some(7), &foreign, "unknown"),
            (&active, &none, Some(1), &init, "crashed"),
            (&active, &none, Some(0), &owner, "crashed"),
            (&active, &none, Some(u32::MAX), &owner, "crashed"),
            (&active, &Marker::Garbage, Some(7), &owner, "live"),
            (&active, &none, None, &owner, "unknown"),
            (&Status::Closed, &early, Some(7), &nobody, "ended"),
            (&Status::Reloaded, &early, Some(7), &nobody, "ended"),
            (&Status::Crashed(None), &none, Some(7), &nobody, "crashed"),
        ];
        for (index, (status, marker, pid, processes, expected)) in cases.into_iter().enumerate() {
            let (found, proof) = state(status, marker, pid, processes);
            assert_eq!(found, expected, "case {index}: {proof}");
            assert!(!proof.is_empty());
        }
    }

    #[test]
    fn a_session_without_a_process_is_judged_by_its_silence() {
        let signs = |updated: &str| Signs {
            status: &Status::Active,
            last_pid: None,
            last_active_at: None,
            updated_at: at(updated),
            marker: &Marker::None,
            streaming: false,
        };
        let now = "2026-05-01T11:00:00Z".parse().unwrap();
        let young = judge(&signs("2026-05-01T10:59:00Z"), &Fake::default(), now);
        assert!(matches!(young.liveness, Liveness::Unknown { .. }));
        let old = judge(&signs("2026-05-01T10:57:00Z"), &Fake::default(), now);
        assert!(matches!(old.liveness, Liveness::Crashed { .. }));
    }
}
