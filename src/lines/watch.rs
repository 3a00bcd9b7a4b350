//! What the watch tells while it runs, and how it is made to start with the computer.

use chrono::{DateTime, FixedOffset, SecondsFormat};
use serde::Serialize;

/// Something that happened to the watch itself; what it takes are snapshots as any other.
#[derive(Serialize)]
pub struct WatchLine<'a> {
    time: String,
    #[serde(flatten)]
    event: WatchEvent<'a>,
}

/// What happened.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum WatchEvent<'a> {
    Started {
        library: String,
        /// Null if the system tells of changes.
        polling_seconds: Option<f64>,
    },
    Waiting {
        timelines: Vec<&'a str>,
    },
    Gone {
        message: &'a str,
    },
    Back,
    Failed {
        message: String,
    },
    Tidied {
        forgotten: usize,
    },
}

impl<'a> WatchLine<'a> {
    pub fn new(time: DateTime<FixedOffset>, event: WatchEvent<'a>) -> Self {
        Self { time: time.to_rfc3339_opts(SecondsFormat::Secs, true), event }
    }
}

/// What `watch --install` did and left to do.
#[derive(Serialize)]
pub struct InstallLine<'a> {
    /// The unit.
    pub written: Option<String>,
    /// Commands that are left to do.
    pub steps: Vec<&'a str>,
}
