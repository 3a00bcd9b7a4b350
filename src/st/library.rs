//! The folder of one SillyTavern user (the library), and its timelines.

use super::discover;
use super::folder::{Listing, is_absent, list_existing, list_folder};
use super::name::{CHAT_ENDING, Category, LibraryPath, SETTINGS, TimelineName};
use super::{Error, Groups, Result, open_file, open_folder, read};
use crate::auto_recap::BookTemplate;
use crate::durable::{self, TEMP_PREFIX};
use crate::regular;
use std::fs::{self, DirEntry};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Maximum size of a settings file that is read, in bytes. Real files are a hundred times smaller.
const MOST_SETTINGS: u64 = 64 << 20;
const NOT_UNICODE: &str = "its name is not valid Unicode";

pub const FOLDERS: [&str; 6] =
    ["chats", "group chats", "groups", "worlds", "characters", "User Avatars"];

/// The folder of one SillyTavern user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    root: PathBuf,
    others: Vec<String>,
    book_template: OnceLock<BookTemplate>,
}

#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Chats, sorted by name.
    pub chats: Vec<TimelineName>,
    /// Timelines that are not chats, sorted by name.
    pub others: Vec<TimelineName>,
    pub groups: Groups,
    pub unreadable: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    There,
    Gone,
    /// Unknown, because the file or a parent folder could not be read. The value is the reason.
    Unreadable(String),
}

impl Scan {
    pub fn all(&self) -> impl Iterator<Item = &TimelineName> {
        self.chats.iter().chain(&self.others)
    }

    pub fn has(&self, name: &str) -> bool {
        let is_in = |sorted: &[TimelineName]| {
            sorted.binary_search_by(|known| known.as_str().cmp(name)).is_ok()
        };
        is_in(&self.chats) || is_in(&self.others)
    }

    /// Returns the unreadable file or folder that may contain the timeline, and the reason why it
    /// is unreadable.
    pub fn unreadable_at(&self, name: &TimelineName) -> Option<&(String, String)> {
        let file = name.file();
        self.unreadable.iter().find(|(subject, _)| {
            let below = file.as_str().strip_prefix(subject.as_str());
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        })
    }

    pub fn may_have(&self, name: &TimelineName) -> bool {
        self.has(name.as_str()) || self.unreadable_at(name).is_some()
    }
}

impl Library {
    /// Opens the library at `dir`, which is a user's folder, a SillyTavern install (with users in
    /// `data/`), or a folder that contains users' folders. Without `user`, opens `default-user` or
    /// the only user.
    pub fn open(dir: &Path, user: Option<&str>) -> Result<Self> {
        discover::open(dir, user).map(Self::found)
    }

    /// Opens the library that contains `start`, or the library of the install that contains
    /// `start`.
    pub fn find(start: &Path, user: Option<&str>) -> Result<Self> {
        discover::find(start, user).map(Self::found)
    }

    fn found(found: discover::UserFolder) -> Self {
        Self { root: found.root, others: found.others, book_template: OnceLock::new() }
    }

    /// Returns the user's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns whether a file exists at `path`.
    pub fn has(&self, path: &LibraryPath) -> bool {
        path.under(&self.root).is_file()
    }

    /// Returns whether the file of a timeline exists. No other function decides that a timeline was
    /// deleted.
    pub fn presence(&self, scan: &Scan, name: &TimelineName) -> Presence {
        if scan.has(name.as_str()) {
            return Presence::There;
        }
        if let Some((_, why)) = scan.unreadable_at(name) {
            return Presence::Unreadable(why.clone());
        }
        match is_absent(&name.file().under(&self.root)) {
            Ok(true) => Presence::Gone,
            Ok(false) => Presence::There,
            Err(why) => Presence::Unreadable(why.to_string()),
        }
    }

    /// Returns the other users of the install, if the caller did not name a user.
    pub fn other_users(&self) -> &[String] {
        &self.others
    }

