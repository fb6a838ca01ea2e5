//! The database of OpenCode 1.2 and later. Columns were added almost monthly, so each is looked for.
use std::path::{Path, PathBuf};

use takeup_core::agent::PlanItem;
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::text;
use takeup_sqlite::rusqlite::Connection;
use takeup_sqlite::{Columns, ReadError, columns};

use super::history::{Message, hide_reverted};
use super::{Row, Wanted};

/// Reads what is wanted. No file gives nothing.
pub(super) fn read(path: &Path, wanted: &Wanted<'_>) -> Result<(Vec<Row>, Vec<Issue>), Issue> {
    let answer = takeup_sqlite::read(path, |db| {
        let mut issues = Vec::new();
        let rows = sessions(db, path, wanted, &mut issues)?;
        Ok((rows, issues))
    })?;
    Ok(answer.unwrap_or_default())
}

fn sessions(
    db: &Connection,
    path: &Path,
    wanted: &Wanted<'_>,
    issues: &mut Vec<Issue>,
) -> Result<Vec<Row>, ReadError> {
    let session = columns(db, "session")?;
    session.require(&["id", "directory", "title", "time_created", "time_updated"])?;
    let message = columns(db, "message")?;
    message.require(&["id", "session_id", "data"])?;
    let part = columns(db, "part")?;
    part.require(&["id", "message_id", "data"])?;
    let todo = columns(db, "todo")?;
    let mut rows = headers(db, path, &session)?;
    super::mark_newest(&mut rows);
    rows.retain(|row| wanted.fits(row));
    rows.sort_by_key(|row| std::cmp::Reverse(row.updated));
    if wanted.limit > 0 {
        rows.truncate(wanted.limit);
    }
    for row in &mut rows {
        row.count = db.query_row(
            "select count(*) from message where session_id = ?1",
            [&row.id],
            |found| found.get::<_, i64>(0).map(i64::unsigned_abs),
        )?;
        row.messages = messages(db, &row.id, wanted.messages)?;
        hide_reverted(row);
        row.todos = todos(db, &todo, &row.id)?;
    }
    if columns(db, "session_v2")?.exist() {
        issues.push(Issue::new(
            path,
            IssueKind::UnknownVersion,
            "it holds sessions of OpenCode 2 as well; those are not read",
        ));
    }
    Ok(rows)
}

fn headers(db: &Connection, path: &Path, session: &Columns) -> Result<Vec<Row>, ReadError> {
    let query = format!(
        "select id, {}, {}, directory, title, time_created, time_updated, {}, {} from session",
        session.or_null("parent_id"),
        session.or_null("slug"),
        session.or_null("time_archived"),
        session.or_null("revert"),
    );
    let mut statement = db.prepare(&query)?;
    let mut found = statement.query([])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let revert: Option<String> = row.get(8)?;
        rows.push(Row {
            id: row.get(0)?,
            parent: row.get(1)?,
            slug: row.get(2)?,
            directory: PathBuf::from(row.get::<_, String>(3)?),
            title: row.get(4)?,
            created: row.get(5)?,
            updated: row.get(6)?,
            archived: row.get::<_, Option<i64>>(7)?.is_some(),
            revert: revert
                .as_deref()
                .and_then(|revert| serde_json::from_str(revert).ok())
                .and_then(|revert| super::history::revert_of(&revert)),
            todos: Vec::new(),
            messages: Vec::new(),
            count: 0,
            source: path.to_path_buf(),
            in_database: true,
            newest: false,
        });
    }
    Ok(rows)
}

/// Reads the last messages, oldest first: ids ascend with time, and times tie.
fn messages(db: &Connection, session: &str, most: usize) -> Result<Vec<Message>, ReadError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut statement =
        db.prepare("select id, data from message where session_id = ?1 order by id desc limit ?2")?;
    let mut found = statement.query((session, most))?;
    let mut messages = Vec::new();
    while let Some(row) = found.next()? {
        let id: String = row.get(0)?;
        let data: String = row.get(1)?;
        let parts = parts(db, &id)?;
        messages.push(Message::new(id, parse(&data), parts));
    }
    messages.reverse();
    Ok(messages)
}

fn parts(db: &Connection, message: &str) -> Result<Vec<(String, serde_json::Value)>, ReadError> {
    let mut statement =
        db.prepare("select id, data from part where message_id = ?1 order by id limit 2000")?;
    let mut found = statement.query([message])?;
    let mut parts = Vec::new();
    while let Some(row) = found.next()? {
        let data: String = row.get(1)?;
        parts.push((row.get(0)?, parse(&data)));
    }
    Ok(parts)
}

/// Returns provider and name of the model of the newest prompt. Ids ascend with time.
pub(super) fn last_model(path: &Path) -> Option<(String, String)> {
    let found = takeup_sqlite::read(path, |db| {
        columns(db, "message")?.require(&["id", "data"])?;
        let mut statement = db.prepare("select data from message order by id desc limit 200")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let data = parse(&row.get::<_, String>(0)?);
            let text = |pointer: &str| data.pointer(pointer).and_then(serde_json::Value::as_str);
            let named = text("/model/providerID").zip(text("/model/modelID"));
            if let Some((provider, name)) =
                named.filter(|(provider, name)| !provider.is_empty() && !name.is_empty())
            {
                return Ok(Some((provider.to_owned(), name.to_owned())));
            }
        }
        Ok(None)
    });
    found.ok().flatten().flatten()
}

/// What is no JSON is nothing: the rest of the session can still be read.
fn parse(data: &str) -> serde_json::Value {
    serde_json::from_str(data).unwrap_or_default()
}

fn todos(db: &Connection, todo: &Columns, session: &str) -> Result<Vec<PlanItem>, ReadError> {
    if todo.require(&["session_id", "content", "status"]).is_err() {
        return Ok(Vec::new());
    }
    let query = format!(
        "select content, status from todo where session_id = ?1 order by {} limit 500",
        todo.or_null("position")
    );
    let mut statement = db.prepare(&query)?;
    let mut found = statement.query([session])?;
    let mut items = Vec::new();
    while let Some(row) = found.next()? {
        let content: String = row.get(0)?;
        let state: String = row.get(1)?;
        items.push(plan_item(&content, &state));
    }
    Ok(items)
}

/// Translates a todo; a cancelled one is not open.
pub(super) fn plan_item(content: &str, state: &str) -> PlanItem {
    PlanItem {
        text: text::one_line(content, 500),
        done: matches!(state, "completed" | "cancelled"),
        state: text::one_line(state, 40),
    }
}
