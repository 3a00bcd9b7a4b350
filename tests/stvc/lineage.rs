//! Parents and forks of timelines, recognised by messages instead of file names.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use stvc::progress::NoProgress;
use stvc::verbs::{snapshot, timelines};

use crate::common::Sandbox;

/// Returns parent and shared messages by timeline.
fn tree(sandbox: &Sandbox) -> BTreeMap<String, (Option<String>, Option<u64>)> {
    let report = timelines::timelines(&sandbox.workspace(), &mut NoProgress).unwrap();
    let entry = |timeline: &timelines::Timeline| {
        let parent = timeline.fork.parent.as_ref().map(|parent| parent.chat().to_owned());
        (timeline.name.chat().to_owned(), (parent, timeline.fork.fork_at))
    };
    report.timelines.iter().map(entry).collect()
}

fn snapshot(sandbox: &Sandbox) -> snapshot::Report {
    snapshot::snapshot(&sandbox.workspace(), &snapshot::Options::default(), &mut NoProgress)
        .unwrap()
}

/// A chat under construction.
#[derive(Clone, Debug)]
struct Story {
    name: String,
    main_chat: Option<String>,
    messages: Vec<Value>,
}

impl Story {
    fn new(name: &str, messages: usize) -> Self {
        let messages =
            (0..messages).map(|n| message(&format!("{name} says {n}"), n as i64)).collect();
        Self { name: name.into(), main_chat: None, messages }
    }

    /// Forks like SillyTavern's checkpoint or branch: messages 0 to `at`.
    fn fork(&self, name: &str, at: usize) -> Self {
        let messages = self.messages[..=at].to_vec();
        Self { name: name.into(), main_chat: Some(self.name.clone()), messages }
    }

    fn say(&mut self, text: &str, time: i64) {
        self.messages.push(message(text, time));
    }

    fn write(&self, sandbox: &Sandbox) {
        let mut metadata = json!({ "integrity": format!("slug of {}", self.name) });
        if let Some(main_chat) = &self.main_chat {
            metadata["main_chat"] = json!(main_chat);
        }
        let header =
            json!({ "chat_metadata": metadata, "user_name": "unused", "character_name": "unused" });
        let lines: Vec<_> =
            std::iter::once(&header).chain(&self.messages).map(Value::to_string).collect();
        sandbox.write(&path(&self.name), lines.join("\n"));
    }
}

fn path(name: &str) -> String {
    format!("chats/Mira/{name}.jsonl")
}

fn message(text: &str, time: i64) -> Value {
    let date = chrono::DateTime::from_timestamp(1_790_000_000 + time * 60, 0).unwrap().to_rfc3339();
    json!({ "name": "Mira", "is_user": false, "is_system": false, "send_date": date, "mes": text, "extra": {} })
}

#[test]
fn lineage_of_real_1_19_files_is_found() {
    let sandbox = Sandbox::from_fixture("1.19.0");
    snapshot(&sandbox);
    let tree = tree(&sandbox);
    // The main chat was renamed in SillyTavern, so `main_chat` of all its forks is outdated.
    let main = Some("The Tide Office — part 1 (雨)".to_owned());
    let fork = |name: &str| tree[name].clone();
    assert_eq!(fork("The Tide Office — part 1 (雨)"), (None, None));
    assert_eq!(fork("Before the ferry #1 @dawn xy"), (main.clone(), Some(13)));
    assert_eq!(fork("Mira Voss - 2026-11-14@23h57m31s408ms - Branch #1"), (main.clone(), Some(16)));
    assert_eq!(fork("Mira Voss - 2026-11-14@23h57m31s408ms - Branch #2"), (main.clone(), Some(31)));
    assert_eq!(
        fork("Mira Voss - 2026-11-14@23h57m31s408ms - Checkpoint #1"),
        (main.clone(), Some(9))
    );
    // The parent lost its last message later; the fork still has it.
    assert_eq!(fork("probe cp"), (main, Some(32)));
    assert_eq!(fork("Mira Voss - 2026-11-15@00h00m45s139ms"), (None, None));
    assert_eq!(fork("Ferry checkpoint"), (Some("Ferry main".into()), Some(6)));
    assert_eq!(fork("2026-11-15@00h01m50s750ms - Branch #1"), (Some("Ferry main".into()), Some(8)));
}

