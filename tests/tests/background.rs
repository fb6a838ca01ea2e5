//! Background tasks through the real program, with real processes and a real pseudo-terminal.
mod background {
    pub mod ends;
    pub mod kit;
    pub mod output;
    pub mod privacy;
    pub mod stop;
    pub mod survival;
}
