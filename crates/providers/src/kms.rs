//! AWS KMS, which has the key and gives it to nobody.
//!
//! For each question one signed request: `Encrypt` or `Decrypt`. What the key is for is the
//! encryption context, so that ciphertexts of other users of the same key do not open here. The key
//! is named when something is decrypted, too: KMS would look for it otherwise. Credentials are
//! those of the AWS tools, looked for anew each time.

use std::{path::PathBuf, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::DateTime;
use onionskin_aws::{AccessKey, Profile, Source, now, sign, system_authorities};
use onionskin_crypt::{DATA_KEY_LEN, DataKey, dangerous_bytes};
use onionskin_keys::{KeyContext, KeyError, KeyProvider, WrappedKey};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    fault::Fault,
    http::{Reply, Server},
    secret_text::{SecretText, wipe},
    shown::behind,
};

/// The provider's name.
const NAME: &str = "aws-kms";
/// The name in the encryption context.
const CONTEXT: &str = "onionskin";
/// Longest question, in bytes.
const MOST: usize = 64 << 10;
/// Clocks that differ by more make signatures void, which KMS does not say as plainly.
const SKEW_MINUTES: i64 = 4;

/// Which key, and how it is reached.
#[derive(Clone)]
pub struct KmsSettings {
    /// Such as `eu-west-1`; that of the key's ARN if it is left out.
    pub region: Option<String>,
    /// An id, `alias/NAME`, or an ARN.
    pub key: String,
    /// `https://host:port`, if it is not the region's.
    pub endpoint: Option<String>,
    /// A file in PEM with the authorities that its certificate may come from, if they are not the
    /// system's.
    pub authority: Option<PathBuf>,
    /// `http://` is allowed, to an address of this machine.
    pub plain_http: bool,
    /// For each request.
    pub time: Duration,
}

/// See the module.
pub struct KmsProvider {
    key: String,
    region: String,
    server: Server,
    /// Those of the tests: `None` outside.
    access_key: Option<AccessKey>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Wrapped {
    ciphertext_blob: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Unwrapped {
    plaintext: SecretText,
}

#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default, rename = "__type")]
    kind: String,
    #[serde(default, alias = "Message")]
    message: String,
}

impl KmsProvider {
    /// Nobody is asked yet, and no file is read.
    pub fn new(settings: KmsSettings) -> Result<Self, String> {
        let KmsSettings {
            region,
            key,
            endpoint,
            authority,
            plain_http,
            time,
        } = settings;
        let is_of_keys = |c: char| c.is_ascii_alphanumeric() || "-_/:".contains(c);
        if key.is_empty() || !key.chars().all(is_of_keys) {
            return Err(
                "key is none: write an id, alias/NAME, or an ARN (arn:aws:kms:…)".to_owned(),
            );
        }
        // arn:PARTITION:kms:REGION:ACCOUNT:key/ID
        let of_key = key
            .strip_prefix("arn:")
            .and_then(|rest| rest.split(':').nth(2));
        let region = match (region, of_key) {
            (Some(said), Some(of_key)) if said != of_key => {
                return Err(format!("region is {said:?}, and the key is of {of_key:?}"));
            }
            (Some(region), _) => region,
            (None, Some(region)) => region.to_owned(),
            (None, None) => {
                return Err("region is missing: write for example \"eu-west-1\"".to_owned());
            }
        };
        let is_of_regions = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if region.is_empty() || !region.bytes().all(is_of_regions) {
            return Err(format!(
                "region {region:?} is none: write for example \"eu-west-1\""
            ));
        }
        let domain = match region.starts_with("cn-") {
            true => "amazonaws.com.cn",
            false => "amazonaws.com",
        };
        let address = endpoint.unwrap_or_else(|| format!("https://kms.{region}.{domain}"));
        let own = || system_authorities().map(PathBuf::from);
        let server = Server {
            address,
            authority: authority.or_else(own),
            time,
        };
        server.check("endpoint", plain_http)?;
        Ok(KmsProvider {
            key,
            region,
            server,
            access_key: None,
        })
    }

