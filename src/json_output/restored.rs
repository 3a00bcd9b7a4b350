//! The line of a restored snapshot.

use serde::Serialize;

use crate::archive::SnapshotId;
use crate::auto_recap::Trimmed;
use crate::history::at_message::Origin;
use crate::st::TimelineName;
use crate::store::Time;
use crate::verbs::restore;

/// The line of a restored moment: its snapshot, and the recap that came with it.
#[derive(Serialize)]
pub struct RestoredLine<'a> {
    snapshot: SnapshotId,
    moment: &'a str,
    timeline: &'a TimelineName,
    fork: Option<SnapshotId>,
    restored_as: Option<SnapshotId>,
    name: &'a str,
    taken: Time,
    #[serde(flatten)]
    recaps: Recaps,
    #[serde(flatten)]
    report: &'a restore::Report,
    reconstructed: Option<OriginLine<'a>>,
}

#[derive(Serialize)]
struct Recaps {
    running_recap_version: Option<i64>,
    running_recap_scene_count: Option<i64>,
    combined_recap_message_count: Option<i64>,
}

#[derive(Serialize)]
struct OriginLine<'a> {
    message: usize,
    scene_message: Option<usize>,
    scene: Option<&'a str>,
    book_of: Option<SnapshotId>,
    #[serde(flatten)]
    trimmed: &'a Trimmed,
    entries: usize,
}

impl<'a> From<&'a Origin> for OriginLine<'a> {
    fn from(origin: &'a Origin) -> Self {
        let scene = origin.scene.as_ref();
        Self {
            message: origin.message,
            scene_message: scene.map(|(message, _)| *message),
            scene: scene.and_then(|(_, name)| name.as_deref()),
            book_of: origin.book_of,
            trimmed: &origin.trimmed,
            entries: origin.entries.len(),
        }
    }
}

impl<'a> From<&'a restore::Report> for RestoredLine<'a> {
    fn from(report: &'a restore::Report) -> Self {
        let (source, written) = (&report.source, &report.written);
        let (made, state) = (source.origin.as_ref(), report.state.as_ref());
        Self {
            snapshot: source.snapshot.id,
            moment: &source.moment,
            timeline: written.fork.as_ref().map_or(&source.timeline, |it| &it.timeline),
            fork: written.fork.as_ref().map(|fork| fork.id),
            restored_as: written.restored.as_ref().map(|restored| restored.id),
            name: report.label(),
            taken: source.snapshot.time,
            recaps: Recaps {
                running_recap_version: match made {
                    Some(made) => made.trimmed.current_version,
                    None => state.and_then(|state| state.running_recap_version),
                },
                running_recap_scene_count: state.and_then(|it| it.running_recap_scene_count),
                combined_recap_message_count: state.and_then(|it| it.combined_recap_message_count),
            },
            report,
            reconstructed: made.map(OriginLine::from),
        }
    }
}
