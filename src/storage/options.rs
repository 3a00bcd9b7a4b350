use std::path::PathBuf;
use std::time::Duration;

use super::request_rate::Limit;

/// How long and how often to try.
#[derive(Clone, Debug)]
pub struct Options {
    /// The longest time without progress.
    pub patience: Duration,
    /// The number of retries of a request that fails for a moment.
    pub retries: usize,
    /// The limit of requests, instead of that which is known of the server.
    pub limit: Option<Limit>,
    /// The program of rclone.
    pub rclone: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self { patience: Duration::from_secs(90), retries: 4, limit: None, rclone: "rclone".into() }
    }
}