    fn access_key(&self) -> Result<AccessKey, Fault> {
        if let Some(key) = &self.access_key {
            return Ok(key.clone());
        }
        let source = Profile::read().and_then(|profile| Source::find(&profile));
        let key = source.and_then(|source| source.access_key(&self.server.address));
        key.map_err(|fault| Fault {
            may_pass: matches!(
                fault,
                onionskin_aws::Fault::NoCredentials { may_pass: true, .. }
            ),
            why: fault.to_string(),
        })
    }

    fn ask<T: DeserializeOwned>(
        &self,
        operation: &str,
        question: &serde_json::Value,
    ) -> Result<T, Fault> {
        // Sized beforehand: by growing, a buffer leaves copies of a secret behind.
        let mut body = Zeroizing::new(Vec::with_capacity(MOST));
        serde_json::to_writer(&mut *body, question)
            .map_err(|_| Fault::lasting("the question cannot be written as JSON"))?;
        let target = format!("TrentService.{operation}");
        let address = &self.server.address;
        let host = address.split_once("://").map_or("", |(_, host)| host);
        let headers = [
            ("content-type", "application/x-amz-json-1.1"),
            ("host", host.trim_end_matches('/')),
            ("x-amz-target", &target),
        ];
        let request = sign::Request {
            region: &self.region,
            service: "kms",
            headers: &headers,
            body: &body,
        };
        let signed = sign::headers(&request, &self.access_key()?, now());
        let mut all = headers.to_vec();
        all.extend(signed.iter().map(|(name, value)| (*name, value.as_str())));
        let reply = self.server.post(&self.server.agent()?, "", &all, &body)?;
        if reply.status != 200 {
            return Err(self.refused(operation, &reply));
        }
        // Serde's own text may quote the content.
        serde_json::from_slice(&reply.body).map_err(|_| {
            Fault::lasting(format!(
                "{address} answers {operation} with other JSON than KMS does"
            ))
        })
    }

    /// Why the answer is none, and what to do.
    fn refused(&self, operation: &str, reply: &Reply) -> Fault {
        let KmsProvider { key, region, .. } = self;
        let (address, status) = (&self.server.address, reply.status);
        let said: Refusal = serde_json::from_slice(&reply.body).unwrap_or_default();
        // A word; nobody prints what a server makes up.
        let code = said.kind.rsplit('#').next().unwrap_or_default();
        let is_word = code.len() < 64 && code.chars().all(|c| c.is_ascii_alphanumeric());
        let code = if is_word { code } else { "" };
        let shown = behind(said.message.as_bytes());
        let name = match code {
            "" => status.to_string(),
            code => code.to_owned(),
        };
        let lasting = |why: String| Fault::lasting(why);
        let is_of_signatures = matches!(
            code,
            "" | "InvalidSignatureException" | "SignatureDoesNotMatch" | "RequestExpired"
        );
        if let Some(minutes) = skew(reply).filter(|_| is_of_signatures)
            && minutes.abs() > SKEW_MINUTES
            && matches!(status, 400 | 403)
        {
            return lasting(format!(
                "{address} refuses {operation} ({name}): this machine's clock is {} minutes {} that of KMS; set it",
                minutes.abs(),
                if minutes > 0 { "behind" } else { "ahead of" }
            ));
        }
        match code {
            "AccessDeniedException" | "NotAuthorizedException" => lasting(format!(
                "{address} refuses {operation} ({name}{shown}): the policy of the key {key}, or of whoever asks, does not allow kms:{operation}, or the key is not there or has not wrapped this root key"
            )),
            "DisabledException" => lasting(format!("the key {key} is disabled in KMS: enable it")),
            "KMSInvalidStateException" => lasting(format!(
                "the key {key} cannot be used now: it awaits its deletion or its material{shown}"
            )),
            "NotFoundException" => {
                lasting(format!("{address} has no key {key} in {region}{shown}"))
            }
            "InvalidCiphertextException" | "IncorrectKeyException" => lasting(format!(
                "the key {key} has not wrapped this root key, or the key file was altered ({name})"
            )),
            "InvalidKeyUsageException" => lasting(format!(
                "the key {key} is none to encrypt with: make a symmetric one{shown}"
            )),
            "UnrecognizedClientException"
            | "InvalidClientTokenId"
            | "InvalidAccessKeyId"
            | "InvalidSignatureException"
            | "SignatureDoesNotMatch"
            | "IncompleteSignature"
            | "MissingAuthenticationToken"
            | "MissingAuthenticationTokenException"
            | "AuthFailure"
            | "ExpiredTokenException" => lasting(format!(
                "{address} refuses the credentials ({name}): look at AWS_ACCESS_KEY_ID, AWS_PROFILE, or what the container or the instance has"
            )),
            "ThrottlingException"
            | "RequestLimitExceeded"
            | "KeyUnavailableException"
            | "DependencyTimeoutException"
            | "KMSInternalException" => {
                Fault::passing(format!("{address} answers {operation} with {name}{shown}"))
            }
            _ if matches!(status, 429 | 500..=599) => {
                Fault::passing(format!("{address} answers {operation} with {name}{shown}"))
            }
            // Not KMS' own JSON: something before it says no.
            _ if matches!(status, 401 | 403) => lasting(format!(
                "{address} refuses {operation} ({name}{}): look at the credentials, and at what they may do with the key {key}",
                behind(&reply.body)
            )),
            _ if matches!(status, 300..=399) => lasting(format!(
                "{address} leads elsewhere ({status}), which is not followed: name the endpoint that answers itself"
            )),
            _ => lasting(format!("{address} answers {operation} with {name}{shown}")),
        }
    }

