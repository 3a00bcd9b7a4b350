//! Findings about recaps.

use super::{files, more, of_these, recap, yields};
use crate::common::recap_library::RecapLibrary;

#[test]
fn req_64_recap_of_another_chat_is_reported() {
    let foreign = |words: &'static [&'static str]| [("recap-foreign", "warning", words)];
    yields(
        |library| recap(library).chat_id = Some("Old name".into()),
        &foreign(&["Old name", "the extension will reset it when you open the chat"]),
    );
    yields(|library| recap(library).chat_id = None, &foreign(&["does not say", "will reset it"]));
    // A fork keeps it.
    yields(
        |library| {
            library.main_chat = Some("Harbour".into());
            recap(library).chat_id = Some("Harbour".into());
        },
        &foreign(&["Harbour", "fork"]),
    );
    // Nothing to lose.
    yields(
        |library| {
            let recap = recap(library);
            (recap.chat_id, recap.current, recap.versions) =
                (Some("Old name".into()), 0, Vec::new());
        },
        &foreign(&["Old name", "nothing is lost"]),
    );
    yields(
        |library| {
            let recap = recap(library);
            (recap.chat_id, recap.current, recap.versions) = (None, 0, Vec::new());
        },
        &[],
    );
    // The name as it was typed.
    yields(
        |library| {
            *library = RecapLibrary::new("Mira", "Why not");
            recap(library).chat_id = Some("Why? not".into());
        },
        &[],
    );
    // Without its lorebook the chat looks like an import.
    let mut library = RecapLibrary::default();
    recap(&mut library).chat_id = Some("Old name".into());
    of_these(
        &[(library.chat_path(), library.chat_bytes())],
        &[("recap-foreign", "warning", &["import"]), ("lorebook-missing", "error", &[])],
    );
}

#[test]
fn req_05_version_in_use_must_be_among_the_versions() {
    yields(
        |library| recap(library).current = 9,
        &[("recap-version-lost", "error", &["uses version 9", "versions 0, 1"])],
    );
    // Version 0 alone, gaps, and no version at all are valid.
    let with = |current, versions: Vec<(i64, i64)>| {
        move |library: &mut RecapLibrary| {
            (recap(library).current, recap(library).versions) = (current, versions);
        }
    };
    yields(with(0, vec![(0, 3)]), &[]);
    yields(with(7, vec![(2, 3), (7, 7)]), &[]);
    yields(with(0, Vec::new()), &[]);
    let odd = [
        ("versions", "7", "versions are not a list"),
        ("versions", r#"{"0":{}}"#, "versions are not a list"),
        ("versions", "[null]", "is not an integer"),
        ("versions", r#"[{"version":"0"}]"#, "is not an integer"),
        ("versions", r#"[{"version":0.5}]"#, "is not an integer"),
        ("current_version", "\"1\"", "is not an integer"),
        ("current_version", "1e99", "is not an integer"),
        ("current_version", "null", "is not an integer"),
    ];
    for (key, json, words) in odd {
        yields(
            |library| recap(library).more.push(more(key, json)),
            &[("recap-unreadable", "warning", &[words])],
        );
    }
    for json in ["[]", "7", "\"x\""] {
        yields(
            |library| library.more.push(more("auto_recap_running_scene_recaps", json)),
            &[("recap-unreadable", "warning", &["is not an object"])],
        );
    }
}

#[test]
fn req_73_cached_registry_must_list_existing_entries() {
    yields(
        |library| library.cache.push((9, "character".into(), "Kestrel".into())),
        &[("registry-cache-dangling", "warning", &["9 (character \"Kestrel\")"])],
    );
    // Of many the first few.
    yields(
        |library| library.cache.extend((20..30).map(|uid| (uid, "item".into(), format!("n{uid}")))),
        &[("registry-cache-dangling", "warning", &["20 (item \"n20\")", "24 (", "and 5 more"])],
    );
}

#[test]
fn req_73_scenes_of_the_running_recap_must_exist() {
    yields(
        |library| recap(library).versions.push((2, 12)),
        &[("recap-past-end", "warning", &["2 (message 12)", "12 messages"])],
    );
    yields(
        |library| recap(library).versions.push((2, 9)),
        &[("recap-scene-missing", "warning", &["2 (message 9)"])],
    );
    yields(
        |library| {
            let scene = &mut library.scenes[0];
            scene.recap = String::new();
        },
        &[("recap-scene-missing", "warning", &["0 (message 3)"])],
    );
    // Blank lines are not messages.
    let mut files = files(&RecapLibrary::default());
    files[0].1 = files[0].1.replace('\n', "\n\n") + "\n";
    of_these(&files, &[]);
}

#[test]
fn req_74_scene_recaps_must_have_their_version_and_hash() {
    let with = |key: &'static str, json: &'static str| {
        move |library: &mut RecapLibrary| {
            library.scenes[1].more.push(more(key, json));
        }
    };
    for json in ["2", "-1", "\"1\"", "1.5", "[]"] {
        yields(
            with("scene_recap_current_index", json),
            &[("scene-index-wrong", "warning", &["message 7:"])],
        );
    }
    for json in ["0", "null"] {
        yields(with("scene_recap_current_index", json), &[]);
    }
    yields(
        with("scene_recap_hash", "\"rm4ymq\""),
        &[("scene-hash-differs", "info", &["message 7:"])],
    );
    yields(with("scene_recap_hash", "null"), &[]);
    // Half an emoji, and what JavaScript trims; the hash was made by JavaScript.
    yields(
        |library| {
            let memory = r#""\ufeff\u00a0 half \ud83d, whole 😀 \u2028""#;
            library.scenes[1].more.push(more("scene_recap_memory", memory));
            library.scenes[1].more.push(more("scene_recap_hash", "\"xhta40\""));
        },
        &[],
    );
    // Many of a kind are one finding.
    yields(
        |library| {
            let scene = library.scenes[1].clone();
            library.scenes.extend([8, 9, 10, 11].map(|at| {
                let mut scene = scene.clone();
                scene.at = at;
                scene
            }));
            for scene in &mut library.scenes {
                scene.more.push(more("scene_recap_hash", "\"x\""));
            }
        },
        &[("scene-hash-differs", "info", &["messages 3, 7, 8, 9, 10 and 1 more:"])],
    );
}
