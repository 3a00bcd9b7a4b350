//! Encodes any name as a *segment*: one component of a path in a tree, or of a ref. Git accepts
//! every segment, and so does every file system on which a store may be checked out.
//!
//! A name stays unchanged where possible, including CJK and emoji. Unsafe characters are
//! percent-encoded, byte by byte, with upper-case hex digits. `%` itself is always encoded, so that
//! decoding is unambiguous. Refs have stricter rules than trees: they do not allow spaces, for
//! example.
//!
//! No two names have the same segment. Every encoded character has two hex digits after `%`. There
//! are two special segments: the empty name becomes a lone `%`, and a name that is too long is
//! shortened and ends with `%-` and a hash of the name. Neither can be the segment of another name,
//! because their `%` is not followed by two hex digits.

use crate::file_names::{self, is_ignored_by_hfs, is_windows_device};

/// Maximum length of a segment in bytes; longer ones are shortened. A file name may have 255 bytes,
/// and git appends `.lock`.
const MAX_SEGMENT_BYTES: usize = 200;
const KEPT_OF_LONG: usize = 150;
/// Separates the beginning of a shortened segment from the hash.
const CUT: &str = "%-";
const HASH_DIGITS: usize = 32;

pub fn tree_segment(name: &[u8]) -> String {
    shorten(encode(name, tree_forbids), name)
}

/// Whether [`tree_segment`] can return `segment`. Such a segment is valid on every system and has
/// no special meaning to git.
pub fn is_tree_segment(segment: &str) -> bool {
    match segment.split_once(CUT) {
        Some((kept, hash)) => is_hash(hash) && is_beginning(kept),
        None => {
            !segment.is_empty()
                && segment.len() <= MAX_SEGMENT_BYTES
                && encode(&decode_bytes(segment), tree_forbids) == segment
        }
    }
}

pub fn ref_segment(name: &str) -> String {
    if let Some(segment) = plain_ref_segment(name) {
        return segment;
    }
    shorten(ref_segment_unshortened(name), name.as_bytes())
}

/// Like [`ref_segment`], but returns `None` if the segment would be shortened, because a shortened
/// segment cannot be decoded.
pub fn ref_segment_exact(name: &str) -> Option<String> {
    Some(ref_segment_unshortened(name)).filter(|encoded| encoded.len() <= MAX_SEGMENT_BYTES)
}

/// Decodes a segment. Returns the segment unchanged if the result is not UTF-8. The end of a
/// shortened name is lost: the result ends with `%-` and the hash.
pub fn decode(segment: &str) -> String {
    String::from_utf8(decode_bytes(segment)).unwrap_or_else(|_| segment.to_owned())
}

pub fn decode_bytes(segment: &str) -> Vec<u8> {
    if segment == EMPTY { Vec::new() } else { file_names::undo(segment) }
}

/// Segment of the empty name.
const EMPTY: &str = "%";

/// Whether `c` is encoded in trees and refs. `%` begins an escape, `~` occurs in `git~1` (the short
/// name of `.git` on NTFS), and Windows forbids the other characters.
fn tree_forbids(c: char) -> bool {
    matches!(c, '%' | '~' | '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|')
}

/// Whether `c` is encoded in refs. Git allows `{` in a ref, but not `@{`.
fn ref_forbids(c: char) -> bool {
    tree_forbids(c) || matches!(c, ' ' | '^' | '[' | '{')
}

/// Encodes a name in which at most spaces must be encoded; returns `None` for other names. This is
/// a fast path: most names are like this, and every command encodes thousands.
fn plain_ref_segment(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_@()'!&,+#".contains(&byte);
    let is_short = (1..=MAX_SEGMENT_BYTES / 3).contains(&name.len());
    let is_plain = is_short && !name.starts_with('-') && name.bytes().all(is_plain);
    if !is_plain || is_windows_device(name.as_bytes()) {
        return None;
    }
    Some(if name.contains(' ') { name.replace(' ', "%20") } else { name.to_owned() })
}

fn ref_segment_unshortened(name: &str) -> String {
    let mut out = encode(name.as_bytes(), ref_forbids);
    while out.contains("..") {
        out = out.replacen("..", ".%2E", 1);
    }
    // Compares without regard to case: on a case-insensitive file system `a.LOCK` would be the lock
    // of `a`.
    if let Some(dot) = out.len().checked_sub(LOCK.len())
        && out.get(dot..).is_some_and(|end| end.eq_ignore_ascii_case(LOCK))
    {
        out.replace_range(dot..=dot, "%2E");
    }
    if let Some(rest) = out.strip_prefix('-') {
        out = format!("%2D{rest}");
    }
    out
}