    /// Returns the template for lorebook names from the user's ST-Auto-Recap settings. Returns the
    /// default if the settings do not exist, cannot be read, or are too large. Reads the settings
    /// only once.
    pub fn book_template(&self) -> &BookTemplate {
        self.book_template.get_or_init(|| {
            let mut bytes = Vec::new();
            let path = LibraryPath::parse(SETTINGS).map_err(io::Error::other);
            let file = path.and_then(|path| open_file(&self.root, &path));
            let read = file.and_then(|file| file.take(MOST_SETTINGS + 1).read_to_end(&mut bytes));
            match read {
                Ok(length) if length as u64 <= MOST_SETTINGS => BookTemplate::of_settings(&bytes),
                _ => BookTemplate::default(),
            }
        })
    }

    /// Lists the timelines and reads the group files.
    pub fn scan(&self) -> Result<Scan> {
        // A disconnected disk must not be mistaken for a library without chats.
        list_existing(&self.root).map_err(Error::io(&self.root))?;
        let mut scan = Scan::default();
        for entry in self.list("chats", &mut scan.unreadable) {
            let name = entry.file_name();
            let at = format!("chats/{}", name.to_string_lossy());
            match (is_dir(&entry), name.to_str()) {
                (Ok(false), _) => {}
                (Err(why), _) => scan.unreadable.push((at, why.to_string())),
                (Ok(true), None) => scan.unreadable.push((at, NOT_UNICODE.to_owned())),
                (Ok(true), Some(folder)) => {
                    let named = |chat: &str| TimelineName::solo(folder, chat);
                    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                    // Only the target of a link must be checked.
                    let entries = if is_link {
                        self.list(&at, &mut scan.unreadable)
                    } else {
                        entries(list_folder(&entry.path()), &at, &mut scan.unreadable)
                    };
                    let files = (&*at, CHAT_ENDING, entries);
                    let found = files_of(Category::Chat, files, named, &mut scan.unreadable);
                    scan.chats.extend(found);
                }
            }
        }
        for category in [Category::GroupChat, Category::Lorebook, Category::Card, Category::Persona]
        {
            let Some((at, ending)) = category.files() else { continue };
            let named = |stem: &str| TimelineName::of(category, stem);
            let files = (at, ending, self.list(at, &mut scan.unreadable));
            let found = files_of(category, files, named, &mut scan.unreadable);
            let list = if category.is_chat() { &mut scan.chats } else { &mut scan.others };
            list.extend(found);
        }
        scan.chats.sort_unstable();
        self.read_groups(&mut scan);
        if fs::metadata(self.root.join(SETTINGS)).is_ok_and(|found| found.is_file()) {
            scan.others.extend(TimelineName::of(Category::Settings, ""));
        }
        scan.others.sort_unstable();
        Ok(scan)
    }

    /// Returns the names of the lorebook files without ending, sorted.
    pub fn lorebooks(&self) -> Result<Vec<String>> {
        let dir = self.root.join("worlds");
        let entries = list_folder(&dir).complete().map_err(Error::io(&dir))?;
        let files = entries.iter().filter(|entry| is_file(entry).unwrap_or(false));
        let mut names: Vec<_> = files
            .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Reads the group files. Unreadable files are left out.
    pub fn groups(&self) -> Groups {
        let mut scan = Scan::default();
        self.read_groups(&mut scan);
        scan.groups
    }

    /// Removes temporary files of stvc processes that were killed.
    pub fn clear_left_behind(&self) {
        let chats = list_folder(&self.root.join("chats")).entries;
        let folders = FOLDERS.iter().chain(&["extensions"]).map(|folder| self.root.join(folder));
        for folder in folders.chain(chats.iter().map(DirEntry::path)) {
            durable::clear_left_behind(&folder);
        }
    }

    fn read_groups(&self, scan: &mut Scan) {
        let mut files = Vec::new();
        let known = scan.unreadable.len();
        let entries = self.list("groups", &mut scan.unreadable);
        let mut unread = scan.unreadable.get(known).cloned();
        for entry in entries {
            let file = entry.file_name();
            let shown = file.to_string_lossy();
            if !shown.ends_with(".json") || is_temporary(&shown) {
                continue;
            }
            let subject = format!("groups/{shown}");
            let path = match file.to_str() {
                Some(_) => LibraryPath::parse(&subject).map_err(|error| error.to_string()),
                None => Err(NOT_UNICODE.to_owned()),
            };
            let path = match path {
                Ok(path) => path,
                Err(why) => {
                    scan.unreadable.push((subject, why));
                    continue;
                }
            };
            match read(&self.root, &path) {
                Ok(bytes) => {
                    scan.others.extend(TimelineName::of_file(&path));
                    files.push((path, bytes));
                }
                Err(error) => {
                    unread = Some((subject.clone(), error.to_string()));
                    scan.unreadable.push((subject, error.to_string()));
                }
            }
        }
        files.sort_unstable();
        scan.groups = Groups::read(&files);
        scan.groups.unread = unread;
    }

    /// Returns the entries of a folder of the library; empty if the folder does not exist.
    pub(super) fn list(&self, at: &str, unreadable: &mut Vec<(String, String)>) -> Vec<DirEntry> {
        let listing = match open_folder(&self.root, at) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Listing { entries: Vec::new(), unreadable: Some(error) }
            }
            _ => list_folder(&self.root.join(at)),
        };
        entries(listing, at, unreadable)
    }
}

