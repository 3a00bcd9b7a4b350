//! Reads pictures from the store: the portraits of characters, and the attachments of chats.

use serde::Deserialize;

use crate::archive::{Blake3, Tree};
use crate::engine::Workspace;
use crate::st::{self, LibraryPath, TimelineName};
use crate::verbs::{Error, Result};

/// An attachment of a chat.
#[derive(Clone, Debug, Deserialize)]
pub struct AttachmentOptions {
    /// Name of a moment of the chat.
    pub snapshot: String,
    /// Hash of the picture, as in the attachments of a message.
    pub blake3: Blake3,
}

/// The picture of a character.
#[derive(Clone, Debug, Deserialize)]
pub struct PortraitOptions {
    /// File name of the card without its ending.
    pub character: String,
}

/// A picture.
pub struct Report {
    /// Its file in the library.
    pub path: LibraryPath,
    /// Its media type.
    pub kind: &'static str,
    /// Its file, without the texts of a card.
    pub bytes: Vec<u8>,
}

/// Length of the longest picture that is read. Larger pictures would need too much memory in the
/// viewer and in its server.
const MAX_BYTES: u64 = 6_000_000;

/// Reads an attachment, if it is a picture.
pub fn attachment(workspace: &Workspace, options: &AttachmentOptions) -> Result<Report> {
    let missing = || Error::NoPicture { name: options.blake3.to_string() };
    let store = workspace.open_store()?;
    let moment = workspace.moment(&options.snapshot, &store)?;
    let attachments = Tree::attachments_of(&store.reader(), moment.snapshot.tree)?;
    let found = attachments.into_iter().find(|attachment| attachment.blake3 == options.blake3);
    let found = found.ok_or_else(missing)?;
    require_length(&found.path, found.bytes)?;
    let bytes = found.read(&store.reader())?.map_err(|_| missing())?;
    report(found.path, bytes)
}

/// Reads the picture in the latest stored version of a character's card.
pub fn portrait(workspace: &Workspace, options: &PortraitOptions) -> Result<Report> {
    let missing = || Error::NoPicture { name: options.character.clone() };
    let store = workspace.open_store()?;
    let name = format!("characters/{}", options.character);
    let timeline = TimelineName::parse(&name).map_err(|_| missing())?;
    let history = workspace.history(&store)?;
    let snapshot = history.head(&timeline).ok_or_else(missing)?;
    let contents = Tree::open(&store.reader(), snapshot.tree)?.materialise(&store.reader())?;
    let bytes = st::card_picture(&contents.files.main.bytes).ok_or_else(missing)?;
    report(timeline.file(), bytes)
}

/// Refuses files that are not pictures, whatever their names end with.
fn report(path: LibraryPath, bytes: Vec<u8>) -> Result<Report> {
    require_length(&path, bytes.len() as u64)?;
    let kind = kind_of(&bytes).ok_or_else(|| Error::NoPicture { name: path.to_string() })?;
    Ok(Report { path, kind, bytes })
}

fn require_length(path: &LibraryPath, bytes: u64) -> Result<()> {
    if bytes > MAX_BYTES {
        return Err(Error::LargePicture { path: path.to_string() });
    }
    Ok(())
}

/// Returns the media type of a picture that contains only pixels.
fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    let begins = |with: &[u8]| bytes.starts_with(with);
    match bytes {
        _ if begins(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if begins(b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if begins(b"GIF87a") || begins(b"GIF89a") => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [_, _, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', b'f' | b's', ..] => {
            Some("image/avif")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pixels_are_pictures() {
        assert_eq!(kind_of(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(kind_of(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(kind_of(b"\0\0\0\x20ftypavif"), Some("image/avif"));
        for other in [&b"<svg xmlns="[..], b"", b"RIFF", b"GIF8", b"\0\0\0\x20ftypmp42"] {
            assert_eq!(kind_of(other), None);
        }
    }
}
