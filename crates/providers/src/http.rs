//! A server that is asked over verified TLS. No redirects are followed and no proxy of the
//! environment is used: who answers is who the configuration names.

use std::{fs, net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use rustls::CertificateError;
use ureq::{
    Agent,
    http::{HeaderMap, Uri},
    tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem},
};
use zeroize::Zeroizing;

use crate::fault::Fault;

/// Longest answer, in bytes.
const MOST: u64 = 64 << 10;

/// How it is reached.
#[derive(Clone)]
pub(crate) struct Server {
    /// Scheme, host and port.
    pub address: String,
    /// A file in PEM with the authorities that its certificate may come from.
    pub authority: Option<PathBuf>,
    /// For each request.
    pub time: Duration,
}

/// What a server has said.
pub(crate) struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Zeroizing<Vec<u8>>,
}

impl Server {
    /// Whether the address is one, `name`d so by the configuration. Without TLS it has to be
    /// allowed, and be one of this machine. Nobody is asked yet, and no file is read.
    pub fn check(&self, name: &str, plain_http: bool) -> Result<(), String> {
        let uri: Uri = self
            .address
            .parse()
            .map_err(|_| format!("{name} is no address: write https://host:port"))?;
        let host = uri.host().unwrap_or_default();
        if host.is_empty() || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(format!(
                "{name} is scheme, host and port: https://host:port"
            ));
        }
        // A password in it would stand in every error.
        if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err(format!("{name} names a user: leave that out"));
        }
        match uri.scheme_str() {
            Some("https") if self.authority.is_none() => Err(
                "ca is missing: the file with the authority that the server's certificate comes from (of a public one: /etc/ssl/certs/ca-certificates.crt)".into(),
            ),
            Some("https") => Ok(()),
            Some("http") if !plain_http => Err(format!(
                "{name} has no TLS: write https, or set plain_http = true for a server on this machine"
            )),
            Some("http") if !is_here(host) => Err(
                "without TLS the address has to be one of this machine, such as 127.0.0.1".into(),
            ),
            Some("http") => Ok(()),
            _ => Err(format!("{name} begins with https://")),
        }
    }

    /// Who asks.
    pub fn agent(&self) -> Result<Agent, Fault> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(RootCerts::Specific(Arc::new(self.authorities()?)))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(self.time))
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(None)
            .https_only(self.address.starts_with("https://"))
            .user_agent("onionskin")
            .build();
        Ok(config.new_agent())
    }

    fn authorities(&self) -> Result<Vec<Certificate<'static>>, Fault> {
        let path = match &self.authority {
            Some(path) if self.address.starts_with("https://") => path,
            _ => return Ok(Vec::new()),
        };
        let shown = path.display();
        let pem =
            fs::read(path).map_err(|error| Fault::lasting(format!("ca: {shown}: {error}")))?;
        let items: Result<Vec<PemItem<'_>>, _> = parse_pem(&pem).collect();
        let items = items.unwrap_or_default().into_iter();
        let certificates = items.filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        });
        let certificates: Vec<_> = certificates.collect();
        match certificates.is_empty() {
            true => Err(Fault::lasting(format!(
                "ca: {shown} has no certificate in PEM"
            ))),
            false => Ok(certificates),
        }
    }

    /// Sends JSON to a path without a slash at its beginning.
    pub fn post(
        &self,
        agent: &Agent,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, Fault> {
        let address = self.address.trim_end_matches('/');
        let mut request = agent.post(format!("{address}/{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut answer = request.send(body).map_err(|error| self.unreached(error))?;
        let status = answer.status().as_u16();
        let headers = answer.headers().clone();
        let read = answer.body_mut().with_config().limit(MOST).read_to_vec();
        let body = Zeroizing::new(read.map_err(|error| self.unreached(error))?);
        Ok(Reply {
            status,
            headers,
            body,
        })
    }

    /// Why nobody has answered.
    fn unreached(&self, error: ureq::Error) -> Fault {
        let address = &self.address;
        let tls = match &error {
            ureq::Error::Rustls(error) => Some(error),
            ureq::Error::Io(error) => error.get_ref().and_then(|e| e.downcast_ref()),
            _ => None,
        };
        match (tls, &error) {
            (Some(rustls::Error::InvalidCertificate(fault)), _) => {
                Fault::lasting(of_certificate(address, fault))
            }
            (Some(error), _) => Fault::passing(format!("{address}: TLS: {error}")),
            (None, ureq::Error::Timeout(_)) => Fault::passing(format!(
                "{address} has not answered within {} seconds",
                self.time.as_secs_f64()
            )),
            (None, ureq::Error::BodyExceedsLimit(limit)) => {
                Fault::lasting(format!("{address} answers with more than {limit} bytes"))
            }
            (None, error) => Fault::passing(format!("{address}: {error}")),
        }
    }
}

fn of_certificate(address: &str, fault: &CertificateError) -> String {
    match fault {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => format!(
            "the certificate of {address} has ended, or does not hold yet: renew it, or set this machine's clock ({fault})"
        ),
        CertificateError::UnknownIssuer => {
            format!("the certificate of {address} does not come from the authority in ca")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate of {address} does not name that host ({fault})")
        }
        other => format!("the certificate of {address} is not accepted: {other}"),
    }
}

/// Whether a host is this machine, whatever a name service says.
fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    is_loopback || host.eq_ignore_ascii_case("localhost")
}
