//! The last line: how it went, in numbers.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The last line.
#[derive(Serialize)]
pub struct Summary {
    pub command: &'static str,
    pub ok: bool,
    #[serde(flatten)]
    pub counts: Counts,
}

impl Summary {
    /// A command that failed as a whole, so that there is nothing to count.
    pub fn failed(command: &'static str) -> Self {
        Self { command, ok: false, counts: Counts::default() }
    }
}

/// What a command counts, in the order of its fields.
#[derive(Default)]
pub struct Counts(pub Vec<(&'static str, Value)>);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// `counts! { "snapshot" => taken: 3, dry_run: false }`: a command, and what it counts.
macro_rules! counts {
    ($command:expr => $($name:ident: $value:expr),* $(,)?) => {
        ($command, $crate::lines::Counts(vec![$((stringify!($name), $value.into())),*]))
    };
}
pub(crate) use counts;
