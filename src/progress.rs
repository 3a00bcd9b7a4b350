//! Progress of long work. The library never prints; a front end implements [`Monitor`].

/// Receives the progress of one operation.
pub trait Monitor {
    /// Begins a new stretch of work, with its number of steps if that is known.
    fn begin(&mut self, what: &str, steps: Option<u64>);
    /// Reports that this many more steps are done.
    fn advance(&mut self, steps: u64);
}

/// A monitor that looks away.
pub struct Silent;

impl Monitor for Silent {
    fn begin(&mut self, _what: &str, _steps: Option<u64>) {}
    fn advance(&mut self, _steps: u64) {}
}
