//! `git takeup completions`
use clap_complete::Shell;
use takeup_core::error::Exit;

use crate::context::Context;
use crate::printer;
use crate::reply::{Failure, Reply};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  git takeup completions bash > ~/.local/share/bash-completion/completions/git-takeup"
)]
pub(crate) struct Args {
    /// The shell
    shell: Name,
}

/// The shells that are known.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Name {
    /// Bash; also completes `git takeup` where git's own completion is loaded.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
    /// Nushell.
    Nushell,
}

pub(crate) fn run(args: Args, _: &Context) -> Result<Reply, Failure> {
    let script = script(match args.shell {
        Name::Bash => "bash",
        Name::Zsh => "zsh",
        Name::Fish => "fish",
        Name::Nushell => "nushell",
    })
    .ok_or_else(|| Failure::new("no-such-shell", Exit::Usage, "this shell is not known"))?;
    // A reader that went away is no failure.
    drop(printer::out_raw(script.as_bytes()));
    Ok(Reply::silent(Exit::Done))
}

/// Returns the completion script of a shell by its name.
pub(crate) fn script(shell: &str) -> Option<String> {
    let mut command = crate::command();
    command.set_bin_name("git-takeup");
    let mut bytes = Vec::new();
    match shell {
        "bash" => clap_complete::generate(Shell::Bash, &mut command, "git-takeup", &mut bytes),
        "zsh" => clap_complete::generate(Shell::Zsh, &mut command, "git-takeup", &mut bytes),
        "fish" => clap_complete::generate(Shell::Fish, &mut command, "git-takeup", &mut bytes),
        "nushell" => {
            clap_complete::generate(
                clap_complete_nushell::Nushell,
                &mut command,
                "git-takeup",
                &mut bytes,
            );
        }
        _ => return None,
    }
    let mut script = String::from_utf8(bytes).ok()?;
    match shell {
        // git's own completion calls `_git_takeup` for `git takeup`.
        "bash" => script.push_str(
            "\n_git_takeup() {\n    COMP_WORDS=(\"git-takeup\" \"${COMP_WORDS[@]:2}\")\n    COMP_CWORD=$((COMP_CWORD - 1))\n    _git-takeup git-takeup \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"\n}\n",
        ),
        "fish" => script.push_str("\ncomplete -c git -n '__fish_seen_subcommand_from takeup' -w git-takeup\n"),
        _ => {}
    }
    Some(script)
}
