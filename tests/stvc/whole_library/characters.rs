//! Cards by field, and invalid cards.

use super::*;

#[test]
fn characters_have_a_history_by_field() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let size = |sandbox: &Sandbox| -> u64 {
        files(&sandbox.store().join("objects")).values().map(|bytes| bytes.len() as u64).sum()
    };
    let before = size(&sandbox);
    sandbox.wait(60);
    // The last opened chat is not a change.
    let mut json = mira();
    json["chat"] = "two".into();
    sandbox.write(CARD, card(&json, 200_000));
    assert!(sandbox.stvc(&["snapshot"]).exits(0).stdout.contains("Nothing changed"));
    json["data"]["description"] = "She keeps no charts any more. ".repeat(9).into();
    sandbox.write(CARD, card(&json, 200_000));
    sandbox.stvc(&["snapshot"]).exits(0);
    let more = size(&sandbox) - before;
    assert!(more < 200_000 / 50, "{more} bytes for another description");

    let run = |sandbox: &Sandbox, command: &[&str]| sandbox.stvc(command).exits(0).stdout;
    let diff = run(&sandbox, &["diff", "characters/Mira~1", "characters/Mira"]);
    assert!(diff.contains("data.description") && diff.contains("any more"), "{diff}");
    assert!(!diff.contains("picture"), "{diff}");
    let shown = run(&sandbox, &["show", "characters/Mira"]);
    assert!(shown.contains("first_mes") && shown.contains("You are late."), "{shown}");
    let found = sandbox.json(&["search", "tide", "waits", "--only", "character"]).exits(0);
    let found = found.of_type("match");
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["part"], &found[0]["name"]),
        (&"card".into(), &"data.alternate_greetings.1".into())
    );
    // Short texts are found too.
    let short = sandbox.json(&["search", "late", "--only", "character"]).exits(0);
    assert_eq!(short.of_type("match")[0]["name"], "data.first_mes");
    // Another picture is another state, and the former one is restored byte for byte.
    let former = sandbox.read(CARD);
    sandbox.write(CARD, card(&json, 30_000));
    sandbox.wait(60);
    sandbox.stvc(&["snapshot"]).exits(0);
    assert!(
        run(&sandbox, &["diff", "characters/Mira~1", "characters/Mira"])
            .contains("different picture")
    );
    sandbox.stvc(&["restore", "characters/Mira~1", "--overwrite"]).exits(0);
    assert_eq!(sandbox.read(CARD), former);
}

#[test]
fn invalid_cards_and_lorebooks_are_stored_unchanged() {
    let sandbox = library();
    let odd: [(&str, &[u8]); 9] = [
        ("characters/no picture.png", b"{\"name\":\"json\"}"),
        ("characters/empty.png", b""),
        ("characters/torn.png", &card(&mira(), 100)[..90]),
        ("characters/short.png", b"\x89PNG\r\n\x1a\n"),
        ("characters/雪 🦊.png", &card(&json!({ "x": [1e21, "\u{2028}"] }), 50)),
        ("worlds/broken.json", b"{\"entries\": {\"0\": "),
        ("worlds/bom.json", b"\xef\xbb\xbf{\"entries\":{}}"),
        ("worlds/zero.json", b"{\"entries\":{\"0\":\"\0\"}}"),
        ("User Avatars/%41.jpg", b"\xff\xd8"),
    ];
    for (path, bytes) in odd {
        sandbox.write(path, bytes);
    }
    // Expressions and files that SillyTavern does not list are ignored.
    sandbox.write("characters/Mira/joy.png", b"sprite");
    sandbox.write("characters/LOUD.PNG", b"not listed");
    sandbox.write("characters/Mira.png.1234", b"half written");
    sandbox.stvc(&["snapshot"]).exits(0);
    let before = sandbox.files();
    for (path, _) in odd {
        fs::remove_file(sandbox.path(path)).unwrap();
    }
    sandbox.stvc(&["restore", "--all"]).exits(0);
    assert_same(&sandbox.files(), &before);
    assert!(places(&sandbox).iter().all(|place| !place.contains("LOUD") && !place.contains("joy")));
    sandbox.stvc(&["check"]).exits(0);
    sandbox.git(&["fsck", "--strict"]);
}

#[test]
fn using_a_group_does_not_count_as_a_change() {
    let mut sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    sandbox.wait(60);
    let group = String::from_utf8(sandbox.read("groups/9.json")).unwrap();
    let used = group.replace("\"chat_id\":\"talk\"", "\"chat_id\":\"talk\",\"date_last_chat\":1.5");
    sandbox.write("groups/9.json", &used);
    assert!(sandbox.stvc(&["snapshot"]).exits(0).stdout.contains("Nothing changed"));
    sandbox.write("groups/9.json", used.replace("\"All\"", "\"Everybody\""));
    let taken = sandbox.stvc(&["snapshot"]).exits(0).stdout;
    assert!(taken.contains("members of group / Everybody"), "{taken}");
    // The group is found by its file and by its name.
    for group in ["groups/9", "members of group / Everybody"] {
        let before = format!("{group}~1");
        assert!(sandbox.stvc(&["diff", &before, group]).exits(0).stdout.contains("Everybody"));
    }
}

/// SillyTavern would show the outdated thumbnail.
#[test]
fn thumbnail_is_removed_with_its_picture() {
    let sandbox = library();
    sandbox.stvc(&["snapshot"]).exits(0);
    let small = ["thumbnails/avatar/Mira.png", "thumbnails/persona/user-default.png"];
    let other = "thumbnails/avatar/Wren.png";
    for path in [small[0], small[1], other] {
        sandbox.write(path, b"small");
    }
    sandbox.write(CARD, card(&mira(), 3000));
    sandbox.write("User Avatars/user-default.png", b"another face");
    sandbox.stvc(&["restore", "characters/Mira", "--overwrite"]).exits(0);
    sandbox.stvc(&["restore", "User Avatars/user-default.png", "--overwrite"]).exits(0);
    let there = |path: &str| sandbox.path(path).exists();
    assert!(!there(small[0]) && !there(small[1]));
    assert!(there(other));
}
