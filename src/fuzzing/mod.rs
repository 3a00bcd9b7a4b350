//! Fuzz targets. Each takes any bytes and panics where an invariant does not hold; `fuzz/` runs them, and so does a test, briefly.
//!
//! The functions are in the rooms whose private parts they use. A target has a file in `fuzz/fuzz_targets`, a folder in `fuzz/corpus` and a row here.

#[cfg(test)]
mod corpora;
#[cfg(test)]
mod seeds;

macro_rules! targets {
    ($($name:ident $place:path),* $(,)?) => {
        $(
            /// See the function that it calls.
            pub fn $name(data: &[u8]) {
                $place(data);
            }
        )*

        /// Every target by its name.
        pub const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name)),*];
    };
}

targets! {
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
    snapshot crate::archive::fuzzing::snapshot,
    tree crate::store::fuzzing::tree,
}
