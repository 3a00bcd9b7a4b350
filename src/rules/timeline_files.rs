//! What is odd about a timeline's own files, as they were read or as they were stored. None of it keeps them from being stored: bytes are bytes.

use super::lorebook::Book;
use super::subject::{Bound, Subject};
use std::ops::Range;

use super::{Code, Finding, chat, damage, lorebook};
use crate::auto_recap::{self, BookTemplate};
use crate::st::{self, Category, Chat, LibraryPath, TimelineFiles};

/// All findings about a timeline's files, whose chat is `chat`. Of its messages only those in `looked_at` count: a save changes few, and what was found before was said
/// before. What its lorebook should be called says `book_template`.
pub fn of_files(
    files: &TimelineFiles,
    chat: &Chat<'_>,
    looked_at: &[Range<usize>],
    book_template: &BookTemplate,
) -> Vec<Finding> {
    let subject = Subject {
        timeline: &files.timeline,
        chat,
        messages: numbered(chat),
        chat_path: files.main.path.as_str(),
        metadata: st::metadata(chat, &files.timeline, files.group_bytes()),
        lorebook: files.bound_name().map(|name| Bound {
            name,
            file: files.book().map(|file| (file.path.as_str(), file.bytes)),
            unread: files.unread_book(),
        }),
        looked_at,
        book_template,
    };
    match files.timeline.category() {
        Category::Chat | Category::GroupChat => findings(&subject),
        Category::Lorebook => of_book(&subject).1,
        Category::Card | Category::Persona | Category::Group | Category::Settings => {
            damage::other(&files.timeline, &files.main.bytes).into_iter().collect()
        }
    }
}

/// All findings about the files of a snapshot. A lorebook that the snapshot does not contain is missing only if the library does not have it either, which
/// `is_in_library` tells: a snapshot of one of SillyTavern's backups is the chat alone.
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

/// What is odd about a lorebook by itself, and what it holds.
fn of_book<'p>(parts: &Subject<'p>) -> (Option<Book<'p>>, Vec<Finding>) {
    let (book, unread) = lorebook::read(parts);
    let mut findings: Vec<_> = unread.into_iter().collect();
    let file = parts.lorebook.as_ref().and_then(|bound| bound.file);
    if let Some((path, _)) = file.filter(|(_, bytes)| std::str::from_utf8(bytes).is_err()) {
        findings.push(chat::not_utf8(path, "it is"));
    }
    findings.extend(book.iter().flat_map(lorebook::findings));
    (book, findings)
}

pub const ALL: &[Range<usize>] = std::slice::from_ref(&(0..usize::MAX));

fn numbered<'a>(chat: &Chat<'a>) -> Vec<(usize, &'a [u8])> {
    let lines = chat.messages.iter().copied().enumerate();
    lines.filter(|(_, line)| !line.trim_ascii().is_empty()).collect()
}

fn findings(parts: &Subject<'_>) -> Vec<Finding> {
    let mut findings = chat::findings(parts);
    findings.extend(auto_recap::of_chat(parts));
    let (book, found) = of_book(parts);
    findings.extend(found);
    findings.extend(book.iter().flat_map(|book| auto_recap::of_book(parts, book)));
    findings
}
