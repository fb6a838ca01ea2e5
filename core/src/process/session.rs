//! Which process stands for a session: the agent, not the shell it called us through.
use super::{ProcessError, ProcessIdentity, Processes};

/// No real chain is longer; a table that changes while it is walked could make a loop.
const LONGEST_CHAIN: usize = 256;

/// Programs that only pass a call on: shells, wrappers, git and we ourselves.
const PASSES_ON: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "fish",
    "ksh",
    "ksh93",
    "mksh",
    "oksh",
    "yash",
    "tcsh",
    "csh",
    "rc",
    "elvish",
    "nu",
    "xonsh",
    "pwsh",
    "busybox",
    "toybox",
    "env",
    "sudo",
    "sudo-rs",
    "doas",
    "su",
    "timeout",
    "nohup",
    "setsid",
    "nice",
    "ionice",
    "stdbuf",
    "time",
    "xargs",
    "script",
    "strace",
    "ltrace",
    "unshare",
    "git",
    "git-takeup",
];

/// Programs that hold many sessions and outlive each: none of them stands for one.
const HOLDS_MANY: &[&str] = &[
    "systemd",
    "init",
    "launchd",
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "runit",
    "s6-svscan",
    "openrc-init",
    "containerd-shim",
    "containerd-shim-runc-v2",
    "conmon",
    "sshd",
    "sshd-session",
    "dropbear",
    "login",
    "agetty",
    "getty",
    "cron",
    "crond",
    "atd",
    "tmux",
    "screen",
    "zellij",
    "mosh-server",
    "gnome-terminal-server",
    "gnome-terminal-",
    "konsole",
    "xterm",
    "urxvt",
    "rxvt",
    "alacritty",
    "kitty",
    "wezterm-gui",
    "wezterm-mux-server",
    "foot",
    "ghostty",
    "xfce4-terminal",
    "terminator",
    "tilix",
    "ptyxis",
    "ptyxis-agent",
    "kgx",
];

/// Returns the process and its ancestors, the process first. Ends at the first process, or where the chain leaves the
/// pid namespace.
pub fn ancestors(
    processes: &dyn Processes,
    pid: u32,
) -> Result<Vec<ProcessIdentity>, ProcessError> {
    let mut chain: Vec<ProcessIdentity> = Vec::new();
    let mut next = Some(pid);
    while let Some(pid) = next
        && chain.len() < LONGEST_CHAIN
        && chain.iter().all(|known| known.pid != pid)
    {
        let Some((identity, parent)) = processes.identify_with_parent(pid)? else {
            break;
        };
        chain.push(identity);
        next = parent;
    }
    Ok(chain)
}

/// Returns the process that stands for the session that `my_pid` was called from: the nearest ancestor that is no shell
/// and no other program that only passes a call on. Where that one holds many sessions (a terminal, a multiplexer, the
/// first process), the outermost shell below it stands for the session: a person's own. `None` where there is neither.
pub fn session_process(
    processes: &dyn Processes,
    my_pid: u32,
) -> Result<Option<ProcessIdentity>, ProcessError> {
    let mut outermost = None;
    for candidate in ancestors(processes, my_pid)?.into_iter().skip(1) {
        let program = processes.program(candidate.pid)?.unwrap_or_default();
        if PASSES_ON.contains(&program.as_str()) {
            outermost = Some(candidate);
        } else if candidate.pid == 1 || holds_many(&program) {
            return Ok(outermost);
        } else {
            return Ok(Some(candidate));
        }
    }
    Ok(outermost)
}

fn holds_many(program: &str) -> bool {
    HOLDS_MANY.contains(&program) || program.starts_with("tmux:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fake::FakeProcesses;

    fn session(table: &FakeProcesses, me: u32) -> Option<u32> {
        session_process(table, me).unwrap().map(|found| found.pid)
    }

    #[test]
    fn the_agent_stands_for_the_session_not_the_shell() {
        let table = FakeProcesses::new()
            .with(1, 0, 1, "systemd")
            .with(10, 1, 2, "gnome-terminal-")
            .with(20, 10, 3, "bash")
            .with(30, 20, 4, "claude")
            .with(40, 30, 5, "bash")
            .with(50, 40, 6, "git")
            .with(60, 50, 7, "git-takeup");
        assert_eq!(session(&table, 60), Some(30));
        let chain: Vec<u32> = ancestors(&table, 60)
            .unwrap()
            .iter()
            .map(|p| p.pid)
            .collect();
        assert_eq!(chain, [60, 50, 40, 30, 20, 10, 1]);
    }

    #[test]
    fn a_person_at_a_terminal_is_the_own_shell_not_the_terminal() {
        let table = FakeProcesses::new()
            .with(1, 0, 1, "systemd")
            .with(10, 1, 2, "tmux: server")
            .with(20, 10, 3, "zsh")
            .with(30, 20, 4, "sh")
            .with(60, 30, 7, "git-takeup");
        assert_eq!(session(&table, 60), Some(20));
    }

    #[test]
    fn nobody_is_named_where_nobody_stands_for_it() {
        let table = FakeProcesses::new()
            .with(1, 0, 1, "node")
            .with(60, 1, 7, "git-takeup");
        assert_eq!(session(&table, 60), None);
        // A loop of parent links, as a table read while it changes may show.
        let table = FakeProcesses::new()
            .with(5, 6, 1, "bash")
            .with(6, 5, 1, "bash");
        assert_eq!(session(&table, 5), Some(6));
        let mut table = FakeProcesses::new();
        table.broken = Some("no table");
        assert!(session_process(&table, 5).is_err());
    }
}
