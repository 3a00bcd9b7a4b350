//! The frame of a PNG: a signature and chunks, each with its length, kind, data and checksum.

pub(in crate::st) const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

pub(in crate::st) struct Chunk<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    pub kind: [u8; 4],
    pub data: &'a [u8],
}

impl Chunk<'_> {
    /// Whether its checksum is right.
    pub(in crate::st) fn is_sound(&self) -> bool {
        encode(self.kind, self.data) == self.bytes
    }
}

/// The chunks up to the last, and what follows it; none if it is no whole PNG.
pub(in crate::st) fn chunks(png: &[u8]) -> Option<(Vec<Chunk<'_>>, &[u8])> {
    let mut rest = png.strip_prefix(&SIGNATURE)?;
    let mut chunks = Vec::new();
    loop {
        let (head, _) = rest.split_first_chunk::<8>()?;
        let [a, b, c, d, kind @ ..] = *head;
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
        let (bytes, after) = rest.split_at_checked(length.checked_add(12)?)?;
        chunks.push(Chunk { bytes, kind, data: &bytes[8..8 + length] });
        rest = after;
        if &kind == b"IEND" {
            return Some((chunks, rest));
        }
    }
}

/// A chunk with its length and checksum.
pub(in crate::st) fn encode(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let body = [&kind[..], data].concat();
    let check = crc32fast::hash(&body);
    [&length.to_be_bytes()[..], &body, &check.to_be_bytes()].concat()
}
