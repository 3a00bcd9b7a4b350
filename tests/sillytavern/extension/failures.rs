//! Failures of requests: the page explains them in the user's language, and nothing is lost.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::watching::signal;
use crate::restore_while_open::without_integrity;
use crate::session::{Session, with_retries};
use crate::writer::Writer;

const ACTIONS: &str = "import('/scripts/extensions/third-party/stvc/actions.js')";

/// Runs a command that is refused: it returns nothing, and the page shows `words`.
#[track_caller]
fn assert_refused(writer: &mut Writer, command: &str, words: &str) {
    writer.take_warnings();
    assert_eq!(writer.run_command(command), "", "{command}");
    let warnings = writer.take_warnings();
    assert!(warnings.iter().any(|line| line.contains(words)), "{command}: {warnings:?}");
}

#[track_caller]
fn wait_for(event: &str, happened: impl Fn() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no {event} within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Lists the request files in the mailbox.
fn requests(session: &Session) -> Vec<PathBuf> {
    let entries = fs::read_dir(session.path("user/files")).into_iter().flatten().flatten();
    let is_request = |path: &PathBuf| {
        path.file_name().unwrap().to_str().is_some_and(|name| name.starts_with("stvc-req-"))
    };
    entries.map(|entry| entry.path()).filter(is_request).collect()
}

#[test]
fn failed_requests_are_explained_and_lose_nothing() {
    with_retries(|| {
        let Some((mut session, mut watching)) =
            Session::with_extension("extension-failures", "1.19.0")
        else {
            return;
        };
        let main = session.writer.character("Mira Voss", "The tide is low.");
        let chat = format!("chats/Mira Voss/{main}.jsonl");
        session.connect_model();
        session.add_chat_lorebook("Tide Office");
        session.writer.say("I see a lantern.");
        let first = session.writer.run_command("/stvc-snapshot");
        assert_eq!(first.len(), 40, "{first}");
        let at_snapshot = session.chats_and_lorebooks();
        session.writer.say("It goes out.");
        let restore = format!("/stvc-restore {first}");

        without_write_permission(&mut session, &restore);
        while_a_reply_is_generated(&mut session, &restore);
        while_a_message_is_edited(&mut session, &restore);

        // The chat file is deleted between plan and restore: the restore writes it again.
        session.writer.evaluate(&format!("{ACTIONS}.then(async (actions) => {{ window.actions = actions; window.plan = await actions.planRestore('{first}'); }})"));
        fs::remove_file(session.path(&chat)).unwrap();
        session.writer.evaluate("actions.restore(plan)");
        assert_eq!(fs::read(session.path(&chat)).unwrap(), at_snapshot[&chat]);
        assert_eq!(session.writer.state()["messages"].as_array().unwrap().len(), 3);
        session.writer.say("It burns again.");
        session.writer.settle();

        // The page is closed during a restore, which is completed; the next page shows it.
        session.writer.evaluate(&format!(
            "(async () => {{ window.plan = await actions.planRestore('{first}'); }})()"
        ));
        signal(&watching.child, "STOP");
        session.writer.evaluate("void actions.restore(plan)");
        wait_for("a request", || !requests(&session).is_empty());
        // From here on, the page is in Chinese.
        session.writer.evaluate("localStorage.setItem('language', 'zh-cn')");
        session.writer.abandon_page();
        signal(&watching.child, "CONT");
        let is_restored =
            |bytes: &[u8]| without_integrity(bytes) == without_integrity(&at_snapshot[&chat]);
        wait_for("the restore", || is_restored(&fs::read(session.path(&chat)).unwrap()));
        session.open_page();
        session.writer.select("Mira Voss");
        assert_eq!(session.writer.state()["messages"].as_array().unwrap().len(), 3);
        // Only the integrity value differs.
        let mut current = session.chats_and_lorebooks();
        assert!(
            current
                .insert(chat.clone(), at_snapshot[&chat].clone())
                .is_some_and(|it| is_restored(&it))
        );
        assert_eq!(current, at_snapshot);
        session.connect_model();

        in_chinese(&mut session, &restore);

        // The watch is killed during a request: the page says that it is not running, and works
        // again with the next watch.
        let before = session.chats_and_lorebooks();
        signal(&watching.child, "STOP");
        session.writer.take_warnings();
        session.writer.evaluate("void SillyTavern.getContext().executeSlashCommandsWithOptions('/stvc-snapshot').then((done) => { window.handedOn = done.pipe; })");
        wait_for("a request", || !requests(&session).is_empty());
        watching.kill();
        session.writer.wait_until("window.handedOn === ''");
        let warnings = session.writer.take_warnings();
        assert!(warnings.iter().any(|line| line.contains("stvc watch 没有在运行")), "{warnings:?}");
        wait_for("the removal of the request", || requests(&session).is_empty());
        assert_eq!(session.chats_and_lorebooks(), before);
        watching = session.watch();
        assert_eq!(session.writer.run_command("/stvc-snapshot").len(), 40);

        // The extension is of another version than the program.
        let script = session.path("extensions/stvc/mailbox.js");
        let text = fs::read_to_string(&script).unwrap();
        fs::write(&script, text.replace("const PROTOCOL = 1;", "const PROTOCOL = 99;")).unwrap();
        session.writer.reload();
        session
            .writer
            .wait_until("document.getElementById('stvc_badge').textContent === 'stvc 版本不一致'");
        assert_refused(&mut session.writer, "/stvc-search lantern", "页面和程序的版本不同");
        watching.stop();
        session.assert_store_matches_library();
    });
}

/// With `stvc config extension.write false`, the page can read but not change anything.
fn without_write_permission(session: &mut Session, restore: &str) {
    session.stvc(&["config", "extension.write", "false"]).exits(0);
    let (before, known) = (session.chats_and_lorebooks(), session.json(&["log"]).exits(0).lines());
    for command in
        ["/stvc-snapshot", "/stvc-tag here", "/stvc-fork at=1 Elsewhere", restore, "/stvc-undo"]
    {
        assert_refused(&mut session.writer, command, "not allowed here");
    }
    let found = session.writer.run_command("/stvc-search lantern");
    assert!(found.contains("I see a lantern."), "{found}");
    assert_eq!(session.chats_and_lorebooks(), before);
    assert_eq!(session.json(&["log"]).exits(0).lines(), known);
    session.stvc(&["config", "extension.write", "true"]).exits(0);
}

fn while_a_reply_is_generated(session: &mut Session, restore: &str) {
    let before = session.chats_and_lorebooks();
    let model = session.model.clone();
    let held = model.hold_answers();
    session.writer.evaluate("(() => { document.querySelector('#send_textarea').value = 'Who is there?'; document.querySelector('#send_but').click(); })()");
    session.writer.wait_until(
        "document.body.dataset.generating && SillyTavern.getContext().chat.length === 6",
    );
    for command in [restore, "/stvc-fork at=1 Elsewhere", "/stvc-undo"] {
        assert_refused(&mut session.writer, command, "A reply is being generated");
    }
    drop(held);
    session.writer.wait_until(
        "!document.body.dataset.generating && SillyTavern.getContext().chat.length === 7",
    );
    let after = session.chats_and_lorebooks();
    assert!(after.keys().eq(before.keys()), "{:?}", after.keys());
    let state = session.writer.state();
    assert_eq!(state["messages"][5], "Who is there?", "{state}");
}

/// An unfinished edit exists only in the page.
fn while_a_message_is_edited(session: &mut Session, restore: &str) {
    let before = session.chats_and_lorebooks();
    session.writer.click(".mes[mesid='3'] .mes_edit");
    session.writer.wait_until("document.querySelector('#curEditTextarea')");
    session.writer.evaluate(
        "(() => { document.querySelector('#curEditTextarea').value = 'It flickers.'; })()",
    );
    for command in [restore, "/stvc-fork at=1 Elsewhere", "/stvc-undo"] {
        assert_refused(&mut session.writer, command, "A message is being edited");
    }
    // A snapshot does not disturb the edit.
    assert_eq!(session.writer.run_command("/stvc-snapshot").len(), 40);
    assert_eq!(
        session.writer.evaluate("document.querySelector('#curEditTextarea')?.value"),
        "It flickers."
    );
    assert_eq!(session.chats_and_lorebooks(), before);
    session.writer.click(".mes[mesid='3'] .mes_edit_done");
    session.writer.wait_until("SillyTavern.getContext().chat[3].mes === 'It flickers.'");
    session.writer.settle();
}

fn in_chinese(session: &mut Session, restore: &str) {
    session
        .writer
        .wait_until("document.getElementById('stvc_badge').textContent.startsWith('快照：')");
    let shown = session.writer.evaluate("[...document.querySelectorAll('#stvc_wand .stvc-menu-item')].map((entry) => entry.textContent)");
    assert_eq!(shown, json!(["立即存快照", "时间线", "搜索全部历史", "撤销上一次改动"]));
    let title = "document.querySelector(\".mes[mesid='1'] .stvc_fork\").title";
    assert_eq!(session.writer.evaluate(title), "从这里分叉，带独立的世界书");
    session.writer.click(".mes[mesid='1'] .mes_edit");
    session.writer.wait_until("document.querySelector('#curEditTextarea')");
    assert_refused(&mut session.writer, restore, "有一条消息正在编辑");
    session.writer.click(".mes[mesid='1'] .mes_edit_cancel");
}
