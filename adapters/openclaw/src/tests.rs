//! Stores made by hand, in the shapes that OpenClaw's releases write.
mod database;
mod files;
mod hostile;
mod world;
