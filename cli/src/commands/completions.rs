//! `git takeup completions`
use clap_complete::Shell;
use takeup_core::error::Exit;

use crate::context::Context;
use crate::printer;
use crate::reply::{Failure, Reply};

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  git takeup completions bash > ~/.local/share/bash-completion/completions/git-takeup\n\nThe script is the answer, with --json too."
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

/// The name that the words of the bash script are generated for: the generator mistakes a hyphen in it for the space between
/// two commands.
const WORDS: &str = "takeup_words";

/// Completes `git takeup` where git's own completion is loaded: it calls a function of this name, with what was typed in
/// `words` and the place of the command in `__git_cmd_idx`. git's own completions end in a space, since bash is told to add
/// none.
const GIT_BASH: &str = r#"
_git_takeup() {
    local -a typed=("${words[@]}")
    local at="${__git_cmd_idx:-1}" place="${cword:-0}"
    if [[ "${#typed[@]}" -eq 0 ]]; then
        typed=("${COMP_WORDS[@]}")
        place="${COMP_CWORD}"
    fi
    local -a COMP_WORDS=("git-takeup" "${typed[@]:at+1}")
    local COMP_CWORD=$((place - at))
    _takeup_words git-takeup "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    COMPREPLY=("${COMPREPLY[@]/%/ }")
}
"#;

/// Completes `git takeup` in fish as `git-takeup`.
const GIT_FISH: &str = r#"
function __fish_git_takeup_as_git
    set -l typed (commandline -opc)
    set -l place (contains -i -- takeup $typed)
    or return
    set -e typed[1..$place]
    set typed (string escape -- $typed)
    complete -C "git-takeup $typed "(commandline -ct)
end

complete -c git -f -n '__fish_seen_subcommand_from takeup' -a '(__fish_git_takeup_as_git)'
"#;

/// Returns the completion script of a shell by its name.
pub(crate) fn script(shell: &str) -> Option<String> {
    let mut command = crate::command();
    let mut bytes = Vec::new();
    let name = "git-takeup";
    match shell {
        "bash" => clap_complete::generate(Shell::Bash, &mut command, WORDS, &mut bytes),
        "zsh" => clap_complete::generate(Shell::Zsh, &mut command, name, &mut bytes),
        "fish" => clap_complete::generate(Shell::Fish, &mut command, name, &mut bytes),
        "nushell" => {
            clap_complete::generate(
                clap_complete_nushell::Nushell,
                &mut command,
                name,
                &mut bytes,
            );
        }
        _ => return None,
    }
    let mut script = String::from_utf8(bytes).ok()?;
    match shell {
        "bash" => {
            script = script.replace(
                &format!("-o default {WORDS}\n"),
                &format!("-o default {name}\n"),
            );
            script.push_str(GIT_BASH);
        }
        "fish" => script.push_str(GIT_FISH),
        _ => {}
    }
    Some(script)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// What bash answers to these words, the last of which is being typed: as `git-takeup`, then as git's completion calls us.
    fn answers(words: &[&str]) -> Option<[Vec<String>; 2]> {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        let text = super::script("bash").unwrap();
        takeup_core::files::write_atomic(&script, text.as_bytes(), 0o600).unwrap();
        let ask = |program: &str| {
            let output = Command::new("bash")
                .args(["--norc", "--noprofile", "-c", program, "bash"])
                .arg(&script)
                .args(words)
                .output()
                .ok()?;
            assert!(output.stderr.is_empty(), "{output:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            Some(text.lines().map(str::to_owned).collect::<Vec<String>>())
        };
        let own = ask(
            r#". "$1"; shift; COMP_WORDS=(git-takeup "$@"); COMP_CWORD=$#
            how=$(complete -p git-takeup) && how=${how#*-F } && "${how%% *}" git-takeup "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            [ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}""#,
        )?;
        // `git -C . takeup …`: the command is the fourth word.
        let git = ask(
            r#". "$1"; shift; words=(git -C . takeup "$@"); cword=$((3 + $#)); __git_cmd_idx=3
            COMP_WORDS=("${words[@]}"); COMP_CWORD=$cword; _git_takeup
            [ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}""#,
        )?;
        Some([own, git])
    }

    #[test]
    fn bash_completes_every_word() {
        for (words, expected, not) in [
            (&["res"][..], "resume", "review"),
            (&["resume", "--ta"], "--task", "--to"),
            (&["bg", ""], "list", "resume"),
            (&["bg", "o"], "output", "list"),
            (&["bg", "list", "--j"], "--json", "list"),
            (&["completions", "b"], "bash", "zsh"),
            (&["--color", "al"], "always", "auto"),
        ] {
            let Some([own, git]) = answers(words) else {
                eprintln!("there is no bash here: skipped");
                return;
            };
            assert!(
                own.iter().any(|word| word == expected),
                "{words:?}: {own:?}"
            );
            assert!(!own.iter().any(|word| word == not), "{words:?}: {own:?}");
            let spaced: Vec<String> = own.iter().map(|word| format!("{word} ")).collect();
            assert_eq!(git, spaced, "{words:?}");
        }
    }

    /// Without git's completion, what was typed stands in the words of bash alone.
    #[test]
    fn bash_completes_below_git_without_its_completion() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        let text = super::script("bash").unwrap();
        takeup_core::files::write_atomic(&script, text.as_bytes(), 0o600).unwrap();
        let program = r#". "$1"; COMP_WORDS=(git takeup resu); COMP_CWORD=2; _git_takeup; echo "${COMPREPLY[@]}""#;
        let Ok(output) = Command::new("bash")
            .args(["--norc", "--noprofile", "-c", program, "bash"])
            .arg(&script)
            .output()
        else {
            eprintln!("there is no bash here: skipped");
            return;
        };
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "resume",
            "{output:?}"
        );
    }

    #[test]
    fn fish_leaves_gits_own_commands_alone() {
        let script = super::script("fish").unwrap();
        let of_git: Vec<&str> = script
            .lines()
            .filter(|line| line.starts_with("complete -c git "))
            .collect();
        assert_eq!(of_git.len(), 1, "{of_git:?}");
        assert!(of_git[0].contains("__fish_seen_subcommand_from takeup"));
        assert!(
            !of_git[0].contains(" -w "),
            "a wrapped command is one for every word of git"
        );
    }
}
