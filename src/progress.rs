//! How long work tells that it goes on. The library never prints; a front end implements [`Monitor`].

/// Receives the progress of one operation.
pub trait Monitor {
    /// A new stretch of work begins: what it is, and how many steps it has if that is known.
    fn begin(&mut self, what: &str, steps: Option<u64>);
    /// `steps` more are done.
    fn advance(&mut self, steps: u64);
}

/// A monitor that looks away.
pub struct Silent;

impl Monitor for Silent {
    fn begin(&mut self, _what: &str, _steps: Option<u64>) {}
    fn advance(&mut self, _steps: u64) {}
}