#[test]
fn req_71_lineage_of_real_1_12_files_is_found() {
    let sandbox = Sandbox::from_fixture("1.12.6");
    snapshot(&sandbox);
    let tree = tree(&sandbox);
    let main = Some("Mira Voss - 2026-11-15 @00h 17m 54s 596ms".to_owned());
    assert_eq!(tree["Branch #8 - 2026-11-15@00h21m58s"].0, main);
    assert_eq!(tree["My checkpoint - 2026-11-15@00h21m56s"].0, main);
    assert_eq!(tree["G checkpoint - 2026-11-15@00h22m21s"].0, Some("2024-09-28@01h02m36s".into()));
}

#[test]
fn req_53_fork_at_message_5_shares_6_messages() {
    let sandbox = Sandbox::empty();
    let main = Story::new("main", 10);
    let mut fork = main.fork("fork", 5);
    fork.say("another way", 100);
    main.write(&sandbox);
    snapshot(&sandbox);
    fork.write(&sandbox);
    snapshot(&sandbox);
    assert_eq!(tree(&sandbox)["fork"], (Some("main".into()), Some(6)));
}

#[test]
fn nested_forks_are_found_without_valid_parent_names() {
    let sandbox = Sandbox::empty();
    let mut main = Story::new("main", 30);
    let mut branch = main.fork("branch", 9);
    branch.say("b1", 100);
    branch.say("b2", 101);
    let mut twig = branch.fork("a twig", 11);
    twig.say("t1", 200);
    branch.say("b3", 150);
    let mut late = main.fork("another", 4);
    late.say("l1", 300);
    // All are renamed: `main_chat` names no existing chat.
    main.name = "z main".into();
    branch.name = "y branch".into();
    for story in [&twig, &late, &branch, &main] {
        story.write(&sandbox);
    }
    snapshot(&sandbox);
    let tree = tree(&sandbox);
    assert_eq!(tree["z main"], (None, None));
    assert_eq!(tree["y branch"], (Some("z main".into()), Some(10)));
    assert_eq!(tree["a twig"], (Some("y branch".into()), Some(12)));
    assert_eq!(tree["another"], (Some("z main".into()), Some(5)));
}

#[test]
fn fields_that_sillytavern_changes_later_do_not_hide_forks() {
    let sandbox = Sandbox::empty();
    let mut main = Story::new("main", 8);
    let mut fork = main.fork("fork", 4);
    fork.say("own", 50);
    main.messages[4]["extra"]["bookmark_link"] = json!("fork");
    for message in &mut main.messages {
        message["is_system"] = json!(true);
        message["extra"]["auto_recap_memory"] = json!({ "scene_break": true });
    }
    main.write(&sandbox);
    fork.write(&sandbox);
    snapshot(&sandbox);
    assert_eq!(tree(&sandbox)["fork"], (Some("main".into()), Some(5)));
}

/// Chats are first compared by samples of their messages.
#[test]
fn fork_of_a_long_chat_is_found_without_a_parent_name() {
    let sandbox = Sandbox::empty();
    let main = Story::new("Main", 60);
    main.write(&sandbox);
    Story::new("Other", 30).write(&sandbox);
    snapshot(&sandbox);
    let mut fork = main.fork("Another way", 45);
    fork.main_chat = None;
    fork.say("It went on otherwise.", 99);
    fork.write(&sandbox);
    snapshot(&sandbox);
    assert_eq!(tree(&sandbox)["Another way"], (Some("Main".into()), Some(46)));
}

