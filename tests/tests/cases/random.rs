//! Random histories against a small model: a task is completed only with proof for the content of that moment, it is held by
//! one session, and nothing is taken up without a yes.
use std::collections::BTreeSet;

use serde_json::Value;

use super::scratch;

/// A source of numbers that gives the same ones for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What the model knows.
#[derive(Default)]
struct Model {
    /// The content, as a number that stands for it.
    content: u64,
    /// The content that each session saved last.
    saved: std::collections::BTreeMap<String, u64>,
    /// Content on which the check passed last, and on which it failed last.
    passed: BTreeSet<u64>,
    /// The session that holds the task.
    holder: String,
    reviewing: bool,
    completed: bool,
}

#[test]
fn random_histories_agree_with_the_model() {
    for seed in 1..=12 {
        play(seed);
    }
}

fn play(seed: u64) {
    let mut dice = Dice(seed);
    let scratch = scratch();
    let mut model = Model {
        holder: "s0".to_owned(),
        ..Model::default()
    };
    // The check passes on even contents: it looks at a file that says so, and changes nothing.
    let write = |content: u64| {
        scratch.write("a.txt", format!("{content}\n"));
        scratch.write(
            "even",
            if content.is_multiple_of(2) {
                "yes\n"
            } else {
                "no\n"
            },
        );
    };
    write(0);
    scratch
        .takeup(&[
            "start",
            "t1",
            "--session",
            "s0",
            "--check",
            "grep -q yes even",
        ])
        .exits(0);
    model.saved.insert("s0".to_owned(), 0);
    let mut sessions = 1;
    for step in 0..25 {
        if model.completed {
            break;
        }
        let holder = model.holder.clone();
        let told = format!("seed {seed}, step {step}");
        match dice.roll(9) {
            0 | 1 => {
                model.content = dice.roll(5);
                write(model.content);
            }
            2 => {
                scratch.takeup(&["save", "--session", &holder]).exits(0);
                model.saved.insert(holder, model.content);
            }
            3 | 4 => {
                let passes = model.content.is_multiple_of(2);
                let exit = i32::from(!passes);
                scratch
                    .takeup(&["check", "--session", &holder, "--planned", "1"])
                    .exits(exit);
                if passes {
                    model.passed.insert(model.content);
                } else {
                    model.passed.remove(&model.content);
                }
            }
            5 => {
                let step = scratch
                    .takeup(&["next", "--session", &holder, "--json"])
                    .exits(0)
                    .json();
                let may = !model.reviewing && model.passed.contains(&model.content);
                assert_eq!(
                    step["data"]["finalized"],
                    Value::Bool(may),
                    "{told}: {step:#}"
                );
                model.completed = may;
            }
            6 => {
                let to = format!("s{sessions}");
                let ran = scratch.takeup(&[
                    "resume",
                    "t1",
                    "--from",
                    &holder,
                    "--to",
                    &to,
                    "--confirm",
                    "--json",
                ]);
                let compatible = model.saved.get(&holder) == Some(&model.content);
                let expected = if model.reviewing || !compatible { 3 } else { 0 };
                assert_eq!(ran.code, expected, "{told}: {}", ran.stdout);
                if expected == 0 {
                    sessions += 1;
                    model.saved.insert(to.clone(), model.content);
                    model.holder = to;
                }
                assert_eq!(
                    scratch
                        .takeup(&["resume", "t1", "--from", &model.holder, "--to", "asker"])
                        .code,
                    3,
                    "{told}"
                );
            }
            7 => {
                scratch
                    .takeup(&["review", "request", "fine?", "--session", &holder])
                    .exits(0);
                model.reviewing = true;
            }
            _ => {
                if model.reviewing {
                    scratch
                        .takeup(&["review", "approve", "t1", "--confirm", "--content-changed"])
                        .exits(0);
                    model.reviewing = false;
                }
            }
        }
        let answer = scratch.takeup(&["inspect", "t1", "--json"]).exits(0).json();
        let open: Vec<&Value> = answer["data"]["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["verdict"] != "not-resumable")
            .collect();
        assert_eq!(
            open.len(),
            usize::from(!model.completed),
            "{told}: one session holds the task"
        );
        if let Some(open) = open.first() {
            assert_eq!(open["identity"]["sessionId"], *model.holder, "{told}");
            let expected = if model.reviewing {
                "human-review"
            } else if model.saved.get(&model.holder) == Some(&model.content) {
                "resume-verification"
            } else {
                "stale-task"
            };
            assert_eq!(open["verdict"], expected, "{told}");
        }
    }
}
