//! Findings about a timeline's own files, as they were read or as they were stored. None of them
//! keeps the files from being stored.

use std::ops::Range;

use super::subject::Subject;
use super::{Code, Finding, chat, damaged, lorebook};
use crate::auto_recap::{self, BookTemplate};
use crate::st::{self, Category, Chat, LibraryPath, TimelineFiles};

/// Returns all findings about a timeline's files, whose chat is `chat`. Of its messages only those
/// in `looked_at` count: a save changes few, and the others were reported before.
pub fn of_files(
    files: &TimelineFiles,
    chat: &Chat<'_>,
    looked_at: &[Range<usize>],
    book_template: &BookTemplate,
) -> Vec<Finding> {
    let lines = chat.messages.iter().copied().enumerate();
    let subject = Subject {
        files,
        chat,
        messages: lines.filter(|(_, line)| !line.trim_ascii().is_empty()).collect(),
        metadata: files.metadata(chat),
        looked_at,
        book_template,
    };
    let name = &files.timeline;
    match name.category() {
        Category::Chat | Category::GroupChat => {
            let mut findings = chat::findings(&subject);
            findings.extend(auto_recap::of_chat(&subject));
            let (book, found) = lorebook::findings(&subject);
            findings.extend(found);
            findings.extend(book.iter().flat_map(|book| auto_recap::of_book(&subject, book)));
            findings
        }
        Category::Lorebook => lorebook::findings(&subject).1,
        Category::Card | Category::Persona | Category::Group | Category::Settings => {
            let damage = st::damage(name, &files.main.bytes);
            damage.map(|damage| damaged(name, damage.words())).into_iter().collect()
        }
    }
}

/// Returns all findings about the files of a snapshot. A lorebook that the snapshot does not
/// contain is missing only if the library does not have it either, which `is_in_library` tells: a
/// snapshot of one of SillyTavern's backups is the chat alone.
pub fn of_stored(
    files: &TimelineFiles,
    chat: &Chat<'_>,
    book_template: &BookTemplate,
    is_in_library: impl Fn(&LibraryPath) -> bool,
) -> Vec<Finding> {
    let mut findings = of_files(files, chat, ALL, book_template);
    let book = files.lorebook.as_ref().and_then(|book| book.path.as_ref());
    if book.is_some_and(is_in_library) {
        findings.retain(|finding| finding.code != Code::LorebookMissing);
    }
    findings
}

/// All messages of a chat, to be looked at.
pub const ALL: &[Range<usize>] = std::slice::from_ref(&(0..usize::MAX));
