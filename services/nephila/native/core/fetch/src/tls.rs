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
    let mut config =
        builder.dangerous().with_custom_certificate_verifier(verifier).with_client_cert_resolver(asked);
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

/// The checks of webpki, and what browsers and OpenSSL add: a certificate that is itself trusted needs no issuer.
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
        let Some(facts) = Facts::of(certificate).filter(|facts| facts.self_issued) else { return Err(refused) };
        if !self.trusted.contains(&**certificate) {
            return Err(CertificateError::Other(OtherError(Arc::new(SelfSigned))).into());
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        if now.as_secs() > facts.until {
            return Err(CertificateError::Expired.into());
        }
        if now.as_secs() < facts.since {
            return Err(CertificateError::NotValidYet.into());
        }
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

/// What webpki does not tell of a certificate.
struct Facts {
    /// It names itself as its issuer.
    self_issued: bool,
    /// Seconds since 1970 UTC.
    since: u64,
    until: u64,
}

impl Facts {
    /// None: not DER of a certificate (RFC 5280 4.1).
    fn of(der: &[u8]) -> Option<Facts> {
        let (_, certificate, _) = element(der)?;
        let (_, mut fields, _) = element(certificate)?;
        if fields.first() == Some(&0xa0) {
            fields = element(fields)?.2; // version
        }
        let (_, _, fields) = element(fields)?; // serial number
        let (_, _, fields) = element(fields)?; // algorithm
        let (_, issuer, fields) = element(fields)?;
        let (_, validity, fields) = element(fields)?;
        let (_, subject, _) = element(fields)?;
        let (tag, first, rest) = element(validity)?;
        let (last_tag, last, _) = element(rest)?;
        Some(Facts { self_issued: issuer == subject, since: seconds(tag, first)?, until: seconds(last_tag, last)? })
    }
}

/// Tag, content and what follows of the first DER element.
fn element(data: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = data.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f)).filter(|(octets, _)| octets.len() <= 4)?;
        (octets.iter().fold(0, |sum, &octet| sum << 8 | usize::from(octet)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// A UTCTime or GeneralizedTime in seconds since 1970 UTC; an earlier one is 0.
fn seconds(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let at = if tag == 0x17 { 2 } else { 4 };
    let number = |from: usize, to: usize| digits.get(from..to)?.parse::<i64>().ok();
    let year = number(0, at)? + if at == 4 { 0 } else { 1900 };
    let year = if at == 2 && year < 1950 { year + 100 } else { year };
    let (month, day) = (number(at, at + 2)?, number(at + 2, at + 4)?);
    // Days from civil, by Howard Hinnant: the year begins in March.
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let clock = number(at + 4, at + 6)? * 3600 + number(at + 6, at + 8)? * 60 + number(at + 8, at + 10)?;
    Some((days * 86_400 + clock).max(0) as u64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_of_certificates() {
        assert_eq!(seconds(0x17, b"700101000000Z"), Some(0));
        assert_eq!(seconds(0x17, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(seconds(0x18, b"20000229120000Z"), Some(951_825_600));
        assert_eq!(seconds(0x17, b"500101000000Z"), Some(0));
        assert_eq!(seconds(0x17, b"soon"), None);
    }

    #[test]
    fn octets_that_are_no_certificate_have_no_facts() {
        for data in [b"".as_slice(), b"\x30", b"\x30\x82\xff\xff", b"\x30\x84\xff\xff\xff\xff", &[0x30; 40]] {
            assert!(Facts::of(data).is_none());
        }
    }
}
