//! `[tls.accounts]`: which certificate an account has to show, besides its password.
//!
//! The authority of `client_ca` says that a certificate is genuine. Whose it is stands in its
//! subject and in its alternative names. Without a rule everybody with a certificate could be
//! everybody whose password he knows.
//!
//! The account is the one that the server has authenticated, not the name that the client has sent:
//! servers take names in several forms for one account (quotes around it, other character sets).

use std::collections::BTreeMap;
use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use thiserror::Error;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::Oid;
use x509_parser::oid_registry::{
    OID_X509_COMMON_NAME, OID_X509_COUNTRY_NAME, OID_X509_ORGANIZATION_NAME,
    OID_X509_ORGANIZATIONAL_UNIT,
};
use x509_parser::prelude::FromDer;

use crate::identity::{Identity, Whom};

/// As the configuration has them: account → certificates.
pub type CertificateSections = BTreeMap<String, Vec<CertificateRule>>;

/// When the first of some certificates ends, in seconds since 1970; PEM. `None`: none can be read.
pub fn certificates_end(pem: &[u8]) -> Option<i64> {
    let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    let ends = certificates.filter_map(|der| {
        let (_, certificate) = X509Certificate::from_der(&der).ok()?;
        Some(certificate.validity().not_after.timestamp())
    });
    ends.min()
}

/// What must stand in a certificate: all that is named. The comparison is exact, but for the case
/// of names of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateRule {
    /// Common name of the subject.
    pub cn: Option<String>,
    /// Its organization.
    pub o: Option<String>,
    /// Its organizational unit, of several one.
    pub ou: Option<String>,
    /// Its country.
    pub c: Option<String>,
    /// Alternative name: a host.
    pub dns: Option<String>,
    /// Alternative name: an address of mail.
    pub email: Option<String>,
    /// Alternative name: a URI, as SPIFFE has it.
    pub uri: Option<String>,
    /// Alternative name: an IP address.
    pub ip: Option<IpAddr>,
}

/// What is wrong with a rule.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum CertificateRuleError {
    /// Nothing is asked for.
    #[error(
        "[tls.accounts] {account:?}: a certificate is described by at least one of cn, o, ou, c, dns, email, uri and ip"
    )]
    Empty {
        /// The account.
        account: String,
    },
    /// Roles are chosen after the login.
    #[error("[tls.accounts] {account:?}: a rule names an account, a user or \"*\", and no role")]
    Role {
        /// The account.
        account: String,
    },
}

/// The rules of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRules(Vec<(Whom, Vec<CertificateRule>)>);

impl CertificateRules {
    /// Checks what the configuration says.
    pub fn parse(sections: CertificateSections) -> Result<Self, CertificateRuleError> {
        let mut rules = Vec::with_capacity(sections.len());
        for (account, certificates) in sections {
            let is_empty = |rule: &CertificateRule| *rule == CertificateRule::default();
            if certificates.is_empty() || certificates.iter().any(is_empty) {
                return Err(CertificateRuleError::Empty { account });
            }
            match Whom::parse(&account) {
                Whom::Role(_) => return Err(CertificateRuleError::Role { account }),
                whom => rules.push((whom, certificates)),
            }
        }
        Ok(CertificateRules(rules))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an account may be had with this certificate, which is genuine. An account of which
    /// nothing is said may be had with any. `account` as
    /// [`State::account`](crate::state::State) has it.
    pub(crate) fn admit(&self, account: &str, shown: Option<&CertificateDer<'_>>) -> bool {
        if self.is_empty() {
            return true;
        }
        let shown = shown.and_then(|der| X509Certificate::from_der(der).ok());
        let shown = shown.map(|(_, certificate)| Names::of(&certificate));
        let fits = |rule: &CertificateRule| shown.as_ref().is_some_and(|names| names.fit(rule));
        // an account whose name can be read in two ways has to meet what is said of either
        let readings = Identity::readings(account);
        !readings.is_empty()
            && readings.iter().all(|reading| {
                let said = reading.what_is_said(&self.0);
                said.into_iter().all(|rules| rules.iter().any(fits))
            })
    }
}

/// Whom a certificate is about. What cannot be read as text is left out, and meets no rule.
#[derive(Default)]
struct Names {
    cn: Vec<String>,
    o: Vec<String>,
    ou: Vec<String>,
    c: Vec<String>,
    dns: Vec<String>,
    email: Vec<String>,
    uri: Vec<String>,
    ip: Vec<IpAddr>,
}

impl Names {
    fn of(certificate: &X509Certificate<'_>) -> Self {
        let subject = |oid: &Oid<'_>| {
            let values = certificate.subject().iter_by_oid(oid);
            let texts = values.filter_map(|value| value.as_str().ok());
            texts.map(str::to_owned).collect()
        };
        let mut names = Names {
            cn: subject(&OID_X509_COMMON_NAME),
            o: subject(&OID_X509_ORGANIZATION_NAME),
            ou: subject(&OID_X509_ORGANIZATIONAL_UNIT),
            c: subject(&OID_X509_COUNTRY_NAME),
            ..Names::default()
        };
        // an extension that is there twice is none
        let alternative = certificate.subject_alternative_name().ok().flatten();
        let alternative = alternative.map(|extension| &extension.value.general_names);
        for name in alternative.into_iter().flatten() {
            match name {
                GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                GeneralName::RFC822Name(name) => names.email.push((*name).to_owned()),
                GeneralName::URI(name) => names.uri.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => names.ip.extend(address(bytes)),
                _ => {}
            }
        }
        names
    }

