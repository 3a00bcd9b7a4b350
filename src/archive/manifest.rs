//! `snapshot.json`: paths and hashes of a snapshot's files. It has neither time nor machine, so
//! that one state always gives one tree.

use serde::{Deserialize, Serialize};

use super::attachment_tree::{Attachment, AttachmentsRecord, record};
use super::file_role::Role;
use super::part_names::plain_file;
use super::problem::{Problem, Problems};
use super::{Blake3, ContentId, Error, Result};
use crate::auto_recap::CheckpointState;
use crate::auto_recap::stored::known_state;
use crate::st::{Category, LibraryPath, TimelineName, lorebook_path};
use crate::store::ObjectId;

pub(super) const FORMAT: u64 = 1;

/// A file as a manifest records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    pub role: Role,
    /// The lorebook's name as the chat's metadata has it; other files have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its path in the library.
    pub path: String,
    pub bytes: u64,
    pub blake3: Blake3,
}

impl FileRecord {
    pub(super) fn plain_file(&self) -> String {
        LibraryPath::parse(&self.path).map_or_else(|_| String::new(), |path| plain_file(&path))
    }

    /// Compares length and hash.
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.bytes && Blake3::of(bytes) == self.blake3
    }

    /// Returns the path, checked: a manifest may be forged, and may name only a timeline's own
    /// file, a chat's lorebook and its group's file.
    pub fn library_path(&self, timeline: &str) -> std::result::Result<LibraryPath, Problem> {
        let path = LibraryPath::parse(&self.path)
            .map_err(|error| Problem::Broken { why: error.to_string() })?;
        // SillyTavern reduces a name like `?` to the extension, and cuts the extension off long
        // ones.
        let within = |folder: &str| {
            let name = self.path.strip_prefix(folder).and_then(|name| name.strip_suffix(".json"));
            name.is_some_and(|name| !name.contains('/'))
        };
        let timeline = TimelineName::parse(timeline);
        let named = || self.name.as_deref().and_then(lorebook_path);
        let is_main = timeline
            .as_ref()
            .is_ok_and(|name| name.file() == path && Role::of_main(name.category()) == self.role);
        let is_chat = timeline.as_ref().is_ok_and(TimelineName::is_chat);
        let belongs = match self.role {
            _ if is_main => true,
            Role::Chat | Role::Card | Role::File => false,
            Role::Lorebook => is_chat && (within("worlds/") || named().as_ref() == Some(&path)),
            // A chat of its own has no group, and none may be written in its name.
            Role::Group => within("groups/") && timeline.is_ok_and(|name| name.is_group()),
        };
        if belongs {
            Ok(path)
        } else {
            let why = format!("{} is no place for a {}", self.path, self.role.as_str());
            Err(Problem::Broken { why })
        }
    }
}

/// Longer files are not accepted: SillyTavern cannot read them, and judging one must end.
pub(super) const LONGEST_FILE: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u64,
    /// The timeline's place.
    pub timeline: String,
    /// Its files: the chat first.
    pub files: Vec<FileRecord>,
    /// BLAKE3 over `files`.
    pub content: ContentId,
    pub messages: u64,
    /// Set when the chat was cut after this message (`snapshot --at`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_at: Option<u64>,
    /// The state of ST-Auto-Recap, if it is in use, and of every checkpoint; `None` if it is of a
    /// later version.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_state")]
    pub checkpoint: Option<CheckpointState>,
    /// The attachments, if there are any. They are not part of the content id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<AttachmentsRecord>,
}

impl Manifest {
    /// Returns a manifest of the present format.
    pub fn new(
        timeline: &TimelineName,
        files: Vec<FileRecord>,
        messages: u64,
        cut_at: Option<u64>,
    ) -> Self {
        let content = content_id(&files);
        Self {
            format: FORMAT,
            timeline: timeline.as_str().into(),
            files,
            content,
            messages,
            cut_at,
            checkpoint: None,
            attachments: None,
        }
    }

    pub(super) fn with(&self, attachments: &[Attachment]) -> Self {
        if attachments.is_empty() {
            return self.clone();
        }
        Self { attachments: Some(record(attachments)), ..self.clone() }
    }

