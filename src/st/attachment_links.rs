//! Attachments: files to which a chat links, such as pictures, recordings and texts in messages,
//! and the files of its data bank.
//!
//! SillyTavern stores attachments in `user/images` and `user/files` and links to them by path. The
//! fields for links changed over the versions: `extra.image`, `extra.image_swipes` and
//! `extra.file`, later `extra.media` and `extra.files`, each also in `swipe_info`; and in the
//! metadata `attachments`, `chat_backgrounds` and `custom_background`. One chat may use all of
//! these fields.

use std::collections::BTreeSet;

use memchr::memmem::Finder;
use unicode_normalization::UnicodeNormalization;

use super::json::Raw;
use super::{Chat, LibraryPath, Message};
use crate::file_names::{self, is_ignored_by_hfs};

const FOLDERS: [&str; 2] = ["user/images/", "user/files/"];

/// File endings of attachments that stvc accepts from elsewhere: pictures, recordings, texts,
/// documents and data that programs show but do not execute. Excluded are files that a browser
/// (`html`, `svg`, `xml`, `js`) or an operating system executes, documents that may contain macros,
/// and names without an ending. SillyTavern itself stores texts of all kinds as `txt`.
const COMMON_KINDS: [&str; 64] = [
    "png", "apng", "jpg", "jpeg", "jfif", "gif", "webp", "avif", "bmp", "tif", "tiff", "heic",
    "heif", "jxl", "ico", "mp3", "m4a", "aac", "ogg", "oga", "opus", "wav", "flac", "weba", "aif",
    "aiff", "mid", "midi", "mp4", "m4v", "webm", "mov", "mkv", "avi", "ogv", "mpg", "mpeg", "3gp",
    "txt", "text", "md", "markdown", "rst", "log", "srt", "vtt", "lrc", "csv", "tsv", "json",
    "jsonl", "json5", "yaml", "yml", "toml", "pdf", "epub", "docx", "xlsx", "pptx", "odt", "ods",
    "odp", "rtf",
];

/// Returns all attachments to which a chat with the metadata `metadata` links, including paths with
/// names reserved for stvc.
pub fn attachments(chat: &Chat<'_>, metadata: Option<Raw<'_>>) -> BTreeSet<LibraryPath> {
    let mut found = LinkedPaths(BTreeSet::new());
    // Few lines contain links, and searching for a word is much cheaper than parsing a line. The
    // search is prepared only once.
    let user = Finder::new(b"user");
    for line in chat.messages.iter().filter(|line| names_one(&user, line)) {
        let text = String::from_utf8_lossy(line);
        let Some(message) = Raw::parse_str(&text) else { continue };
        let swipes = message.list("swipe_info");
        for extra in [message].iter().chain(&swipes).filter_map(|it| it.get("extra")) {
            found.displayed(extra);
            found.add(extra.list("image_swipes").iter().map(Raw::string));
        }
    }
    if let Some(metadata) = metadata.filter(|metadata| names_one(&user, metadata.as_bytes())) {
        found.add(metadata.list("attachments").iter().map(|file| file.text("url")));
        found.add(metadata.list("chat_backgrounds").iter().map(Raw::string));
        found.style(metadata.text("custom_background"));
    }
    found.0
}

/// Returns the attachments that SillyTavern displays with a message.
pub fn displayed_attachments(message: &Message<'_>) -> BTreeSet<LibraryPath> {
    let mut found = LinkedPaths(BTreeSet::new());
    message.extra().into_iter().for_each(|extra| found.displayed(extra));
    found.0
}

/// Returns whether a file can be an attachment: it is in an attachment folder, and its name is not
/// reserved for stvc. No other function decides which files are stored or written as attachments.
pub fn is_attachment(path: &LibraryPath) -> bool {
    is_in_folder(path) && !belongs_to_stvc(path)
}

fn is_in_folder(path: &LibraryPath) -> bool {
    FOLDERS.iter().any(|folder| path.as_str().starts_with(folder))
}

/// Returns whether a file name is reserved for stvc: a request, an answer, the status, or a
/// temporary file. A running watch executes the requests in `user/files`, so restoring a snapshot
/// must not create a request there, under any name that a file system considers equal.
pub fn belongs_to_stvc(path: &LibraryPath) -> bool {
    let (folders, file) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
    let file = as_compared(file);
    // Folders are checked only for `.stvc-`: a character, and its folder of pictures, may be called
    // `stvc-…`.
    file.starts_with("stvc-")
        || file.starts_with(".stvc-")
        || folders.split('/').any(|folder| as_compared(folder).starts_with(".stvc-"))
}

/// Normalises a name as file systems may do before comparing names: without case and compatibility
/// forms, without dots and spaces at the end (Windows), without invisible characters (HFS+).
fn as_compared(name: &str) -> String {
    let name = name.chars().filter(|c| !is_ignored_by_hfs(*c));
    let name: String = name.nfkc().flat_map(char::to_lowercase).collect();
    name.trim_end_matches(['.', ' ']).to_owned()
}

pub fn is_common_kind(path: &LibraryPath) -> bool {
    let ending = path.file_name().rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| COMMON_KINDS.contains(&ending.as_str()))
}

fn names_one(user: &Finder<'_>, text: &[u8]) -> bool {
    // A slash may be escaped.
    let slashes = [&b"/"[..], b"\\/", b"%2F"];
    let mut rests = user.find_iter(text).map(|at| &text[at + 4..]);
    rests.any(|rest| slashes.iter().any(|slash| rest.starts_with(slash)))
}

struct LinkedPaths(BTreeSet<LibraryPath>);

