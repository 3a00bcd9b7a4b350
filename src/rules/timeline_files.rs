//! Findings about the files of a timeline, on disk or in a snapshot. These findings do not prevent
//! the files from being stored.

use std::ops::Range;

use super::subject::Subject;
use super::{Code, Finding, chat, damaged, lorebook};
use crate::auto_recap::{self, BookTemplate};
use crate::st::{self, Category, Chat, LibraryPath, TimelineFiles};

/// Returns all findings about the files of a timeline. `chat` is the parsed chat of `files`. Only
/// messages in the ranges `examined` are examined: a save changes few messages, and findings about
/// the others were reported before.
pub fn of_files(
    files: &TimelineFiles,
    chat: &Chat<'_>,
    examined: &[Range<usize>],
    book_template: &BookTemplate,
) -> Vec<Finding> {
    let lines = chat.messages.iter().copied().enumerate();
    let subject = Subject {
        files,
        chat,
        messages: lines.filter(|(_, line)| !line.trim_ascii().is_empty()).collect(),
        metadata: files.metadata(chat),
        examined,
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

/// Returns all findings about the files of a snapshot. Some snapshots, such as those of
/// SillyTavern's backups, do not contain the lorebook. The lorebook is reported as missing only if
/// `is_in_library` returns false for its path.
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

/// Value of `examined` that selects all messages of a chat.
pub const ALL: &[Range<usize>] = std::slice::from_ref(&(0..usize::MAX));
