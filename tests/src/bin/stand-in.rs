//! A process that stands for an agent: it may have a database open, says `ready`, runs what it is told by the shell, a
//! line each, answers `done`, and ends when its input ends.
use std::io::{BufRead as _, Write as _};
use std::process::{Command, Stdio};

fn say(word: &str) {
    println!("{word}");
    std::io::stdout().flush().expect("somebody reads");
}

fn main() {
    let database = std::env::args_os().nth(1).map(|path| {
        let database =
            takeup_sqlite::rusqlite::Connection::open(path).expect("the database can be opened");
        // The first read takes the lock that tells who has it open.
        let count: i64 = database
            .query_row("select count(*) from sqlite_schema", [], |row| row.get(0))
            .expect("the database can be read");
        assert!(count > 0, "the database has tables");
        database
    });
    say("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let status = Command::new("sh")
            .args(["-uc", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .expect("a shell can be started");
        assert!(status.success(), "{line}: {status}");
        say("done");
    }
    drop(database);
}
