//! The commands, one file each: `Args` (parsed by clap) and `run(args, context)`.
pub(crate) mod sessions;
pub(crate) mod version;