    fn wrapped(&self, plain: &DataKey, context: &str) -> Result<Vec<u8>, Fault> {
        let key = dangerous_bytes::bytes_of_data_key(plain);
        let mut question = json!({
            "KeyId": self.key,
            "Plaintext": STANDARD.encode(key),
            "EncryptionContext": { CONTEXT: context },
        });
        let answer = self.ask::<Wrapped>("Encrypt", &question);
        wipe(&mut question);
        let bytes = STANDARD.decode(answer?.ciphertext_blob);
        bytes.map_err(|_| {
            let address = &self.server.address;
            Fault::lasting(format!("{address} answers Encrypt with no base64"))
        })
    }

    fn unwrapped(&self, wrapped: &[u8], context: &str) -> Result<DataKey, Fault> {
        let question = json!({
            "KeyId": self.key,
            "CiphertextBlob": STANDARD.encode(wrapped),
            "EncryptionContext": { CONTEXT: context },
        });
        let answer = self.ask::<Unwrapped>("Decrypt", &question)?;
        let bytes = STANDARD.decode(answer.plaintext.text());
        let bytes = Zeroizing::new(bytes.unwrap_or_default());
        let mut key = <[u8; DATA_KEY_LEN]>::try_from(&bytes[..]).map_err(|_| {
            Fault::lasting(format!(
                "what {} has unwrapped is no key of {DATA_KEY_LEN} bytes",
                self.server.address
            ))
        })?;
        let made = dangerous_bytes::data_key_from_bytes(key);
        key.zeroize();
        Ok(made)
    }
}

/// By how many minutes this machine's clock is behind the server's.
fn skew(reply: &Reply) -> Option<i64> {
    let date = reply.headers.get("date")?.to_str().ok()?;
    let date = DateTime::parse_from_rfc2822(date).ok()?;
    Some((date.to_utc() - now()).num_minutes())
}

impl KeyProvider for KmsProvider {
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
    };

    use super::*;

