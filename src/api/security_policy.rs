//! The content security policies of the viewer. They forbid everything that the viewer does not
//! need.

/// The policy of the viewer that the server sends.
pub(super) const SERVED: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the policy of the viewer in one file. The script and the style of that file have this
/// nonce.
pub(super) fn of_one_file(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}
