//! The viewer's pictures in the documents, taken of the sample library.
//!
//! `UPDATE_DOCS=1 cargo test --test page pictures` takes them again. Otherwise the viewer is
//! compared with them.

use super::*;

const STORY: &str = "chats/Mira Voss/The Tide Office — part 1 (雨).jsonl";
const LORE: &str = "worlds/Tide Office Lore.json";
const DAY: i64 = 86_400;

/// Returns the sample library with a week of snapshots.
fn sample() -> Sandbox {
    let all = Sandbox::from_fixture("1.19.0");
    let mut sandbox = Sandbox::empty();
    for path in ["chats/Ærin 雪 🦊/Snow shrine 雪.jsonl", "worlds/Snow Shrine.json"] {
        sandbox.write(path, all.read(path));
    }
    let lines: Vec<_> =
        String::from_utf8(all.read(STORY)).unwrap().lines().map(str::to_owned).collect();
    let lore = String::from_utf8(all.read(LORE)).unwrap();
    let forks = [
        (12, "Before the ferry #1 @dawn xy", "Before the ferry #1 @dawn xy"),
        (20, "Mira Voss - 2026-11-14@23h57m31s408ms - Branch #1", "What if the ferry is late"),
        (24, "Mira Voss - 2026-11-14@23h57m31s408ms - Checkpoint #2", "The ledger burns"),
        (32, "probe cp", "Kestrel knows"),
    ];
    for messages in [6, 9, 12, 16, 20, 24, 28, 32] {
        sandbox.write(STORY, format!("{}\n", lines[..=messages].join("\n")));
        // An entry that changes with every snapshot.
        let subject = format!("Old Kestrel, as far as we know at message {messages},");
        sandbox.write(LORE, lore.replace("Old Kestrel is", &format!("{subject} is")));
        sandbox.take(&[]);
        for (_, file, name) in forks.iter().filter(|(after, ..)| *after == messages) {
            sandbox.wait(3600);
            sandbox.write(
                &format!("chats/Mira Voss/{name}.jsonl"),
                all.read(&format!("chats/Mira Voss/{file}.jsonl")),
            );
            sandbox.take(&[]);
        }
        sandbox.wait(DAY - 3600);
    }
    sandbox.stvc(&["tag", "part one", "The Tide Office~2"]).exits(0);
    sandbox
}

#[test]
fn pictures_show_the_current_viewer() {
    let sandbox = sample();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
    let mode = if std::env::var_os("UPDATE_DOCS").is_some() { "update" } else { "compare" };
    let clock = sandbox.command(&[]);
    let clock = clock.get_envs().find(|(name, _)| *name == "SOURCE_DATE_EPOCH");
    let now = clock.and_then(|(_, value)| value?.to_str()).unwrap();
    let arguments = [mode, folder.to_str().unwrap(), now];
    let Some(visit) = Visit::begin_with(&sandbox, &[], "pictures", &arguments) else {
        return;
    };
    visit.end();
}