    /// Returns the content id of the same in another place, for what is one file.
    pub fn content_at(&self, path: &LibraryPath) -> ContentId {
        let mut files = self.files.clone();
        files.iter_mut().for_each(|file| file.path = path.as_str().to_owned());
        content_id(&files)
    }

    pub fn file(&self, role: Role) -> Option<&FileRecord> {
        self.files.iter().find(|file| file.role == role)
    }

    /// Returns the name of the lorebook that a chat is bound to.
    pub fn bound_book(&self) -> Option<&str> {
        let book = self.file(Role::Lorebook).filter(|_| self.main_role() == Role::Chat);
        book.and_then(|book| book.name.as_deref())
    }

    pub fn is_group(&self) -> bool {
        self.category() == Category::GroupChat
    }

    /// Returns the role of the timeline's own file.
    pub fn main_role(&self) -> Role {
        Role::of_main(self.category())
    }

    fn category(&self) -> Category {
        TimelineName::parse(&self.timeline).map_or(Category::Chat, |name| name.category())
    }

    /// Checks the manifest by itself: its files, their places, their order, the content id.
    pub(super) fn problems(&self) -> Problems {
        let mut problems = Problems::default();
        let main = self.main_role();
        for role in [Role::Chat, Role::Lorebook, Role::Group, Role::Card, Role::File] {
            let files = self.files.iter().filter(|file| file.role == role).count();
            if files > 1 || (files == 0 && role == main) {
                problems.push(Problem::BadFiles { role });
            }
        }
        for file in &self.files {
            if let Err(problem) = file.library_path(&self.timeline) {
                problems.push(problem);
            }
            if file.bytes > LONGEST_FILE {
                problems.push(Problem::TooLong { what: file.path.clone() });
            }
            if file.role == Role::Lorebook && file.name.is_none() {
                problems.push(Problem::NamelessBook);
            }
            let own = self.timeline.strip_prefix("worlds/").filter(|_| main == Role::Lorebook);
            let is_wrong = match file.role {
                Role::Lorebook => own.is_some() && file.name.as_deref() != own,
                _ => file.name.is_some(),
            };
            if is_wrong {
                problems.push(Problem::WrongName { path: file.path.clone() });
            }
        }
        if !self.files.is_sorted_by_key(|file| file.role as u8) {
            problems.push(Problem::FileOrder);
        }
        if content_id(&self.files) != self.content {
            problems.push(Problem::WrongContent);
        }
        if main != Role::Chat && self.messages != 0 {
            problems.push(Problem::Count { by: "manifest", says: self.messages, is: 0 });
        }
        problems
    }

    /// Returns the bytes of `snapshot.json`.
    pub fn encode(&self) -> Vec<u8> {
        // A struct of strings and numbers always serialises.
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Reads the `snapshot.json` of `tree`.
    pub fn decode(tree: ObjectId, text: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            format: u64,
            #[serde(default)]
            needs: Vec<String>,
        }
        let unreadable = |error: serde_json::Error| Error::Incomplete {
            tree,
            why: format!("snapshot.json: {error}"),
        };
        // First the version: a later format may have other fields, or name features that a reader
        // must know.
        let Version { format, needs } = serde_json::from_slice(text).map_err(unreadable)?;
        if format < FORMAT {
            return Err(Error::Incomplete { tree, why: format!("snapshot.json: format {format}") });
        }
        if format > FORMAT || !needs.is_empty() {
            return Err(Error::NewerFormat { tree, found: format, needs });
        }
        serde_json::from_slice(text).map_err(unreadable)
    }
}

