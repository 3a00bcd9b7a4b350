//! One result of a rule.

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Worth knowing.
    Info,
    /// Something will not work as the user expects.
    Warning,
    /// Something is lost or broken.
    Error,
}

impl Level {
    /// The word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// Something found in the user's data or in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Names the rule; stable.
    pub code: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What it is about: a file, a timeline, a snapshot.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl Finding {
    /// A finding without a remedy.
    pub fn new(
        code: &'static str,
        level: Level,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { code, level, subject: subject.into(), message: message.into(), remedy: None }
    }

    /// The same with a remedy.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
