//! The transit engine of Vault or OpenBao, which has the key and gives it to nobody.
//!
//! For each question: a login (unless there is a token), `encrypt` or `decrypt`, and the end of the
//! login's token. What the key is for is associated data, so that ciphertexts of other users of the
//! same key do not open here. It is the context of derived keys, too; others ignore that.
//!
//! The connection is verified TLS. No redirects are followed and no proxy of the environment is
//! used: who answers is who the configuration names.

use std::{fs, io, net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_crypt::{DATA_KEY_LEN, DataKey, dangerous_bytes};
use onionskin_keys::{KeyContext, KeyError, KeyProvider, WrappedKey, read_secret_file};
use rustls::CertificateError;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use ureq::{
    Agent,
    http::Uri,
    tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem},
};
use zeroize::{Zeroize, Zeroizing};

use crate::{fault::Fault, secret_text::SecretText, shown::behind};

/// The provider's name.
const NAME: &str = "vault";
/// Longest answer, in bytes.
const MOST: u64 = 64 << 10;
/// Longest token of a service account, in bytes.
const MOST_JWT: u64 = 16 << 10;

/// Reads a secret when it is needed: the file that has it may be written anew while the program
/// runs. An error is a sentence without the secret.
pub type Secret = Arc<dyn Fn() -> Result<Zeroizing<String>, String> + Send + Sync>;

/// Where the engine is, and how it is reached.
#[derive(Clone)]
pub struct VaultSettings {
    /// `https://host:port`
    pub address: String,
    /// A file in PEM with the authorities that its certificate may come from.
    pub authority: Option<PathBuf>,
    /// `http://` is allowed, to an address of this machine.
    pub plain_http: bool,
    /// Where the transit engine is mounted.
    pub mount: String,
    /// The key's name there.
    pub key: String,
    /// The namespace, where there are some.
    pub namespace: Option<String>,
    /// Who asks.
    pub login: VaultLogin,
    /// For each request.
    pub time: Duration,
}

/// Who asks.
#[derive(Clone)]
pub enum VaultLogin {
    /// Whoever has this token.
    Token(Secret),
    /// A role with a secret id.
    AppRole {
        /// Where the method is mounted.
        mount: String,
        /// No secret.
        role_id: String,
        /// The secret id.
        secret_id: Secret,
    },
    /// The service account of a pod.
    Kubernetes {
        /// Where the method is mounted.
        mount: String,
        /// The role at the server.
        role: String,
        /// The file with the account's token.
        jwt: PathBuf,
    },
}

/// See the module.
pub struct VaultProvider(VaultSettings);

/// A token and whether it is ended after use.
struct Token {
    text: Zeroizing<String>,
    is_ours: bool,
}

#[derive(Deserialize)]
struct Wrapped {
    data: Ciphertext,
}

#[derive(Deserialize)]
struct Ciphertext {
    ciphertext: String,
}

#[derive(Deserialize)]
struct Unwrapped {
    data: Plaintext,
}

#[derive(Deserialize)]
struct Plaintext {
    plaintext: SecretText,
}

#[derive(Deserialize)]
struct LoggedIn {
    auth: Auth,
}

#[derive(Deserialize)]
struct Auth {
    client_token: SecretText,
}

#[derive(Default, Deserialize)]
struct Errors {
    #[serde(default)]
    errors: Vec<String>,
}

