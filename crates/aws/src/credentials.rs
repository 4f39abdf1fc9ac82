//! Who asks: the usual chain.
//!
//! 1. `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`
//! 2. the profile of `AWS_PROFILE` (or `default`) in the shared files
//! 3. the container that the program runs in (ECS, EKS): `AWS_CONTAINER_CREDENTIALS_…`
//! 4. the instance (EC2), by version 2 of its service, unless `AWS_EC2_METADATA_DISABLED=true`
//!
//! The last two give credentials for hours. They are asked anew before those end, so that an upload
//! may take longer. Single sign-on, `credential_process` and roles of other accounts are not known
//! here: `aws configure export-credentials` gives what the first place takes.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use ureq::Agent;
use url::{Host, Url};
use zeroize::Zeroizing;

use crate::{Fault, Profile, is_here, now, variable};

/// Where the service of an instance is.
const INSTANCE: &str = "http://169.254.169.254";
/// Where the service of a container is.
const CONTAINER: &str = "http://169.254.170.2";
/// An instance without the service shall not cost more.
const SERVICE_TIME: Duration = Duration::from_secs(3);
/// Longest answer of a service, in bytes.
const MOST: u64 = 64 << 10;
/// Credentials that end within so many seconds are not used any more.
const AHEAD: i64 = 300;

/// An access key.
#[derive(Clone)]
pub struct AccessKey {
    /// No secret.
    pub id: String,
    /// What is signed with.
    pub secret: Zeroizing<String>,
    /// Of a key that ends: sent with each request.
    pub token: Option<Zeroizing<String>>,
    /// When it ends.
    expires: Option<DateTime<Utc>>,
}

impl AccessKey {
    /// One that is known.
    pub fn fixed(id: &str, secret: &str, token: Option<&str>) -> Self {
        AccessKey {
            id: id.to_owned(),
            secret: Zeroizing::new(secret.to_owned()),
            token: token.map(|token| Zeroizing::new(token.to_owned())),
            expires: None,
        }
    }

    /// Whether it can be used for a while.
    pub fn lasts(&self) -> bool {
        let ends = |ends: DateTime<Utc>| (ends - now()).num_seconds() < AHEAD;
        !self.expires.is_some_and(ends)
    }
}

/// Where access keys come from.
#[derive(Clone)]
pub enum Source {
    /// Known.
    Fixed(AccessKey),
    /// Asked with a text in `Authorization`, if there is one.
    Container(Url, Option<Zeroizing<String>>),
    /// By version 2 of the service there.
    Instance(Url),
    /// For the error.
    Nowhere(&'static str),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "fixed",
            Self::Container(..) => "container",
            Self::Instance(_) => "instance",
            Self::Nowhere(_) => "nowhere",
        })
    }
}

/// As both services write them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Given {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<String>,
}