#[test]
fn forks_at_first_and_last_message_are_found() {
    let sandbox = Sandbox::empty();
    let main = Story::new("main", 5);
    let at_start = main.fork("at start", 0);
    let mut longer = main.fork("longer", 4);
    (0..20).for_each(|n| longer.say(&format!("on and on {n}"), 60 + n));
    let twin = main.fork("twin", 4);
    let mut edited = main.fork("edited", 3);
    edited.messages[0]["mes"] = json!("another beginning");
    let mut stranger = Story::new("stranger", 3);
    stranger.messages[0] = main.messages[0].clone();
    for story in [&main, &at_start, &longer, &twin, &edited, &stranger] {
        story.write(&sandbox);
    }
    snapshot(&sandbox);
    let tree = tree(&sandbox);
    let main = Some("main".to_owned());
    assert_eq!(tree["at start"], (main.clone(), Some(1)));
    assert_eq!(tree["longer"], (main.clone(), Some(5)));
    assert_eq!(tree["twin"], (main, Some(5)));
    assert_eq!(tree["edited"], (None, None), "nothing is shared any more");
    assert_eq!(tree["stranger"], (None, None), "a greeting alone makes no fork");
}

#[test]
fn circular_main_chat_links_yield_one_fork() {
    let sandbox = Sandbox::empty();
    let mut a = Story::new("a", 6);
    let mut b = a.fork("b", 3);
    a.main_chat = Some("b".into());
    b.say("own", 70);
    a.write(&sandbox);
    b.write(&sandbox);
    snapshot(&sandbox);
    let tree = tree(&sandbox);
    let forks = tree.values().filter(|(parent, _)| parent.is_some()).count();
    assert_eq!(forks, 1, "{tree:?}");
}

#[test]
fn renamed_chat_continues_its_timeline_and_deleted_chat_stays_stored() {
    let mut sandbox = Sandbox::empty();
    let mut story = Story::new("old name", 6);
    story.write(&sandbox);
    Story::new("other", 3).write(&sandbox);
    snapshot(&sandbox);
    std::fs::rename(sandbox.path(&path("old name")), sandbox.path(&path("new name"))).unwrap();
    story.name = "new name".into();
    story.say("written after the rename", 80);
    let lines = sandbox.read(&path("new name"));
    sandbox.write(
        &path("new name"),
        [lines, b"\n".to_vec(), story.messages[6].to_string().into_bytes()].concat(),
    );
    std::fs::remove_file(sandbox.path(&path("other"))).unwrap();
    sandbox.wait(60);
    snapshot(&sandbox);

    let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let of =
        |name: &str| lines.iter().find(|line| line["timeline"] == format!("chats/Mira/{name}"));
    assert_eq!(of("old name"), None);
    assert_eq!(of("new name").unwrap()["snapshots"], 2);
    assert_eq!(of("new name").unwrap()["fork_at"], Value::Null);
    assert_eq!(of("other").unwrap()["state"], "deleted");
    let log = sandbox.json(&["log", "new name"]).exits(0).of_type("snapshot");
    assert_eq!(log[0]["renamed_from"], "chats/Mira/old name");

    // A restored chat continues.
    sandbox.stvc(&["restore", "other"]).exits(0);
    sandbox.append(&path("other"), &message("back again", 90).to_string());
    sandbox.wait(60);
    snapshot(&sandbox);
    let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let other = lines.iter().find(|line| line["timeline"] == "chats/Mira/other").unwrap();
    assert_eq!((&other["state"], &other["snapshots"]), (&json!("unchanged"), &json!(4)));
}

#[test]
fn fork_of_a_deleted_parent_is_not_a_rename() {
    let sandbox = Sandbox::empty();
    let main = Story::new("main", 6);
    main.write(&sandbox);
    snapshot(&sandbox);
    main.fork("fork", 5).write(&sandbox);
    std::fs::remove_file(sandbox.path(&path("main"))).unwrap();
    snapshot(&sandbox);
    let tree = tree(&sandbox);
    assert_eq!(tree["fork"], (Some("main".into()), Some(6)));
    assert!(tree.contains_key("main"));
}

