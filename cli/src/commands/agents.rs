//! `git takeup agents`
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::agent::{Agent, AgentError, Detection, Rung};
use takeup_core::engine::{self, Site};
use takeup_core::error::Exit;
use takeup_core::ids::AgentId;
use takeup_core::integration::{self, Done, Edit, EditPlan, IntegrationState, Scope};
use takeup_core::text;

use crate::context::Context;
use crate::printer::{BOLD, DIM, GREEN, RED, YELLOW, paint, table};
use crate::reply::{Failure, Reply};

/// Arguments of `agents`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  git takeup agents\n  git takeup agents install opencode --dry-run\n  git takeup agents install jcode --user\n  git takeup agents uninstall opencode\n\nAn uninstall puts every file back byte for byte."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the agents that are known, and what is installed of them and for them
    List,
    /// Put the drop-in files of takeup where an agent loads them
    Install(Where),
    /// See whether the drop-in files are there and up to date
    Status(Where),
    /// Take the drop-in files out again
    Uninstall(Where),
}

/// Which agent, and where.
#[derive(Debug, clap::Args)]
struct Where {
    /// The agent: `git takeup agents` names them
    agent: String,

    /// For every repository of this user; some agents know only this
    #[arg(long, conflicts_with = "workspace")]
    user: bool,

    /// The folder it is installed in [default: this repository]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Show every byte that would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// The answer of `agents` and `agents list`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentsData {
    /// The agents.
    agents: Vec<AgentData>,
}

/// One agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentData {
    /// Its id.
    id: AgentId,
    /// Its name.
    name: &'static str,
    /// Whether it is installed.
    detection: Detection,
    /// How far support reaches.
    ladder: Vec<Rung>,
    /// The drop-in files for this user: `absent`, `installed` or `outdated`.
    for_user: &'static str,
    /// The drop-in files in this repository.
    in_repository: &'static str,
}

/// The answer of `agents install`, `status` and `uninstall`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IntegrationData {
    /// The agent.
    agent: AgentId,
    /// `absent`, `installed` or `outdated`, afterwards.
    state: &'static str,
    /// What differs, where it is outdated.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<String>,
    /// Files that were made, changed or removed, or would be.
    files: Vec<String>,
    /// What a person has to do or know besides.
    notes: Vec<String>,
    /// Nothing was changed: it was only asked what would be.
    dry_run: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    match args.action.unwrap_or(Action::List) {
        Action::List => Ok(list(context)),
        Action::Install(place) => {
            let (agent, scope) = resolve(&place, context)?;
            needs_home(&scope, context)?;
            let plan = agent.install(&context.env, &scope)?;
            change(agent, &scope, &plan, place.dry_run, context, true)
        }
        Action::Uninstall(place) => {
            let (agent, scope) = resolve(&place, context)?;
            needs_home(&scope, context)?;
            // An agent that is gone has no file of its own to be edited; what is remembered is put back all the same.
            let plan = match agent.uninstall(&context.env, &scope) {
                Err(AgentError::NotInstalled { .. }) => EditPlan::default(),
                other => other?,
            };
            change(agent, &scope, &plan, place.dry_run, context, false)
        }
        Action::Status(place) => {
            let (agent, scope) = resolve(&place, context)?;
            let mut done = Done::default();
            done.notes
                .extend(other_place(agent, &scope, context, "status"));
            Ok(report(agent, &scope, done, false, context, String::new()))
        }
    }
}

/// Edits in a user's own settings need to know whose: a home that the system names for the caller's number is a guess.
fn needs_home(scope: &Scope, context: &Context) -> Result<(), Failure> {
    if matches!(scope, Scope::Project { .. }) || context.env.absolute("HOME").is_some() {
        return Ok(());
    }
    let what = "HOME is not set to an absolute path, so it is not known whose settings are meant";
    Err(Failure::new("no-home", Exit::No, what)
        .hint("set HOME, or install into this repository without --user"))
}

fn resolve<'a>(place: &Where, context: &'a Context) -> Result<(&'a dyn Agent, Scope), Failure> {
    let agent = context
        .agents
        .iter()
        .find(|agent| agent.id().as_str() == place.agent)
        .ok_or_else(|| {
            let names: Vec<String> = context
                .agents
                .iter()
                .map(|agent| agent.id().to_string())
                .collect();
            Failure::new(
                "no-such-agent",
                Exit::Missing,
                format!("no agent {:?} is known", place.agent),
            )
            .hint(format!("known are: {}", names.join(", ")))
        })?;
    let scope = if place.user {
        Scope::User
    } else if let Some(folder) = &place.workspace {
        let root = std::fs::canonicalize(folder).map_err(|error| {
            Failure::new(
                "no-such-folder",
                Exit::Missing,
                format!("{}: {error}", folder.display()),
            )
        })?;
        Scope::Project { root }
    } else {
        Scope::Project {
            root: Site::open(&context.engine())?.place().root.clone(),
        }
    };
    Ok((&**agent, scope))
}

