//! What was dropped in for agents, and sessions that live and say nothing.
use super::place::move_aside;
use super::{Finding, Scene};
use crate::agent::{Agent, AgentError, SessionQuery};
use crate::engine::Engine;
use crate::integration::{self, IntegrationState, Scope};
use crate::issue::IssueKind;
use crate::ledger::View;
use crate::paths::text_of_path;
use crate::process::Liveness;
use crate::repository::discover;
use crate::text;

/// How many sessions of an agent are looked at.
const LISTED: usize = 50;

pub(super) fn integrations(engine: &Engine<'_>, found: &mut Vec<Finding>) {
    for issue in integration::damaged(engine.env) {
        let what = format!(
            "what was there before an integration is not known: {}: {}",
            issue.path.display(),
            issue.message
        );
        let finding = Finding::warn("integrations", what);
        found.push(match issue.path.parent() {
            Some(record) if issue.kind != IssueKind::UnknownVersion && !issue.is_closed() => finding
                .advice("`--fix` puts the record aside; then `git takeup agents uninstall` and `install` work by what the files themselves hold")
                .remedy(move_aside(record)),
            _ => finding.advice(integration::way_out(&issue)),
        });
    }
    let project = discover(engine.env, &engine.env.cwd)
        .ok()
        .map(|place| Scope::Project { root: place.root });
    let scopes: Vec<Scope> = [Scope::User].into_iter().chain(project.clone()).collect();
    for agent in engine.agents {
        let check = format!("agent-{}", agent.id());
        if !agent.detect(engine.env).installed {
            continue;
        }
        let mut installed = false;
        let mut differs = false;
        for scope in &scopes {
            let user = if *scope == Scope::User { " --user" } else { "" };
            let install = format!("git takeup agents install {}{user}", agent.id());
            match agent.integration(engine.env, scope) {
                IntegrationState::Absent => {}
                IntegrationState::Installed => installed = true,
                IntegrationState::Outdated { what } => {
                    differs = true;
                    // To install again is no advice where that would fail, too.
                    found.push(match agent.install(engine.env, scope) {
                        // What is there is as it would be installed, so the reason is the user's to take away.
                        Ok(plan) if plan.edits.is_empty() && plan.left.is_empty() => {
                            let name = agent.name();
                            let what = format!("{name}: what was dropped in does not run: {what}");
                            Finding::warn(check.clone(), what).advice(
                                "to install again changes nothing of that: change what is named",
                            )
                        }
                        Ok(plan) if plan.edits.is_empty() => {
                            let name = agent.name();
                            let what =
                                format!("{name}: what was dropped in is out of date: {what}");
                            let advice = format!("{}; then: {install}", plan.notes.join("; "));
                            Finding::warn(check.clone(), what).advice(advice)
                        }
                        Ok(_) => {
                            let what = format!("what was dropped in is out of date: {what}");
                            Finding::warn(check.clone(), format!("{}: {what}", agent.name()))
                                .advice(install)
                        }
                        Err(error) => not_editable(check.clone(), &**agent, &error, &install),
                    });
                }
            }
        }
        if differs {
            continue;
        }
        // Here, where there is a here, and the agent can be integrated into one project.
        let is_for_project = project.as_ref().is_some_and(|scope| {
            let plan = agent.install(engine.env, scope);
            !matches!(plan, Err(AgentError::Unsupported { .. }))
        });
        let user = if is_for_project { "" } else { " --user" };
        let install = format!("git takeup agents install {}{user}", agent.id());
        if !installed
            && let Err(error @ AgentError::Damaged(_)) = agent.install(engine.env, &Scope::User)
        {
            let install = format!("git takeup agents install {} --user", agent.id());
            found.push(not_editable(check, &**agent, &error, &install));
            continue;
        }
        found.push(if installed {
            Finding::ok(check, format!("{} is integrated", agent.name()))
        } else {
            Finding::ok(
                check,
                format!("{} is installed and not integrated", agent.name()),
            )
            .advice(format!("so that it records by itself: {install}"))
        });
    }
}

/// Says that an agent's settings are in no state to be edited: what an installation would fail with, too.
fn not_editable(check: String, agent: &dyn Agent, error: &AgentError, install: &str) -> Finding {
    let what = format!("{}: its settings cannot be edited: {error}", agent.name());
    Finding::warn(check, what).advice(format!("mend or move that file, then: {install}"))
}

/// What is damaged in the agents' own records of this place: the same that every list shows.
pub(super) fn stores(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    let query = SessionQuery {
        root: Some(scene.place.root.clone()),
        limit: LISTED,
        ..SessionQuery::default()
    };
    let mut is_healthy = true;
    for agent in scene.engine.agents {
        let mut issues = agent.sessions(scene.engine.env, &query).issues;
        issues.extend(agent.tasks(scene.engine.env, scene.place).issues);
        let Some(first) = issues.first() else {
            continue;
        };
        is_healthy = false;
        let path = text_of_path(&first.path);
        let more = match issues.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        found.push(
            Finding::warn(
                "stores",
                format!(
                    "{}'s own records: {path}: {}{more}",
                    agent.name(),
                    text::one_line(&first.message, 300)
                ),
            )
            .advice(
                "takeup reads these records and never mends them; whatever else they hold is told: git takeup inspect lists all that is damaged",
            ),
        );
    }
    if is_healthy {
        let what = "nothing of what agents recorded here is damaged";
        found.push(Finding::ok("stores", what));
    }
}

/// Sessions that live here while no hook of ours has spoken: nothing is recorded of them.
pub(super) fn silent(scene: &Scene<'_>, view: &View, found: &mut Vec<Finding>) {
    let query = SessionQuery {
        root: Some(scene.place.root.clone()),
        limit: LISTED,
        ..SessionQuery::default()
    };
    for agent in scene.engine.agents {
        let integrated = [
            Scope::User,
            Scope::Project {
                root: scene.place.root.clone(),
            },
        ]
        .iter()
        .any(|scope| agent.integration(scene.engine.env, scope) != IntegrationState::Absent);
        if !integrated {
            continue;
        }
        let silent = agent
            .sessions(scene.engine.env, &query)
            .items
            .into_iter()
            .filter(|session| matches!(session.liveness, Liveness::Live { .. }))
            .filter(|session| {
                view.state.session(&session.session).is_none()
                    && view.state.of_session(&session.session.id).next().is_none()
            })
            .count();
        if silent > 0 {
            found.push(
                Finding::warn(
                    format!("agent-{}-silent", agent.id()),
                    format!(
                        "{} never called takeup: integration silent",
                        text::count(
                            silent,
                            &format!("live session of {} has", agent.name()),
                            &format!("live sessions of {} have", agent.name()),
                        )
                    ),
                )
                .advice("sessions begun before the installation stay silent; restart them, or look at the agent's own log"),
            );
        }
    }
}
