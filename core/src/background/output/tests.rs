use super::*;

fn store() -> (tempfile::TempDir, Store, BackgroundId) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    (folder, store, BackgroundId::new("t").unwrap())
}

fn masker() -> crate::redact::Masker {
    crate::redact::Masker::default()
}

fn now() -> Time {
    Time::from_millis(1_000)
}

#[test]
fn both_streams_keep_their_order_and_can_be_told_apart() {
    let (_folder, store, id) = store();
    let mut writer = Writer::open(&store, &id, SMALLEST_CAP).unwrap();
    for (stream, text) in [
        (Stream::Stdout, "one\n"),
        (Stream::Stderr, "warning\n"),
        (Stream::Stdout, "two\n"),
    ] {
        writer.write(stream, text.as_bytes(), now()).unwrap();
    }
    let read = |stream| {
        read_output(&store, &id, SMALLEST_CAP, stream, u64::MAX, &masker())
            .unwrap()
            .text
    };
    assert_eq!(read(None), "one\nwarning\ntwo\n");
    assert_eq!(read(Some(Stream::Stdout)), "one\ntwo\n");
    assert_eq!(read(Some(Stream::Stderr)), "warning\n");
    assert_eq!(
        tail_output(&store, &id, SMALLEST_CAP, 1, &masker())
            .unwrap()
            .text,
        "two\n"
    );
}

#[test]
fn the_middle_is_left_out_and_the_ends_stay_whole() {
    let (_folder, store, id) = store();
    let cap = SMALLEST_CAP;
    let mut writer = Writer::open(&store, &id, cap).unwrap();
    let mut follow = Follow::new(&store, &id, cap, None, &masker()).unwrap();
    let mut followed = String::new();
    let lines: u64 = 200_000;
    let mut printed = 0;
    for number in 0..lines {
        let line = format!("line {number}\n");
        let stream = if number % 1000 == 0 {
            Stream::Stderr
        } else {
            Stream::Stdout
        };
        writer.write(stream, line.as_bytes(), now()).unwrap();
        printed += line.len() as u64;
        if number % 50 == 0 {
            followed.push_str(&follow.more(false).unwrap());
        }
        // Opening it again, as a second supervisor does, goes on where it was.
        if number == 100_000 {
            writer = Writer::open(&store, &id, cap).unwrap();
        }
    }
    followed.push_str(&follow.more(true).unwrap());
    assert!(std::fs::metadata(store.output_path(&id)).unwrap().len() <= cap);
    let shown = read_output(&store, &id, cap, None, u64::MAX, &masker()).unwrap();
    assert_eq!(shown.printed, printed);
    assert!(shown.left_out > printed / 2);
    assert!(shown.text.starts_with("line 0\nline 1\n"));
    assert!(shown.text.ends_with(&format!("line {}\n", lines - 1)));
    // After the mark every line is whole and the numbers go up by one.
    let (_, tail) = shown.text.split_once(" bytes here ---\n").unwrap();
    let numbers: Vec<u64> = tail
        .lines()
        .map(|line| line.strip_prefix("line ").unwrap().parse().unwrap())
        .collect();
    assert!(numbers.len() > 1000);
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    // Somebody who follows often enough misses nothing.
    let expected = (0..lines).fold(String::new(), |text, number| {
        text + &format!("line {number}\n")
    });
    assert_eq!(followed, expected);
    // The index still knows the streams.
    let errors = read_output(&store, &id, cap, Some(Stream::Stderr), u64::MAX, &masker())
        .unwrap()
        .text;
    assert!(
        errors.contains("line 0\n") && errors.contains("line 199000\n"),
        "{errors}"
    );
    assert!(
        errors
            .lines()
            .filter(|line| line.starts_with("line"))
            .all(|line| line.ends_with("000") || line == "line 0"),
        "{errors}"
    );
}

#[test]
fn nothing_that_a_terminal_obeys_is_shown() {
    let bytes = b"\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]8;;u\x1b\\link 10%\r20%\r\nbell\x07\xff \xe2\x80\xaex\n";
    assert_eq!(show::plain(bytes), "red link 10%\n20%\nbell\u{fffd} x\n");
    assert_eq!(show::plain(b"\x1b[31"), "");
    assert_eq!(show::plain(b"\x1b"), "");
}

#[test]
fn a_follower_that_was_away_is_told_what_it_missed() {
    let (_folder, store, id) = store();
    let cap = SMALLEST_CAP;
    let mut writer = Writer::open(&store, &id, cap).unwrap();
    let mut follow = Follow::new(&store, &id, cap, None, &masker()).unwrap();
    for number in 0..2_000 {
        writer
            .write(Stream::Stdout, format!("line {number}\n").as_bytes(), now())
            .unwrap();
    }
    assert!(follow.more(false).unwrap().ends_with("line 1999\n"));
    for number in 2_000..50_000 {
        writer
            .write(Stream::Stdout, format!("line {number}\n").as_bytes(), now())
            .unwrap();
    }
    let more = follow.more(false).unwrap();
    assert!(
        more.contains("are left out") && more.ends_with("line 49999\n"),
        "{}",
        more.len()
    );
    let mut last = Follow::new(&store, &id, cap, Some(2), &masker()).unwrap();
    assert_eq!(last.more(false).unwrap(), "line 49998\nline 49999\n");
}