    fn settings() -> KmsSettings {
        KmsSettings {
            region: Some("eu-west-1".into()),
            key: "alias/onionskin".into(),
            endpoint: None,
            authority: Some("/nonexistent/ca.pem".into()),
            plain_http: false,
            time: Duration::from_millis(600),
        }
    }

    #[test]
    fn a_key_is_named_with_its_region() {
        let address =
            |settings: KmsSettings| Ok::<_, String>(KmsProvider::new(settings)?.server.address);
        assert_eq!(
            address(settings()).unwrap(),
            "https://kms.eu-west-1.amazonaws.com"
        );
        let of_arn = |region: Option<&str>| KmsSettings {
            region: region.map(str::to_owned),
            key: "arn:aws-cn:kms:cn-north-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
                .into(),
            ..settings()
        };
        assert_eq!(
            address(of_arn(None)).unwrap(),
            "https://kms.cn-north-1.amazonaws.com.cn"
        );
        for (bad, what) in [
            (of_arn(Some("eu-west-1")), "the key is of \"cn-north-1\""),
            (
                KmsSettings {
                    region: None,
                    ..settings()
                },
                "region is missing",
            ),
            (
                KmsSettings {
                    region: Some("eu/west".into()),
                    ..settings()
                },
                "eu-west-1",
            ),
            (
                KmsSettings {
                    key: "".into(),
                    ..settings()
                },
                "key is none",
            ),
            (
                KmsSettings {
                    key: "a b".into(),
                    ..settings()
                },
                "key is none",
            ),
            (
                KmsSettings {
                    endpoint: Some("http://127.0.0.1:1".into()),
                    ..settings()
                },
                "no TLS",
            ),
            (
                KmsSettings {
                    endpoint: Some("http://kms:1".into()),
                    plain_http: true,
                    ..settings()
                },
                "this machine",
            ),
            (
                KmsSettings {
                    endpoint: Some("https://a/b".into()),
                    ..settings()
                },
                "endpoint is scheme",
            ),
        ] {
            let error = address(bad).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        let here = KmsSettings {
            endpoint: Some("http://127.0.0.1:1".into()),
            plain_http: true,
            ..settings()
        };
        assert!(address(here).is_ok());
    }

    /// A server that answers with these bytes, and what it was sent.
    fn answering(answer: &'static [u8]) -> (KmsProvider, thread::JoinHandle<String>) {
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
        let mut provider = KmsProvider::new(KmsSettings {
            endpoint: Some(address),
            plain_http: true,
            ..settings()
        })
        .unwrap();
        provider.access_key = Some(AccessKey::fixed("AKID", "s.ecret", Some("t.oken")));
        (provider, asked)
    }

    fn fault_of(answer: &'static [u8]) -> (String, bool) {
        let (provider, asked) = answering(answer);
        let error = match provider.unwrap(&WrappedKey(vec![1; 60]), KeyContext::ROOT) {
            Ok(_) => panic!("it was unwrapped"),
            Err(error) => error,
        };
        asked.join().unwrap();
        (error.to_string(), error.may_pass())
    }

    /// An answer with this status and JSON.
    fn http(status: &str, body: &str) -> &'static [u8] {
        let text = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        text.into_bytes().leak()
    }

    #[test]
    fn answers_are_bounded_and_checked() {
        let short = format!(
            "{{\"Plaintext\":\"{}\",\"KeyId\":\"k\"}}",
            STANDARD.encode([7; 31])
        );
        let long = vec![b' '; 1_000_000];
        let long = String::from_utf8(long).unwrap();
        for (answer, what, passes) in [
            (http("200 OK", "{}"), "other JSON than KMS", false),
            (http("200 OK", "SECR"), "other JSON than KMS", false),
            (
                http("200 OK", "{\"Plaintext\":\"SECRET!\"}"),
                "no key of 32 bytes",
                false,
            ),
            (http("200 OK", &short), "no key of 32 bytes", false),
            (http("200 OK", &long), "more than 65536 bytes", false),
            (http("307 Away", ""), "leads elsewhere (307)", false),
            (http("502 Bad Gateway", "<html"), "with 502", true),
            (http("429 Slow", ""), "with 429", true),
            (
                http("403 No", "<a>b"),
                "refuses Decrypt (403: <a>b): look at the",
                false,
            ),
            (b"garbage\r\n\r\n", "http://127.0.0.1", true),
            (b"", "has not answered within 0.6 seconds", true),
        ] {
            let (text, may_pass) = fault_of(answer);
            assert!(text.contains(what), "{what}: {text}");
            for secret in ["SECR", "s.ecret", "t.oken"] {
                assert!(!text.contains(secret), "{text}");
            }
            assert_eq!(may_pass, passes, "{text}");
        }
    }

