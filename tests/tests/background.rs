//! Background tasks through the real program, with real processes and a real pseudo-terminal.
#[cfg(test)]
mod background {
    pub(crate) mod checks;
    pub(crate) mod ends;
    pub(crate) mod kit;
    pub(crate) mod output;
    pub(crate) mod privacy;
    pub(crate) mod records;
    pub(crate) mod room;
    pub(crate) mod stop;
    pub(crate) mod survival;
    pub(crate) mod told;
}
