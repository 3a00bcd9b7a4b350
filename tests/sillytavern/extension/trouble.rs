//! What goes wrong: said in words, in the reader's language, with nothing lost and nothing half done.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::watching::signal;
use crate::stage::{Stage, again};
use crate::while_open::unmarked;
use crate::writer::Writer;

const DEEDS: &str = "import('/scripts/extensions/third-party/stvc/deeds.js')";

/// A command that is refused: it hands on nothing, and the page says this.
#[track_caller]
fn refused(writer: &mut Writer, command: &str, words: &str) {
    writer.complaints();
    assert_eq!(writer.pipe(command), "", "{command}");
    let said = writer.complaints();
    assert!(said.iter().any(|line| line.contains(words)), "{command}: {said:?}");
}

#[track_caller]
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The requests that lie in the mailbox.
fn requests(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.path("user/files")).into_iter().flatten().flatten();
    let is_request = |path: &PathBuf| {
        path.file_name().unwrap().to_str().is_some_and(|name| name.starts_with("stvc-req-"))
    };
    entries.map(|entry| entry.path()).filter(is_request).collect()
}

#[test]
fn trouble_in_1_19() {
    again(|| {
        let Some((mut stage, mut watching)) = Stage::inside("extension-trouble", "1.19.0") else {
            return;
        };
        let main = stage.writer.character("Mira Voss", "The tide is low.");
        let chat = format!("chats/Mira Voss/{main}.jsonl");
        stage.connect();
        stage.bind_book("Tide Office");
        stage.writer.say("I see a lantern.");
        let first = stage.writer.pipe("/stvc-snapshot");
        assert_eq!(first.len(), 40, "{first}");
        let then = stage.stories();
        stage.writer.say("It goes out.");
        let restore = format!("/stvc-restore {first}");

        only_looking(&mut stage, &restore);
        while_a_reply_comes(&mut stage, &restore);
        while_a_message_is_edited(&mut stage, &restore);

        // The chat goes between the plan and the deed: what the snapshot has is there again, and open.
        stage.writer.evaluate(&format!("{DEEDS}.then(async (deeds) => {{ window.deeds = deeds; window.plan = await deeds.planned('{first}'); }})"));
        fs::remove_file(stage.path(&chat)).unwrap();
        stage.writer.evaluate("deeds.restore(plan)");
        assert_eq!(fs::read(stage.path(&chat)).unwrap(), then[&chat]);
        assert_eq!(stage.writer.sees()["messages"].as_array().unwrap().len(), 3);
        stage.writer.say("It burns again.");
        stage.writer.settle();

        // The page is closed in the middle of a restore: it is done as a whole, and the next page opens that.
        stage.writer.evaluate(&format!(
            "(async () => {{ window.plan = await deeds.planned('{first}'); }})()"
        ));
        signal(&watching.child, "STOP");
        stage.writer.evaluate("void deeds.restore(plan)");
        wait_for("no request came", || !requests(&stage).is_empty());
        // From here on in the reader's own language.
        stage.writer.evaluate("localStorage.setItem('language', 'zh-cn')");
        stage.writer.vanish();
        signal(&watching.child, "CONT");
        let is_as_then = |bytes: &[u8]| unmarked(bytes) == unmarked(&then[&chat]);
        wait_for("it was not restored", || is_as_then(&fs::read(stage.path(&chat)).unwrap()));
        stage.come_in();
        stage.writer.go("Mira Voss");
        assert_eq!(stage.writer.sees()["messages"].as_array().unwrap().len(), 3);
        // Every byte but the mark, by which a page that is still as before would be found out.
        let mut here = stage.stories();
        assert!(here.insert(chat.clone(), then[&chat].clone()).is_some_and(|it| is_as_then(&it)));
        assert_eq!(here, then);
        stage.connect();

        in_chinese(&mut stage, &restore);

        // The watch is killed in the middle of a request: the page says that nobody answers, and goes on when somebody does.
        let before = stage.stories();
        signal(&watching.child, "STOP");
        stage.writer.complaints();
        stage.writer.evaluate("void SillyTavern.getContext().executeSlashCommandsWithOptions('/stvc-snapshot').then((done) => { window.handedOn = done.pipe; })");
        wait_for("no request came", || !requests(&stage).is_empty());
        watching.kill();
        stage.writer.until("window.handedOn === ''");
        let said = stage.writer.complaints();
        assert!(said.iter().any(|line| line.contains("stvc watch 没有在运行")), "{said:?}");
        wait_for("the request is still there", || requests(&stage).is_empty());
        assert_eq!(stage.stories(), before);
        watching = stage.watch();
        assert_eq!(stage.writer.pipe("/stvc-snapshot").len(), 40);

        // The program is of another version than the page.
        let script = stage.path("extensions/stvc/mailbox.js");
        let text = fs::read_to_string(&script).unwrap();
        fs::write(&script, text.replace("const PROTOCOL = 1;", "const PROTOCOL = 99;")).unwrap();
        stage.writer.reload();
        stage
            .writer
            .until("document.getElementById('stvc_badge').textContent === 'stvc 版本不一致'");
        refused(
            &mut stage.writer,
            "/stvc-search lantern",
            "speaks protocol 99, and this program 1",
        );
        watching.stop();
        stage.store_holds_what_is_there();
    });
}