    fn fit(&self, rule: &CertificateRule) -> bool {
        let has = |wanted: &Option<String>, names: &[String]| {
            let wanted = wanted.as_ref();
            wanted.is_none_or(|wanted| names.contains(wanted))
        };
        let has_host = |wanted: &String| {
            let mut hosts = self.dns.iter();
            hosts.any(|host| host.eq_ignore_ascii_case(wanted))
        };
        has(&rule.cn, &self.cn)
            && has(&rule.o, &self.o)
            && has(&rule.ou, &self.ou)
            && has(&rule.c, &self.c)
            && has(&rule.email, &self.email)
            && has(&rule.uri, &self.uri)
            && rule.dns.as_ref().is_none_or(has_host)
            && rule.ip.is_none_or(|wanted| self.ip.contains(&wanted))
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    let six = || <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from);
    four().or_else(six)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate() -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["App.example.com".into()]).unwrap();
        for (kind, text) in [
            (DnType::CommonName, "app"),
            (DnType::OrganizationName, "Example"),
            (DnType::OrganizationalUnitName, "shop"),
        ] {
            params.distinguished_name.push(kind, text);
        }
        let uri = "spiffe://example/app".try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        let address = SanType::IpAddress("10.1.2.3".parse().unwrap());
        params.subject_alt_names.push(address);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    fn rules(text: &str) -> Result<CertificateRules, CertificateRuleError> {
        CertificateRules::parse(toml::from_str(text).unwrap())
    }

    #[test]
    fn all_that_a_rule_names_must_be_there() {
        let shown = certificate();
        for (rule, fits) in [
            ("cn = 'app'", true),
            ("cn = 'app', o = 'Example', ou = 'shop'", true),
            ("cn = 'app', o = 'Other'", false),
            ("cn = 'App'", false),
            ("cn = 'ap'", false),
            ("dns = 'app.EXAMPLE.com'", true),
            ("dns = 'example.com'", false),
            ("uri = 'spiffe://example/app'", true),
            ("uri = 'spiffe://example/app', cn = 'other'", false),
            ("uri = 'spiffe://example'", false),
            ("ip = '10.1.2.3'", true),
            ("ip = '::ffff:10.1.2.3'", false),
            ("email = 'app'", false),
            ("c = 'SE'", false),
        ] {
            let rules = rules(&format!("ann = [{{ {rule} }}]")).unwrap();
            assert_eq!(rules.admit("ann@%", Some(&shown)), fits, "{rule}");
            assert!(!rules.admit("ann@%", None), "{rule}");
            assert!(rules.admit("bob@%", Some(&shown)), "nothing is said of him");
        }
        let either = rules("ann = [{ cn = 'other' }, { cn = 'app' }]").unwrap();
        assert!(either.admit("ann@%", Some(&shown)));
        assert!(!either.admit("ann@%", Some(&CertificateDer::from(vec![1, 2, 3]))));
    }

    #[test]
    fn the_account_counts_before_the_user_before_all_others() {
        let shown = certificate();
        let rules = rules(
            "'*' = [{ cn = 'nobody' }]\nann = [{ cn = 'app' }]\n'ann@10.%' = [{ cn = 'other' }]",
        )
        .unwrap();
        let admits = |account: &str| rules.admit(account, Some(&shown));
        assert!(admits("ann@%"));
        assert!(admits("ann@% as auditor"));
        assert!(!admits("ann@10.%"));
        assert!(!admits("bob@%"));
        assert!(!admits("Ann@%"));
        // the user `ann@% as x`, or ann with the role `x@%`
        assert!(!admits("ann@% as x@%"));
    }

    #[test]
    fn the_first_end_counts() {
        let until = |year: i32| {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            let key = KeyPair::generate().unwrap();
            params.self_signed(&key).unwrap().pem()
        };
        let (early, late) = (until(2030), until(2040));
        assert_eq!(
            certificates_end((late + &early).as_bytes()),
            Some(1_893_456_000)
        );
        assert_eq!(certificates_end(b"nothing"), None);
    }

    #[test]
    fn a_rule_that_asks_for_nothing_is_none() {
        let empty = |account: &str| CertificateRuleError::Empty {
            account: account.into(),
        };
        assert_eq!(rules("ann = []"), Err(empty("ann")));
        assert_eq!(rules("ann = [{ cn = 'a' }, {}]"), Err(empty("ann")));
        let role = CertificateRuleError::Role {
            account: "role:x".into(),
        };
        assert_eq!(rules("'role:x' = [{ cn = 'a' }]"), Err(role));
    }
}
