//! The transit engine of Vault or OpenBao, which has the key and gives it to nobody.
//!
//! For each question: a login (unless there is a token), `encrypt` or `decrypt`, and the end of the
//! login's token. What the key is for is associated data, so that ciphertexts of other users of the
//! same key do not open here. It is the context of derived keys, too; others ignore that.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use onionskin_crypt::{DATA_KEY_LEN, DataKey, dangerous_bytes};
use onionskin_keys::{KeyContext, KeyError, KeyProvider, WrappedKey, read_secret_file};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use ureq::Agent;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    fault::Fault,
    http::{Reply, Server},
    secret_text::{SecretText, wipe},
    shown::behind,
};

/// The provider's name.
const NAME: &str = "vault";
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
pub struct VaultProvider(VaultSettings, Server);

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
        let server = Server {
            address: settings.address.clone(),
            authority: settings.authority.clone(),
            time: settings.time,
        };
        server.check("address", settings.plain_http)?;
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
        Ok(VaultProvider(settings, server))
    }

    /// Asks the engine for one thing.
    fn transit<T: DeserializeOwned>(
        &self,
        operation: &str,
        question: &serde_json::Value,
    ) -> Result<T, Fault> {
        let agent = self.1.agent()?;
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
        let mut headers = vec![
            ("Content-Type", "application/json"),
            // Agents between take it for a sign that no browser was talked into this.
            ("X-Vault-Request", "true"),
        ];
        headers.extend(token.map(|token| ("X-Vault-Token", token)));
        let namespace = self.0.namespace.as_deref();
        headers.extend(namespace.map(|namespace| ("X-Vault-Namespace", namespace)));
        let path = format!("v1/{path}");
        let Reply { status, body, .. } = self.1.post(agent, &path, &headers, body)?;
        Ok((status, body))
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

/// A name that stands in a path as it is.
fn is_path(text: &str) -> bool {
    let parts_are_names = text.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
    parts_are_names && text.bytes().all(is_plain)
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
            ("", "https://host:port"),
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
