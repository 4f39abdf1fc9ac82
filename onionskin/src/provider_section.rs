//! `keys_provider` and `[provider]`: who wraps the root key of the key file, and how it is reached.
//!
//! The key file names a provider by one word. Where that is, and which program is run, stands here
//! alone: who can write the key file leads nobody elsewhere. Several may be configured at once, so
//! that `onionskin keys rewrap` can move the file from one to another.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueEnum;
use onionskin_keys::KeyProvider;
use onionskin_providers::{
    ExecProvider, KmsProvider, KmsSettings, Pkcs11Provider, Pkcs11Settings, VaultLogin,
    VaultProvider, VaultSettings,
};
use serde::{Deserialize, Deserializer, de::Error};

use crate::{
    passphrase::{PKCS11_PIN, VAULT_SECRET_ID, VAULT_TOKEN, secret},
    token,
};

/// How long a provider may take to answer, unless the configuration says.
const ANSWER: Duration = Duration::from_secs(10);
/// For how long one is asked again at a start, unless the configuration says.
const RETRY: Duration = Duration::from_secs(30);

/// `forgotten`: what a client gets in the place of a value that belongs to a forgotten tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Forgotten {
    /// An error.
    #[default]
    Error,
    /// NULL.
    Null,
}

/// Where the key file is, and what opens it.
#[derive(Clone, Debug)]
pub struct KeysSection {
    /// `keys`, as [`onionskin_keys::KeySet::load`] understands it.
    pub locator: String,
    /// `tenants`, as [`onionskin_keys::KeySet::load_tenants`] understands it.
    pub tenants: Option<String>,
    /// `forgotten`
    pub forgotten: Forgotten,
    /// `keys_provider`
    pub provider: Option<ProviderName>,
    /// `[provider]`
    pub sections: ProviderSections,
    /// `keys_retry_seconds`
    pub retry: Duration,
    /// `keys_ttl_seconds`
    pub ttl: Option<Duration>,
}

impl KeysSection {
    /// A key file that opens by itself.
    pub fn of(locator: String) -> KeysSection {
        KeysSection {
            locator,
            tenants: None,
            forgotten: Forgotten::default(),
            provider: None,
            sections: ProviderSections::default(),
            retry: RETRY,
            ttl: None,
        }
    }

    /// As a configuration says. `Err`: what is wrong with it.
    pub fn new(
        (locator, tenants, forgotten): (String, Option<String>, Forgotten),
        (provider, sections): (Option<ProviderName>, ProviderSections),
        (retry, ttl): (Option<Duration>, Option<Duration>),
    ) -> Result<KeysSection, String> {
        sections.check(provider)?;
        if provider.is_none() && (retry.is_some() || ttl.is_some()) {
            return Err("keys_retry_seconds and keys_ttl_seconds are about a provider, and keys_provider names none".into());
        }
        Ok(KeysSection {
            tenants,
            forgotten,
            provider,
            sections,
            retry: retry.unwrap_or(RETRY),
            ttl,
            ..KeysSection::of(locator)
        })
    }
}

/// A provider's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderName {
    /// A program of the operator's.
    Exec,
    /// The transit engine of Vault or OpenBao.
    Vault,
    /// A token that speaks PKCS#11.
    Pkcs11,
    /// AWS KMS.
    AwsKms,
}

impl ProviderName {
    /// The one that a key file names.
    pub fn of(text: &str) -> Option<ProviderName> {
        ProviderName::from_str(text, false).ok()
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProviderName::Exec => "exec",
            ProviderName::Vault => "vault",
            ProviderName::Pkcs11 => "pkcs11",
            ProviderName::AwsKms => "aws-kms",
        })
    }
}

/// `[provider]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderSections {
    exec: Option<ExecSection>,
    vault: Option<VaultSection>,
    pkcs11: Option<Pkcs11Section>,
    #[serde(rename = "aws-kms")]
    aws_kms: Option<KmsSection>,
}

/// `[provider.exec]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecSection {
    /// The program by its absolute path, and its arguments.
    command: Vec<String>,
    #[serde(default = "answer", deserialize_with = "seconds")]
    timeout_seconds: Duration,
}

/// `[provider.vault]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VaultSection {
    address: String,
    ca: Option<PathBuf>,
    #[serde(default)]
    plain_http: bool,
    #[serde(default = "transit")]
    mount: String,
    key: String,
    namespace: Option<String>,
    #[serde(default)]
    login: LoginName,
    login_mount: Option<String>,
    role_id: Option<String>,
    role: Option<String>,
    jwt_file: Option<PathBuf>,
    #[serde(default = "answer", deserialize_with = "seconds")]
    timeout_seconds: Duration,
}

/// `[provider.pkcs11]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pkcs11Section {
    module: PathBuf,
    token: Option<String>,
    serial: Option<String>,
    slot: Option<u64>,
    key: Option<String>,
    key_id: Option<String>,
    #[serde(default = "answer", deserialize_with = "seconds")]
    timeout_seconds: Duration,
}