const LOCK: &str = ".lock";

fn encode(name: &[u8], forbidden: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(name.len());
    let reserved = is_windows_device(name);
    let end = name.len();
    let mut at = 0;
    // Whether HFS+ ignores all characters so far: it reads `<U+200C>.git` as `.git`.
    let mut leading = true;
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            let last = at + c.len_utf8() == end;
            let unsafe_here = c.is_control()
                || forbidden(c)
                || (leading && c == '.')
                || (last && matches!(c, '.' | ' '))
                || (at == 0 && reserved);
            if unsafe_here {
                file_names::push_char(&mut out, c);
            } else {
                out.push(c);
            }
            leading &= is_ignored_by_hfs(c);
            at += c.len_utf8();
        }
        for byte in chunk.invalid() {
            file_names::push_byte(&mut out, *byte);
            leading = false;
            at += 1;
        }
    }
    if out.is_empty() {
        out.push_str(EMPTY);
    }
    out
}

fn shorten(encoded: String, name: &[u8]) -> String {
    if encoded.len() <= MAX_SEGMENT_BYTES {
        return encoded;
    }
    let hash = blake3::hash(name).to_hex();
    format!("{}{CUT}{}", beginning(&encoded), &hash[..HASH_DIGITS])
}

fn beginning(encoded: &str) -> &str {
    let mut cut = 0;
    while let Some(next) = encoded[cut..].chars().next() {
        let long = if next == '%' { escaped_char(&encoded[cut..]) } else { next.len_utf8() };
        if cut + long > KEPT_OF_LONG {
            break;
        }
        cut += long;
    }
    &encoded[..cut]
}

/// Returns the length of the escapes at the start of `encoded` that encode one character. If they
/// do not encode a character, returns the length of one escape.
fn escaped_char(encoded: &str) -> usize {
    const ESCAPE: usize = 3;
    let is_char = |bytes: usize| {
        let escapes = encoded.get(..bytes * ESCAPE)?;
        let decoded = file_names::undo(escapes);
        let is_one = decoded.len() == bytes && str::from_utf8(&decoded).ok()?.chars().count() == 1;
        is_one.then_some(bytes * ESCAPE)
    };
    (1..=4).find_map(is_char).unwrap_or(ESCAPE)
}