    /// What KMS says, by its own page of errors; moto says a few of them.
    #[test]
    fn refusals_end_and_outages_pass() {
        for (status, kind, what, passes) in [
            (400, "ThrottlingException", "ThrottlingException: m", true),
            (500, "KMSInternalException", "KMSInternalException", true),
            (
                500,
                "KeyUnavailableException",
                "KeyUnavailableException",
                true,
            ),
            (
                503,
                "DependencyTimeoutException",
                "DependencyTimeoutException",
                true,
            ),
            (
                400,
                "AccessDeniedException",
                "does not allow kms:Decrypt",
                false,
            ),
            (
                400,
                "DisabledException",
                "is disabled in KMS: enable it",
                false,
            ),
            (
                400,
                "KMSInvalidStateException",
                "awaits its deletion",
                false,
            ),
            (
                400,
                "com.amazonaws.kms#NotFoundException",
                "has no key alias/onionskin in eu-west-1",
                false,
            ),
            (
                400,
                "InvalidCiphertextException",
                "has not wrapped this root key",
                false,
            ),
            (
                400,
                "IncorrectKeyException",
                "has not wrapped this root key",
                false,
            ),
            (400, "InvalidKeyUsageException", "symmetric", false),
            (
                400,
                "UnrecognizedClientException",
                "refuses the credentials",
                false,
            ),
            (
                400,
                "ExpiredTokenException",
                "refuses the credentials",
                false,
            ),
            (400, "No word at all", "Decrypt with 400: m", false),
        ] {
            let body = format!("{{\"__type\":\"{kind}\",\"message\":\"m\"}}");
            let (text, may_pass) = fault_of(http(&format!("{status} No"), &body));
            assert!(text.contains(what), "{kind}: {text}");
            assert_eq!(may_pass, passes, "{text}");
        }
        let late =
            "HTTP/1.1 400 No\r\nDate: Tue, 01 Jan 2030 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}";
        let (text, may_pass) = fault_of(late.as_bytes());
        assert!(
            text.contains("minutes behind that of KMS; set it") && !may_pass,
            "{text}"
        );
    }

    #[test]
    fn the_question_is_signed_and_names_what_the_key_is_for() {
        let body = format!("{{\"Plaintext\":\"{}\"}}", STANDARD.encode([7; 32]));
        let (provider, asked) = answering(http("200 OK", &body));
        let key = provider
            .unwrap(&WrappedKey(vec![1; 60]), KeyContext::ROOT)
            .unwrap();
        assert_eq!(dangerous_bytes::bytes_of_data_key(&key), &[7; 32]);
        let asked = asked.join().unwrap();
        let (head, body) = asked.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST / HTTP/1.1"), "{head}");
        let head = head.to_lowercase();
        assert_eq!(head.matches("\r\nhost:").count(), 1, "{head}");
        for line in [
            "x-amz-target: trentservice.decrypt",
            "x-amz-security-token: t.oken",
            "authorization: aws4-hmac-sha256 credential=akid/",
            "signedheaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target",
        ] {
            assert!(head.contains(line), "{line}: {head}");
        }
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(
            body["EncryptionContext"]["onionskin"],
            "onionskin/1 root key"
        );
        assert_eq!(body["KeyId"], "alias/onionskin");
    }
}
