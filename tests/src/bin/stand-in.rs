//! A process that stands for an agent: it may have a database open, says `ready`, and runs until its input ends.
use std::io::{Read as _, Write as _};

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
    println!("ready");
    std::io::stdout().flush().expect("somebody reads");
    let mut input = Vec::new();
    let _ended = std::io::stdin().read_to_end(&mut input);
    drop(database);
}
