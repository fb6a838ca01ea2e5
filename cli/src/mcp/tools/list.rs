//! The list of tools.
use takeup_core::engine::{
    DiffView, Evaluation, Inspection, NextStep, Resumed, Saved, Started, TaskView,
};
use takeup_core::error::Exit;

use super::input::{
    Bg, BgList, BgOutput, BgRun, BgWait, CheckPlan, Diff, Inspect, Next, Note, PlanAction, Resume,
    Review, ReviewAction, Save, Sessions, Start, Status, Task,
};
use super::schema::{Either, input, output};
use super::{Asks, Marks, Tool, Words, parse};
use crate::commands::bg::list::ListData;
use crate::commands::bg::output::OutputData;
use crate::commands::bg::run::RunData;
use crate::commands::bg::show::ShowData;
use crate::commands::bg::stop::StopData;
use crate::commands::bg::wait::WaitData;
use crate::commands::handover::HandoverData;
use crate::commands::note::NoteData;
use crate::commands::overview::OverviewData;
use crate::commands::plan::PlanData;
use crate::commands::review::{ReviewData, ReviewsData};
use crate::commands::sessions::SessionsData;
use crate::reply::Failure;

/// Finds a tool by its name.
pub(in super::super) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns the tools, in the order in which clients list them.
pub(in super::super) fn all() -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter()
}

/// What most tools are.
const PLAIN: Tool = Tool {
    name: "",
    title: "",
    description: "",
    marks: Marks::Reads,
    list: None,
    asks: None,
    runs: false,
    input: input::<Task>,
    output: output::<TaskView>,
    words: |_, _| Ok(Words::default()),
};

/// How many seconds a wait takes where nothing is said: less than what clients give a call.
const WAIT: u32 = 25;
/// How many seconds a wait takes at most.
const WAIT_MOST: u32 = 600;

fn need(value: Option<String>, what: &str) -> Result<String, Failure> {
    value.ok_or_else(|| Failure::new("usage", Exit::Usage, format!("`{what}` is missing")))
}

