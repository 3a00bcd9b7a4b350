use crate::st::{Error, LibraryPath, TimelineName, chat_name, lorebook_path, sanitize};
use proptest::prelude::*;
use std::path::Path;

#[test]
fn timeline_name_maps_to_folder_chat_and_file() {
    let solo = TimelineName::parse("chats/Mira Voss/A - Branch #1").unwrap();
    assert_eq!(solo, TimelineName::solo("Mira Voss", "A - Branch #1").unwrap());
    assert_eq!(
        (solo.folder(), solo.chat(), solo.is_group()),
        (Some("Mira Voss"), "A - Branch #1", false)
    );
    assert_eq!(solo.file().as_str(), "chats/Mira Voss/A - Branch #1.jsonl");
    let group = TimelineName::parse("group chats/2024").unwrap();
    assert_eq!((group.folder(), group.chat(), group.is_group()), (None, "2024", true));
    assert_eq!(group.to_string(), "group chats/2024");
}

#[test]
fn names_that_leave_their_folder_are_refused() {
    for odd in ["\u{1}\n\t", "a:b", "...", " x ", "C:", "con", "\u{202e}", "-", "\""] {
        assert!(TimelineName::solo(odd, odd).is_ok(), "{odd:?}");
        assert_eq!(TimelineName::parse(&format!("chats/{odd}/{odd}")).unwrap().chat(), odd);
    }
    for bad in [
        "",
        "chats",
        "chats/a",
        "chats//b",
        "chats/a/",
        "chats/a/b/c",
        "chats/../b",
        "chats/a/..",
        "chats/./b",
        "group chats/",
        "group chats/a/b",
        "group chats/..",
        "chats/a\\b/c",
        "chats/a/b\\c",
        "chats/a/b\0",
        "worlds/a/b",
        "/chats/a/b",
    ] {
        assert!(matches!(TimelineName::parse(bad), Err(Error::BadName { .. })), "{bad:?}");
    }
    for bad in
        ["", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\\b", "a\0", "C:", "c:/x", "C:x"]
    {
        assert!(matches!(LibraryPath::parse(bad), Err(Error::BadName { .. })), "{bad:?}");
    }
    assert_eq!(
        LibraryPath::parse("a/b c").unwrap().under(Path::new("r")),
        Path::new("r").join("a").join("b c")
    );
    assert_eq!(LibraryPath::parse("a/b c").unwrap().file_name(), "b c");
}

#[test]
fn deserialized_names_are_validated() {
    let name: TimelineName = serde_json::from_str("\"group chats/x\"").unwrap();
    assert_eq!(serde_json::to_string(&name).unwrap(), "\"group chats/x\"");
    assert!(serde_json::from_str::<LibraryPath>("\"../x\"").is_err());
}

/// The expected values were created with the npm package.
#[test]
fn file_names_are_sanitised_as_sillytavern_does() {
    let long = "é".repeat(200);
    let cases = [
        ("a/b\\c:d*e?f\"g<h>i|j.json", "abcdefghij.json"),
        ("x\u{0}\u{1f}\u{7f}\u{80}\u{9f}\u{a0}.json", "x\u{7f}\u{a0}.json"),
        ("...", ""),
        (":.", ""),
        (". .", ""),
        ("CoN.json", ""),
        ("nul", ""),
        ("com7.tar.gz", ""),
        ("com10.json", "com10.json"),
        ("console.json", "console.json"),
        ("con.\u{2028}json", "con.\u{2028}json"),
        (" con.json", " con.json"),
        ("a. . ", "a"),
        (".hidden", ".hidden"),
        ("\u{130}con", "\u{130}con"),
        (&long, &long[..254]),
    ];
    for (name, expected) in cases {
        assert_eq!(sanitize(name), expected, "{name:?}");
    }
}

#[test]
fn typed_names_are_mapped_to_file_names() {
    assert_eq!(lorebook_path("Lore: Mira/1").unwrap().as_str(), "worlds/Lore Mira1.json");
    assert_eq!(lorebook_path("..").unwrap().as_str(), "worlds/...json");
    assert_eq!(lorebook_path("con"), None);
    assert_eq!(chat_name("What? - Checkpoint #1").unwrap(), "What - Checkpoint #1");
    assert_eq!(chat_name("aux"), None);
    assert_eq!(chat_name("??"), None);
    // SillyTavern truncates a name that is too long, and its ending with it, so the file is not a
    // chat file.
    assert_eq!(chat_name(&"x".repeat(255)), None);
}

proptest! {
    /// Converts any name to the path of the main file and back.
    #[test]
    fn timeline_name_and_file_path_round_trip(
        folder in "[^/\\\\\0]{1,12}", name in "[^/\\\\\0]{1,12}|[ .\u{3000}\u{85}\u{2028}]{1,3}(\\.jsonl)?",
    ) {
        let is_up = |name: &str| matches!(name, "." | "..");
        prop_assume!(!is_up(&folder) && !is_up(&name));
        for timeline in [TimelineName::solo(&folder, &name), TimelineName::group(&name)] {
            let timeline = timeline.unwrap();
            prop_assert_eq!(&TimelineName::parse(timeline.as_str()).unwrap(), &timeline);
            prop_assert_eq!(timeline.chat(), &name);
            let file = timeline.file();
            prop_assert_eq!(&LibraryPath::parse(file.as_str()).unwrap(), &file);
            let back = file.as_str().strip_suffix(".jsonl").unwrap();
            prop_assert_eq!(&TimelineName::parse(back).unwrap(), &timeline);
        }
    }
}
