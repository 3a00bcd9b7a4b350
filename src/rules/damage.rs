//! Findings about damaged files, with the stored version that can replace the file.

use super::{Code, Finding, Level};
use crate::st::{Category, LibraryPath, TimelineName};

/// Remedy for a damaged file, if the store was not searched for a valid version.
pub(super) const DAMAGED: &str = "run `stvc doctor` to look for a valid version in the store";

#[derive(Clone, Debug)]
pub struct StoredVersion {
    /// Description of the snapshot, such as `snapshot 0123456789 of 2026-11-01 18:30`.
    pub words: String,
    /// Name of the moment that contains the version. Later snapshots do not change the meaning of
    /// the name.
    pub moment: String,
    /// Whether the version is in the file's own timeline, so that `stvc restore` with the name of
    /// this timeline restores the version.
    pub is_own: bool,
}

/// Returns the finding about a damaged file that is neither a chat nor a lorebook.
pub fn damaged(name: &TimelineName, words: &str) -> Finding {
    let file = match name.category() {
        Category::Group => "the group's file",
        Category::Card => "the character card",
        Category::Persona => "the picture of the persona",
        _ => "the file",
    };
    let message = format!("{file} {words}");
    Finding::new(Code::FileDamaged, name.file().as_str(), message).remedy(DAMAGED)
}

/// Returns the timeline of the damaged file that a finding is about, or `None` if the finding is
/// not about a damaged file.
pub fn damaged_timeline(finding: &Finding) -> Option<TimelineName> {
    let is_of_damage = match finding.code {
        Code::ChatEmpty | Code::ChatDamaged | Code::FileDamaged => true,
        // A warning with this code does not mean that the lorebook is damaged.
        Code::LorebookBroken => finding.level == Level::Error,
        _ => false,
    };
    let path = LibraryPath::parse(&finding.subject).ok().filter(|_| is_of_damage)?;
    TimelineName::of_file(&path)
}

/// Sets the remedy of a finding about a damaged file: the command that restores `stored`, the
/// latest valid version. `stored` is `None` if the store has no valid version.
pub fn advise_damaged(finding: &mut Finding, name: &TimelineName, stored: Option<&StoredVersion>) {
    let Some(stored) = stored else {
        let remedy = if name.is_chat() {
            "no snapshot has a valid version; run `stvc import` to import SillyTavern's own backups, which may have one"
        } else {
            "no snapshot has a valid version; run `stvc import` to import a backup that may have one"
        };
        finding.remedy = Some(remedy.into());
        return;
    };
    finding.level = Level::Error;
    finding.snapshot = Some(stored.moment.clone());
    let command = if stored.is_own {
        format!("stvc restore {:?} --overwrite", name.as_str())
    } else {
        "stvc doctor --fix".to_owned()
    };
    finding.remedy = Some(format!(
        "run `{command}` to restore it from {}, its latest valid snapshot",
        stored.words
    ));
}
