//! Progress of long operations. The library does not print progress; a front end implements
//! [`Monitor`].

/// Receives the progress of one operation.
pub trait Monitor {
    /// Begins a phase. `steps` is the number of its steps, or `None` if the number is unknown.
    fn begin(&mut self, what: &str, steps: Option<u64>);
    /// Begins a phase whose steps are bytes.
    fn begin_bytes(&mut self, what: &str, bytes: u64) {
        self.begin(what, Some(bytes));
    }
    /// Reports that `steps` more steps of the current phase are done.
    fn advance(&mut self, steps: u64);
}

/// A monitor that ignores progress.
pub struct NoProgress;

impl Monitor for NoProgress {
    fn begin(&mut self, _what: &str, _steps: Option<u64>) {}
    fn advance(&mut self, _steps: u64) {}
}
