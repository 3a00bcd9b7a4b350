//! Values of every type in every place.

use super::{files, findings_of_files, folder, more, put, recap};
use crate::common::recap_library::{Entry, RecapLibrary, object, quoted};

#[test]
fn values_of_unexpected_types_yield_findings_and_no_failure() {
    const ODD: [&str; 14] = [
        "null",
        "true",
        "0",
        "-1",
        "2000000",
        "1e400",
        "0.5",
        "\"\"",
        "\"x\"",
        "\"\\ud83d\"",
        "[]",
        "[null,1,{}]",
        "{}",
        r#"{"__proto__":null,"":{"":[]},"1":1}"#,
    ];
    let dir = folder(&[]);
    let write = |change: &dyn Fn(&mut RecapLibrary)| {
        let mut library = RecapLibrary::default();
        change(&mut library);
        files(&library).iter().for_each(|(path, bytes)| put(dir.path(), path, bytes));
        assert!(findings_of_files(dir.path()).len() < 9);
    };
    for json in ODD {
        for key in [
            "auto_recap_running_scene_recaps",
            "auto_lorebooks",
            "world_info",
            "main_chat",
            "auto_recap",
        ] {
            write(&|library| library.more.push(more(key, json)));
        }
        for key in ["chat_id", "current_version", "versions"] {
            write(&|library| recap(library).more.push(more(key, json)));
        }
        for key in ["version", "new_scene_index", "scene_count"] {
            let version = format!("[{}]", object(&[more("version", "1"), more(key, json)]));
            write(&|library| recap(library).more.push(more("versions", &version)));
        }
        for key in ["lorebookName", "registry"] {
            let value = object(&[more(key, json)]);
            write(&|library| library.more.push(more("auto_lorebooks", &value)));
        }
        let index = format!(r#"{{"registry":{{"index":{json}}}}}"#);
        write(&|library| library.more.push(more("auto_lorebooks", &index)));
        let index = format!(r#"{{"registry":{{"index":{{"7":{json}}}}}}}"#);
        write(&|library| library.more.push(more("auto_lorebooks", &index)));
        for key in [
            "scene_break",
            "scene_break_name",
            "scene_recap_memory",
            "scene_recap_hash",
            "scene_recap_versions",
            "scene_recap_current_index",
            "scene_recap_metadata",
        ] {
            write(&|library| library.scenes[0].more.push(more(key, json)));
        }
        let metadata = format!(r#"{{"1":{{"allEntries":{json},"totalActivatedEntries":{json}}}}}"#);
        write(&|library| library.scenes[0].more.push(more("scene_recap_metadata", &metadata)));
        // Entries, and the fields of entries.
        for key in ["7", "__proto__", "", "1e3"] {
            write(&|library| library.entries.push(Entry::raw(key, json)));
        }
        for title in ["__operation_queue", "_registry_", "x"] {
            let entry = format!(r#"{{"uid":{json},"comment":"{title}","content":{json}}}"#);
            write(&|library| library.entries.push(Entry::raw("7", &entry)));
            let inside = quoted(json);
            let entry = format!(r#"{{"comment":"{title}","content":{inside}}}"#);
            write(&|library| library.entries.push(Entry::raw("7", &entry)));
        }
        let entry = format!(r#"{{"uid":3,"comment":{json},"content":"x"}}"#);
        write(&|library| library.entries.push(Entry::raw("7", &entry)));
        // The queue and what is in it.
        for content in [
            format!(r#"{{"queue":{json}}}"#),
            format!(r#"{{"queue":[{json}]}}"#),
            format!(
                r#"{{"queue":[{{"id":{json},"type":{json},"status":{json},"params":{json},"metadata":{json}}}]}}"#
            ),
            format!(
                r#"{{"queue":[{{"status":"pending","params":{{"index":{json},"indexes":{json}}}}}]}}"#
            ),
        ] {
            let entry =
                format!(r#"{{"comment":"__operation_queue","content":{}}}"#, quoted(&content));
            write(&|library| library.entries.push(Entry::raw("7", &entry)));
        }
    }
    // Files that are not lorebooks.
    write(&|_| {});
    let path = RecapLibrary::default().book_path();
    for book in ODD {
        for book in [book, &format!(r#"{{"entries":{book}}}"#)] {
            put(dir.path(), &path, book);
            assert!(findings_of_files(dir.path()).len() < 9);
        }
    }
}
