//! Whether a session is alive, by the process that stands for it and by what it said when it ended.
use super::{Liveness, ProcessIdentity, ProcessState, Processes};
use crate::identity::Closing;

/// Tells whether the session is alive whose process and closing were recorded. A closing that was recorded is believed; an
/// end that nobody recorded is a crash; what cannot be known is unknown.
pub fn liveness_of(
    processes: &dyn Processes,
    process: Option<&ProcessIdentity>,
    closing: Option<&Closing>,
) -> Liveness {
    if let Some(closing) = closing {
        let reason = closing
            .reason
            .as_ref()
            .map(|reason| format!(" ({reason})"))
            .unwrap_or_default();
        let at = closing.at;
        let proof = match (&closing.by, process) {
            (None, _) => format!("it said so at {at}{reason}"),
            // What somebody else said need not be so.
            (Some(by), Some(process)) if processes.state(process) == ProcessState::Running => {
                let process = process.describe();
                format!("{by} said so at {at}{reason}; {process} runs all the same")
            }
            (Some(by), _) => format!("{by} said so at {at}{reason}"),
        };
        return Liveness::Ended { proof };
    }
    let Some(process) = process else {
        return Liveness::Unknown {
            why: "no process was recorded for the session".to_owned(),
        };
    };
    let state = processes.state(process);
    let sentence = format!("{} {}", process.describe(), state.describe());
    match state {
        ProcessState::Running => Liveness::Live { proof: sentence },
        ProcessState::Zombie
        | ProcessState::Gone
        | ProcessState::Recycled { .. }
        | ProcessState::OtherBoot => Liveness::Crashed {
            proof: format!("{sentence}, and no end was recorded"),
        },
        ProcessState::OtherNamespace | ProcessState::Unknown(_) => {
            Liveness::Unknown { why: sentence }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::FakeProcesses;
    use crate::time::Time;

    #[test]
    fn every_state_has_its_answer() {
        let mut table = FakeProcesses::new().with(7, 1, 100, "agent");
        let process = table.identify(7).unwrap().unwrap();
        let look = |table: &FakeProcesses| liveness_of(table, Some(&process), None);

        let Liveness::Live { proof } = look(&table) else {
            panic!("not live")
        };
        assert!(proof.contains("pid 7") && proof.contains("100"), "{proof}");
        assert!(matches!(
            liveness_of(&table, None, None),
            Liveness::Unknown { .. }
        ));
        let closing = Closing {
            at: Time::from_millis(0),
            reason: Some("logout".to_owned()),
            by: None,
        };
        let ended = |closing: &Closing| {
            let found = liveness_of(&table, Some(&process), Some(closing));
            let Liveness::Ended { proof } = found else {
                panic!("not ended: {found:?}")
            };
            proof
        };
        assert!(ended(&closing).starts_with("it said so"));
        let by = Some(crate::ids::SessionRef::person());
        let proof = ended(&Closing { by, ..closing });
        assert!(proof.starts_with("person:terminal said so"), "{proof}");
        assert!(
            proof.contains("pid 7") && proof.ends_with("runs all the same"),
            "{proof}"
        );

        table.table.get_mut(&7).unwrap().zombie = true;
        assert!(matches!(look(&table), Liveness::Crashed { .. }));
        table.table.get_mut(&7).unwrap().zombie = false;
        table.table.get_mut(&7).unwrap().start_ticks = 101;
        let Liveness::Crashed { proof } = look(&table) else {
            panic!("a recycled number is not the session")
        };
        assert!(proof.contains("another process"), "{proof}");
        table.table.clear();
        assert!(matches!(look(&table), Liveness::Crashed { .. }));

        let mut table = FakeProcesses::new().with(7, 1, 100, "agent");
        table.boot_id = "boot-2".to_owned();
        assert!(matches!(look(&table), Liveness::Crashed { .. }));
        let mut table = FakeProcesses::new().with(7, 1, 100, "agent");
        table.pid_namespace = 2;
        assert!(matches!(look(&table), Liveness::Unknown { .. }));
        let mut table = FakeProcesses::new();
        table.broken = Some("no table");
        assert!(matches!(look(&table), Liveness::Unknown { .. }));
    }
}