/// `stvc config extension.write false`: the page may look, and change nothing.
fn only_looking(stage: &mut Stage, restore: &str) {
    stage.stvc(&["config", "extension.write", "false"]).exits(0);
    let (before, known) = (stage.stories(), stage.json(&["log"]).exits(0).lines());
    for command in
        ["/stvc-snapshot", "/stvc-tag here", "/stvc-fork at=1 Elsewhere", restore, "/stvc-undo"]
    {
        refused(&mut stage.writer, command, "not allowed here");
    }
    let found = stage.writer.pipe("/stvc-search lantern");
    assert!(found.contains("I see a lantern."), "{found}");
    assert_eq!(stage.stories(), before);
    assert_eq!(stage.json(&["log"]).exits(0).lines(), known);
    stage.stvc(&["config", "extension.write", "true"]).exits(0);
}

fn while_a_reply_comes(stage: &mut Stage, restore: &str) {
    let before = stage.stories();
    let model = stage.model.clone();
    let thinking = model.thinks();
    stage.writer.evaluate("(() => { document.querySelector('#send_textarea').value = 'Who is there?'; document.querySelector('#send_but').click(); })()");
    stage
        .writer
        .until("document.body.dataset.generating && SillyTavern.getContext().chat.length === 6");
    for command in [restore, "/stvc-fork at=1 Elsewhere", "/stvc-undo"] {
        refused(&mut stage.writer, command, "A reply is being generated");
    }
    drop(thinking);
    stage
        .writer
        .until("!document.body.dataset.generating && SillyTavern.getContext().chat.length === 7");
    let after = stage.stories();
    assert!(after.keys().eq(before.keys()), "{:?}", after.keys());
    let seen = stage.writer.sees();
    assert_eq!(seen["messages"][5], "Who is there?", "{seen}");
}

/// What is typed there is nowhere else.
fn while_a_message_is_edited(stage: &mut Stage, restore: &str) {
    let before = stage.stories();
    stage.writer.click(".mes[mesid='3'] .mes_edit");
    stage.writer.until("document.querySelector('#curEditTextarea')");
    stage.writer.evaluate(
        "(() => { document.querySelector('#curEditTextarea').value = 'It flickers.'; })()",
    );
    for command in [restore, "/stvc-fork at=1 Elsewhere", "/stvc-undo"] {
        refused(&mut stage.writer, command, "A message is being edited");
    }
    // A snapshot leaves the page as it is.
    assert_eq!(stage.writer.pipe("/stvc-snapshot").len(), 40);
    assert_eq!(
        stage.writer.evaluate("document.querySelector('#curEditTextarea')?.value"),
        "It flickers."
    );
    assert_eq!(stage.stories(), before);
    stage.writer.click(".mes[mesid='3'] .mes_edit_done");
    stage.writer.until("SillyTavern.getContext().chat[3].mes === 'It flickers.'");
    stage.writer.settle();
}

fn in_chinese(stage: &mut Stage, restore: &str) {
    stage.writer.until("document.getElementById('stvc_badge').textContent.startsWith('快照：')");
    let shown = stage.writer.evaluate("[...document.querySelectorAll('#stvc_wand .stvc-entry')].map((entry) => entry.textContent)");
    assert_eq!(shown, json!(["立即存快照", "时间线", "搜索全部历史", "撤销上一次改动"]));
    let title = "document.querySelector(\".mes[mesid='1'] .stvc_fork\").title";
    assert_eq!(stage.writer.evaluate(title), "从这里分叉，带独立的世界书");
    stage.writer.click(".mes[mesid='1'] .mes_edit");
    stage.writer.until("document.querySelector('#curEditTextarea')");
    refused(&mut stage.writer, restore, "有一条消息正在编辑");
    stage.writer.click(".mes[mesid='1'] .mes_edit_cancel");
}
