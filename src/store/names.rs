//! Names that git, and every file system a store may be checked out on, accept.
//!
//! A name is kept as it is where possible: CJK, emoji and spaces are fine. What is not safe is percent-encoded, byte by
//! byte, with upper-case hex; `%` itself always is, so that decoding is unambiguous. The two rules differ because a
//! tree allows more than a ref does.

/// Names longer than this (encoded) are cut and end in a hash: file systems stop at 255 bytes, and `.lock` must fit.
const LONGEST: usize = 200;
const KEPT_OF_LONG: usize = 150;

/// The name of a file or folder in a tree for `name`, which may be any bytes.
pub fn tree_segment(name: &[u8]) -> String {
    shorten(encode(name, |c| TREE_FORBIDS.contains(c)), name)
}

/// Whether a name in a tree is one that [`tree_segment`] can give: safe on every system, and nothing to git.
pub fn is_tree_segment(name: &str) -> bool {
    let same = encode(name.as_bytes(), |c| c != '%' && TREE_FORBIDS.contains(c)) == name;
    same && !name.is_empty() && name.len() <= LONGEST
}

/// One component of a ref's name for `name`.
pub fn ref_segment(name: &str) -> String {
    shorten(ref_segment_unshortened(name), name.as_bytes())
}

/// Like [`ref_segment`], but `None` where the name is so long that it could not be decoded again.
pub fn ref_segment_exact(name: &str) -> Option<String> {
    Some(ref_segment_unshortened(name)).filter(|encoded| encoded.len() <= LONGEST)
}

/// Undo [`ref_segment_exact`] or [`tree_segment`]. What is no valid encoding stays as it is.
pub fn decode(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| segment.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// `%` escapes; `~` because `git~1` is `.git` on NTFS; the rest because Windows forbids it in file names.
const TREE_FORBIDS: &str = "%~/\\:*?\"<>|";
/// What a ref forbids beyond that. `{` alone is legal, but `@{` is not.
const REF_FORBIDS: &str = " ^[{";

fn ref_segment_unshortened(name: &str) -> String {
    let mut out = encode(name.as_bytes(), |c| TREE_FORBIDS.contains(c) || REF_FORBIDS.contains(c));
    while out.contains("..") {
        out = out.replacen("..", ".%2E", 1);
    }
    if let Some(stem) = out.strip_suffix(".lock") {
        out = format!("{stem}%2Elock");
    }
    if let Some(rest) = out.strip_prefix('-') {
        out = format!("%2D{rest}");
    }
    out
}

fn encode(name: &[u8], forbidden: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(name.len());
    let reserved = std::str::from_utf8(name).is_ok_and(is_windows_device);
    let end = name.len();
    let mut at = 0;
    // True while nothing but characters that HFS+ ignores came before: it reads `<U+200C>.git` as `.git`.
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
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer).bytes().for_each(|byte| push_escaped(&mut out, byte));
            } else {
                out.push(c);
            }
            leading &= is_ignored_by_hfs(c);
            at += c.len_utf8();
        }
        for byte in chunk.invalid() {
            push_escaped(&mut out, *byte);
            leading = false;
            at += 1;
        }
    }
    if out.is_empty() {
        // The one encoding that no other name has.
        out.push('%');
    }
    out
}

fn push_escaped(out: &mut String, byte: u8) {
    out.push_str(&format!("%{byte:02X}"));
}

fn shorten(encoded: String, name: &[u8]) -> String {
    if encoded.len() <= LONGEST {
        return encoded;
    }
    let mut cut = KEPT_OF_LONG;
    while !encoded.is_char_boundary(cut) {
        cut -= 1;
    }
    // Never through the middle of an escape.
    if let Some(percent) = encoded[..cut].rfind('%')
        && cut - percent < 3
    {
        cut = percent;
    }
    let hash = blake3::hash(name).to_hex();
    format!("{}%-{}", &encoded[..cut], &hash[..32])
}

fn is_windows_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let is = |device: &str| stem.eq_ignore_ascii_case(device);
    is("con")
        || is("prn")
        || is("aux")
        || is("nul")
        || (stem.len() == 4
            && stem.is_char_boundary(3)
            && (stem[..3].eq_ignore_ascii_case("com") || stem[..3].eq_ignore_ascii_case("lpt"))
            && stem.as_bytes()[3].is_ascii_digit())
}

fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn readable_names_stay_readable() {
        assert_eq!(tree_segment("Tide Office — 雨 🦊".as_bytes()), "Tide Office — 雨 🦊");
        assert_eq!(ref_segment("Mira Voss - Branch #1"), "Mira%20Voss%20-%20Branch%20#1");
    }

    #[test]
    fn names_git_or_a_file_system_would_trip_over_are_encoded() {
        for (name, segment) in [
            (".git", "%2Egit"),
            ("\u{200c}.git", "\u{200c}%2Egit"),
            ("git~1", "git%7E1"),
            ("..", "%2E%2E"),
            ("a/b", "a%2Fb"),
            ("100%", "100%25"),
            ("CON.txt", "%43ON.txt"),
            ("com1", "%63om1"),
            ("dot.", "dot%2E"),
            ("", "%"),
            ("\u{7}bell", "%07bell"),
        ] {
            assert_eq!(tree_segment(name.as_bytes()), segment);
        }
        assert_eq!(tree_segment(b"\xed\xa0\xbd"), "%ED%A0%BD");
        assert_eq!(ref_segment("a..b.lock"), "a.%2Eb%2Elock");
        assert_eq!(ref_segment("@{-1}"), "@%7B-1}");
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let (a, b) = ("🦊".repeat(63), format!("{}x", "🦊".repeat(62)));
        assert!(tree_segment(a.as_bytes()).len() <= LONGEST);
        assert_ne!(tree_segment(a.as_bytes()), tree_segment(b.as_bytes()));
        assert_eq!(ref_segment_exact(&a), None);
    }

    proptest! {
        #[test]
        fn encoded_names_are_valid_and_decode(name in "\\PC{0,40}|[ -~]{0,30}|[.%~@{/-]{0,8}(lock)?") {
            let segment = ref_segment(&name);
            prop_assert!(gix::refs::FullName::try_from(format!("refs/heads/{segment}")).is_ok(), "{segment}");
            if !name.is_empty() && let Some(exact) = ref_segment_exact(&name) {
                prop_assert_eq!(decode(&exact), name);
            }
        }

        #[test]
        fn different_names_have_different_segments(a in ".{0,80}", b in ".{0,80}") {
            prop_assert_eq!(a == b, tree_segment(a.as_bytes()) == tree_segment(b.as_bytes()));
            prop_assert_eq!(a == b, ref_segment(&a) == ref_segment(&b));
        }
    }
}