impl VaultProvider {
    /// Nobody is asked yet, and no file is read.
    pub fn new(settings: VaultSettings) -> Result<Self, String> {
        let uri: Uri = settings
            .address
            .parse()
            .map_err(|_| "address is no address: write https://host:8200".to_owned())?;
        let host = uri.host().unwrap_or_default();
        if host.is_empty() || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err("address is scheme, host and port: https://host:8200".into());
        }
        // A password in it would stand in every error.
        if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err("address names a user: leave that out".into());
        }
        match uri.scheme_str() {
            Some("https") if settings.authority.is_none() => {
                return Err("ca is missing: the file with the authority that the server's certificate comes from (of a public one: /etc/ssl/certs/ca-certificates.crt)".into());
            }
            Some("https") => {}
            Some("http") if !settings.plain_http => {
                return Err("address has no TLS: write https, or set plain_http = true for a server on this machine".into());
            }
            Some("http") if !is_here(host) => {
                return Err(
                    "without TLS the address has to be one of this machine, such as 127.0.0.1"
                        .into(),
                );
            }
            Some("http") => {}
            _ => return Err("address begins with https://".into()),
        }
        let names = [
            ("mount", Some(&settings.mount)),
            ("key", Some(&settings.key)),
            ("login_mount", settings.login.mount()),
        ];
        for (name, value) in names {
            if !value.is_none_or(|value| is_path(value)) {
                return Err(format!(
                    "{name} has other characters than letters, digits, and - _ . /"
                ));
            }
        }
        Ok(VaultProvider(settings))
    }

    fn agent(&self) -> Result<Agent, Fault> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(RootCerts::Specific(Arc::new(self.authorities()?)))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(self.0.time))
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(None)
            .https_only(!self.0.plain_http)
            .user_agent("onionskin")
            .build();
        Ok(config.new_agent())
    }

    fn authorities(&self) -> Result<Vec<Certificate<'static>>, Fault> {
        let Some(path) = &self.0.authority else {
            return Ok(Vec::new());
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

    /// Asks the engine for one thing.
    fn transit<T: DeserializeOwned>(
        &self,
        operation: &str,
        question: &serde_json::Value,
    ) -> Result<T, Fault> {
        let agent = self.agent()?;
        let token = self.log_in(&agent)?;
        let VaultSettings { mount, key, .. } = &self.0;
        let path = format!("{mount}/{operation}/{key}");
        let answer = self.ask(&agent, &path, Some(&token.text), question);
        if token.is_ours {
            // Nobody else has it, and it ends by itself.
            let _ = self.post(&agent, "auth/token/revoke-self", Some(&token.text), b"{}");
        }
        answer
    }

    fn log_in(&self, agent: &Agent) -> Result<Token, Fault> {
        let (mount, question) = match &self.0.login {
            VaultLogin::Token(secret) => {
                let text = secret().map_err(Fault::lasting)?;
                let is_ours = false;
                return Ok(Token { text, is_ours });
            }
            VaultLogin::AppRole {
                mount,
                role_id,
                secret_id,
            } => {
                let secret_id = secret_id().map_err(Fault::lasting)?;
                (
                    mount,
                    json!({ "role_id": role_id, "secret_id": *secret_id }),
                )
            }
            VaultLogin::Kubernetes { mount, role, jwt } => {
                let shown = jwt.display();
                let fault =
                    |error: io::Error| Fault::lasting(format!("jwt_file: {shown}: {error}"));
                let text = read_secret_file(jwt, MOST_JWT).map_err(fault)?;
                let text = str::from_utf8(&text);
                let text = text.map_err(|_| fault(io::Error::other("not text")))?;
                (mount, json!({ "role": role, "jwt": text.trim() }))
            }
        };
        let path = format!("auth/{mount}/login");
        let mut question = question;
        let answer = self.ask::<LoggedIn>(agent, &path, None, &question);
        wipe(&mut question);
        Ok(Token {
            text: Zeroizing::new(answer?.auth.client_token.text().to_owned()),
            is_ours: true,
        })
    }

    fn ask<T: DeserializeOwned>(
        &self,
        agent: &Agent,
        path: &str,
        token: Option<&str>,
        question: &serde_json::Value,
    ) -> Result<T, Fault> {
        // Sized beforehand: by growing, a buffer leaves copies of a secret behind.
        let mut body = Zeroizing::new(Vec::with_capacity(2 * MOST_JWT as usize));
        serde_json::to_writer(&mut *body, question)
            .map_err(|_| Fault::lasting("the question cannot be written as JSON"))?;
        let (status, answer) = self.post(agent, path, token, &body)?;
        if status != 200 {
            return Err(self.refused(path, status, &answer));
        }
        // Serde's own text may quote the content.
        serde_json::from_slice(&answer).map_err(|_| {
            Fault::lasting(format!(
                "{} answers {path} with other JSON than Vault does",
                self.0.address
            ))
        })
    }

    fn post(
        &self,
        agent: &Agent,
        path: &str,
        token: Option<&str>,
        body: &[u8],
    ) -> Result<(u16, Zeroizing<Vec<u8>>), Fault> {
        let address = self.0.address.trim_end_matches('/');
        let mut request = agent
            .post(format!("{address}/v1/{path}"))
            .header("Content-Type", "application/json")
            // Agents between take it for a sign that no browser was talked into this.
            .header("X-Vault-Request", "true");
        if let Some(token) = token {
            request = request.header("X-Vault-Token", token);
        }
        if let Some(namespace) = &self.0.namespace {
            request = request.header("X-Vault-Namespace", namespace);
        }
        let mut answer = request.send(body).map_err(|error| self.unreached(error))?;
        let status = answer.status().as_u16();
        let read = answer.body_mut().with_config().limit(MOST).read_to_vec();
        let read = read.map_err(|error| self.unreached(error))?;
        Ok((status, Zeroizing::new(read)))
    }

    /// Why nobody has answered.
    fn unreached(&self, error: ureq::Error) -> Fault {
        let address = &self.0.address;
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
                self.0.time.as_secs_f64()
            )),
            (None, ureq::Error::BodyExceedsLimit(limit)) => {
                Fault::lasting(format!("{address} answers with more than {limit} bytes"))
            }
            (None, ureq::Error::Io(error)) => Fault::passing(format!("{address}: {error}")),
            (None, error) => Fault::passing(format!("{address}: {error}")),
        }
    }

    /// Why the answer is none, and what to do.
    fn refused(&self, path: &str, status: u16, answer: &[u8]) -> Fault {
        let VaultSettings {
            address,
            mount,
            key,
            ..
        } = &self.0;
        let said: Errors = serde_json::from_slice(answer).unwrap_or_default();
        let said = said.errors.join("; ");
        let holds = |part: &str| said.contains(part);
        let shown = behind(said.as_bytes());
        match status {
            503 if holds("sealed") => {
                Fault::passing(format!("{address} is sealed: it has to be unsealed first"))
            }
            // Also a standby without a leader, a limit of requests, and whatever is between.
            412 | 429 | 500..=599 => {
                Fault::passing(format!("{address} answers {path} with {status}{shown}"))
            }
            300..=399 => Fault::lasting(format!(
                "{address} leads elsewhere ({status}), which is not followed: name the address that answers itself"
            )),
            403 => Fault::lasting(format!(
                "{address} refuses {path} (403{shown}): the token has ended, or its policy does not allow \"update\" on that path{}",
                // To encrypt under a key that is not there would make one.
                match path.contains("/encrypt/") {
                    true => ", or the key is not there",
                    false => "",
                }
            )),
            404 if path.starts_with("auth/") => Fault::lasting(format!(
                "{address} has no {path}: enable the login, or set login_mount"
            )),
            404 => Fault::lasting(format!(
                "{address} has no transit engine at {mount}: enable it, or set mount"
            )),
            400 if path.starts_with("auth/") => {
                Fault::lasting(format!("{address} refuses the login ({path}){shown}"))
            }
            400 if holds("key not found") => Fault::lasting(format!(
                "{address} has no key {key} in {mount}: make it (vault write -f {mount}/keys/{key}), or set key"
            )),
            400 if holds("authentication failed") || holds("invalid ciphertext") => {
                Fault::lasting(format!(
                    "the key {mount}/{key} at {address} has not wrapped this root key, or the key file was altered{shown}"
                ))
            }
            400 if holds("too old") => Fault::lasting(format!(
                "{address} does not open what older versions of the key {mount}/{key} have wrapped: lower min_decryption_version{shown}"
            )),
            400 if holds("AEAD") => Fault::lasting(format!(
                "the key {mount}/{key} at {address} is of a type without associated data: take aes256-gcm96 or chacha20-poly1305{shown}"
            )),
            _ => Fault::lasting(format!("{address} answers {path} with {status}{shown}")),
        }
    }

    fn wrapped(&self, plain: &DataKey, context: &str) -> Result<Vec<u8>, Fault> {
        let words = STANDARD.encode(context);
        let key = dangerous_bytes::bytes_of_data_key(plain);
        let mut question = json!({
            "plaintext": STANDARD.encode(key),
            "associated_data": words,
            "context": words,
        });
        let answer = self.transit::<Wrapped>("encrypt", &question);
        wipe(&mut question);
        Ok(answer?.data.ciphertext.into_bytes())
    }

    fn unwrapped(&self, wrapped: &[u8], context: &str) -> Result<DataKey, Fault> {
        let words = STANDARD.encode(context);
        let ciphertext = str::from_utf8(wrapped).map_err(|_| {
            Fault::lasting("the wrapped root key in the key file is none of Vault's")
        })?;
        let question = json!({
            "ciphertext": ciphertext,
            "associated_data": words,
            "context": words,
        });
        let answer = self.transit::<Unwrapped>("decrypt", &question)?;
        let bytes = STANDARD.decode(answer.data.plaintext.text());
        let bytes = Zeroizing::new(bytes.unwrap_or_default());
        let mut key = <[u8; DATA_KEY_LEN]>::try_from(&bytes[..]).map_err(|_| {
            Fault::lasting(format!(
                "what {} has unwrapped is no key of {DATA_KEY_LEN} bytes",
                self.0.address
            ))
        })?;
        let made = dangerous_bytes::data_key_from_bytes(key);
        key.zeroize();
        Ok(made)
    }
}