fn entries(listing: Listing, at: &str, unreadable: &mut Vec<(String, String)>) -> Vec<DirEntry> {
    unreadable.extend(listing.unreadable.map(|error| (at.to_owned(), error.to_string())));
    listing.entries
}

/// Returns the timelines whose files have the ending, of the entries of the folder `at`. `name`
/// creates a timeline's name. Unreadable files with this ending are recorded.
fn files_of(
    category: Category,
    (at, ending, entries): (&str, &str, Vec<DirEntry>),
    name: impl Fn(&str) -> Result<TimelineName>,
    unreadable: &mut Vec<(String, String)>,
) -> Vec<TimelineName> {
    let mut found = Vec::new();
    for entry in entries {
        let file = entry.file_name();
        // The lossy copy serves to check the ending even if the name is not valid Unicode.
        let shown = file.to_string_lossy();
        let is_hidden = category == Category::Persona && shown.starts_with('.');
        if !shown.ends_with(ending) || is_temporary(&shown) || is_hidden {
            continue;
        }
        let stem = file.to_str().and_then(|file| file.strip_suffix(ending));
        let why = match (is_file(&entry), stem.map(&name)) {
            // A folder with the name of a chat file does not prove that the chat was deleted.
            (Ok(false), _) => {
                let kind = fs::metadata(entry.path()).map(|found| found.file_type());
                kind.and_then(regular::must_be_file).err().map(|why| why.to_string())
            }
            // SillyTavern does not create a file whose name is only the ending.
            _ if shown == ending && !category.is_chat() => None,
            (Err(error), _) => Some(error.to_string()),
            (_, None) => Some(NOT_UNICODE.to_owned()),
            (_, Some(Err(error))) => Some(error.to_string()),
            (_, Some(Ok(name))) => {
                found.push(name);
                None
            }
        };
        unreadable.extend(why.map(|why| (format!("{at}/{shown}"), why)));
    }
    found
}

/// Returns whether a file is one of stvc's temporary files, `.stvc-<process>-<number>.`, and not a
/// chat whose name begins with the same prefix.
fn is_temporary(name: &str) -> bool {
    let stem = name.strip_prefix(TEMP_PREFIX).and_then(|rest| rest.split('.').next());
    stem.is_some_and(|stem| stem.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

/// Returns whether an entry is a folder or a link to a folder. Fails for a link without a target,
/// because the target may be a folder on an unmounted drive.
fn is_dir(entry: &DirEntry) -> io::Result<bool> {
    match entry.file_type()? {
        kind if !kind.is_symlink() => Ok(kind.is_dir()),
        _ => match fs::metadata(entry.path()) {
            Ok(found) => Ok(found.is_dir()),
            Err(error) => Err(is_absent(&entry.path()).err().unwrap_or(error)),
        },
    }
}

fn is_file(entry: &DirEntry) -> io::Result<bool> {
    match entry.file_type()? {
        kind if kind.is_symlink() => fs::metadata(entry.path()).map(|target| target.is_file()),
        kind => Ok(kind.is_file()),
    }
}
