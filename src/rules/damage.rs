//! Damaged files, and the stored versions that replace them.

use super::{Code, Finding, Level};
use crate::st::{Category, LibraryPath, TimelineName};

/// The remedy where the store was not searched for a valid version.
pub(super) const DAMAGED: &str = "`stvc doctor` names the latest valid version that is stored";

#[derive(Clone, Debug)]
pub struct StoredVersion {
    /// `snapshot 0123456789 of 2026-11-01 18:30`.
    pub words: String,
    /// The name that always means it.
    pub moment: String,
    /// Whether the file's own timeline has it, so that restoring that by its name finds it.
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

/// Returns the timeline whose own file a finding calls damaged.
pub fn damaged_timeline(finding: &Finding) -> Option<TimelineName> {
    let is_of_damage = match finding.code {
        Code::ChatEmpty | Code::ChatDamaged | Code::FileDamaged => true,
        // A warning is about a book that can be read.
        Code::LorebookBroken => finding.level == Level::Error,
        _ => false,
    };
    let path = LibraryPath::parse(&finding.subject).ok().filter(|_| is_of_damage)?;
    TimelineName::of_file(&path)
}

/// Names the command that replaces a damaged file by the latest valid version that is stored, in
/// the finding about it; `None`: no valid version is stored.
pub fn advise_damaged(finding: &mut Finding, name: &TimelineName, stored: Option<&StoredVersion>) {
    let Some(stored) = stored else {
        let remedy = if name.is_chat() {
            "no snapshot has a valid version. SillyTavern's own backups may: `stvc import` takes them in"
        } else {
            "no snapshot has a valid version. `stvc import` takes in a backup that may"
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
        "`{command}` writes it as it was in {}, the latest in which it is valid",
        stored.words
    ));
}
