//! jcode
mod home;
mod json;
mod load;
mod replay;
mod text;
mod wire;
pub use home::{Home, Key};
pub use load::{Counts, Loaded, load};
pub use wire::{Block, Message, Status};
#[cfg(test)]
mod vectors;