impl KeyProvider for VaultProvider {
    fn wrap(&self, plain: &DataKey, context: KeyContext) -> Result<WrappedKey, KeyError> {
        let wrapped = self.wrapped(plain, &context.words());
        wrapped.map(WrappedKey).map_err(|fault| fault.of(NAME))
    }

    fn unwrap(&self, wrapped: &WrappedKey, context: KeyContext) -> Result<DataKey, KeyError> {
        let key = self.unwrapped(&wrapped.0, &context.words());
        key.map_err(|fault| fault.of(NAME))
    }

    fn name(&self) -> &str {
        NAME
    }
}

impl VaultLogin {
    fn mount(&self) -> Option<&String> {
        match self {
            VaultLogin::Token(_) => None,
            VaultLogin::AppRole { mount, .. } | VaultLogin::Kubernetes { mount, .. } => Some(mount),
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

/// A name that stands in a path as it is.
fn is_path(text: &str) -> bool {
    let parts_are_names = text.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
    parts_are_names && text.bytes().all(is_plain)
}

/// Wipes the texts of a question.
fn wipe(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => text.zeroize(),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(wipe),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
        time::Instant,
    };

    use super::*;

    fn settings(address: &str) -> VaultSettings {
        VaultSettings {
            address: address.into(),
            authority: Some("/nonexistent/ca.pem".into()),
            plain_http: false,
            mount: "transit".into(),
            key: "onionskin".into(),
            namespace: None,
            login: VaultLogin::Token(Arc::new(|| Ok(Zeroizing::new("s.ecret".into())))),
            time: Duration::from_millis(600),
        }
    }

    fn refusal(settings: VaultSettings) -> String {
        match VaultProvider::new(settings) {
            Ok(_) => panic!("it is taken"),
            Err(error) => error,
        }
    }

    #[test]
    fn addresses_have_tls_or_are_here() {
        for good in ["https://v:8200", "https://v.example", "https://[::1]:8200/"] {
            assert!(VaultProvider::new(settings(good)).is_ok(), "{good}");
        }
        for (bad, what) in [
            ("", "https://host:8200"),
            ("v:8200", "https://"),
            ("ftp://v", "https://"),
            ("https://v/path", "scheme, host and port"),
            ("https://v/?a", "scheme, host and port"),
            ("https://me:secret@v", "names a user"),
            ("http://127.0.0.1:8200", "no TLS"),
        ] {
            let error = refusal(settings(bad));
            assert!(
                error.contains(what) && !error.contains("secret"),
                "{bad}: {error}"
            );
        }
        let plain = |address: &str| VaultSettings {
            plain_http: true,
            ..settings(address)
        };
        for good in ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost"] {
            assert!(VaultProvider::new(plain(good)).is_ok(), "{good}");
        }
        for bad in [
            "http://v:8200",
            "http://10.0.0.1",
            "http://127.0.0.1.example",
        ] {
            assert!(refusal(plain(bad)).contains("this machine"), "{bad}");
        }
        let no_authority = VaultSettings {
            authority: None,
            ..settings("https://v")
        };
        assert!(refusal(no_authority).contains("ca is missing"));
        for name in ["", "a/../b", "a//b", "a?b", "a b", "ü", "a%2f"] {
            let key = VaultSettings {
                key: name.into(),
                ..settings("https://v")
            };
            assert!(refusal(key).contains("key has other"), "{name}");
        }
    }

    /// A server that answers everybody with the same bytes, or not at all, and what it was sent.
    fn answering(answer: &'static [u8]) -> (VaultProvider, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = Vec::new();
            let mut piece = [0; 4096];
            while !text.ends_with(b"}") {
                let length = stream.read(&mut piece).unwrap();
                assert!(length > 0, "the whole question");
                text.extend_from_slice(&piece[..length]);
            }
            if answer.is_empty() {
                thread::sleep(Duration::from_millis(1200));
            }
            let _ = stream.write_all(answer);
            String::from_utf8(text).unwrap()
        });
        let settings = VaultSettings {
            plain_http: true,
            authority: None,
            namespace: Some("team".into()),
            ..settings(&address)
        };
        (VaultProvider::new(settings).unwrap(), asked)
    }

    fn fault_of(answer: &'static [u8]) -> (String, bool) {
        let (provider, asked) = answering(answer);
        let wrapped = WrappedKey(b"vault:v1:AAAA".to_vec());
        let error = match provider.unwrap(&wrapped, KeyContext::ROOT) {
            Ok(_) => panic!("it was unwrapped"),
            Err(error) => error,
        };
        asked.join().unwrap();
        (error.to_string(), error.may_pass())
    }

    /// What OpenBao says is seen by the tests of the program, on a real one; here is what it never
    /// says.
    #[test]
    fn answers_of_others_are_bounded_and_checked() {
        let redirect = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://elsewhere/v1/x\r\nContent-Length: 0\r\n\r\n";
        for (answer, what, passes) in [
            (&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"[..], "other JSON", false),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nSECR", "other JSON", false),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 31\r\n\r\n{\"data\":{\"plaintext\":\"AAAA\"}}  ",
                "no key of 32 bytes",
                false,
            ),
            (redirect, "leads elsewhere (307)", false),
            (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\n<html", "with 502", true),
            (b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", "with 429", true),
            (b"garbage\r\n\r\n", "http://127.0.0.1", true),
            (b"", "has not answered within 0.6 seconds", true),
        ] {
            let begin = Instant::now();
            let (text, may_pass) = fault_of(answer);
            assert!(text.contains(what), "{text}");
            assert!(!text.contains("SECR") && !text.contains("s.ecret"), "{text}");
            assert_eq!(may_pass, passes, "{text}");
            assert!(begin.elapsed() < Duration::from_secs(4), "{text}");
        }
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
        let long = [&head[..], &vec![b' '; 1_000_000][..]].concat();
        let (text, _) = fault_of(long.leak());
        assert!(text.contains("more than 65536 bytes"), "{text}");
    }

    #[test]
    fn the_question_names_what_the_key_is_for() {
        let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"data\":{\"plaintext\":\"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\"}}\n";
        let (provider, asked) = answering(answer);
        let wrapped = WrappedKey(b"vault:v1:AAAA".to_vec());
        let key = provider.unwrap(&wrapped, KeyContext::ROOT).unwrap();
        assert_eq!(dangerous_bytes::bytes_of_data_key(&key), &[7; 32]);
        let asked = asked.join().unwrap();
        let (head, body) = asked.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("POST /v1/transit/decrypt/onionskin HTTP/1.1"),
            "{head}"
        );
        let head = head.to_lowercase();
        assert!(
            head.contains("x-vault-token: s.ecret") && head.contains("x-vault-namespace: team")
        );
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let words = STANDARD.encode("onionskin/1 root key");
        assert_eq!(body["associated_data"], words.as_str());
        assert_eq!(body["ciphertext"], "vault:v1:AAAA");
    }
}
