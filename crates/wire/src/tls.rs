//! TLS configurations, from what an operator has: files in PEM.
//!
//! The provider is aws-lc-rs, named explicitly, so nothing depends on a process-wide default.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{
    ALL_VERSIONS, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig,
    SignatureScheme, SupportedProtocolVersion,
};

use crate::error::{WireError, WireResult};

/// How far the proxy trusts that the server it reaches is the right one. The names of the variants
/// say what each checks.
#[derive(Clone)]
pub enum ServerVerification {
    /// The certificate must come from this authority and name the host (MySQL's `VERIFY_IDENTITY`).
    /// PEM.
    AuthorityAndName(Vec<u8>),
    /// The certificate must come from this authority, whatever host it names (MySQL's `VERIFY_CA`).
    /// The certificates that MySQL makes for itself name none. PEM.
    AuthorityOnly(Vec<u8>),
    /// Any certificate will do (MySQL's `REQUIRED`): who only listens reads nothing, who sits
    /// between can read all.
    EncryptionWithoutAuthentication,
}

impl std::fmt::Debug for ServerVerification {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AuthorityAndName(_) => "AuthorityAndName",
            Self::AuthorityOnly(_) => "AuthorityOnly",
            Self::EncryptionWithoutAuthentication => "EncryptionWithoutAuthentication",
        })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Certificates in PEM, or one in DER.
fn certificates(bytes: &[u8]) -> WireResult<Vec<CertificateDer<'static>>> {
    const UNREADABLE: WireError = WireError::Malformed("certificate file");
    if !is_pem(bytes) {
        return Ok(vec![CertificateDer::from(bytes.to_vec())]);
    }
    let chain = CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| UNREADABLE)?;
    if chain.is_empty() {
        return Err(UNREADABLE);
    }
    Ok(chain)
}

fn private_key(bytes: &[u8]) -> WireResult<PrivateKeyDer<'static>> {
    const UNREADABLE: WireError = WireError::Malformed("private key file");
    if is_pem(bytes) {
        PrivateKeyDer::from_pem_slice(bytes).map_err(|_| UNREADABLE)
    } else {
        PrivateKeyDer::try_from(bytes.to_vec()).map_err(|_| UNREADABLE)
    }
}

fn is_pem(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"-----BEGIN ").is_some()
}

/// For the clients' side: the proxy's certificate, with those of the authorities between if there
/// are any, and its key; PEM or DER. TLS 1.2 and 1.3.
pub fn server_config(certificate_chain: &[u8], key: &[u8]) -> WireResult<Arc<ServerConfig>> {
    server_config_from(certificate_chain, key, &Demands::default())
}

/// The oldest version of TLS that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2
    #[default]
    Tls12,
    /// TLS 1.3
    Tls13,
}

/// What clients have to bring.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// The version of TLS.
    pub oldest: MinVersion,
    /// A certificate by it.
    pub authority: Option<Arc<dyn ClientCertVerifier>>,
}

impl Demands {
    /// The authority whose certificates clients have to show; PEM.
    pub fn authority(pem: &[u8]) -> WireResult<Arc<dyn ClientCertVerifier>> {
        let roots = authorities(pem)?;
        WebPkiClientVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|_| WireError::Malformed("certificate file of the authority"))
    }
}

/// The same, to clients that bring what is demanded.
pub fn server_config_from(
    certificate_chain: &[u8],
    key: &[u8],
    demands: &Demands,
) -> WireResult<Arc<ServerConfig>> {
    let versions: &[&SupportedProtocolVersion] = match demands.oldest {
        MinVersion::Tls12 => ALL_VERSIONS,
        MinVersion::Tls13 => &[&TLS13],
    };
    let builder =
        ServerConfig::builder_with_provider(provider()).with_protocol_versions(versions)?;
    let builder = match &demands.authority {
        Some(authority) => builder.with_client_cert_verifier(authority.clone()),
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(certificates(certificate_chain)?, private_key(key)?)?;
    Ok(Arc::new(config))
}

/// For the server's side. TLS 1.2 and 1.3.
pub fn client_config(verification: &ServerVerification) -> WireResult<Arc<ClientConfig>> {
    client_config_as(verification, None)
}

/// What a client shows: its certificate, with those of the authorities between if there are any,
/// and its key; PEM or DER.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    /// The certificate.
    pub chain: &'a [u8],
    /// Its private key.
    pub key: &'a [u8],
}

/// The same, with a certificate for servers that ask for one.
pub fn client_config_as(
    verification: &ServerVerification,
    identity: Option<Identity<'_>>,
) -> WireResult<Arc<ClientConfig>> {
    let provider = provider();
    let verifier: Arc<dyn ServerCertVerifier> = match verification {
        ServerVerification::AuthorityAndName(pem) => {
            WebPkiServerVerifier::builder_with_provider(authorities(pem)?, provider.clone())
                .build()
                .map_err(|_| WireError::Malformed("certificate file of the authority"))?
        }
        ServerVerification::AuthorityOnly(pem) => Arc::new(AuthorityOnly {
            roots: authorities(pem)?,
            provider: provider.clone(),
        }),
        ServerVerification::EncryptionWithoutAuthentication => Arc::new(AnyCertificate {
            provider: provider.clone(),
        }),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(Arc::new(match identity {
        Some(Identity { chain, key }) => {
            builder.with_client_auth_cert(certificates(chain)?, private_key(key)?)?
        }
        None => builder.with_no_client_auth(),
    }))
}

fn authorities(pem: &[u8]) -> WireResult<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate)?;
    }
    Ok(Arc::new(roots))
}

/// Checks the chain and the signatures, not the name.
#[derive(Debug)]
struct AuthorityOnly {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AuthorityOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        rustls::client::verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Checks nothing. Signatures are not checked either: made with a key that nobody vouches for they
/// prove nothing, and old servers have certificates of a form that could not be read.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
