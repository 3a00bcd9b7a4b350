//! The content security policies of all pages: a browser loads, sends and runs nothing else.

/// The viewer as it is served.
pub(super) const SERVED: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The viewer in one file, whose own script and style have this nonce.
pub(super) fn of_one_file(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}
