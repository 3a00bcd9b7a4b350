//! Fuzz targets. Each target accepts any bytes and panics if an invariant does not hold. `fuzz/`
//! runs the targets, and a test runs each of them for a short time.
//!
//! The functions are in the modules whose private items they use. Each target has a file in
//! `fuzz/fuzz_targets`, a folder in `fuzz/corpus`, and a row in this file.

#[cfg(test)]
mod corpora;
#[cfg(test)]
mod seeds;

macro_rules! targets {
    ($($name:ident $place:path),* $(,)?) => {
        $(
            /// Runs the fuzz target of this name.
            pub fn $name(data: &[u8]) {
                $place(data);
            }
        )*

        /// All targets with their names.
        pub const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name)),*];
    };
}

targets! {
    announcement crate::engine::remotes::fuzzing::announcement,
    backup crate::archive::fuzzing::backup,
    card crate::st::fuzzing::card,
    chat crate::st::fuzzing::chat,
    config crate::engine::fuzzing::config,
    date crate::history::fuzzing::date,
    delta crate::store::fuzzing::delta,
    http crate::api::http::fuzzing::http,
    json crate::st::fuzzing::json,
    lorebook crate::st::fuzzing::lorebook,
    mailbox crate::api::mailbox::fuzzing::mailbox,
    manifest crate::archive::fuzzing::manifest,
    moment crate::history::fuzzing::moment,
    operation_log crate::engine::fuzzing::operation_log,
    pack crate::store::fuzzing::pack,
    pack_index crate::store::fuzzing::pack_index,
    remote_object crate::engine::remotes::fuzzing::remote_object,
    s3_list crate::storage::fuzzing::s3_list,
    snapshot crate::archive::fuzzing::snapshot,
    tree crate::store::fuzzing::tree,
    webdav_list crate::storage::fuzzing::webdav_list,
}
