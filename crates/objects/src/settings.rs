//! Where the store is and how it is reached: from the environment and the shared profile, by the
//! names that the AWS tools have for it.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use onionskin_aws::{Profile, Source, is_here, system_authorities, variable};
use rusty_s3::UrlStyle;
use ureq::{
    Agent,
    tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem},
};
use url::Url;

use crate::Fault;

/// How often a request is sent, if nobody says otherwise. Pauses between add up to a minute.
const ATTEMPTS: u32 = 10;
const CONNECT: Duration = Duration::from_secs(10);
/// Idle connections that are kept: one for each part on its way, and some.
const IDLE: usize = 8;

/// Where the store is, and who asks.
#[derive(Debug)]
pub struct Settings {
    pub(crate) region: String,
    pub(crate) endpoint: Option<Url>,
    pub(crate) style: Option<UrlStyle>,
    pub(crate) plain_http: bool,
    pub(crate) attempts: u32,
    authority: Option<PathBuf>,
    pub(crate) source: Source,
}

impl Settings {
    /// Reads environment and profile.
    ///
    /// | setting | environment | profile |
    /// |---|---|---|
    /// | region | `AWS_REGION`, `AWS_DEFAULT_REGION` | `region` |
    /// | endpoint | `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` | `endpoint_url` |
    /// | how a bucket is addressed | `ONIONSKIN_S3_ADDRESSING`: path or virtual | `s3.addressing_style` |
    /// | authorities | `AWS_CA_BUNDLE` | `ca_bundle` |
    /// | how often a request is sent | `AWS_MAX_ATTEMPTS` | `max_attempts` |
    /// | plain HTTP to other machines | `ONIONSKIN_S3_PLAIN_HTTP=yes` | |
    pub fn from_environment() -> Result<Self, Fault> {
        let profile = Profile::read()?;
        let setting = |variables: &[&str], key: &str| {
            let found = variables.iter().find_map(|name| variable(name));
            found.or_else(|| profile.get(key).map(str::to_owned))
        };
        let region = setting(&["AWS_REGION", "AWS_DEFAULT_REGION"], "region");
        let region = region.unwrap_or_else(|| "us-east-1".into());
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if !region.chars().all(is_word) {
            return Err(Fault::Setting(format!(
                "AWS_REGION: {region:?} is no region: write for example eu-west-1"
            )));
        }
        let endpoint = setting(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"], "endpoint_url");
        let endpoint = endpoint.map(|text| parse_endpoint(&text)).transpose()?;
        let style = setting(&["ONIONSKIN_S3_ADDRESSING"], "s3.addressing_style");
        let style = match style.as_deref() {
            None | Some("auto") => None,
            Some("path") => Some(UrlStyle::Path),
            Some("virtual") => Some(UrlStyle::VirtualHost),
            Some(other) => {
                return Err(Fault::Setting(format!(
                    "ONIONSKIN_S3_ADDRESSING: {other:?} is neither path nor virtual"
                )));
            }
        };
        let attempts = match setting(&["AWS_MAX_ATTEMPTS"], "max_attempts") {
            None => ATTEMPTS,
            Some(text) => text
                .parse()
                .ok()
                .filter(|n| (1..=100).contains(n))
                .ok_or_else(|| {
                    Fault::Setting(format!(
                        "AWS_MAX_ATTEMPTS: {text:?} is no number from 1 to 100"
                    ))
                })?,
        };
        Ok(Self {
            region,
            endpoint,
            style,
            plain_http: variable("ONIONSKIN_S3_PLAIN_HTTP").is_some_and(|said| said == "yes"),
            attempts,
            authority: setting(&["AWS_CA_BUNDLE"], "ca_bundle").map(PathBuf::from),
            source: Source::find(&profile)?,
        })
    }

    /// The address of a bucket, with a slash at its end.
    pub(crate) fn bucket(&self, name: &str) -> Result<rusty_s3::Bucket, Fault> {
        let amazon = || {
            let domain = match self.region.starts_with("cn-") {
                true => "amazonaws.com.cn",
                false => "amazonaws.com",
            };
            Url::parse(&format!("https://s3.{}.{domain}", self.region))
        };
        let unknown = |_| Fault::Setting(format!("region {} has no address", self.region));
        let endpoint = match &self.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => amazon().map_err(unknown)?,
        };
        // A certificate for *.s3.REGION.amazonaws.com does not fit names with more dots. Stores of
        // others are mostly reached by their own name.
        let by_path = self.endpoint.is_some() || name.contains('.');
        let style = self.style.unwrap_or(match by_path {
            true => UrlStyle::Path,
            false => UrlStyle::VirtualHost,
        });
        let bucket = rusty_s3::Bucket::new(endpoint, style, name.to_owned(), self.region.clone());
        let bucket = bucket.map_err(|_| {
            Fault::Setting(format!(
                "bucket {name} cannot be a part of the endpoint's name: set ONIONSKIN_S3_ADDRESSING=path"
            ))
        })?;
        if bucket.base_url().scheme() == "http" && !is_here(bucket.base_url()) && !self.plain_http {
            return Err(Fault::Setting(
                "the endpoint is on another machine and has no TLS: write https, or set ONIONSKIN_S3_PLAIN_HTTP=yes if the network \
                 between is yours (who listens there sees what is sent, and can repeat it for a quarter of an hour)"
                    .into(),
            ));
        }
        Ok(bucket)
    }

