//! `[tls]`: what the proxy shows its clients, and what they have to show.

use std::path::PathBuf;

use onionskin_proxy::{CertificateRules, CertificateSections};
use serde::Deserialize;

/// `[tls]`. Paths are relative to the configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientTls {
    /// Certificate, followed by those of the authorities between if there are any; PEM.
    pub cert: Option<PathBuf>,
    /// Its private key; PEM.
    pub key: Option<PathBuf>,
    /// Clients without TLS are not let in.
    #[serde(default)]
    pub require: bool,
    /// Clients have to show a certificate of this authority; PEM.
    pub client_ca: Option<PathBuf>,
    /// Which of them each account has to show.
    #[serde(default)]
    accounts: CertificateSections,
    /// The oldest version that is spoken.
    #[serde(default)]
    pub min_version: TlsVersion,
}

/// `min_version`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3
    #[serde(rename = "1.3")]
    Tls13,
}

impl ClientTls {
    /// Which certificates accounts have to show. The error is one sentence.
    pub fn certificate_rules(&self) -> Result<CertificateRules, String> {
        let rules = CertificateRules::parse(self.accounts.clone());
        let rules = rules.map_err(|error| error.to_string())?;
        match rules.is_empty() || self.client_ca.is_some() {
            true => Ok(rules),
            false => Err(
                "[tls.accounts] needs client_ca in [tls], the authority whose certificates are believed"
                    .into(),
            ),
        }
    }

    /// The files whose content is a part of the configuration, by their settings.
    pub fn files(&self) -> impl Iterator<Item = (String, &PathBuf)> {
        let files = [
            ("tls.cert", &self.cert),
            ("tls.key", &self.key),
            ("tls.client_ca", &self.client_ca),
        ];
        let named = files.map(|(name, path)| Some((name.to_owned(), path.as_ref()?)));
        named.into_iter().flatten()
    }
}