impl Pkcs11Section {
    fn provider(&self) -> Result<Pkcs11Provider, String> {
        Pkcs11Provider::new(Pkcs11Settings {
            module: self.module.clone(),
            token: self.token.clone(),
            serial: self.serial.clone(),
            slot: self.slot,
            key: self.key.clone(),
            key_id: self.key_id.clone(),
            pin: secret(PKCS11_PIN),
            time: self.timeout_seconds,
            child: token::command,
        })
    }
}

/// `[provider.aws-kms]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KmsSection {
    key: String,
    region: Option<String>,
    endpoint: Option<String>,
    ca: Option<PathBuf>,
    #[serde(default)]
    plain_http: bool,
    #[serde(default = "answer", deserialize_with = "seconds")]
    timeout_seconds: Duration,
}

impl KmsSection {
    fn provider(&self, folder: &Path) -> Result<KmsProvider, String> {
        KmsProvider::new(KmsSettings {
            region: self.region.clone(),
            key: self.key.clone(),
            endpoint: self.endpoint.clone(),
            authority: self.ca.as_ref().map(|ca| folder.join(ca)),
            plain_http: self.plain_http,
            time: self.timeout_seconds,
        })
    }
}

/// `login`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LoginName {
    #[default]
    Token,
    AppRole,
    Kubernetes,
}

/// Where Kubernetes puts the token of a pod's service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

impl VaultSection {
    fn provider(&self, folder: &Path) -> Result<VaultProvider, String> {
        VaultProvider::new(VaultSettings {
            address: self.address.clone(),
            authority: self.ca.as_ref().map(|ca| folder.join(ca)),
            plain_http: self.plain_http,
            mount: self.mount.clone(),
            key: self.key.clone(),
            namespace: self.namespace.clone(),
            login: self.login(folder)?,
            time: self.timeout_seconds,
        })
    }

    fn login(&self, folder: &Path) -> Result<VaultLogin, String> {
        let is_said = [
            ("login_mount", self.login_mount.is_some()),
            ("role_id", self.role_id.is_some()),
            ("role", self.role.is_some()),
            ("jwt_file", self.jwt_file.is_some()),
        ];
        let (login, allowed): (_, &[&str]) = match self.login {
            LoginName::Token => (VaultLogin::Token(secret(VAULT_TOKEN)), &[]),
            LoginName::AppRole => {
                let login = VaultLogin::AppRole {
                    mount: self.login_mount.clone().unwrap_or("approle".into()),
                    role_id: self
                        .role_id
                        .clone()
                        .ok_or("login = \"approle\" needs role_id")?,
                    secret_id: secret(VAULT_SECRET_ID),
                };
                (login, &["login_mount", "role_id"])
            }
            LoginName::Kubernetes => {
                let jwt = self.jwt_file.as_deref();
                let login = VaultLogin::Kubernetes {
                    mount: self.login_mount.clone().unwrap_or("kubernetes".into()),
                    role: self
                        .role
                        .clone()
                        .ok_or("login = \"kubernetes\" needs role")?,
                    jwt: folder.join(jwt.unwrap_or(Path::new(SERVICE_ACCOUNT))),
                };
                (login, &["login_mount", "role", "jwt_file"])
            }
        };
        for (name, is_said) in is_said {
            if is_said && !allowed.contains(&name) {
                return Err(format!("{name} is of no use to this login"));
            }
        }
        Ok(login)
    }
}

impl ProviderSections {
    /// The provider of this name; relative paths start at `folder`. Nobody is asked anything yet.
    pub fn provider(
        &self,
        name: ProviderName,
        folder: &Path,
    ) -> Result<Box<dyn KeyProvider>, String> {
        let missing = || format!("there is no section [provider.{name}]");
        let made: Result<Box<dyn KeyProvider>, String> = match name {
            ProviderName::Exec => {
                let section = self.exec.as_ref().ok_or_else(missing)?;
                ExecProvider::new(&section.command, section.timeout_seconds).map(boxed)
            }
            ProviderName::Vault => {
                let section = self.vault.as_ref().ok_or_else(missing)?;
                section.provider(folder).map(boxed)
            }
            ProviderName::Pkcs11 => {
                let section = self.pkcs11.as_ref().ok_or_else(missing)?;
                section.provider().map(boxed)
            }
            ProviderName::AwsKms => {
                let section = self.aws_kms.as_ref().ok_or_else(missing)?;
                section.provider(folder).map(boxed)
            }
        };
        made.map_err(|why| format!("[provider.{name}]: {why}"))
    }

    /// Whether all that stands there is sound, and there is something for `used`.
    pub fn check(&self, used: Option<ProviderName>) -> Result<(), String> {
        let named = [
            (ProviderName::Exec, self.exec.is_some()),
            (ProviderName::Vault, self.vault.is_some()),
            (ProviderName::Pkcs11, self.pkcs11.is_some()),
            (ProviderName::AwsKms, self.aws_kms.is_some()),
        ];
        for (name, is_there) in named {
            if is_there || used == Some(name) {
                self.provider(name, Path::new("")).map(drop)?;
            }
        }
        Ok(())
    }
}

