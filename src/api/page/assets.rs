//! The files of the page, which are a part of the program: nothing of it is fetched from elsewhere.

/// A file of the page.
pub struct Asset {
    pub path: &'static str,
    pub kind: &'static str,
    pub text: &'static str,
}

macro_rules! assets {
    ($($kind:ident $file:literal),* $(,)?) => {
        /// Every file of the page, by its path. Its modules are told as one script.
        pub const ASSETS: &[Asset] = &[
            $(Asset {
                path: concat!("/", $file),
                kind: $kind,
                text: include_str!(concat!("../../page/", $file)),
            }),*
        ];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SVG: &str = "image/svg+xml";
const CSS: &str = "text/css; charset=utf-8";
pub const JS: &str = "text/javascript; charset=utf-8";

assets! {
    HTML "index.html",
    SVG "icon.svg",
    CSS "style.css",
    JS "main.js",
    JS "ask.js",
    JS "changes.js",
    JS "words.js",
    JS "nodes.js",
    JS "file.js",
    JS "rows.js",
    JS "chat.js",
    JS "axis.js",
    JS "text.js",
    JS "library.js",
    JS "tree.js",
    JS "reader.js",
    JS "compare.js",
    JS "search.js",
    JS "operations.js",
}
