//! The extension on a phone: small, and touched.

use serde_json::json;

use crate::stage::{Stage, again};

/// What can be touched and lies under the badge, in words.
const COVERED: &str = "(() => {
    const badge = document.getElementById('stvc_badge').getBoundingClientRect();
    // What the chat is scrolled over is not to be seen.
    const end = document.getElementById('chat').getBoundingClientRect().bottom;
    const bottom = (one) => one.closest('#chat') ? Math.min(end, one.getBoundingClientRect().bottom) : one.getBoundingClientRect().bottom;
    const meets = (one) => {
        const { left, right, top } = one.getBoundingClientRect();
        return left < badge.right && badge.left < right && top < badge.bottom && badge.top < bottom(one);
    };
    const touched = '.drawer-icon, .mes_button, .mes .swipe_right, .mes .swipe_left, .mes .mesAvatarWrapper, .mes .ch_name, #send_form > *, #form_sheld .interactable';
    return [...document.querySelectorAll(touched)]
        .filter((one) => one.id !== 'stvc_badge' && one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && meets(one))
        .map((one) => one.id || one.className);
})()";

/// What is to be seen where the badge is.
const ON_TOP: &str = "(() => {
    const badge = document.getElementById('stvc_badge').getBoundingClientRect();
    return document.elementFromPoint((badge.left + badge.right) / 2, (badge.top + badge.bottom) / 2)?.id;
})()";

/// The buttons of a message's menu that are not to be seen, SillyTavern's own among them.
const CUT_OFF: &str = "(() => {
    const menu = document.querySelector(\".mes[mesid='3'] .extraMesButtons\");
    const { left, right } = menu.getBoundingClientRect();
    const is_in = (one) => one.left >= Math.max(0, left) && one.right <= Math.min(innerWidth, right);
    return [...menu.children].filter((one) => one.checkVisibility() && !is_in(one.getBoundingClientRect())).map((one) => one.className);
})()";

/// Whether something is wholly on the screen.
fn is_on_screen(element: &str) -> String {
    format!(
        "(() => {{ const it = ({element})?.getBoundingClientRect(); return Boolean(it && it.width && it.left >= 0 && it.top >= 0 && it.right <= innerWidth && it.bottom <= innerHeight); }})()"
    )
}

#[test]
fn on_a_phone() {
    again(|| {
        let Some((mut stage, watching)) = Stage::inside("extension-phone", "1.19.0") else {
            return;
        };
        let main = stage.writer.character("Mira Voss", "The tide is low.");
        stage.connect();
        stage.bind_book("Tide Office");
        for text in ["I see a lantern.", "The ferry comes.", "Who rows?", "Good night."] {
            stage.writer.say(text);
        }
        stage.writer.pipe("/stvc-snapshot");
        stage.writer.leave();
        let before = stage.files();

        let mut phone = stage.another(&json!({
            "viewport": { "width": 360, "height": 740 },
            "isMobile": true,
            "hasTouch": true,
            "userAgent": "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36",
        }));
        phone.start(&stage.url());
        phone.evaluate("SillyTavern.getContext().selectCharacterById(SillyTavern.getContext().characters.findIndex((one) => one.name === 'Mira Voss'))");
        phone.until("SillyTavern.getContext().chat.length === 9");
        phone.settle();

        // How it stands is to be seen, and nothing lies under it, wherever the chat is scrolled to.
        let badge = "document.getElementById('stvc_badge')";
        phone.until(&format!("{badge}.textContent.startsWith('snapshot')"));
        for place in ["0", "150", "scrollHeight"] {
            phone.evaluate(&format!("(() => {{ const chat = document.getElementById('chat'); chat.scrollTop = {}; }})()", place.replace("scroll", "chat.scroll")));
            phone.picture(&format!("phone-chat-{place}"));
            assert_eq!(phone.evaluate(&is_on_screen(badge)), true);
            assert_eq!(phone.evaluate(ON_TOP), "stvc_badge");
            assert_eq!(phone.evaluate(COVERED), json!([]), "at {place}");
        }

        // Another ending, with a finger.
        phone.tap(".mes[mesid='3'] .extraMesButtonsHint");
        phone.until(&is_on_screen("document.querySelector(\".mes[mesid='3'] .stvc_mark\")"));
        phone.picture("phone-menu");
        assert_eq!(phone.evaluate(CUT_OFF), json!([]));
        phone.tap(".mes[mesid='3'] .stvc_fork");
        phone.until("document.querySelector('dialog.popup[open] .popup-input')");
        phone.evaluate("(() => { const field = document.querySelector('dialog.popup[open] .popup-input'); field.value = 'What if'; field.dispatchEvent(new Event('input')); })()");
        phone.picture("phone-name");
        phone.tap("dialog.popup[open] .popup-button-ok");
        phone.until("SillyTavern.getContext().getCurrentChatId() === 'What if' && SillyTavern.getContext().chat.length === 4");
        phone.settle();
        let chat = format!("chats/Mira Voss/{main}.jsonl");
        let after = stage.files();
        assert_eq!(after[&chat], before[&chat]);
        assert!(after.contains_key("chats/Mira Voss/What if.jsonl"));

        // The wand, and the map of the story.
        phone.tap("#extensionsMenuButton");
        for entry in 0..4 {
            phone.until(&is_on_screen(&format!(
                "document.querySelectorAll('#stvc_wand .stvc-entry')[{entry}]"
            )));
        }
        phone.picture("phone-wand");
        phone.tap("#stvc_wand .stvc-entry:nth-child(2)");
        phone.until(super::TREE);
        phone.picture("phone-viewer");
        // What this page did itself is no news to it.
        let told = phone.evaluate("document.querySelector('#toast-container')?.textContent ?? ''");
        assert!(!told.as_str().unwrap().contains("replaced elsewhere"), "{told}");
        for inside in ["document", "document.querySelector('iframe.stvc-viewer').contentDocument"] {
            let wide = format!(
                "(() => {{ const it = {inside}.documentElement; return it.scrollWidth - it.clientWidth; }})()"
            );
            assert_eq!(phone.evaluate(&wide), 0, "{inside}");
        }
        let wide = phone
            .evaluate("document.querySelector('iframe.stvc-viewer').getBoundingClientRect().width");
        assert!(wide.as_f64().unwrap() > 340.0, "{wide}");
        phone.until(&is_on_screen("document.querySelector('dialog.popup[open] .popup-button-ok')"));
        phone.tap("dialog.popup[open] .popup-button-ok");
        phone.until("!document.querySelector('iframe.stvc-viewer')");
        let said = phone.complaints();
        assert_eq!(said, Vec::<String>::new());
        watching.stop();
    });
}