#[test]
fn chats_of_a_renamed_character_keep_their_timelines() {
    let sandbox = Sandbox::empty();
    Story::new("one", 4).write(&sandbox);
    Story::new("two", 5).write(&sandbox);
    snapshot(&sandbox);
    std::fs::rename(sandbox.path("chats/Mira"), sandbox.path("chats/Mira Voss")).unwrap();
    snapshot(&sandbox);
    let lines = sandbox.json(&["timelines"]).exits(0).of_type("timeline");
    let names: Vec<_> = lines
        .iter()
        .map(|line| (line["timeline"].as_str().unwrap(), line["snapshots"].clone()))
        .collect();
    assert_eq!(names, [("chats/Mira Voss/one", json!(2)), ("chats/Mira Voss/two", json!(2))]);
}

#[test]
fn req_75_shrunk_or_replaced_chat_is_stored_with_an_alarm() {
    let sandbox = Sandbox::empty();
    let story = Story::new("long", 40);
    story.write(&sandbox);
    let first = snapshot(&sandbox);
    assert!(first.findings.is_empty());
    let good = sandbox.snapshot_ids()[0].clone();

    let mut greeting = story.clone();
    greeting.messages.truncate(1);
    greeting.write(&sandbox);
    let answer = sandbox.stvc(&["snapshot"]).exits(0);
    assert!(
        answer.stderr.contains("it had 40 messages and now has only its greeting"),
        "{}",
        answer.stderr
    );
    assert!(
        answer.stderr.contains(&format!("stvc restore {} --overwrite", &good[..10])),
        "{}",
        answer.stderr
    );
    sandbox.stvc(&["restore", &good[..10], "--overwrite"]).exits(0);
    sandbox.stvc(&["snapshot"]).exits(0);

    let mut other = Story::new("elsewhere", 50);
    other.name = "long".into();
    other.write(&sandbox);
    let findings = sandbox.json(&["snapshot"]).exits(0).of_type("finding");
    assert_eq!(findings[0]["code"], "chat-replaced");
}

#[derive(Clone, Debug)]
enum Step {
    Fork(usize, usize),
    Say(usize),
    Hide(usize),
    Rename(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<usize>(), any::<usize>()).prop_map(|(who, at)| Step::Fork(who, at)),
        4 => any::<usize>().prop_map(Step::Say),
        1 => any::<usize>().prop_map(Step::Hide),
        1 => any::<usize>().prop_map(Step::Rename),
    ]
}

/// Applies the steps. Returns the chats and each one's true parent.
fn live(
    steps: &[Step],
    mut each: impl FnMut(&[Story], Option<(&str, &str)>),
) -> (Vec<Story>, Vec<Option<usize>>) {
    let mut stories = vec![Story::new("c0", 4)];
    let mut parents = vec![None];
    for (time, step) in steps.iter().enumerate() {
        let time = 1000 + time as i64;
        let mut renamed = None;
        match *step {
            Step::Fork(who, at) => {
                let who = who % stories.len();
                let at = at % stories[who].messages.len();
                let mut fork = stories[who].fork(&format!("c{}", stories.len()), at);
                // SillyTavern opens a fork at once, and the user writes in it.
                fork.say(&format!("fork at {time}"), time);
                stories.push(fork);
                parents.push(Some(who));
            }
            Step::Say(who) => {
                let who = who % stories.len();
                stories[who].say(&format!("said at {time}"), time);
            }
            Step::Hide(who) => {
                let who = who % stories.len();
                stories[who]
                    .messages
                    .iter_mut()
                    .for_each(|message| message["is_system"] = json!(true));
            }
            Step::Rename(who) => {
                let who = who % stories.len();
                let old = stories[who].name.clone();
                stories[who].name = format!("r{time} {old}");
                renamed = Some((old, stories[who].name.clone()));
            }
        }
        each(&stories, renamed.as_ref().map(|(old, new)| (old.as_str(), new.as_str())));
    }
    (stories, parents)
}

fn shared(a: &Story, b: &Story) -> u64 {
    let text = |message: &Value| message["mes"].clone();
    a.messages.iter().zip(&b.messages).take_while(|(a, b)| text(a) == text(b)).count() as u64
}

