//! The viewer opens chats in SillyTavern, at the message that it shows.

use serde_json::json;

use crate::session::{Session, with_retries};

const FRAME: &str = "document.querySelector('iframe.stvc-viewer')?.contentDocument";

#[test]
fn viewer_opens_chats_and_forks_in_sillytavern_1_19() {
    with_retries(|| scenario("open-1.19", "1.19.0"));
}

#[test]
fn viewer_opens_chats_and_forks_in_sillytavern_1_12() {
    with_retries(|| scenario("open-1.12", "1.12.14"));
}

/// Shows a place of the viewer in its popup.
fn show(session: &mut Session, place: &str) {
    session.writer.click_menu_entry(2);
    session.writer.wait_until(&format!("{FRAME}?.querySelector('form[role=search]')"));
    session.writer.evaluate(&format!(
        "(document.querySelector('iframe.stvc-viewer').contentWindow.location.hash = {})",
        json!(place)
    ));
}

/// Clicks the first button that matches, in the viewer.
fn click(session: &mut Session, selector: &str) {
    session.writer.click_element(&format!("{FRAME}.querySelector({})", json!(selector)));
}

/// Waits until the viewer is closed and this chat is open.
fn wait_for_chat(session: &mut Session, chat: &str) {
    session.writer.wait_until(&format!(
        "!document.querySelector('dialog.popup[open]') && SillyTavern.getContext().getCurrentChatId() === {}",
        json!(chat)
    ));
}

fn scenario(name: &'static str, version: &str) {
    let Some((mut session, watching)) = Session::with_extension(name, version) else { return };
    let tide = session.writer.character("Mira Voss", "The tide is low.");
    session.writer.type_command("/send The owl waits.");
    let sent: Vec<_> = (2..150).map(|n| format!("/send message {n}")).collect();
    session.writer.type_command(&sent.join(" | "));
    session.writer.type_command("/send The lantern burns.");
    session.writer.run_command("/stvc-snapshot");
    let snow = session.writer.character("Wren", "It snows.");
    session.writer.run_command("/stvc-snapshot");

    // From the library.
    show(&mut session, "#/");
    click(&mut session, &format!("[data-key={}] .open", json!(format!("chats/Mira Voss/{tide}"))));
    wait_for_chat(&mut session, &tide);

    // From a search hit, of another character and of a message that is not shown yet.
    session.writer.select("Wren");
    assert_eq!(session.writer.state()["chat"], snow);
    show(&mut session, "#/search?q=owl");
    click(&mut session, ".matches .open");
    wait_for_chat(&mut session, &tide);
    session.writer.wait_until("document.querySelector('#chat .mes[mesid=\"1\"]')?.getBoundingClientRect().top > 0 && document.querySelector('#chat .mes[mesid=\"1\"]').getBoundingClientRect().bottom < innerHeight");

    // A fork that is made on the map is opened.
    let map = format!("#/tree/chats%2FMira%20Voss%2F{}", tide.replace(' ', "%20"));
    show(&mut session, &map);
    session.writer.click_element(&format!("[...{FRAME}.querySelectorAll('.selection button')].find((one) => one.textContent.startsWith('Fork'))"));
    session.writer.wait_until(&format!("{FRAME}.querySelector('dialog[open] form input')"));
    session.writer.evaluate(&format!(
        "void Object.assign({FRAME}.querySelector('dialog[open] form input'), {{ value: 'From the map' }})"
    ));
    click(&mut session, "dialog[open] form .primary");
    click(&mut session, "dialog[open]:has(li) .primary:not([disabled])");
    wait_for_chat(&mut session, "From the map");
    assert!(session.path("chats/Mira Voss/From the map.jsonl").exists());

    // A deleted chat is not opened, because SillyTavern would create an empty one.
    session.writer.open(&tide);
    session.writer.delete("From the map");
    session.writer.evaluate("void stvc.open('chats/Mira Voss/From the map')");
    session.writer.wait_until("document.querySelector('#toast-container')?.textContent.includes('does not list this chat')");
    assert!(!session.path("chats/Mira Voss/From the map.jsonl").exists());
    watching.stop();
}
