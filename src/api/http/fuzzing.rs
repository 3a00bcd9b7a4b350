//! The fuzz target of the HTTP server. `src/fuzzing` lists all targets.

#![allow(clippy::expect_used, reason = "a fuzz target fails loudly")]

use std::cell::OnceCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use memchr::memmem;

use super::gate::Gate;
use super::server::{ServerState, visit};
use crate::api::Rights;
use crate::engine::fuzzing::Scene;

const PORT: u16 = 4711;

thread_local! {
    static SCENE: OnceCell<Scene> = const { OnceCell::new() };
}

/// Panics if one of these invariants does not hold: Without the secret, a client receives only the
/// viewer's files. A code is exchanged for the secret only once. With the secret, no request makes
/// the server fail, and a read-only server changes no files.
///
/// The input contains all bytes that a client sends. It is sent twice: unchanged, and with
/// `{SECRET}` and `{CODE}` replaced by the server's secret and a valid code.
pub(crate) fn http(data: &[u8]) {
    SCENE.with(|scene| {
        let scene = scene.get_or_init(Scene::new);
        let gate = Gate::new(PORT).expect("random numbers");
        let secret = gate.secret().to_owned();
        let address = gate.new_address().expect("random numbers");
        let code = address.rsplit('=').next().unwrap_or_default().to_owned();
        let shared = Arc::new(ServerState::new(gate, scene.workspace(), Rights::Read));

        let said = answers(&shared, data.to_vec());
        assert!(memmem::find(&said, secret.as_bytes()).is_none(), "the secret was given away");
        assert!(
            memmem::find(&said, b"content-type: application/json").is_none(),
            "data without the secret"
        );

        let known = replaced(data, b"{SECRET}", secret.as_bytes());
        let known = replaced(&known, b"{CODE}", code.as_bytes());
        if known == data {
            return;
        }
        let said = answers(&shared, known);
        assert!(memmem::find_iter(&said, secret.as_bytes()).count() <= 1, "a code was used twice");
        assert!(memmem::find(&said, b"HTTP/1.1 500").is_none(), "the server broke down");
        let mut changed = scene.changed();
        changed.retain(|path| !Scene::is_cache(path));
        assert!(changed.is_empty(), "a request that may only read changed {changed:?}");
    });
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut copied = 0;
    for at in memmem::find_iter(text, from) {
        out.extend_from_slice(&text[copied..at]);
        out.extend_from_slice(to);
        copied = at + from.len();
    }
    out.extend_from_slice(&text[copied..]);
    out
}

/// Returns all bytes that the server answers to a client that sends `sent`.
fn answers(shared: &Arc<ServerState>, sent: Vec<u8>) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let mut said = Vec::new();
    runtime.block_on(visit(Arc::clone(shared), 1, Visitor { sent, read: 0, said: &mut said }));
    // Every answer begins with a status line.
    assert!(said.is_empty() || said.starts_with(b"HTTP/1."));
    said
}

/// A connection in memory.
struct Visitor<'v> {
    sent: Vec<u8>,
    read: usize,
    said: &'v mut Vec<u8>,
}

impl Read for Visitor<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let end = self.sent.len().min(self.read + buffer.remaining());
        buffer.put_slice(&self.sent[self.read..end]);
        self.read = end;
        Poll::Ready(Ok(()))
    }
}

impl Write for Visitor<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.said.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