fn boxed(provider: impl KeyProvider + 'static) -> Box<dyn KeyProvider> {
    Box::new(provider)
}

fn transit() -> String {
    "transit".into()
}

fn answer() -> Duration {
    ANSWER
}

/// Seconds, whole ones or not.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    match Duration::try_from_secs_f64(f64::deserialize(deserializer)?) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(D::Error::custom("not a number of seconds above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ProviderSections, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_program_is_named_by_its_path() {
        let sound = read("[exec]\ncommand = [\"/bin/wrap\", \"-k\"]\n").expect("sound");
        assert!(sound.check(Some(ProviderName::Exec)).is_ok());
        let provider = sound
            .provider(ProviderName::Exec, Path::new(""))
            .expect("there");
        assert_eq!(provider.name(), ProviderName::Exec.to_string());
        assert_eq!(ProviderName::of("exec"), Some(ProviderName::Exec));
        assert_eq!(ProviderName::of("Exec"), None);
        for (text, what) in [
            ("[exec]\ncommand = []\n", "no program"),
            ("[exec]\ncommand = [\"wrap\"]\n", "absolute"),
            ("", "[provider.exec]"),
        ] {
            let sections = read(text).expect("read");
            let error = sections.check(Some(ProviderName::Exec)).expect_err(text);
            assert!(error.contains(what), "{error}");
        }
        assert!(read("").expect("nothing").check(None).is_ok());
        for text in [
            "[exec]\ncommand = \"/bin/wrap\"\n",
            "[exec]\n",
            "[exec]\ncommand = [\"/a\"]\nshell = true\n",
            "[exec]\ncommand = [\"/a\"]\ntimeout_seconds = 0\n",
            "[kms]\nkey = \"a\"\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_is_named_with_a_library() {
        let token =
            |text: &str| read(&format!("[pkcs11]\n{text}"))?.check(Some(ProviderName::Pkcs11));
        let sound = "module = \"/x.so\"\ntoken = \"t\"\nkey = \"k\"\n";
        assert_eq!(token(sound), Ok(()));
        assert_eq!(ProviderName::of("pkcs11"), Some(ProviderName::Pkcs11));
        assert_eq!(ProviderName::Pkcs11.to_string(), "pkcs11");
        for (bad, what) in [
            ("module = \"/x.so\"\nkey = \"k\"", "names no token"),
            ("module = \"x.so\"\ntoken = \"t\"\nkey = \"k\"", "absolute"),
            (&format!("{sound}pin = \"1234\""), "unknown field `pin`"),
            ("token = \"t\"\nkey = \"k\"", "`module`"),
        ] {
            let error = token(bad).expect_err(bad);
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_key_of_kms_is_named_with_a_region() {
        let kms =
            |text: &str| read(&format!("[aws-kms]\n{text}"))?.check(Some(ProviderName::AwsKms));
        assert_eq!(
            kms("key = \"alias/k\"\nregion = \"eu-west-1\"\nca = \"ca\""),
            Ok(())
        );
        assert_eq!(ProviderName::of("aws-kms"), Some(ProviderName::AwsKms));
        assert_eq!(ProviderName::AwsKms.to_string(), "aws-kms");
        for (bad, what) in [
            ("key = \"alias/k\"", "region is missing"),
            ("region = \"eu-west-1\"", "`key`"),
            ("key = \"k\"\nsecret = \"s\"", "unknown field `secret`"),
        ] {
            let error = kms(bad).expect_err(bad);
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_vault_is_named_with_a_login() {
        let vault = |more: &str| {
            let text = format!("[vault]\naddress = \"https://v:8200\"\nca = \"ca\"\n{more}");
            read(&text)?.check(Some(ProviderName::Vault))
        };
        for sound in [
            "key = \"k\"",
            "key = \"k\"\nmount = \"a/b\"\nnamespace = \"n\"\nlogin = \"token\"",
            "key = \"k\"\nlogin = \"approle\"\nrole_id = \"r\"\nlogin_mount = \"m\"",
            "key = \"k\"\nlogin = \"kubernetes\"\nrole = \"r\"\njwt_file = \"/t\"",
        ] {
            assert_eq!(vault(sound), Ok(()), "{sound}");
        }
        for (bad, what) in [
            ("", "`key`"),
            ("key = \"../k\"", "other characters"),
            ("key = \"k\"\ntoken = \"s.ecret\"", "unknown field `token`"),
            ("key = \"k\"\nlogin = \"approle\"", "needs role_id"),
            ("key = \"k\"\nlogin = \"kubernetes\"", "needs role"),
            ("key = \"k\"\nrole_id = \"r\"", "of no use"),
            ("key = \"k\"\nlogin = \"ldap\"", "`approle`"),
        ] {
            let error = vault(bad).expect_err(bad);
            assert!(error.contains(what), "{error}");
        }
    }
}
