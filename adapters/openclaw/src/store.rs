//! OpenClaw's session stores, read only: `SQLite` since 2026.7.2, files before.
pub(crate) mod database;
pub(crate) mod entry;
pub(crate) mod files;
pub(crate) mod list;
pub(crate) mod owner;
pub(crate) mod shared;
pub(crate) mod transcript;