    /// Who sends the requests.
    pub(crate) fn agent(&self, base: &Url) -> Result<Agent, Fault> {
        let roots = match base.scheme() {
            "https" => self.authorities()?,
            _ => Vec::new(),
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .build();
        let mut config = Agent::config_builder()
            .tls_config(tls)
            .timeout_connect(Some(CONNECT))
            .timeout_resolve(Some(CONNECT))
            .max_redirects(0)
            .http_status_as_error(false)
            .max_idle_connections(2 * IDLE)
            .max_idle_connections_per_host(IDLE)
            .user_agent("onionskin");
        if is_here(base) {
            config = config.proxy(None);
        }
        Ok(config.build().new_agent())
    }

    fn authorities(&self) -> Result<Vec<Certificate<'static>>, Fault> {
        let Some(path) = self.authority.as_deref().or(system_authorities()) else {
            return Err(Fault::Setting(
                "this system has no file of authorities: set AWS_CA_BUNDLE to one".into(),
            ));
        };
        let shown = path.display();
        let pem = fs::read(path)
            .map_err(|error| Fault::Setting(format!("AWS_CA_BUNDLE: {shown}: {error}")))?;
        let certificates = parse_pem(&pem).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        });
        let certificates: Vec<_> = certificates.collect();
        match certificates.is_empty() {
            true => Err(Fault::Setting(format!(
                "AWS_CA_BUNDLE: {shown} has no certificate in PEM"
            ))),
            false => Ok(certificates),
        }
    }
}

fn parse_endpoint(text: &str) -> Result<Url, Fault> {
    let wrong = |why| Fault::Setting(format!("AWS_ENDPOINT_URL {why}: write https://host:port"));
    let url = Url::parse(text).map_err(|_| wrong("is no address"))?;
    // A password in it would stand in errors.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("names a user"));
    }
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("is no address of HTTP"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has more than a host and a path"));
    }
    Ok(url)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn settings(endpoint: Option<&str>, region: &str) -> Settings {
        Settings {
            region: region.into(),
            endpoint: endpoint.map(|text| parse_endpoint(text).unwrap()),
            style: None,
            plain_http: false,
            attempts: 2,
            authority: None,
            source: Source::Fixed(onionskin_aws::AccessKey::fixed("K", "S", None)),
        }
    }

    #[test]
    fn buckets_have_addresses() {
        let address = |endpoint, region, name: &str| {
            let bucket = settings(endpoint, region).bucket(name);
            bucket.map(|bucket| bucket.base_url().to_string())
        };
        let amazon = address(None, "eu-west-1", "abc").unwrap();
        assert_eq!(amazon, "https://abc.s3.eu-west-1.amazonaws.com/");
        let china = address(None, "cn-north-1", "abc").unwrap();
        assert_eq!(china, "https://abc.s3.cn-north-1.amazonaws.com.cn/");
        let dotted = address(None, "eu-west-1", "a.b.c").unwrap();
        assert_eq!(dotted, "https://s3.eu-west-1.amazonaws.com/a.b.c/");
        let own = address(Some("https://there:9000/s3"), "x", "abc").unwrap();
        assert_eq!(own, "https://there:9000/s3/abc/");
        for here in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1"] {
            assert!(address(Some(here), "x", "abc").is_ok(), "{here}");
        }
        let plain = address(Some("http://10.0.0.1:9000"), "x", "abc").unwrap_err();
        assert!(plain.to_string().contains("has no TLS"), "{plain}");
    }

    #[test]
    fn endpoints_name_no_user() {
        for text in ["https://u:p@host", "ftp://host", "host:1", "https://h?x"] {
            assert!(parse_endpoint(text).is_err(), "{text}");
        }
    }
}