fn change(
    agent: &dyn Agent,
    scope: &Scope,
    plan: &EditPlan,
    dry_run: bool,
    context: &Context,
    install: bool,
) -> Result<Reply, Failure> {
    if dry_run {
        let EditPlan { edits, notes, .. } = if install {
            plan.clone()
        } else {
            integration::planned_removal(&context.env, &agent.id(), scope, plan)?
        };
        let shown: String = edits.iter().map(show).collect();
        let changed = edits.into_iter().map(|edit| edit.path).collect();
        let done = Done { changed, notes };
        return Ok(report(agent, scope, done, true, context, shown));
    }
    let new: Vec<&PathBuf> = plan
        .edits
        .iter()
        .filter(|edit| edit.before.is_none())
        .map(|edit| &edit.path)
        .collect();
    let done = if install {
        let mut done = integration::install(&context.env, &agent.id(), scope, plan)?;
        if matches!(scope, Scope::Project { .. }) && !done.changed.is_empty() {
            done.notes.push(
                "these files are content of the work tree: a task that was saved before shows them as changed"
                    .to_owned(),
            );
        }
        done
    } else {
        let mut done = integration::uninstall(&context.env, &agent.id(), scope, plan)?;
        // What was put back may hold lines of ours, of another version. What was left was left on purpose.
        if let Ok(mut rest) = agent.uninstall(&context.env, scope) {
            rest.edits.retain(|edit| done.changed.contains(&edit.path));
            if !rest.edits.is_empty() {
                let more = integration::uninstall(&context.env, &agent.id(), scope, &rest)?;
                done.changed.extend(more.changed);
                done.changed.sort();
                done.changed.dedup();
            }
        }
        if done.changed.is_empty() {
            done.notes
                .extend(other_place(agent, scope, context, "uninstall"));
        }
        done
    };
    let told = files(&done.changed, |file| {
        if file.symlink_metadata().is_err() {
            "removed"
        } else if new.contains(&file) && install {
            "made"
        } else {
            "changed"
        }
    });
    Ok(report(agent, scope, done, false, context, told))
}

/// Says of an agent for which nothing is installed here that something is for the user, and the other way round.
fn other_place(
    agent: &dyn Agent,
    scope: &Scope,
    context: &Context,
    action: &str,
) -> Option<String> {
    let is_absent =
        |scope: &Scope| agent.integration(&context.env, scope) == IntegrationState::Absent;
    let (other, place, option) = match scope {
        Scope::Project { .. } => (Scope::User, "for you", " --user"),
        Scope::User => {
            let root = Site::open(&context.engine()).ok()?.place().root.clone();
            (Scope::Project { root }, "in this repository", "")
        }
    };
    (is_absent(scope) && !is_absent(&other)).then(|| {
        format!(
            "it is installed {place}: git takeup agents {action} {}{option}",
            agent.id()
        )
    })
}

/// The most files of one folder that are named one by one.
const FEW: usize = 3;

/// Tells what was done to files, those of one folder together where they are many.
fn files(all: &[PathBuf], verb: impl Fn(&PathBuf) -> &'static str) -> String {
    let mut out = String::new();
    let mut rest = all.iter().peekable();
    while let Some(first) = rest.next() {
        let kind = (verb(first), first.parent());
        let mut group = vec![first];
        while let Some(next) = rest.next_if(|next| (verb(next), next.parent()) == kind) {
            group.push(next);
        }
        match kind.1 {
            Some(folder) if group.len() > FEW => {
                out.push_str(&format!(
                    "{} {} files in {}\n",
                    kind.0,
                    group.len(),
                    folder.display()
                ));
            }
            _ => {
                for file in group {
                    out.push_str(&format!("{} {}\n", kind.0, file.display()));
                }
            }
        }
    }
    out
}