static TOOLS: &[Tool] = &[
    Tool {
        name: "takeup_status",
        title: "What is unfinished here",
        description: "The whole place on one page: tasks with verdicts, questions that wait for a person, background tasks. Reads only.",
        input: input::<Status>,
        output: output::<OverviewData>,
        words: |arguments, _| {
            let Status {} = parse(arguments)?;
            Ok(Words::default())
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_inspect",
        title: "What may be taken up here?",
        description: "Lists unfinished tasks of every agent in this work tree, each with a verdict: resume-verification (as it was left), stale-task (content changed), human-review, in-use, not-resumable, mismatched-repository. Reads only. Call it first.",
        list: Some("candidates"),
        input: input::<Inspect>,
        output: output::<Inspection>,
        words: |arguments, call| {
            let input: Inspect = parse(arguments)?;
            Ok(Words::of(&["inspect"])
                .with("task", input.task.as_deref())
                .with("from", input.from.as_deref())
                .by(call))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_show",
        title: "Show a task",
        description: "One task with its sessions, boundary, plan, evidence, notes and reviews. Reads only.",
        list: Some("notes"),
        words: |arguments, call| {
            let input: Task = parse(arguments)?;
            Ok(Words::of(&["show"])
                .with("task", input.task.as_deref())
                .with("session", call.session.as_deref()))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_start",
        title: "Begin a task",
        description: "Begins a task in your session and records the content it starts from. The same call again changes nothing.",
        marks: Marks::Repeatable,
        input: input::<Start>,
        output: output::<Started>,
        words: |arguments, call| {
            let input: Start = parse(arguments)?;
            Ok(Words::of(&["start"])
                .with("title", Some(&input.title))
                .each("allow", &input.allow)
                .each("avoid", &input.avoid)
                .each("check", &input.checks)
                .by(call)
                .alive(call))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_save",
        title: "Record what you leave",
        description: "Records the present content as what your session leaves. Call it whenever you stop, and before your context ends.",
        marks: Marks::Repeatable,
        input: input::<Save>,
        output: output::<Saved>,
        words: |arguments, call| {
            let input: Save = parse(arguments)?;
            Ok(Words::of(&["save"])
                .with("task", input.task.as_deref())
                .when("end", input.end)
                .with("reason", input.reason.as_deref().filter(|_| input.end))
                .by(call)
                .alive(call))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_note",
        title: "Leave a remark",
        description: "Adds a remark to a task for whoever goes on with it: what was tried, what is left, what to avoid. Secrets are masked.",
        marks: Marks::Adds,
        input: input::<Note>,
        output: output::<NoteData>,
        words: |arguments, call| {
            let input: Note = parse(arguments)?;
            // The command would read standard input, which belongs to the protocol.
            if input.text.trim() == "-" {
                return Err(Failure::new("usage", Exit::Usage, "a note needs some text"));
            }
            Ok(Words::of(&["note"])
                .with("task", input.task.as_deref())
                .by(call)
                .then(input.text))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_resume",
        title: "Take a task up",
        description: "Takes up what another session left: exactly one session wins. The person is asked first. Then look at what changed, and call takeup_evaluate; taking up proves nothing.",
        marks: Marks::Repeatable,
        asks: Some(Asks::TakeUp),
        input: input::<Resume>,
        output: output::<Resumed>,
        words: |arguments, call| {
            let input: Resume = parse(arguments)?;
            Ok(Words::of(&["resume"])
                .with("task", input.task.as_deref())
                .with("from", input.from.as_deref())
                .with("to", call.session.as_deref())
                .with("agent", Some(&call.agent))
                .alive(call))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_check_plan",
        title: "What has to be proved",
        description: "Shows or changes the plan: commands that have to pass before the task is finished. Runs none; `git takeup check --planned NUMBER` in a shell runs one and records it as evidence.",
        marks: Marks::Repeatable,
        input: input::<CheckPlan>,
        output: output::<PlanData>,
        words: |arguments, call| {
            let input: CheckPlan = parse(arguments)?;
            let words = Words::of(&["plan"])
                .with("task", input.task.as_deref())
                .by(call);
            let action = |words: Words, action: &str| Words {
                options: [words.options, vec![action.to_owned()]].concat(),
                ..words
            };
            Ok(match input.action {
                PlanAction::Show => action(words, "list"),
                PlanAction::Add => action(words, "add")
                    .with("must-fail", input.must_fail.as_deref())
                    .then(need(input.command, "command")?),
                PlanAction::Remove => action(words, "remove").then(need(input.command, "command")?),
            })
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_evaluate",
        title: "Is it proved?",
        description: "Compares the present content with the task's boundary and plan: what changed outside (a review is opened then), which checks are proved on exactly this content.",
        marks: Marks::Repeatable,
        output: output::<Evaluation>,
        words: |arguments, call| {
            let input: Task = parse(arguments)?;
            Ok(Words::of(&["evaluate"])
                .with("task", input.task.as_deref())
                .by(call))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_next",
        title: "The next step",
        description: "Says the one next step, and closes the task when every planned check is proved on the present content.",
        marks: Marks::Repeatable,
        input: input::<Next>,
        output: output::<NextStep>,
        words: |arguments, call| {
            let input: Next = parse(arguments)?;
            Ok(Words::of(&["next"])
                .with("task", input.task.as_deref())
                .when("looked", input.looked)
                .by(call))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_review",
        title: "Questions to a person",
        description: "Lists questions that wait for a person, puts one, or carries a decision: to approve or reject, the person is asked. A pending review blocks its task.",
        marks: Marks::Ends,
        list: Some("reviews"),
        asks: Some(Asks::Decide),
        input: input::<Review>,
        output: output::<Either<ReviewsData, ReviewData>>,
        words: |arguments, call| {
            let input: Review = parse(arguments)?;
            Ok(match input.action {
                ReviewAction::List => Words::of(&["review", "list"]),
                ReviewAction::Request => Words::of(&["review", "request"])
                    .with("reason", input.reason.as_deref())
                    .with("action", input.todo.as_deref())
                    .each("file", &input.files)
                    .each("allow", &input.allow)
                    .with("task", input.task.as_deref())
                    .by(call)
                    .then(need(input.question, "question")?),
                ReviewAction::Approve => Words::of(&["review", "approve"])
                    .with("remark", input.remark.as_deref())
                    .by(call)
                    .then(need(input.review, "review")?),
                ReviewAction::Reject => Words::of(&["review", "reject"])
                    .with("remark", input.remark.as_deref())
                    .by(call)
                    .then(need(input.review, "review")?),
            })
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_diff",
        title: "What changed since it was left",
        description: "Paths that differ from what the task's last session left: how, by which commit, inside or outside the boundary. Reads only.",
        input: input::<Diff>,
        output: output::<DiffView>,
        words: |arguments, call| {
            let input: Diff = parse(arguments)?;
            Ok(Words::of(&["diff"])
                .with("task", input.task.as_deref())
                .with("from", input.from.as_deref())
                .when("patch", input.patch)
                .with("session", call.session.as_deref()))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_handover",
        title: "The hand-over document",
        description: "What another session has to know to go on with a task: state, changes, evidence, remarks, open questions; each line says how it is known. Reads only.",
        output: output::<HandoverData>,
        words: |arguments, call| {
            let input: Task = parse(arguments)?;
            Ok(Words::of(&["handover", "--dry-run"])
                .with("task", input.task.as_deref())
                .with("session", call.session.as_deref()))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_sessions",
        title: "Sessions of all agents",
        description: "Lists sessions of every agent in this work tree with how they ended: live, ended, crashed, unknown. Reads only.",
        list: Some("sessions"),
        input: input::<Sessions>,
        output: output::<SessionsData>,
        words: |arguments, _| {
            let input: Sessions = parse(arguments)?;
            Ok(Words::of(&["sessions"])
                .with("agent", input.agent.as_deref())
                .when("unfinished", input.unfinished)
                .when("all", input.all)
                .with("limit", Some("0")))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_bg_list",
        title: "Background tasks",
        description: "Lists background tasks, newest first, with state and progress. They outlive sessions. Reads only.",
        list: Some("tasks"),
        input: input::<BgList>,
        output: output::<ListData>,
        words: |arguments, _| {
            let input: BgList = parse(arguments)?;
            Ok(Words::of(&["bg", "list"]).when("running", input.running))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_bg_show",
        title: "A background task",
        description: "One background task with everything that is known of it. Reads only.",
        input: input::<Bg>,
        output: output::<ShowData>,
        words: |arguments, _| {
            let input: Bg = parse(arguments)?;
            Ok(Words::of(&["bg", "show"]).then(input.id))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_bg_output",
        title: "What a background task printed",
        description: "The last lines of what a background task printed, secrets masked. Reads only.",
        input: input::<BgOutput>,
        output: output::<OutputData>,
        words: |arguments, _| {
            let input: BgOutput = parse(arguments)?;
            let lines = input.lines.map(|lines| lines.to_string());
            Ok(Words::of(&["bg", "tail"])
                .with("lines", lines.as_deref())
                .then(input.id))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_bg_wait",
        title: "Wait for background tasks",
        description: "Waits for the end of background tasks, not longer than said; call it again to go on waiting. Reads only.",
        list: Some("tasks"),
        input: input::<BgWait>,
        output: output::<WaitData>,
        words: |arguments, _| {
            let input: BgWait = parse(arguments)?;
            let seconds = input.seconds.unwrap_or(WAIT).min(WAIT_MOST);
            let mut words = Words::of(&["bg", "wait"])
                .with("timeout", Some(&format!("{seconds}s")))
                .when("any", input.any);
            words.rest = input.ids;
            Ok(words)
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_bg_stop",
        title: "Stop a background task",
        description: "Stops a background task and everything it started: gently first, then hard.",
        marks: Marks::Ends,
        input: input::<Bg>,
        output: output::<StopData>,
        words: |arguments, _| {
            let input: Bg = parse(arguments)?;
            Ok(Words::of(&["bg", "stop"]).then(input.id))
        },
        ..PLAIN
    },
    Tool {
        name: "takeup_bg_run",
        title: "Start a background task",
        description: "Starts a command that outlives your session: builds, servers, long tests.",
        marks: Marks::Ends,
        runs: true,
        input: input::<BgRun>,
        output: output::<RunData>,
        words: |arguments, call| {
            let input: BgRun = parse(arguments)?;
            if input.command.is_empty() {
                return Err(Failure::new("usage", Exit::Usage, "`command` is empty"));
            }
            let mut words = Words::of(&["bg", "run"])
                .with("name", input.name.as_deref())
                .with("task", input.task.as_deref())
                .with("timeout", input.timeout.as_deref())
                .with("session", call.session.as_deref());
            // `cmd:` would be a command of its own.
            if let Some(ready) = &input.ready {
                if ready.starts_with("cmd:") {
                    return Err(Failure::new(
                        "usage",
                        Exit::Usage,
                        "`ready` is a text or a port here",
                    ));
                }
                words = words.with("ready", Some(ready));
            }
            words.rest = input.command;
            Ok(words)
        },
        ..PLAIN
    },
];