/// Whether `kept` can be the beginning of a shortened segment. The place where a name is shortened
/// depends on its next character. So this function tries characters of each encoded length, and
/// white space before a dot, which can make the name a Windows device.
fn is_beginning(kept: &str) -> bool {
    const NEXT: [&str; 10] =
        ["x", "\u{1}", "\u{85}", "é", "雪", "🦊", " .", "\t.", "\u{a0}.", "\u{3000}."];
    if !(KEPT_OF_LONG - 5..=KEPT_OF_LONG).contains(&kept.len()) {
        return false;
    }
    let name = decode_bytes(kept);
    NEXT.iter().any(|next| {
        let longer = [&name, next.as_bytes(), &[b'x'; MAX_SEGMENT_BYTES]].concat();
        beginning(&encode(&longer, tree_forbids)) == kept
    })
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates any text, text with characters that must be encoded, names like those of Windows
    /// devices, and names of about the length at which segments are shortened.
    fn text() -> impl Strategy<Value = String> {
        const DEVICE: &str = "(?i:con|prn|aux|nul|com|lpt|conin|conout)[0-9¹²³$]?[ \u{a0}\u{3000}]{0,2}([.][a.]{0,3})?";
        prop_oneof![
            any::<String>(),
            "\\PC{0,40}|[ -~]{0,30}",
            "[.%~@{/ \u{200c}\u{3000}\u{85}^a4-]{0,8}([.](lock|LOCK|Lock))?",
            DEVICE,
            (140..210usize, "[a.%é雪🦊 \u{85}]{0,12}", DEVICE).prop_map(|(n, end, begin)| format!(
                "{begin}{}{end}{}",
                "a".repeat(n),
                "b".repeat(60)
            )),
            (0..160usize, 0..160usize).prop_map(|(a, b)| format!(
                "con{}\u{a0}{}.x",
                " ".repeat(a),
                "\u{3000}".repeat(b)
            )),
        ]
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let odd = proptest::collection::vec(any::<u8>(), 0..80);
        let device = odd.clone().prop_map(|rest| [b"con.", rest.as_slice()].concat());
        prop_oneof![text().prop_map(String::into_bytes), odd, device]
    }

    #[test]
    fn readable_names_stay_readable() {
        assert_eq!(tree_segment("Tide Office — 雨 🦊".as_bytes()), "Tide Office — 雨 🦊");
        assert_eq!(ref_segment("Mira Voss - Branch #1"), "Mira%20Voss%20-%20Branch%20#1");
    }

    #[test]
    fn names_unsafe_for_git_or_file_systems_are_encoded() {
        for (name, segment) in [
            (".git", "%2Egit"),
            ("\u{200c}.git", "\u{200c}%2Egit"),
            ("git~1", "git%7E1"),
            ("..", "%2E%2E"),
            ("a/b", "a%2Fb"),
            ("100%", "100%25"),
            ("dot.", "dot%2E"),
            ("", "%"),
            ("\u{7}bell", "%07bell"),
        ] {
            assert_eq!(tree_segment(name.as_bytes()), segment);
        }
        assert_eq!(tree_segment(b"\xed\xa0\xbd"), "%ED%A0%BD");
        assert_eq!(ref_segment("a..b.lock"), "a.%2Eb%2Elock");
        assert_eq!(ref_segment("a.LoCK"), "a%2ELoCK");
        assert_eq!(ref_segment("@{-1}"), "@%7B-1}");
    }

    #[test]
    fn windows_device_names_are_encoded_with_any_extension() {
        for (name, segment) in [
            ("CON", "%43ON"),
            ("CON.txt", "%43ON.txt"),
            ("con .txt", "%63on .txt"),
            ("con\u{3000}", "%63on\u{3000}"),
            ("com1", "%63om1"),
            ("COM¹", "%43OM¹"),
            ("lpt³.a.b", "%6Cpt³.a.b"),
            ("CONIN$", "%43ONIN$"),
            ("conout$.json", "%63onout$.json"),
        ] {
            assert_eq!(tree_segment(name.as_bytes()), segment);
            assert_eq!(ref_segment(name), segment.replace(' ', "%20"));
            assert!(is_tree_segment(segment));
        }
        assert_eq!(tree_segment(b"con.\xff"), "%63on.%FF");
        for name in
            ["con a", "console", " con", "com10", "com", "com⁴", "conin", "conin$$", "x.con"]
        {
            assert_eq!(tree_segment(name.as_bytes()), name);
        }
    }

    #[test]
    fn segments_that_the_encoder_never_produces_are_invalid() {
        let long = tree_segment("雪".repeat(99).as_bytes());
        assert!(is_tree_segment(&long) && is_tree_segment("%") && is_tree_segment("%25"));
        let longer = format!("a{long}");
        let upper = long.to_uppercase();
        let no_hash = &long[..long.len() - 1];
        for segment in [
            "",
            "%%",
            "%4",
            "%41",
            "%2e",
            "a%",
            "%zz",
            "%-",
            "con",
            "con.%C3%A9",
            "a ",
            ".a",
            "a%C3%A9",
            &"a".repeat(201),
            &longer,
            &upper,
            no_hash,
            "a%-00000000000000000000000000000000",
        ] {
            assert!(!is_tree_segment(segment), "{segment}");
        }
    }

    #[test]
    fn truncation_never_splits_a_character_or_an_escape() {
        let hash = |name: &str| blake3::hash(name.as_bytes()).to_hex()[..HASH_DIGITS].to_owned();
        for (last, kept) in
            [("x", 150), ("\u{85}", 145), ("\u{7f}", 148), ("é", 149), ("雪", 148), ("🦊", 147)]
        {
            // The encoding of `last` is one byte too long to fit before the hash.
            let name = format!("{}{last}{}", "a".repeat(kept), "b".repeat(99));
            let segment = tree_segment(name.as_bytes());
            let expected = match last {
                "x" => "a".repeat(150),
                _ => "a".repeat(kept),
            };
            assert_eq!(segment, format!("{expected}{CUT}{}", hash(&name)));
            assert!(is_tree_segment(&segment));
            let fits = format!("{}{last}{}", "a".repeat(kept - 1), "b".repeat(99));
            assert!(tree_segment(fits.as_bytes()).len() > 150, "{fits}");
            assert!(is_tree_segment(&tree_segment(fits.as_bytes())));
        }
        // A byte that is not valid UTF-8 in the name is kept as a single escape.
        let name = [&[b'a'; 147][..], b"\xc2", &[b'b'; 99]].concat();
        assert!(tree_segment(&name).starts_with(&format!("{}%C2{CUT}", "a".repeat(147))));
    }

    #[test]
    fn long_names_are_truncated_and_stay_distinct() {
        let (a, b) = ("🦊".repeat(63), format!("{}x", "🦊".repeat(62)));
        assert!(tree_segment(a.as_bytes()).len() <= MAX_SEGMENT_BYTES);
        assert_ne!(tree_segment(a.as_bytes()), tree_segment(b.as_bytes()));
        assert_eq!(ref_segment_exact(&a), None);
        // A name that looks like a shortened segment is encoded again.
        let cut = tree_segment(a.as_bytes());
        assert_ne!(tree_segment(cut.as_bytes()), cut);
        assert_ne!(ref_segment(&ref_segment(&a)), ref_segment(&a));
    }

    proptest! {
        #[test]
        fn ref_segments_are_valid_and_decode_to_the_name(name in text()) {
            let segment = ref_segment(&name);
            prop_assert!(gix::refs::FullName::try_from(format!("refs/heads/{segment}")).is_ok(), "{segment}");
            prop_assert!(segment.len() <= MAX_SEGMENT_BYTES);
            match ref_segment_exact(&name) {
                Some(exact) => {
                    prop_assert!(!exact.contains(CUT));
                    prop_assert_eq!(decode(&exact), name);
                }
                None => prop_assert!(segment.contains(CUT)),
            }
        }

        #[test]
        fn tree_segments_are_valid_and_decode_to_the_name(name in bytes()) {
            let segment = tree_segment(&name);
            prop_assert!(is_tree_segment(&segment), "{segment}");
            if !segment.contains(CUT) {
                prop_assert_eq!(decode_bytes(&segment), name.clone());
            }
        }

        #[test]
        fn only_encoded_names_are_valid_tree_segments(segment in text()) {
            let name = decode_bytes(&segment);
            if !segment.contains(CUT) {
                prop_assert_eq!(is_tree_segment(&segment), tree_segment(&name) == segment);
            }
        }

        #[test]
        fn entry_file_segments_are_valid_and_distinct(a in bytes(), b in bytes()) {
            let file = |key: &[u8]| tree_segment(&[key, b".json"].concat());
            prop_assert!(is_tree_segment(&file(&a)));
            prop_assert_eq!(a == b, file(&a) == file(&b));
        }

        #[test]
        fn different_names_have_different_segments(a in text(), b in text()) {
            prop_assert_eq!(a == b, tree_segment(a.as_bytes()) == tree_segment(b.as_bytes()));
            prop_assert_eq!(a == b, ref_segment(&a) == ref_segment(&b));
        }

        /// Otherwise a name could have the same segment as another name.
        #[test]
        fn encoded_name_used_as_a_name_is_encoded_again(name in text()) {
            for segment in [tree_segment(name.as_bytes()), ref_segment(&name)] {
                if segment != name {
                    prop_assert_ne!(&tree_segment(segment.as_bytes()), &segment);
                    prop_assert_ne!(&ref_segment(&segment), &segment);
                }
            }
        }
    }

    #[test]
    fn fast_path_encodes_plain_names_like_the_general_path() {
        let parts = [
            "",
            "a",
            "-",
            " ",
            "@",
            "con",
            "nul",
            "com1",
            "#",
            "é",
            ".",
            "{",
            "lock",
            "Z_(9)'!&,+",
        ];
        let mut names = vec![String::new()];
        for _ in 0..3 {
            let longer = |name: String| parts.map(|part| format!("{name}{part}"));
            names = names.into_iter().flat_map(longer).collect();
        }
        let mut plain = 0;
        for name in names {
            if let Some(segment) = plain_ref_segment(&name) {
                plain += 1;
                assert_eq!(segment, ref_segment_unshortened(&name), "{name:?}");
            }
        }
        assert!(plain > 500, "{plain}");
        assert_eq!(plain_ref_segment(&" ".repeat(100)), None, "it may have to be cut");
    }
}
