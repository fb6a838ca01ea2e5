//! `git takeup` alone: what is unfinished here, on one screen.
use schemars::JsonSchema;
use serde::Serialize;
use takeup_core::background::{Seen, Store};
use takeup_core::engine::{self, Engine, InspectRequest, Inspection, ReviewView};
use takeup_core::env::Env;
use takeup_core::error::Exit;
use takeup_core::issue::Issue;
use takeup_core::paths::{path_of_text, shell_word_of_text, text_of_path};
use takeup_core::repository::{Folders, discover, known_places};
use takeup_core::text;

use super::bg::{TaskData, damaged};
use super::inspect;
use crate::context::Context;
use crate::printer::{BOLD, CYAN, DIM, YELLOW, paint};
use crate::render;
use crate::reply::{Failure, Next, Reply};

/// Arguments of the overview.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Every known repository
    pub all: bool,
}

/// The answer of `git takeup`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OverviewData {
    /// One for each place.
    places: Vec<PlaceData>,
    /// Known places that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
}

/// One place.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlaceData {
    /// What `inspect` says.
    inspection: Inspection,
    /// Questions that wait for a person.
    reviews: Vec<ReviewView>,
    /// Background tasks that were started below this work tree.
    background: Vec<TaskData>,
    /// Records of background tasks that cannot be read: they may be of this work tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    background_issues: Vec<Issue>,
    /// The top as a word of a command, where the caller is in another place.
    #[serde(skip)]
    outside: Option<String>,
}

impl PlaceData {
    fn root(&self) -> String {
        self.inspection.repository.root.clone()
    }

    /// Makes the proposed commands mean this place wherever they are typed.
    fn told_from_outside(&mut self) {
        let root = shell_word_of_text(&self.root());
        self.outside = Some(root.clone());
        for candidate in &mut self.inspection.candidates {
            let command = &mut candidate.next.command;
            let words = command
                .as_deref()
                .and_then(|line| line.strip_prefix("git "));
            // One that begins with an option of git's names its place already.
            if let Some(words) = words.filter(|words| !words.starts_with('-')) {
                *command = Some(format!("git -C {root} {words}"));
            }
        }
    }

    /// Begins a command that means this place.
    fn git(&self) -> String {
        let outside = self.outside.as_ref();
        outside.map_or_else(|| "git".to_owned(), |root| format!("git -C {root}"))
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, Failure> {
    let mut gone = Vec::new();
    let (mut places, mut notes) = (Vec::new(), Vec::new());
    if args.all {
        let here = discover(&context.env, &context.env.cwd).ok();
        let known = known_places(&context.env);
        for place in known.items {
            let root = path_of_text(&place.root).filter(|_| !place.gone);
            match root.map(|root| at(context, &context.env.at(root))) {
                Some(Ok(mut place)) => {
                    if here.as_ref().map(|here| text_of_path(&here.root)) != Some(place.root()) {
                        place.told_from_outside();
                    }
                    places.push(place);
                }
                Some(Err(failure)) => {
                    let why = text::one_line(&failure.message, 300);
                    notes.push(format!("{} cannot be looked at: {why}", place.root));
                    gone.push(place.root);
                }
                None => {
                    notes.push(format!("{} {}", place.root, what_became(&place.root)));
                    gone.push(place.root);
                }
            }
        }
    } else {
        places.push(at(context, &context.env)?);
    }
    let summary = match places.as_slice() {
        [one] if !args.all => inspect::summary(&one.inspection),
        several => text::count(several.len(), "place", "places"),
    };
    let mut out = String::new();
    for place in &places {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&page(place, context));
    }
    for note in &notes {
        out.push_str(&format!("{} {note}\n", paint(YELLOW, "known place:")));
    }
    if places.is_empty() && gone.is_empty() {
        out.push_str("no repository is known yet\n");
    }
    let next = places
        .first()
        .and_then(|place| place.inspection.candidates.first())
        .map(|first| Next {
            action: first.next.action.clone(),
            command: first.next.command.clone(),
        });
    let mut reply = Reply::new(summary, &OverviewData { places, gone })
        .human(out)
        .exit(Exit::Done);
    reply.next = next;
    Ok(reply)
}

/// Says what stands where a known place was.
fn what_became(root: &str) -> &'static str {
    let Some(root) = path_of_text(root).filter(|root| root.is_dir()) else {
        return "is gone";
    };
    if root.join(".git").symlink_metadata().is_ok() {
        "holds another repository now, or its records were removed; git takeup gc forgets the place"
    } else {
        "is no repository any more: the git folder with the records is gone from there"
    }
}

fn at(context: &Context, env: &Env) -> Result<PlaceData, Failure> {
    let engine = Engine {
        env,
        ..context.engine()
    };
    let inspection = engine::inspect(&engine, &InspectRequest::default())?;
    let reviews = engine::reviews(&engine, None, false)?;
    let (background, background_issues) = background(context, &inspection.repository.root);
    Ok(PlaceData {
        inspection,
        reviews,
        background,
        background_issues,
        outside: None,
    })
}

/// Lists the background tasks of a work tree that run, or ended in the last day, and what cannot be read.
fn background(context: &Context, root: &str) -> (Vec<TaskData>, Vec<Issue>) {
    let Ok(store) = Store::of(&context.env) else {
        return (Vec::new(), Vec::new());
    };
    let Ok((seen, issues)) = store.look_all(&*context.processes) else {
        return (Vec::new(), Vec::new());
    };
    let Some(root) = path_of_text(root) else {
        return (Vec::new(), Vec::new());
    };
    let recent = |task: &Seen| {
        let day = 86_400_000;
        task.record
            .state
            .ended_at()
            .is_none_or(|end| context.now().since(end) < day)
    };
    let mut here = Folders::of(&root);
    let tasks = seen
        .into_iter()
        .filter(|task| path_of_text(&task.record.cwd).is_some_and(|cwd| here.hold(&cwd)))
        .filter(recent)
        .map(|task| TaskData::new(&store, task, context.now()))
        .collect();
    (tasks, issues)
}

fn page(place: &PlaceData, context: &Context) -> String {
    let mut out = inspect::page(&place.inspection, context, false, &place.git());
    for view in &place.reviews {
        let id = view.review.review_id.as_str();
        out.push_str(&format!(
            "\n{} {} ({})\n  {}\n",
            paint(YELLOW, "waits for a person:"),
            text::one_line(&view.review.title, 120),
            view.review.task_id,
            paint(CYAN, format!("{} takeup review show {id}", place.git()))
        ));
    }
    let of_agents = render::of_agents(&place.inspection.background.of_agents);
    if !place.background.is_empty() || !place.background_issues.is_empty() || !of_agents.is_empty()
    {
        out.push_str(&format!("\n{}\n", paint(BOLD, "background")));
        for task in &place.background {
            out.push_str(&format!(
                "  {}  {}\n",
                paint(DIM, &task.id),
                task.sentence()
            ));
        }
        out.push_str(&of_agents);
        for issue in &place.background_issues {
            out.push_str(&format!("  {}\n", damaged(issue)));
        }
    }
    if !place.inspection.used && place.inspection.candidates.is_empty() {
        out.push_str(&format!(
            "{}\n",
            paint(
                CYAN,
                format!("{} takeup start 'what the work is'", place.git())
            )
        ));
    }
    out
}
