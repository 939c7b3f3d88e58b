//! TLS settings of the client, and the reasons of failed handshakes.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_name, ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::{ring, verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use webpki::EndEntityCert;

use crate::error::{FetchError, Reason};

/// Sessions stored for resumption.
const MAX_SESSIONS: usize = 2000;

/// One configuration for all connections. The roots are those of the system and of `ca_file`, a PEM file.
pub fn client_config(verify: bool, ca_file: &str) -> Arc<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers of TLS 1.2 and 1.3");
    let verifier: Arc<dyn ServerCertVerifier> =
        if verify { trusting(ca_file, &provider) } else { Arc::new(SameAnswer { provider, accepts: true }) };
    let asked = Arc::new(NoCertificate);
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_client_cert_resolver(asked);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::in_memory_sessions(MAX_SESSIONS);
    Arc::new(config)
}

fn trusting(ca_file: &str, provider: &Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    let mut certificates = rustls_native_certs::load_native_certs().certs;
    if let (false, Ok(more)) = (ca_file.is_empty(), CertificateDer::pem_file_iter(ca_file)) {
        certificates.extend(more.flatten());
    }
    let trusted = certificates.iter().map(|one| one.to_vec()).collect();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    match WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build() {
        Ok(inner) => Arc::new(Trust { inner, trusted }),
        Err(_) => Arc::new(SameAnswer { provider: provider.clone(), accepts: false }), // a system without any root
    }
}

/// Reason, cause and text of a failed handshake.
pub fn handshake_error(error: &Error) -> FetchError {
    let refused = |cause, text: String| FetchError { cause, ..FetchError::new(Reason::Tls, text) };
    match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::UnknownIssuer => refused("tls_issuer", "certificate: unknown issuer".into()),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                refused("tls_expired", format!("certificate: {why}"))
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                refused("tls_not_yet_valid", format!("certificate: {why}"))
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                refused("tls_name", format!("certificate: {why}"))
            }
            CertificateError::Other(other) if other.0.is::<SelfSigned>() => {
                refused("tls_self_signed", "certificate: self-signed".into())
            }
            _ => refused("", format!("certificate: {why}")),
        },
        Error::AlertReceived(AlertDescription::CertificateRequired) => refused(DEMAND, DEMANDED.into()),
        Error::AlertReceived(AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure)
        | Error::AlertReceived(AlertDescription::InsufficientSecurity)
        | Error::PeerIncompatible(_) => refused("tls_protocol", format!("handshake: {error}")),
        _ => refused("", format!("handshake: {error}")),
    }
}

const DEMAND: &str = "tls_client_certificate";
const DEMANDED: &str = "handshake: the server demands a client certificate";

/// The refusal of a server after the handshake, for want of a certificate of the client (TLS 1.3).
pub fn demand(error: &std::io::Error) -> Option<FetchError> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())?;
    let alert = Error::AlertReceived(AlertDescription::CertificateRequired);
    (*inner == alert).then(|| handshake_error(inner))
}

/// The error of a handshake in which the server has asked for a certificate: TLS 1.2 refuses with an alert of any kind.
pub fn with_demand(error: FetchError, asked: bool) -> FetchError {
    if !asked || !matches!(error.cause, "" | "tls_protocol") {
        return error;
    }
    without_certificate()
}

/// A server has refused the client for want of a certificate.
pub fn without_certificate() -> FetchError {
    FetchError { cause: DEMAND, ..FetchError::new(Reason::Tls, DEMANDED) }
}

thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a server has asked this thread for a certificate since the last call.
pub fn certificate_asked() -> bool {
    ASKED.with(|asked| asked.replace(false))
}

/// The crawler has no certificate; the demand is noted.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        ASKED.with(|asked| asked.set(true));
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// A certificate that names itself as its issuer and is not trusted.
#[derive(Debug)]
struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("self-signed")
    }
}

impl std::error::Error for SelfSigned {}

/// The checks of webpki, and what browsers and OpenSSL add: a certificate that is itself trusted needs no issuer. webpki
/// looks at the dates of a certificate before its issuer and its use.
#[derive(Debug)]
struct Trust {
    inner: Arc<WebPkiServerVerifier>,
    trusted: HashSet<Vec<u8>>,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let refused = match self.inner.verify_server_cert(certificate, between, name, stapled, now) {
            // BadSignature: another trusted certificate has the same name.
            Err(
                error @ Error::InvalidCertificate(
                    CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_),
                ),
            ) => error,
            other => return other,
        };
        if !is_self_issued(certificate) {
            return Err(refused);
        }
        if !self.trusted.contains(&**certificate) {
            return Err(CertificateError::Other(OtherError(Arc::new(SelfSigned))).into());
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Whether it names itself as its issuer.
fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(certificate).is_ok_and(|parsed| parsed.issuer() == parsed.subject())
}

/// One answer to every certificate, whose key has to sign the handshake: all are accepted where `tls_verify` is off, and
/// none on a system without any root.
#[derive(Debug)]
struct SameAnswer {
    provider: Arc<CryptoProvider>,
    accepts: bool,
}

impl ServerCertVerifier for SameAnswer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.accepts {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::UnknownIssuer.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
