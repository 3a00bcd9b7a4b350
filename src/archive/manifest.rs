//! The manifest of a snapshot, `snapshot.json`: paths, lengths and hashes of its files. The
//! manifest contains neither a time nor a machine name, so that equal files always give the same
//! tree.

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

/// Record of one file in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// The purpose of the file, by which a restore selects it.
    pub role: Role,
    /// Name of the lorebook, as in the metadata of the chat; `None` if the file is not a lorebook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Path of the file in the library.
    pub path: String,
    /// Length of the file.
    pub bytes: u64,
    /// Hash of the complete file.
    pub blake3: Blake3,
}

impl FileRecord {
    pub(super) fn plain_file(&self) -> String {
        LibraryPath::parse(&self.path).map_or_else(|_| String::new(), |path| plain_file(&path))
    }

    /// Returns whether `bytes` have the recorded length and hash.
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.bytes && Blake3::of(bytes) == self.blake3
    }

    /// Returns the path if the role of the file allows it. Only the timeline's own file and, for a
    /// chat, its lorebook and group file are allowed, because a forged manifest must not make stvc
    /// write any other file.
    pub fn library_path(&self, timeline: &str) -> std::result::Result<LibraryPath, Problem> {
        let path = LibraryPath::parse(&self.path)
            .map_err(|error| Problem::Broken { why: error.to_string() })?;
        // The file of a lorebook can be named `.json` or lack the extension: SillyTavern removes
        // characters like `?` from names, and truncates long names.
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
            // A solo chat has no group, so its snapshot must not write a group's file.
            Role::Group => within("groups/") && timeline.is_ok_and(|name| name.is_group()),
        };
        if belongs {
            Ok(path)
        } else {
            let why = format!("{} is not a valid path for a {}", self.path, self.role.as_str());
            Err(Problem::Broken { why })
        }
    }
}

/// Maximum length of a file in bytes. SillyTavern cannot read longer files, and the limit bounds
/// the time of a validation.
pub(super) const LONGEST_FILE: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u64,
    pub timeline: String,
    /// Files of the snapshot, in the order of [`Role`]. For a chat, the chat file comes first.
    pub files: Vec<FileRecord>,
    /// BLAKE3 over the paths, lengths and hashes in `files`.
    pub content: ContentId,
    pub messages: u64,
    /// Number of the last message, if later messages were removed from the chat (`snapshot --at`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_at: Option<u64>,
    /// State of ST-Auto-Recap, if the chat uses ST-Auto-Recap or the snapshot is a checkpoint. A
    /// state in a newer format is read as `None`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_state")]
    pub checkpoint: Option<CheckpointState>,
    /// Number, total length and list hash of the attachments; `None` if there are no attachments.
    /// The content id does not cover attachments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<AttachmentsRecord>,
}

impl Manifest {
    /// Returns a manifest in the current format.
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

    /// Returns the content id that the snapshot would have if its file were at `path`. Only for
    /// snapshots with one file.
    pub fn content_at(&self, path: &LibraryPath) -> ContentId {
        let mut files = self.files.clone();
        files.iter_mut().for_each(|file| file.path = path.as_str().to_owned());
        content_id(&files)
    }

    pub fn file(&self, role: Role) -> Option<&FileRecord> {
        self.files.iter().find(|file| file.role == role)
    }

    /// Returns the name of the chat's lorebook, or `None` if the snapshot has no lorebook or is not
    /// of a chat.
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

    /// Checks the manifest: its files, their paths and order, and the content id.
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
        // Serialising a struct of strings and numbers cannot fail.
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Parses the `snapshot.json` of `tree`.
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
        // Read the version first: a later format may have other fields, or require features that a
        // reader must support.
        let Version { format, needs } = serde_json::from_slice(text).map_err(unreadable)?;
        if format < FORMAT {
            return Err(Error::Incomplete {
                tree,
                why: format!("snapshot.json has the unknown format {format}"),
            });
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

    /// Returns a manifest with the required fields only.
    fn least() -> Value {
        let hash = "0".repeat(64);
        let chat = json!({ "role": "chat", "path": "chats/a/b.jsonl", "bytes": 1, "blake3": hash });
        json!({ "format": 1, "timeline": "chats/a/b", "files": [chat], "content": hash, "messages": 0 })
    }

    #[test]
    fn manifest_with_missing_or_invalid_field_is_refused() {
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
    fn hex_digits_are_read_in_any_case_and_written_in_lower_case() {
        let mut manifest = least();
        manifest["content"] = "aB".repeat(32).into();
        manifest["files"][0]["blake3"] = "aB".repeat(32).into();
        let read = read(&manifest).unwrap();
        assert_eq!(read.content.to_string(), "ab".repeat(32));
        let text = String::from_utf8(read.encode()).unwrap();
        assert!(text.contains(&"ab".repeat(32)) && !text.contains("aB"), "{text}");
    }

    #[test]
    fn manifest_allows_unknown_fields_and_refuses_other_formats() {
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
    fn checkpoint_state_of_newer_version_is_ignored_and_invalid_one_refused() {
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
