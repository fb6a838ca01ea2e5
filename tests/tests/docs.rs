//! The examples of the documents, run as they stand: a document is one story in one shell.
//!
//! | In a document | Here |
//! |---|---|
//! | a fence `sh` | runs, and every command has to succeed; one whose comment says `asks` ends with 3, since nobody can be asked |
//! | a fence `console` | each line `$ …` runs, and prints what stands below it: ids, times, numbers and line breaks aside |
//! | a fence `sh no-run`, and every other fence | does not run |
//! | a comment `<!-- run … -->` | runs: what has happened before the story begins |
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use takeup_tests::Scratch;

const PROGRAM: &str = env!("CARGO_BIN_EXE_takeup-under-test");

/// A part of a document that runs.
#[derive(Debug)]
enum Part {
    Shell(String),
    Shown { command: String, output: String },
}

/// Takes the parts that run out of a document.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let end = match line {
            "<!-- run" => "-->",
            "```sh" | "```console" => "```",
            // The rest of another fence is passed over, so that its end is not taken for a beginning.
            _ if line.starts_with("```") => {
                lines.by_ref().find(|line| *line == "```");
                continue;
            }
            _ => continue,
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
        if line == "```console" {
            for shown in body.join("\n").split("$ ").skip(1) {
                let (command, output) = shown.split_once('\n').unwrap_or((shown, ""));
                parts.push(Part::Shown {
                    command: command.to_owned(),
                    output: output.to_owned(),
                });
            }
        } else {
            parts.push(Part::Shell(body.join("\n")));
        }
    }
    parts
}

/// Makes one script of the parts; what is shown is printed into numbered files of the folder `shown`.
fn script(parts: &[Part], shown: &Path) -> String {
    let mut script = String::from("set -eux\n");
    for (number, part) in parts.iter().enumerate() {
        match part {
            Part::Shell(text) => {
                for line in text.lines() {
                    let asks = line
                        .split_once(" # ")
                        .is_some_and(|(_, comment)| comment.contains("asks"));
                    if asks {
                        script +=
                            &format!("ended=0; {line}\n").replacen(" # ", " || ended=$? # ", 1);
                        script += "[ $ended = 3 ]\n";
                    } else {
                        script += &format!("{line}\n");
                    }
                }
            }
            Part::Shown { command, .. } => {
                script += &format!(
                    "set +x; {{ {command}\n}} >'{0}/{number}' 2>&1 || [ $? = 1 ]; set -x\n",
                    shown.display()
                );
            }
        }
    }
    script
}

/// Brings what differs from run to run into one form.
fn same_form(text: &str, home: &Path) -> String {
    let mut text = text.replace(&home.display().to_string(), "/home/ana");
    for (pattern, word) in [
        (r"\s+", " "),
        (r"\bok-[0-9a-f]{10}\b", "TOKEN"),
        (r"not\s+known:\s[^(]+\(pid", "not known: NAME (pid"),
        (r"\b[0-9a-f]{7,64}\b", "ID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME"),
        (r"\b01[0-9a-z]{8}-[a-z]+-[a-z]+\b", "TASK"),
        (r"\b(just now|\d+ (second|minute|hour)s? ago)", "AGO"),
        (r"\b\d+(\.\d+)? ?(ms|s|B|KiB|MiB)\b", "AMOUNT"),
        (r"pid \d+", "pid N"),
        (r"\bperson:[a-z]+-[a-z]+", "person:NAME"),
        (
            r"(--session|TAKEUP_SESSION=|--from) ?[a-z]+-[a-z]+\b",
            "$1NAME",
        ),
    ] {
        text = Regex::new(pattern)
            .unwrap()
            .replace_all(&text, word)
            .into_owned();
    }
    text.trim().to_owned()
}

/// Runs a document's story and compares what it shows.
fn holds(document: &Path) {
    let text = std::fs::read_to_string(document).unwrap();
    let parts = parts(&text);
    if parts.is_empty() {
        return;
    }
    let scratch = Scratch::empty(PROGRAM);
    let home = scratch.home().join("ana");
    let shop = home.join("shop");
    std::fs::create_dir_all(&shop).unwrap();
    let shown = scratch.path().join("shown");
    std::fs::create_dir(&shown).unwrap();
    // What the stories build with. Whether it works is no question here.
    stand_in(&scratch, "cargo", "echo 'test result: ok'");
    scratch.git_in(&shop, &["init", "-q", "-b", "main"]);
    std::fs::write(shop.join("readme.txt"), "A shop.\n").unwrap();
    scratch.git_in(&shop, &["add", "."]);
    scratch.git_in(&shop, &["commit", "-q", "-m", "first page"]);

    let file = scratch.path().join("story.sh");
    std::fs::write(&file, script(&parts, &shown)).unwrap();
    let mut shell = Command::new("sh");
    scratch.dress(&mut shell);
    let ran = shell
        .env("HOME", &home)
        .current_dir(&shop)
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}: {}\n{}",
        document.display(),
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    for (number, part) in parts.iter().enumerate() {
        if let Part::Shown { command, output } = part {
            let printed = std::fs::read_to_string(shown.join(number.to_string())).unwrap();
            assert_eq!(
                same_form(&printed, &home),
                same_form(output, Path::new("/home/ana")),
                "{}: $ {command}\n{printed}",
                document.display()
            );
        }
    }
}

/// Puts a program that a story calls in front of the search path.
fn stand_in(scratch: &Scratch, name: &str, text: &str) {
    scratch.put_program(name, &format!("#!/bin/sh\n{text}\n"));
}

/// Lists the documents of the workspace.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut documents = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "md") {
                documents.push(path);
            }
        }
    }
    documents
}

#[test]
fn every_example_runs_and_prints_what_it_shows() {
    let stories = documents();
    std::thread::scope(|scope| {
        for document in &stories {
            scope.spawn(|| holds(document));
        }
    });
}

#[test]
fn every_link_leads_somewhere() {
    let link = Regex::new(r"\]\(([^)#\s]+)(#[^)\s]*)?\)").unwrap();
    let mut broken = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for target in link.captures_iter(&text) {
            let target = &target[1];
            let there = document.parent().unwrap().join(target);
            if !target.contains("://") && !there.exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn parts_are_told_apart() {
    let text = "a\n```sh\none\n```\n```text\n```sh\n```\n<!-- run\ntwo\n-->\n```console\n$ three\nout\n$ four\n```\n```sh no-run\nfive\n```\n";
    let [
        Part::Shell(one),
        Part::Shell(two),
        Part::Shown { command, output },
        Part::Shown { command: last, .. },
    ] = &parts(text)[..]
    else {
        panic!("{:?}", parts(text));
    };
    assert_eq!((one.as_str(), two.as_str()), ("one", "two"));
    assert_eq!((command.as_str(), output.trim()), ("three", "out"));
    assert_eq!(last, "four");
}
