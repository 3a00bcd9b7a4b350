//! Which certificates of servers are trusted: those of the system, and those that the user named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_platform_verifier::Verifier;

use super::{Error, Result};
use crate::regular;

/// Trusts the exact certificates that the user named, and every certificate that a named authority
/// or the system vouches for. The certificates that many NAS sign themselves are not valid as those
/// of an authority, so they are compared as a whole.
#[derive(Debug)]
struct NamedOrSystem {
    provider: Arc<CryptoProvider>,
    named: Vec<CertificateDer<'static>>,
    /// Verifies by the named authorities. Not all systems can add them to their own.
    by_named: Option<Arc<WebPkiServerVerifier>>,
    /// `None` if the system has no certificates of authorities, as in small containers.
    by_system: Option<Verifier>,
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
        let verify = |by: &dyn ServerCertVerifier| {
            by.verify_server_cert(certificate, intermediates, server, ocsp, now)
        };
        let unknown = || Err(CertificateError::UnknownIssuer.into());
        let by_named = self.by_named.as_deref().map_or_else(unknown, |named| verify(named));
        if by_named.is_ok() {
            return by_named;
        }
        let by_system = self.by_system.as_ref().map_or_else(unknown, |system| verify(system));
        match by_system {
            // A named authority issued it, so its reason is the right one.
            Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => by_named,
            by_system => by_system,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns the configuration for connections to one server.
pub fn configure(host: &str, named: Option<&Path>) -> Result<ClientConfig> {
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
    let failed =
        |error: rustls::Error| Error::Certificate { host: host.to_owned(), why: error.to_string() };
    let named = named.map(read).transpose()?.unwrap_or_default();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(named.iter().cloned().chain(of_termux()));
    let by_named =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .ok();
    let by_system = Verifier::new(Arc::clone(&provider)).ok();
    let verifier = NamedOrSystem { provider: Arc::clone(&provider), named, by_named, by_system };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
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
