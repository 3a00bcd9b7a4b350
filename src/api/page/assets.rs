//! The viewer's files. They are part of the program, and the viewer loads nothing else.

/// A file of the viewer.
pub struct Asset {
    /// Path in the address, beginning with `/`.
    pub path: &'static str,
    /// Content type for the HTTP header.
    pub kind: &'static str,
    /// Content of the file.
    pub text: &'static str,
}

macro_rules! assets {
    ($($kind:ident $file:literal),* $(,)?) => {
        /// All files of the viewer. The JavaScript modules are served as one script, `/page.js`.
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
    JS "api.js",
    JS "dialogs.js",
    JS "words.js",
    JS "texts.js",
    JS "codes.js",
    JS "dom.js",
    JS "standalone.js",
    JS "virtual_list.js",
    JS "messages.js",
    JS "notice.js",
    JS "open_button.js",
    JS "avatar.js",
    JS "pictures.js",
    JS "preview.js",
    JS "axis.js",
    JS "map_columns.js",
    JS "map_lanes.js",
    JS "map_scale.js",
    JS "map_labels.js",
    JS "map_drawing.js",
    JS "map_gestures.js",
    JS "map_details.js",
    JS "map_stories.js",
    JS "map_margins.js",
    JS "map_preview.js",
    JS "minimap.js",
    JS "text.js",
    JS "inline.js",
    JS "markdown.js",
    JS "rich_text.js",
    JS "diff_text.js",
    JS "library.js",
    JS "map.js",
    JS "reader.js",
    JS "compare.js",
    JS "search_marks.js",
    JS "search_filters.js",
    JS "search_results.js",
    JS "change_rows.js",
    JS "unchanged_messages.js",
    JS "search.js",
    JS "operations.js",
}