impl Source {
    /// Looks in every place but asks nobody.
    pub fn find(profile: &Profile) -> Result<Self, Fault> {
        let both = |id: Option<String>, secret: Option<String>, token: Option<String>, of| match (
            id, secret,
        ) {
            (Some(id), Some(secret)) => {
                let key = AccessKey {
                    id,
                    secret: Zeroizing::new(secret),
                    token: token.map(Zeroizing::new),
                    expires: None,
                };
                Ok(Some(Self::Fixed(key)))
            }
            (None, None) => Ok(None),
            _ => Err(Fault::Setting(format!(
                "{of} has only one of the access key's two parts: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ))),
        };
        // A profile that is named goes before variables that somebody has left there? The tools say
        // no, so we do.
        let of_variables = both(
            variable("AWS_ACCESS_KEY_ID"),
            variable("AWS_SECRET_ACCESS_KEY"),
            variable("AWS_SESSION_TOKEN"),
            "the environment",
        )?;
        if let Some(found) = of_variables {
            return Ok(found);
        }
        let own = |key| profile.get(key).map(str::to_owned);
        let of_profile = both(
            own("aws_access_key_id"),
            own("aws_secret_access_key"),
            own("aws_session_token"),
            "the profile",
        )?;
        if let Some(found) = of_profile {
            return Ok(found);
        }
        if let Some(found) = Self::container()? {
            return Ok(found);
        }
        if [
            "credential_process",
            "sso_session",
            "sso_start_url",
            "role_arn",
        ]
        .iter()
        .any(|key| profile.get(key).is_some())
        {
            return Ok(Self::Nowhere(
                " (the profile gets its own by a program, a role or single sign-on, which is not known here: `aws configure \
                 export-credentials` tells them)",
            ));
        }
        if variable("AWS_EC2_METADATA_DISABLED").is_some_and(|said| said == "true") {
            return Ok(Self::Nowhere(""));
        }
        let service = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let service = parse(
            "AWS_EC2_METADATA_SERVICE_ENDPOINT",
            service.as_deref().unwrap_or(INSTANCE),
        )?;
        Ok(Self::Instance(service))
    }

    fn container() -> Result<Option<Self>, Fault> {
        let relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        let (name, text) = match (relative, full) {
            (Some(path), _) => (
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                format!("{CONTAINER}{path}"),
            ),
            (None, Some(full)) => ("AWS_CONTAINER_CREDENTIALS_FULL_URI", full),
            (None, None) => return Ok(None),
        };
        let url = parse(name, &text)?;
        let is_link_local = matches!(url.host(), Some(Host::Ipv4(host)) if host.is_link_local());
        if url.scheme() != "https" && !is_here(&url) && !is_link_local {
            return Err(Fault::Setting(format!(
                "{name} has no TLS and is on another machine"
            )));
        }
        let token = match variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(path) => {
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| Fault::Setting(format!("{path}: {error}")))?;
                Some(Zeroizing::new(text.trim().to_owned()))
            }
            None => variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(Zeroizing::new),
        };
        Ok(Some(Self::Container(url, token)))
    }

    /// An access key, asked for if need be. `endpoint` stands in the error.
    pub fn access_key(&self, endpoint: &str) -> Result<AccessKey, Fault> {
        let none = |why: String, may_pass: bool| Fault::NoCredentials {
            endpoint: endpoint.to_owned(),
            why,
            may_pass,
        };
        match self {
            Self::Fixed(key) => Ok(key.clone()),
            Self::Nowhere(why) => Err(none((*why).to_owned(), false)),
            Self::Container(url, token) => {
                let token = token
                    .as_ref()
                    .map(|token| ("authorization", token.as_str()));
                let said = ask("GET", url, token);
                given(said).map_err(|why| none(format!(" (the container's service {why})"), true))
            }
            Self::Instance(service) => of_instance(service).map_err(|why| {
                let why = format!(" (this is no EC2 instance with a role either: {why})");
                none(why, true)
            }),
        }
    }
}

/// By version 2 of the service: with a token, so that no proxy can be talked into asking.
fn of_instance(service: &Url) -> Result<AccessKey, String> {
    let at = |path: &str| {
        service
            .join(path)
            .map_err(|_| "it has no address".to_owned())
    };
    let lifetime = ("x-aws-ec2-metadata-token-ttl-seconds", "300");
    let token = ask("PUT", &at("/latest/api/token")?, Some(lifetime))?;
    let token = Some(("x-aws-ec2-metadata-token", token.trim()));
    let roles = "/latest/meta-data/iam/security-credentials/";
    let role = ask("GET", &at(roles)?, token)?;
    let role = role.lines().next().unwrap_or_default().trim();
    if role.is_empty() {
        return Err("it has no role".into());
    }
    given(ask("GET", &at(&format!("{roles}{role}"))?, token))
}

fn given(said: Result<Zeroizing<String>, String>) -> Result<AccessKey, String> {
    let said = said?;
    // Serde's own text may quote the content.
    let given: Given =
        serde_json::from_str(&said).map_err(|_| "answers with no access key".to_owned())?;
    Ok(AccessKey {
        id: given.access_key_id,
        secret: Zeroizing::new(given.secret_access_key),
        token: given.token.map(Zeroizing::new),
        expires: given.expiration.and_then(|text| {
            let time = DateTime::parse_from_rfc3339(&text);
            time.ok().map(|time| time.to_utc())
        }),
    })
}

fn ask(method: &str, url: &Url, header: Option<(&str, &str)>) -> Result<Zeroizing<String>, String> {
    let config = Agent::config_builder()
        .timeout_global(Some(SERVICE_TIME))
        .max_redirects(0)
        .http_status_as_error(false)
        .proxy(None)
        .build();
    let agent = config.new_agent();
    let mut request = ureq::http::Request::builder()
        .method(method)
        .uri(url.as_str());
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let request = request
        .body(())
        .map_err(|_| "its address is none".to_owned())?;
    let mut answer = agent
        .run(request)
        .map_err(|_| "does not answer".to_owned())?;
    let status = answer.status().as_u16();
    if status != 200 {
        return Err(format!("answers with {status}"));
    }
    let text = answer.body_mut().with_config().limit(MOST).read_to_string();
    text.map(Zeroizing::new)
        .map_err(|_| "gives an answer that is cut or too long".to_owned())
}

fn parse(name: &str, text: &str) -> Result<Url, Fault> {
    let url = Url::parse(text).ok().filter(Url::has_host);
    url.ok_or_else(|| Fault::Setting(format!("{name} is no address")))
}