/// Shows an edit, every byte of it that is text.
fn show(edit: &Edit) -> String {
    let old = String::from_utf8_lossy(edit.before.as_deref().unwrap_or_default()).into_owned();
    let new = String::from_utf8_lossy(edit.after.as_deref().unwrap_or_default()).into_owned();
    let word = match (&edit.before, &edit.after) {
        (None, _) => "new file",
        (_, None) => "removed",
        _ => "changed",
    };
    let mut out = format!(
        "{} {}\n",
        paint(BOLD, edit.path.display()),
        paint(DIM, format!("({word})"))
    );
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same_head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = |lines: &[&str]| lines.len() - same_head;
    let same_tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(a, b)| a == b)
        .count()
        .min(rest(&old))
        .min(rest(&new));
    for line in old.iter().take(old.len() - same_tail).skip(same_head) {
        out.push_str(&format!(
            "{}\n",
            paint(RED, format!("-{}", text::clean(line, 2_000)))
        ));
    }
    for line in new.iter().take(new.len() - same_tail).skip(same_head) {
        out.push_str(&format!(
            "{}\n",
            paint(GREEN, format!("+{}", text::clean(line, 2_000)))
        ));
    }
    out
}

/// Says where hooks record, where that is not known to be everywhere they are called: only where takeup is used.
fn where_recorded(agent: &dyn Agent, scope: &Scope, context: &Context) -> Option<String> {
    let has_hooks = agent.ladder().iter().any(|rung| rung.rung == "hooked");
    match scope {
        _ if !has_hooks => None,
        Scope::Project { root } if engine::is_used_at(&context.engine(), root) => None,
        Scope::Project { .. } => Some(
            "its hooks record nothing before takeup is used here: `git takeup init`, once, or the first `git takeup start`"
                .to_owned(),
        ),
        Scope::User => Some(
            "its hooks record in the repositories where takeup is used: `git takeup init` there, once, or the first `git takeup start`"
                .to_owned(),
        ),
    }
}

fn report(
    agent: &dyn Agent,
    scope: &Scope,
    mut done: Done,
    dry_run: bool,
    context: &Context,
    shown: String,
) -> Reply {
    let (state, what) = match agent.integration(&context.env, scope) {
        IntegrationState::Absent => ("absent", None),
        IntegrationState::Installed => ("installed", None),
        IntegrationState::Outdated { what } => ("outdated", Some(what)),
    };
    if state != "absent" {
        done.notes.extend(where_recorded(agent, scope, context));
    }
    let summary = format!("{}: {state}", agent.name());
    let mut out = shown;
    if dry_run {
        out.push_str(&files(&done.changed, |_| "would change"));
    }
    if let Some(what) = &what {
        out.push_str(&format!(
            "{} {}\n",
            paint(YELLOW, "outdated:"),
            text::one_line(what, 300)
        ));
    }
    for note in done
        .notes
        .iter()
        .filter(|note| Some(*note) != what.as_ref())
    {
        out.push_str(&format!("{} {note}\n", paint(DIM, "note:")));
    }
    out.push_str(&summary);
    let data = IntegrationData {
        agent: agent.id(),
        state,
        what,
        files: done
            .changed
            .iter()
            .map(|file| file.to_string_lossy().into_owned())
            .collect(),
        notes: done.notes,
        dry_run,
    };
    Reply::new(summary, &data).human(out)
}

fn list(context: &Context) -> Reply {
    let root = Site::open(&context.engine())
        .ok()
        .map(|site| site.place().root.clone());
    let word = |state: IntegrationState| match state {
        IntegrationState::Absent => "absent",
        IntegrationState::Installed => "installed",
        IntegrationState::Outdated { .. } => "outdated",
    };
    let agents: Vec<AgentData> = context
        .agents
        .iter()
        .map(|agent| AgentData {
            id: agent.id(),
            name: agent.name(),
            detection: agent.detect(&context.env),
            ladder: agent.ladder(),
            for_user: word(agent.integration(&context.env, &Scope::User)),
            in_repository: root.clone().map_or("absent", |root| {
                word(agent.integration(&context.env, &Scope::Project { root }))
            }),
        })
        .collect();
    let mut rows = vec![
        ["agent", "found", "for you", "here", "support"]
            .map(|head| paint(DIM, head))
            .to_vec(),
    ];
    for agent in &agents {
        let mut rungs: Vec<&str> = agent.ladder.iter().map(|rung| rung.rung).collect();
        if let Some(first) = rungs.iter().position(|rung| *rung == "hand-over-out")
            && rungs.get(first + 1) == Some(&"hand-over-in")
        {
            rungs.splice(first..first + 2, ["hand-over"]);
        }
        let found = match (&agent.detection.version, agent.detection.installed) {
            (Some(version), true) => text::one_line(version, 20),
            (None, true) => "yes".to_owned(),
            (_, false) => "no".to_owned(),
        };
        rows.push(vec![
            agent.id.to_string(),
            found,
            agent.for_user.to_owned(),
            agent.in_repository.to_owned(),
            rungs.join(", "),
        ]);
    }
    let summary = text::count(agents.len(), "agent is known", "agents are known");
    Reply::new(summary, &AgentsData { agents }).human(table(&rows))
}
