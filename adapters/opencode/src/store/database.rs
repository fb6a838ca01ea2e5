//! The database of OpenCode 1.2 and later. Columns were added almost monthly, so each is looked for.
use std::path::{Path, PathBuf};

use serde_json::Value;
use takeup_core::agent::PlanItem;
use takeup_core::issue::{Issue, IssueKind};
use takeup_core::text::{json_of_agent, one_line};
use takeup_sqlite::rusqlite::Connection;
use takeup_sqlite::rusqlite::types::ValueRef;
use takeup_sqlite::{Columns, ReadError, columns, integer, text};

use super::history::{self, Message, hide_reverted};
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
    let mut rows = headers(db, path, &session, issues)?;
    super::mark_newest(&mut rows);
    // One without a folder may belong here.
    rows.retain(|row| wanted.fits(row) || row.directory.as_os_str().is_empty());
    let of_no_place = |row: &Row| !wanted.fits(row);
    issues.extend(
        rows.iter()
            .filter(|row| of_no_place(row))
            .filter_map(Row::issue),
    );
    rows.retain(|row| !of_no_place(row));
    rows.sort_by_key(|row| wanted.order(row));
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
        row.damage.extend(history::damage(&row.messages));
        issues.extend(row.issue());
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

fn headers(
    db: &Connection,
    path: &Path,
    session: &Columns,
    issues: &mut Vec<Issue>,
) -> Result<Vec<Row>, ReadError> {
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
        let Some(id) = text(row, 0)? else {
            issues.push(Issue::new(
                path,
                IssueKind::Corrupt,
                "a session has no id, so nothing can be told of it",
            ));
            continue;
        };
        let (directory, title) = (text(row, 3)?, text(row, 4)?);
        let (created, updated) = (integer(row, 5)?, integer(row, 6)?);
        let damage = [
            (
                directory.as_deref().unwrap_or_default().is_empty(),
                "it names no folder, so its place is unknown",
            ),
            (title.is_none(), "its title is no text"),
            (
                created.is_none() || updated.is_none(),
                "its times are no numbers",
            ),
        ];
        let damage = damage.into_iter().filter(|(is_so, _)| *is_so);
        rows.push(Row {
            id,
            parent: text(row, 1)?,
            slug: text(row, 2)?,
            directory: PathBuf::from(directory.unwrap_or_default()),
            title: title.unwrap_or_default(),
            created: created.unwrap_or(0),
            updated: updated.or(created).unwrap_or(0),
            archived: !matches!(row.get_ref(7)?, ValueRef::Null),
            revert: text(row, 8)?
                .and_then(|revert| json_of_agent::<Value>(revert.as_bytes()).ok())
                .and_then(|revert| history::revert_of(&revert)),
            damage: damage.map(|(_, why)| why.to_owned()).collect(),
            source: path.to_path_buf(),
            in_database: true,
            ..Row::default()
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
        let Some(id) = text(row, 0)? else {
            messages.push(Message::new(
                "a message without an id".to_owned(),
                Value::Null,
                Vec::new(),
            ));
            continue;
        };
        let data = text(row, 1)?.unwrap_or_default();
        let parts = parts(db, &id)?;
        messages.push(Message::new(id, history::parse(&data), parts));
    }
    messages.reverse();
    Ok(messages)
}

/// Reads the last parts of a message, oldest first.
fn parts(db: &Connection, message: &str) -> Result<Vec<(String, Value)>, ReadError> {
    let mut statement =
        db.prepare("select id, data from part where message_id = ?1 order by id desc limit 2000")?;
    let mut found = statement.query([message])?;
    let mut parts = Vec::new();
    while let Some(row) = found.next()? {
        let id = text(row, 0)?.unwrap_or_else(|| "a part without an id".to_owned());
        let data = text(row, 1)?.unwrap_or_default();
        parts.push((id, history::parse(&data)));
    }
    parts.reverse();
    Ok(parts)
}

/// Returns provider and name of the model of the newest prompt. Ids ascend with time.
pub(super) fn last_model(path: &Path) -> Option<(String, String)> {
    let found = takeup_sqlite::read(path, |db| {
        columns(db, "message")?.require(&["id", "data"])?;
        let mut statement = db.prepare("select data from message order by id desc limit 200")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let data = history::parse(&text(row, 0)?.unwrap_or_default());
            let name = |pointer: &str| data.pointer(pointer).and_then(Value::as_str);
            let named = name("/model/providerID").zip(name("/model/modelID"));
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
        let content = text(row, 0)?.unwrap_or_else(|| "(cannot be read)".to_owned());
        let state = text(row, 1)?.unwrap_or_default();
        items.push(plan_item(&content, &state));
    }
    Ok(items)
}

/// Translates a todo; a cancelled one is not open.
pub(super) fn plan_item(content: &str, state: &str) -> PlanItem {
    PlanItem {
        text: one_line(content, 500),
        done: matches!(state, "completed" | "cancelled"),
        state: one_line(state, 40),
    }
}
