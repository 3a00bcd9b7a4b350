//! The extension on a phone: a small screen and touch.

use serde_json::json;

use crate::session::{Session, with_retries};

/// Lists the touchable elements that the badge covers.
const COVERED: &str = "(() => {
    const badge = document.getElementById('stvc_badge').getBoundingClientRect();
    // The chat clips its messages.
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

/// Returns the id of the topmost element at the centre of the badge.
const ON_TOP: &str = "(() => {
    const badge = document.getElementById('stvc_badge').getBoundingClientRect();
    return document.elementFromPoint((badge.left + badge.right) / 2, (badge.top + badge.bottom) / 2)?.id;
})()";

/// Lists the clipped buttons of a message's menu, SillyTavern's own included.
const CUT_OFF: &str = "(() => {
    const menu = document.querySelector(\".mes[mesid='3'] .extraMesButtons\");
    const { left, right } = menu.getBoundingClientRect();
    const is_in = (one) => one.left >= Math.max(0, left) && one.right <= Math.min(innerWidth, right);
    return [...menu.children].filter((one) => one.checkVisibility() && !is_in(one.getBoundingClientRect())).map((one) => one.className);
})()";

/// Returns a script that tells whether an element is entirely on the screen.
fn is_on_screen(element: &str) -> String {
    format!(
        "(() => {{ const it = ({element})?.getBoundingClientRect(); return Boolean(it && it.width && it.left >= 0 && it.top >= 0 && it.right <= innerWidth && it.bottom <= innerHeight); }})()"
    )
}

#[test]
fn badge_menus_and_viewer_fit_a_phone() {
    with_retries(|| {
        let Some((mut session, watching)) = Session::with_extension("extension-phone", "1.19.0")
        else {
            return;
        };
        let main = session.writer.character("Mira Voss", "The tide is low.");
        session.connect_model();
        session.add_chat_lorebook("Tide Office");
        for text in ["I see a lantern.", "The ferry comes.", "Who rows?", "Good night."] {
            session.writer.say(text);
        }
        session.writer.run_command("/stvc-snapshot");
        session.writer.close_page();
        let before = session.files();

        let mut phone = session.new_browser(&json!({
            "viewport": { "width": 360, "height": 740 },
            "isMobile": true,
            "hasTouch": true,
            "userAgent": "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36",
        }));
        phone.start(&session.url());
        phone.evaluate("SillyTavern.getContext().selectCharacterById(SillyTavern.getContext().characters.findIndex((one) => one.name === 'Mira Voss'))");
        phone.wait_until("SillyTavern.getContext().chat.length === 9");
        phone.settle();

        // The badge is visible and covers nothing, at any scroll position.
        let badge = "document.getElementById('stvc_badge')";
        phone.wait_until(&format!("{badge}.textContent.startsWith('snapshot')"));
        for place in ["0", "150", "scrollHeight"] {
            phone.evaluate(&format!("(() => {{ const chat = document.getElementById('chat'); chat.scrollTop = {}; }})()", place.replace("scroll", "chat.scroll")));
            phone.screenshot(&format!("phone-chat-{place}"));
            assert_eq!(phone.evaluate(&is_on_screen(badge)), true);
            assert_eq!(phone.evaluate(ON_TOP), "stvc_badge");
            assert_eq!(phone.evaluate(COVERED), json!([]), "at {place}");
        }

        // Fork by touch.
        phone.tap(".mes[mesid='3'] .extraMesButtonsHint");
        phone.wait_until(&is_on_screen("document.querySelector(\".mes[mesid='3'] .stvc_tag\")"));
        phone.screenshot("phone-menu");
        assert_eq!(phone.evaluate(CUT_OFF), json!([]));
        phone.tap(".mes[mesid='3'] .stvc_fork");
        phone.fill_popup("What if");
        phone.screenshot("phone-name");
        phone.tap("dialog.popup[open] .popup-button-ok");
        phone.wait_until("SillyTavern.getContext().getCurrentChatId() === 'What if' && SillyTavern.getContext().chat.length === 4");
        phone.settle();
        let chat = format!("chats/Mira Voss/{main}.jsonl");
        let after = session.files();
        assert_eq!(after[&chat], before[&chat]);
        assert!(after.contains_key("chats/Mira Voss/What if.jsonl"));

        // The wand menu and the map.
        phone.tap("#extensionsMenuButton");
        for entry in 0..4 {
            phone.wait_until(&is_on_screen(&format!(
                "document.querySelectorAll('#stvc_wand .stvc-menu-item')[{entry}]"
            )));
        }
        phone.screenshot("phone-wand");
        phone.tap("#stvc_wand .stvc-menu-item:nth-child(2)");
        phone.wait_until(super::MAP_IS_DRAWN);
        phone.screenshot("phone-viewer");
        // The page does not report its own changes.
        let toasts =
            phone.evaluate("document.querySelector('#toast-container')?.textContent ?? ''");
        assert!(!toasts.as_str().unwrap().contains("replaced elsewhere"), "{toasts}");
        for inside in ["document", "document.querySelector('iframe.stvc-viewer').contentDocument"] {
            let wide = format!(
                "(() => {{ const it = {inside}.documentElement; return it.scrollWidth - it.clientWidth; }})()"
            );
            assert_eq!(phone.evaluate(&wide), 0, "{inside}");
        }
        let wide = phone
            .evaluate("document.querySelector('iframe.stvc-viewer').getBoundingClientRect().width");
        assert!(wide.as_f64().unwrap() > 340.0, "{wide}");
        phone.wait_until(&is_on_screen(
            "document.querySelector('dialog.popup[open] .popup-button-ok')",
        ));
        phone.tap("dialog.popup[open] .popup-button-ok");
        phone.wait_until("!document.querySelector('iframe.stvc-viewer')");
        assert_eq!(phone.take_warnings(), Vec::<String>::new());
        watching.stop();
    });
}