impl LinkedPaths {
    fn add(&mut self, paths: impl IntoIterator<Item = Option<String>>) {
        paths.into_iter().flatten().for_each(|path| self.path(&path));
    }

    /// Adds the attachments of one swipe.
    fn displayed(&mut self, extra: Raw<'_>) {
        self.add(["image", "video"].map(|key| extra.text(key)));
        self.add([extra.path(&["file", "url"]).and_then(|url| url.string())]);
        self.add(extra.list("files").iter().map(|file| file.text("url")));
        self.add(extra.list("media").iter().map(|file| file.text("url")));
    }

    /// Adds the path in a CSS value, `url("/user/images/A%20B/x.png")`. Only this value is
    /// percent-encoded.
    fn style(&mut self, value: Option<String>) {
        let Some(text) = value else { return };
        let inner = text.trim().strip_prefix("url(").and_then(|rest| rest.strip_suffix(')'));
        let Some(inner) = inner.map(|inner| inner.trim_matches(['"', '\''])) else { return };
        self.path(&String::from_utf8_lossy(&file_names::undo(inner)));
    }

    fn path(&mut self, text: &str) {
        let path = text.strip_prefix('/').unwrap_or(text);
        self.0.extend(LibraryPath::parse(path).ok().filter(is_in_folder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str], metadata: &str) -> Vec<String> {
        let messages = lines.iter().map(|line| line.as_bytes()).collect();
        let chat = Chat { header: None, messages };
        let found = attachments(&chat, Raw::parse_str(metadata));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn attachments_are_found_in_the_formats_of_all_versions() {
        let lines = [
            r#"{"extra":{"image":"/user/images/Mira/1.png","image_swipes":["user/images/Mira/2.png","/user/images/Mira/1.png"]}}"#,
            r#"{"extra":{"file":{"url":"/user/files/3.txt","size":1}}}"#,
            r#"{"extra":{"media":[{"url":"\/user\/images\/4.mp4","type":"video"}],"files":[{"url":"/user/files/5.txt"}]}}"#,
            r#"{"swipe_info":[{"extra":{}},{"extra":{"media":[{"url":"/user/images/雪 🦊/6 %41.png"}]}}]}"#,
        ];
        let metadata = r#"{"attachments":[{"url":"/user/files/7.txt"}],"chat_backgrounds":["/user/images/M/8.png"],
            "custom_background":"url(\"/user/images/A%20B/9%E9%9B%AA.png\")"}"#;
        assert_eq!(
            of(&lines, metadata),
            [
                "user/files/3.txt",
                "user/files/5.txt",
                "user/files/7.txt",
                "user/images/4.mp4",
                "user/images/A B/9雪.png",
                "user/images/M/8.png",
                "user/images/Mira/1.png",
                "user/images/Mira/2.png",
                "user/images/雪 🦊/6 %41.png",
            ]
        );
    }

    #[test]
    fn paths_outside_the_attachment_folders_are_not_attachments() {
        for url in [
            "https://example.org/user/images/x.png",
            "data:image/png;base64,user/images/",
            "/user/images/../../secrets.json",
            "/user/images/",
            "user/images/a//b.png",
            "/user/files/..\\\\x",
            "//user/images/x.png",
            "/settings.json",
            "/user/images/a\\u0000b",
        ] {
            let line = format!(r#"{{"extra":{{"image":"{url}","x":"user/images/"}}}}"#);
            assert_eq!(of(&[&line], "{}"), [""; 0], "{url}");
        }
        let odd = [
            r#"{"extra":{"media":"/user/images/x.png","files":{"url":7},"image":["user/"]}}"#,
            "user/",
            "{",
        ];
        assert_eq!(
            of(&odd, r#"{"attachments":"user/","custom_background":"user/ none"}"#),
            [""; 0]
        );
    }

    fn path(text: &str) -> LibraryPath {
        LibraryPath::parse(text).unwrap()
    }

    #[test]
    fn names_reserved_by_stvc_are_not_attachments_in_any_spelling() {
        for name in [
            "user/files/stvc-req-00000000000000000000000000000000.json",
            "user/files/STVC-Req-0.json",
            "user/files/stvc-status.json. .",
            "user/files/.stvc-4711-1.tmp",
            "user/files/.STVC-mail-1.tmp",
            "user/files/ſtvc-req-0.json",
            "user/files/st\u{200d}vc-req-0.json",
            "user/images/.stvc-4711-1.tmp/1.png",
            "user/images/Mira/stvc-res-0.json",
        ] {
            assert!(!is_attachment(&path(name)), "{name}");
        }
        for name in
            ["user/images/stvc-fan/1.png", "user/files/my stvc-notes.txt", "user/files/stvc.txt"]
        {
            assert!(is_attachment(&path(name)), "{name}");
        }
    }

    #[test]
    fn only_file_types_that_cannot_run_code_are_common_kinds() {
        for name in ["1.png", "1.JPEG", "a.b.txt", "雪.webm", "x.pdf"] {
            assert!(is_common_kind(&path(&format!("user/files/{name}"))), "{name}");
        }
        for name in [
            "x.html",
            "x.svg",
            "x.xhtml",
            "x.xml",
            "x.js",
            "x.mjs",
            "x.exe",
            "x.bat",
            "x.lnk",
            "x.sh",
            "x.desktop",
            "x.docm",
            "x.html.",
            "x.png ",
            "x.png.html",
            "png",
            "x",
            ".png.",
            "x.htm",
        ] {
            assert!(!is_common_kind(&path(&format!("user/files/{name}"))), "{name}");
        }
    }
}
