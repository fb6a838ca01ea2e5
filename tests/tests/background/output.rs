//! What a task prints, and how far it says it is.
use super::kit::{Desk, until};

#[test]
fn many_tasks_at_once_lose_and_tear_no_line() {
    let desk = Desk::new();
    let count = 30;
    // 200 KB each, both streams, lines of different lengths.
    let script = r#"i=0; while [ $i -lt 4000 ]; do echo "out $i xxxxxxxxxxxxxxxxxxxxxxx"; echo "err $i" >&2; i=$((i+1)); done"#;
    let ids: Vec<String> = (0..count).map(|_| desk.sh(script)).collect();
    let words: Vec<&str> = std::iter::once("wait")
        .chain(ids.iter().map(String::as_str))
        .collect();
    desk.bg(&words).exits(0);
    let expect = |stream: &str, tail: &str| -> String {
        (0..4000).fold(String::new(), |text, number| {
            text + &format!("{stream} {number}{tail}\n")
        })
    };
    let (out, err) = (expect("out", " xxxxxxxxxxxxxxxxxxxxxxx"), expect("err", ""));
    for id in &ids {
        let whole = desk.output(id);
        let pick = |stream: &str| -> String {
            whole
                .lines()
                .filter(|line| line.starts_with(stream))
                .fold(String::new(), |text, line| text + line + "\n")
        };
        assert_eq!(pick("out"), out);
        assert_eq!(pick("err"), err);
        assert_eq!(whole.len(), out.len() + err.len());
        assert_eq!(desk.bg(&["output", id, "--stream", "stdout"]).stdout, out);
        assert_eq!(desk.bg(&["output", id, "--stream", "stderr"]).stdout, err);
    }
    let listed = desk.bg(&["list", "--json"]).exits(0).json();
    assert_eq!(listed["data"]["tasks"].as_array().unwrap().len(), count);
}

#[test]
fn output_stays_under_its_cap_with_both_ends_readable() {
    let desk = Desk::new();
    let id = desk.start(&["--output-cap", "1M"], &["seq", "3000000"]);
    desk.end(&id);
    let size = std::fs::metadata(desk.file(&id, ".output")).unwrap().len();
    assert!(size <= 1 << 20, "{size}");
    let text = desk.output(&id);
    assert!(text.starts_with("1\n2\n3\n"));
    assert!(text.ends_with("2999999\n3000000\n"));
    assert!(text.contains("--- takeup left out "));
    assert_eq!(
        desk.bg(&["tail", "-n", "2", &id]).stdout,
        "2999999\n3000000\n"
    );
    let answer = desk.bg(&["output", &id, "--json"]).exits(0).json();
    let judge = std::process::Command::new("sh")
        .args(["-c", "seq 3000000 | wc -c"])
        .output()
        .unwrap();
    let judge: u64 = String::from_utf8_lossy(&judge.stdout)
        .trim()
        .parse()
        .unwrap();
    assert_eq!(answer["data"]["printedBytes"], judge);
}

#[test]
fn an_unfinished_line_is_shown_soon_and_kept() {
    let desk = Desk::new();
    let id = desk.sh(&format!(
        "printf 'Continue? '; {}; echo yes",
        desk.wait_for_gate()
    ));
    until("it is shown", || desk.output(&id) == "Continue? ");
    desk.open_gate();
    desk.end(&id);
    assert_eq!(desk.output(&id), "Continue? yes\n");
}

#[test]
fn bytes_that_are_no_text_are_kept_as_they_are() {
    let desk = Desk::new();
    let id = desk.sh(r"printf '\377\000\033[31mred\n'");
    desk.end(&id);
    assert_eq!(
        std::fs::read(desk.file(&id, ".output")).unwrap(),
        b"\xff\0\x1b[31mred\n"
    );
    assert!(!desk.output(&id).contains('\u{1b}'));
}

#[test]
fn progress_is_read_and_its_lines_stay() {
    let desk = Desk::new();
    let line = r#"JCODE_PROGRESS {"current":3,"total":12,"unit":"tests","message":"half way"}"#;
    let id = desk.sh(&format!(
        "echo '3/9 other'; echo '{line}'; echo '11/29/2026 90%'; {}",
        desk.wait_for_gate()
    ));
    until("it is read", || {
        desk.show(&id)["progress"]["percent"] == 25.0
    });
    let progress = desk.show(&id)["progress"].clone();
    assert_eq!(
        (&progress["source"], &progress["unit"]),
        (&"reported".into(), &"tests".into())
    );
    assert_eq!(desk.record(&id)["progress"]["percent"], 25.0);
    assert!(desk.bg(&["list"]).stdout.contains("25%"));
    assert!(desk.output(&id).contains(line));
    desk.open_gate();
    desk.end(&id);
}

#[test]
fn a_checkpoint_becomes_an_event() {
    let desk = Desk::new();
    let id = desk.sh(&format!(
        "echo 'JCODE_CHECKPOINT unit tests passed'; {}",
        desk.wait_for_gate()
    ));
    until("it is noted", || {
        let shown = desk.bg(&["show", &id, "--json"]).json();
        shown["data"]["events"]
            .as_array()
            .unwrap()
            .iter()
            .any(|event| event["kind"] == "checkpoint" && event["message"] == "unit tests passed")
    });
    desk.open_gate();
    desk.end(&id);
}
