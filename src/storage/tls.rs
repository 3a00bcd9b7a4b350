//! Which certificates of servers are trusted: those of the system, and those that the user named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;

use super::{Error, Result};
use crate::regular;

/// Trusts the exact certificates that the user named, and every certificate that the system or a
/// named authority vouches for. The certificates that many NAS sign themselves are not valid as
/// those of an authority, so they are compared as a whole.
#[derive(Debug)]
struct NamedOrSystem {
    named: Vec<CertificateDer<'static>>,
    system: Verifier,
}

impl ServerCertVerifier for NamedOrSystem {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        if self.named.iter().any(|named| named == certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        self.system.verify_server_cert(certificate, intermediates, server, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.system.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.system.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.system.supported_verify_schemes()
    }
}

/// Returns the configuration for connections to one server.
pub fn configure(host: &str, named: Option<&Path>) -> Result<ClientConfig> {
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
    let certificate =
        |error: rustls::Error| Error::Certificate { host: host.to_owned(), why: error.to_string() };
    let named = named.map(read).transpose()?.unwrap_or_default();
    let roots = named.iter().cloned().chain(of_termux());
    let system =
        Verifier::new_with_extra_roots(roots, Arc::clone(&provider)).map_err(certificate)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(certificate)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(NamedOrSystem { named, system }))
        .with_no_client_auth();
    Ok(config)
}

/// Reads certificates from a PEM file.
fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let why = |why: &str| Error::CredentialsFile { path: path.to_owned(), why: why.to_owned() };
    let bytes = regular::read(path).map_err(Error::io(path))?;
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(why("it has no certificates in PEM format")),
    }
}

/// Returns the certificates of Termux. The program for Linux runs there, and looks for certificates
/// where Linux has them.
fn of_termux() -> Vec<CertificateDer<'static>> {
    let prefix = std::env::var_os("TERMUX_VERSION").and_then(|_| std::env::var_os("PREFIX"));
    let path = prefix.map(|prefix| PathBuf::from(prefix).join("etc/tls/cert.pem"));
    path.and_then(|path| read(&path).ok()).unwrap_or_default()
}