pub(super) fn content_id(files: &[FileRecord]) -> ContentId {
    let mut text = String::new();
    for file in files {
        text.push_str(&format!("{}\0{}\0{}\n", file.path, file.bytes, file.blake3));
    }
    ContentId(Blake3::of(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(manifest: &Value) -> Result<Manifest> {
        read_text(&manifest.to_string())
    }

    fn read_text(text: &str) -> Result<Manifest> {
        let tree = ObjectId::from_hex("0".repeat(40).as_bytes()).unwrap();
        Manifest::decode(tree, text.as_bytes())
    }

    /// A manifest with all that must be there and nothing else.
    fn least() -> Value {
        let hash = "0".repeat(64);
        let chat = json!({ "role": "chat", "path": "chats/a/b.jsonl", "bytes": 1, "blake3": hash });
        json!({ "format": 1, "timeline": "chats/a/b", "files": [chat], "content": hash, "messages": 0 })
    }

    #[test]
    fn what_must_be_there_is_asked_for() {
        assert!(read(&least()).is_ok());
        for field in ["format", "timeline", "files", "content", "messages"] {
            let mut manifest = least();
            manifest.as_object_mut().unwrap().remove(field);
            assert!(read(&manifest).is_err(), "{field}");
        }
        for field in ["role", "path", "bytes", "blake3"] {
            let mut manifest = least();
            manifest["files"][0].as_object_mut().unwrap().remove(field);
            assert!(read(&manifest).is_err(), "{field}");
        }
        for (field, value) in [("role", json!("mood")), ("bytes", json!(-1)), ("bytes", json!("1"))]
        {
            let mut manifest = least();
            manifest["files"][0][field] = value;
            assert!(read(&manifest).is_err(), "{field}");
        }
        let twice = least().to_string().replacen('{', "{\"messages\":0,", 1);
        assert!(read_text(&twice).is_err());
    }

    #[test]
    fn hex_digits_are_read_in_upper_case_and_written_in_lower_case() {
        let mut manifest = least();
        manifest["content"] = "aB".repeat(32).into();
        manifest["files"][0]["blake3"] = "aB".repeat(32).into();
        let read = read(&manifest).unwrap();
        assert_eq!(read.content.to_string(), "ab".repeat(32));
        let text = String::from_utf8(read.encode()).unwrap();
        assert!(text.contains(&"ab".repeat(32)) && !text.contains("aB"), "{text}");
    }

    #[test]
    fn later_programs_may_add_fields_and_no_other_format_is_read() {
        let mut manifest = least();
        manifest["mood"] = json!(["sunny"]);
        manifest["files"][0]["owner"] = json!("me");
        assert_eq!(read(&manifest).unwrap(), read(&least()).unwrap());
        manifest["format"] = json!(2);
        assert!(matches!(read(&manifest), Err(Error::NewerFormat { found: 2, .. })));
        manifest["format"] = json!(1);
        manifest["needs"] = json!([]);
        assert_eq!(read(&manifest).unwrap(), read(&least()).unwrap());
        manifest["needs"] = json!(["moods"]);
        let newer = read(&manifest).unwrap_err();
        assert!(matches!(newer, Error::NewerFormat { needs, .. } if needs == ["moods"]));
        manifest["format"] = json!(0);
        assert!(matches!(read(&manifest), Err(Error::Incomplete { .. })));
    }

    #[test]
    fn a_state_is_read_whole_or_passed_over() {
        let state = json!({
            "version": 2, "chat_id": "b", "queue_was_empty": true, "has_scene_break": false,
            "has_scene_recap": false, "has_running_recap": false, "new": 1,
        });
        let with = |state: Value| {
            let mut manifest = least();
            manifest["checkpoint"] = state;
            read(&manifest).map(|manifest| manifest.checkpoint)
        };
        assert!(with(state.clone()).unwrap().is_some());
        assert!(with(Value::Null).unwrap().is_none());
        assert!(with(json!({ "version": 3, "anything": {} })).unwrap().is_none());
        for (field, wrong) in [
            ("version", json!("2")),
            ("version", json!(-1)),
            ("message_id", json!(-1)),
            ("message_id", json!("1")),
            ("chat_id", Value::Null),
            ("queue_was_empty", json!(1)),
            ("active_operations", Value::Null),
            ("original_lorebook_name", json!(1)),
            ("running_recap_version", json!(1.5)),
            ("running_recap_versions", Value::Null),
            ("combined_recap_content", json!("no hash")),
            ("warnings", json!("one")),
        ] {
            let mut other = state.clone();
            other[field] = wrong;
            assert!(with(other).is_err(), "{field}");
        }
        for field in ["message_id", "original_lorebook_name", "running_recap_version"] {
            let mut other = state.clone();
            other[field] = Value::Null;
            assert!(with(other).is_ok(), "{field}");
        }
        for field in state.as_object().unwrap().keys().filter(|field| *field != "new") {
            let mut less = state.clone();
            less.as_object_mut().unwrap().remove(field);
            assert!(with(less).is_err(), "{field}");
        }
    }
}