/// Asserts that the recovered parent is the true one where its name exists, and otherwise one of
/// the same family.
fn assert_recovered(
    found: &BTreeMap<String, (Option<String>, Option<u64>)>,
    stories: &[Story],
    parents: &[Option<usize>],
) {
    for (story, parent) in stories.iter().zip(parents) {
        let (found_parent, fork_at) = &found[&story.name];
        let Some(parent) = parent else {
            assert_eq!(*found_parent, None, "{} is a root", story.name);
            continue;
        };
        let truth = &stories[*parent];
        assert!(found_parent.is_some(), "{} is a fork of {}", story.name, truth.name);
        let shared = Some(shared(story, truth));
        if story.main_chat.as_ref() == Some(&truth.name) {
            assert_eq!(found_parent.as_ref(), Some(&truth.name), "{}", story.name);
            assert_eq!(*fork_at, shared, "{} of {}", story.name, truth.name);
        } else {
            // With outdated names the older of two chats is not always known, but their relation
            // is.
            assert!(*fork_at >= Some(1), "{} of {}", story.name, truth.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn lineage_is_recovered_from_one_snapshot_of_all_chats(steps in prop::collection::vec(step(), 0..24)) {
        let sandbox = Sandbox::empty();
        let (stories, parents) = live(&steps, |_, _| {});
        stories.iter().for_each(|story| story.write(&sandbox));
        snapshot(&sandbox);
        assert_recovered(&tree(&sandbox), &stories, &parents);
    }

    #[test]
    fn lineage_is_recovered_from_snapshots_of_growing_chats(steps in prop::collection::vec(step(), 0..12)) {
        let sandbox = Sandbox::empty();
        Story::new("c0", 4).write(&sandbox);
        snapshot(&sandbox);
        let (stories, parents) = live(&steps, |stories, renamed| {
            if let Some((old, new)) = renamed {
                std::fs::rename(sandbox.path(&path(old)), sandbox.path(&path(new))).unwrap();
            } else {
                stories.iter().for_each(|story| story.write(&sandbox));
            }
            snapshot(&sandbox);
        });
        let found = tree(&sandbox);
        prop_assert_eq!(found.len(), stories.len(), "a rename makes no new timeline");
        for (story, parent) in stories.iter().zip(&parents) {
            prop_assert_eq!(found[&story.name].0.is_some(), parent.is_some());
        }
    }
}

#[test]
fn renamed_chat_is_found_by_both_names() {
    let mut sandbox = Sandbox::empty();
    Story::new("old name", 6).write(&sandbox);
    snapshot(&sandbox);
    std::fs::rename(sandbox.path(&path("old name")), sandbox.path(&path("new name"))).unwrap();
    sandbox.wait(60);
    let taken = sandbox.stvc(&["snapshot"]).exits(0).stdout;
    assert!(taken.contains("was called old name"), "{taken}");
    let newest = sandbox.snapshot_ids()[0].clone();
    for name in ["old name", "Mira/old name", "new name", "Mira / new name", "Mira / old name"] {
        let shown = sandbox.json(&["show", name]).exits(0).of_type("snapshot");
        assert_eq!(shown[0]["id"], newest.as_str(), "{name}");
        assert_eq!(sandbox.json(&["log", name]).exits(0).of_type("snapshot").len(), 2, "{name}");
        sandbox.stvc(&["search", "says", "--in", name]).exits(0);
    }
    std::fs::remove_file(sandbox.path(&path("new name"))).unwrap();
    let answer = sandbox.stvc(&["snapshot"]).exits(0).stdout;
    assert!(answer.contains("1 deleted"), "{answer}");
}

/// Creates two forks of a chat that cannot be stored at first: its queue is active, or it is
/// unreadable.
fn forks_come_first(sandbox: &mut Sandbox) -> (Story, Story) {
    let mut main = Story::new("main", 12);
    let mut first = main.fork("first", 8);
    first.say("in the first", 2000);
    let mut second = main.fork("second", 9);
    second.say("in the second", 2001);
    main.say("later in the main chat", 3000);
    for fork in [&first, &second] {
        fork.write(sandbox);
        snapshot(sandbox);
        sandbox.wait(60);
    }
    main.write(sandbox);
    (first, second)
}

#[test]
fn main_chat_stored_after_its_forks_becomes_their_parent() {
    let mut sandbox = Sandbox::empty();
    forks_come_first(&mut sandbox);
    snapshot(&sandbox);
    let found = tree(&sandbox);
    assert_eq!(found["main"], (None, None));
    assert_eq!(found["first"], (Some("main".into()), Some(9)));
    assert_eq!(found["second"], (Some("main".into()), Some(10)));
    // Former ids stay valid, and the tree stays the same.
    sandbox.wait(60);
    snapshot(&sandbox);
    assert_eq!(tree(&sandbox), found);
    sandbox.git(&["fsck", "--strict"]);
    sandbox.stvc(&["check"]).exits(0);
}

#[test]
fn chat_that_names_a_main_chat_is_a_fork_in_any_snapshot_order() {
    for late in
        [["main", "first", "second"], ["second", "main", "first"], ["first", "main", "second"]]
    {
        let mut sandbox = Sandbox::empty();
        forks_come_first(&mut sandbox);
        let all: std::collections::BTreeMap<_, _> =
            late.iter().map(|name| (*name, sandbox.read(&path(name)))).collect();
        std::fs::remove_dir_all(sandbox.store()).unwrap();
        late.iter().for_each(|name| std::fs::remove_file(sandbox.path(&path(name))).unwrap());
        for name in late {
            sandbox.write(&path(name), &all[name]);
            sandbox.wait(60);
            snapshot(&sandbox);
        }
        let found = tree(&sandbox);
        for fork in ["first", "second"] {
            assert_eq!(found[fork].0.as_deref(), Some("main"), "{late:?}: {found:?}");
        }
        assert_eq!(found["main"], (None, None), "{late:?}");
    }
}

#[test]
fn parent_can_be_set_by_the_user() {
    let mut sandbox = Sandbox::empty();
    // Without names, the first stored chat with the same beginning counts as the parent.
    let (mut first, _) = forks_come_first(&mut sandbox);
    std::fs::remove_dir_all(sandbox.store()).unwrap();
    std::fs::remove_file(sandbox.path(&path("second"))).unwrap();
    std::fs::remove_file(sandbox.path(&path("main"))).unwrap();
    first.main_chat = None;
    first.write(&sandbox);
    snapshot(&sandbox);
    sandbox.wait(60);
    Story::new("main", 12).write(&sandbox);
    snapshot(&sandbox);
    assert_eq!(tree(&sandbox)["main"].0.as_deref(), Some("first"), "as it came");

    let before = tree(&sandbox);
    let answer = sandbox.stvc(&["timelines", "first", "--parent", "main"]).exits(0);
    assert!(
        answer.stdout.contains("Mira / first is a fork of Mira / main (forked after #8)."),
        "{}",
        answer.stdout
    );
    let found = tree(&sandbox);
    assert_eq!(found["first"], (Some("main".into()), Some(9)));
    assert_eq!(found["main"], (None, None));
    sandbox.stvc(&["undo"]).exits(0);
    assert_eq!(tree(&sandbox), before);
    sandbox.stvc(&["timelines", "main", "--no-parent"]).exits(0);
    assert_eq!(tree(&sandbox)["main"], (None, None));
    Story { messages: Vec::new(), ..Story::new("other", 1) }.write(&sandbox);
    snapshot(&sandbox);
    sandbox.stvc(&["timelines", "other", "--parent", "main"]).exits(4);
    sandbox.stvc(&["timelines", "main", "--parent", "main"]).exits(4);
    sandbox.stvc(&["timelines", "--parent", "main"]).exits(2);
    sandbox.git(&["fsck", "--strict"]);
    sandbox.stvc(&["check"]).exits(0);
}
