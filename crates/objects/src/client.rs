//! One request: signed, sent, read, and repeated where that can help.

use std::{
    io::Read,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use jiff::Timestamp;
use onionskin_aws::{AccessKey, now};
use parking_lot::Mutex;
use rand::RngExt;
use rusty_s3::{Method, signing::sign};
use ureq::{
    Agent, AsSendBody, Body,
    http::{HeaderMap, Request, Response},
};
use zeroize::Zeroizing;

use crate::{Fault, Settings, xml::Element};

/// How long a signature holds. A request that is sent within it may take longer.
const SIGNED_FOR: u64 = 900;
/// A connection on which nothing moves for so long has ended.
const IDLE: Duration = Duration::from_secs(30);
/// The server puts an object together before it answers.
pub(crate) const LONG_IDLE: Duration = Duration::from_secs(180);
/// Slower than this, in bytes a second, is as good as not at all.
const SLOWEST: u64 = 64 << 10;
/// Pauses between attempts. Each is drawn between its half and its whole, so that many that failed
/// together do not come together again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// Answers that are no object, in bytes. A list of a thousand names of a thousand bytes fits.
const MOST: usize = 8 << 20;

/// What is asked for.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// For errors: "listing objects".
    pub(crate) action: &'static str,
    /// The object; the bucket if there is none.
    pub(crate) key: Option<&'a str>,
    /// Sorted by name.
    pub(crate) query: Vec<(&'a str, &'a str)>,
    /// In lower case, sorted by name.
    pub(crate) headers: Vec<(&'a str, String)>,
    pub(crate) body: &'a [u8],
    /// Bytes that the answer has, if that is known.
    pub(crate) wanted: Option<usize>,
    pub(crate) idle: Duration,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: Method, action: &'static str, key: Option<&'a str>) -> Self {
        Self {
            method,
            action,
            key,
            query: Vec::new(),
            headers: Vec::new(),
            body: &[],
            wanted: None,
            idle: IDLE,
        }
    }
}

/// What the server has answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The server's time.
    pub(crate) fn date(&self) -> Option<DateTime<Utc>> {
        let date = DateTime::parse_from_rfc2822(self.header("date")?).ok()?;
        Some(date.to_utc())
    }
}

/// What came of one attempt.
struct Failed {
    fault: Fault,
    /// Trying again may help.
    may_pass: bool,
    /// The access key was refused: another one may be there by now.
    key_refused: bool,
}

impl Failed {
    fn lasting(fault: Fault) -> Self {
        Self {
            fault,
            may_pass: false,
            key_refused: false,
        }
    }

    fn passing(fault: Fault) -> Self {
        Self {
            may_pass: true,
            ..Self::lasting(fault)
        }
    }
}

/// Talks to one bucket.
pub(crate) struct Client {
    settings: Settings,
    bucket: rusty_s3::Bucket,
    /// For messages: scheme, host and port.
    endpoint: String,
    agent: Agent,
    access_key: Mutex<Option<AccessKey>>,
}

impl Client {
    /// Nobody is asked yet.
    pub(crate) fn new(settings: Settings, name: &str) -> Result<Self, Fault> {
        let bucket = settings.bucket(name)?;
        Ok(Self {
            endpoint: bucket.base_url().origin().ascii_serialization(),
            agent: settings.agent(bucket.base_url())?,
            settings,
            bucket,
            access_key: Mutex::new(None),
        })
    }

    /// Asks until there is an answer that says yes, or no for good. Ends early if `stop` is set.
    pub(crate) fn ask(&self, ask: &Ask<'_>, stop: Option<&AtomicBool>) -> Result<Answer, Fault> {
        let mut pause = FIRST_PAUSE;
        let mut key_was_refused = false;
        for attempt in 1.. {
            let mut failed = match self.once(ask) {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            // Once: the key may have ended since it was read.
            if failed.key_refused && !std::mem::replace(&mut key_was_refused, true) {
                *self.access_key.lock() = None;
                failed.may_pass = true;
            }
            let stopped = || stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if !failed.may_pass || attempt >= self.settings.attempts || stopped() {
                return Err(after(failed.fault, attempt));
            }
            let drawn = pause.mul_f64(rand::rng().random_range(0.5..1.0));
            let until = Instant::now() + drawn;
            while !stopped() && Instant::now() < until {
                thread::sleep(Duration::from_millis(20).min(drawn));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        unreachable!("the last attempt returns")
    }

    /// One attempt, whatever comes of it.
    pub(crate) fn ask_once(&self, ask: &Ask<'_>) -> Result<Answer, Fault> {
        self.once(ask).map_err(|failed| failed.fault)
    }

    fn access_key(&self) -> Result<AccessKey, Fault> {
        let mut cached = self.access_key.lock();
        if let Some(key) = cached.as_ref().filter(|key| key.lasts()) {
            return Ok(key.clone());
        }
        let key = self.settings.source.access_key(&self.endpoint)?;
        *cached = Some(key.clone());
        Ok(key)
    }

    fn once(&self, ask: &Ask<'_>) -> Result<Answer, Failed> {
        let key = self.access_key().map_err(Failed::lasting)?;
        let url = match ask.key {
            Some(key) => self.bucket.object_url(key),
            None => self.bucket.base_url().clone(),
        };
        let headers = ask
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let url = sign(
            &Timestamp::now(),
            ask.method,
            url,
            &key.id,
            &key.secret,
            key.token.as_ref().map(|token| token.as_str()),
            self.bucket.region(),
            SIGNED_FOR,
            ask.query.iter().copied(),
            headers.clone(),
        );
        // It holds the signature.
        let url = Zeroizing::new(String::from(url));
        let mut request = Request::builder().method(ask.method.to_str()).uri(&*url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let moved = ask.body.len().max(ask.wanted.unwrap_or(0)) as u64;
        let whole = 2 * ask.idle + Duration::from_secs(moved / SLOWEST);
        // A PUT or POST without content says so; the others have none.
        let sent = match ask.method {
            Method::Put | Method::Post => request.body(ask.body).map(|r| self.send(r, ask, whole)),
            _ => request.body(()).map(|r| self.send(r, ask, whole)),
        };
        let sent = sent.map_err(|_| Failed::lasting(self.odd(ask, "a request that is none")))?;
        let answer = sent.map_err(|error| self.unreached(error))?;
        self.read(ask, answer)
    }

    fn send<B: AsSendBody>(
        &self,
        request: Request<B>,
        ask: &Ask<'_>,
        whole: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(request);
        let request = request
            .timeout_per_read(Some(ask.idle))
            .timeout_per_write(Some(ask.idle))
            .timeout_global(Some(whole))
            .build();
        self.agent.run(request)
    }

    fn read(&self, ask: &Ask<'_>, mut answer: Response<Body>) -> Result<Answer, Failed> {
        let status = answer.status().as_u16();
        let headers = answer.headers().clone();
        let is_good = (200..300).contains(&status);
        let wanted = ask.wanted.filter(|_| is_good);
        // One more than there may be, so that too much shows.
        let most = wanted.unwrap_or(MOST) + 1;
        let mut body = Vec::with_capacity(wanted.map_or(0, |wanted| wanted + 1));
        if ask.method != Method::Head {
            let reader = answer.body_mut().with_config().limit(u64::MAX).reader();
            let read = reader.take(most as u64).read_to_end(&mut body);
            if let Err(error) = read {
                return Err(self.cut(&error));
            }
        }
        match wanted {
            Some(wanted) if body.len() < wanted => {
                return Err(Failed::passing(self.odd(ask, "it is cut short")));
            }
            Some(wanted) if body.len() > wanted => {
                return Err(Failed::lasting(self.odd(ask, "it is too long")));
            }
            None if body.len() > MOST => {
                return Err(Failed::lasting(self.odd(ask, "it is too long")));
            }
            _ => {}
        }
        let answer = Answer {
            status,
            headers,
            body,
        };
        match is_good {
            // What takes long is answered before it is known what comes of it.
            true if ask.method == Method::Post => match Element::parse(&answer.body) {
                Some(root) if root.name == "Error" => Err(self.refused(ask, &answer)),
                Some(_) => Ok(answer),
                None => Err(Failed::passing(self.odd(ask, "it is no whole document"))),
            },
            true => Ok(answer),
            false => Err(self.refused(ask, &answer)),
        }
    }

    /// What an answer means that says no.
    fn refused(&self, ask: &Ask<'_>, answer: &Answer) -> Failed {
        let said = Element::parse(&answer.body);
        let said = |name: &str| said.as_ref().and_then(|root| root.text_of(name));
        // A word; nobody prints what a server makes up.
        let is_word =
            |code: &&str| code.len() < 64 && code.chars().all(|c| c.is_ascii_alphanumeric());
        let code = said("Code").filter(is_word).unwrap_or_default().to_owned();
        let endpoint = self.endpoint.clone();
        let bucket = self.bucket.name().to_owned();
        let failing = |code| Fault::Failing {
            endpoint: self.endpoint.clone(),
            action: ask.action,
            status: answer.status,
            code,
            tries: 1,
        };
        let skew = answer.date().map(|date| (date - now()).num_minutes());
        let skew = skew.filter(|minutes| minutes.abs() >= 2);
        match (answer.status, code.as_str()) {
            (_, "NoSuchBucket") => Failed::lasting(Fault::NoBucket { endpoint, bucket }),
            (_, "NoSuchUpload") => Failed::lasting(Fault::Aborted),
            (404, _) => Failed::lasting(Fault::NoObject),
            (412, _) => Failed::lasting(Fault::Changed),
            (409, "OperationAborted") => Failed::passing(failing(code)),
            (409, _) => Failed::lasting(Fault::Exists),
            (
                _,
                "QuotaExceeded" | "InsufficientCapacity" | "XMinioStorageFull" | "EntityTooLarge",
            )
            | (507, _) => Failed::lasting(Fault::Full { endpoint, code }),
            (301 | 307, _)
            | (400, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
                let there = answer.header("x-amz-bucket-region").or(said("Region"));
                let is_region = |there: &&str| {
                    there.len() < 64 && there.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
                };
                Failed::lasting(Fault::Region {
                    bucket,
                    region: self.bucket.region().to_owned(),
                    there: there.filter(is_region).map(str::to_owned),
                })
            }
            (_, "RequestTimeTooSkewed") | (403, "AccessDenied" | "RequestExpired" | "")
                if skew.is_some_and(|m| m.abs() >= 10) =>
            {
                Failed::lasting(Fault::Clock {
                    endpoint,
                    code,
                    minutes: skew.unwrap_or(0).unsigned_abs(),
                    behind: skew.unwrap_or(0) > 0,
                })
            }
            (401 | 403, _) | (400, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") => {
                Failed {
                    key_refused: matches!(
                        code.as_str(),
                        "ExpiredToken"
                            | "InvalidToken"
                            | "TokenRefreshRequired"
                            | "InvalidAccessKeyId"
                    ),
                    ..Failed::lasting(Fault::Refused {
                        endpoint,
                        action: ask.action,
                        code: match code.as_str() {
                            "" => answer.status.to_string(),
                            code => code.to_owned(),
                        },
                        bucket,
                    })
                }
            }
            // Without a body, this may be a token that has ended.
            (400, "") if ask.method == Method::Head => Failed {
                key_refused: true,
                ..Failed::lasting(failing(code))
            },
            // What was sent has been changed on the way, or came too slowly.
            (
                400,
                "BadDigest"
                | "InvalidDigest"
                | "XAmzContentChecksumMismatch"
                | "RequestTimeout"
                | "IncompleteBody",
            )
            | (408 | 425 | 429 | 500..=599, _)
            | (200..=299, _) => Failed::passing(failing(code)),
            _ => Failed::lasting(failing(code)),
        }
    }

    /// Why nobody has answered. No text of `ureq` is shown that may hold the address.
    fn unreached(&self, error: ureq::Error) -> Failed {
        let inner = match &error {
            ureq::Error::Io(error) => error.get_ref().and_then(|e| e.downcast_ref()),
            _ => None,
        };
        let tls = match &error {
            ureq::Error::Rustls(error) => Some(error),
            _ => inner,
        };
        if let Some(rustls::Error::InvalidCertificate(why)) = tls {
            let fault = Fault::Certificate(self.endpoint.clone(), format!("{why:?}"));
            return Failed::lasting(fault);
        }
        let why = match &error {
            ureq::Error::Io(error) => return self.cut(error),
            ureq::Error::Timeout(_) => "it is silent, or too slow".to_owned(),
            ureq::Error::HostNotFound => "its name stands for no address".to_owned(),
            ureq::Error::ConnectionFailed => "nobody listens there".to_owned(),
            ureq::Error::Rustls(error) => format!("TLS: {error}"),
            ureq::Error::ConnectProxyFailed(_) => "the proxy refuses to connect".to_owned(),
            _ => "what it says is no HTTP".to_owned(),
        };
        Failed::passing(Fault::Unreachable {
            endpoint: self.endpoint.clone(),
            why,
            tries: 1,
        })
    }

    fn cut(&self, error: &std::io::Error) -> Failed {
        let timeout = error
            .get_ref()
            .and_then(|e| e.downcast_ref::<ureq::Error>());
        let why = match (timeout, error.kind()) {
            (Some(ureq::Error::Timeout(_)), _) | (_, std::io::ErrorKind::TimedOut) => {
                "it is silent, or too slow".to_owned()
            }
            (_, kind) => format!("the connection was lost ({kind})"),
        };
        Failed::passing(Fault::Unreachable {
            endpoint: self.endpoint.clone(),
            why,
            tries: 1,
        })
    }

    /// An answer that no server gives.
    pub(crate) fn odd(&self, ask: &Ask<'_>, why: &'static str) -> Fault {
        Fault::Answer {
            endpoint: self.endpoint.clone(),
            action: ask.action,
            why,
        }
    }
}

/// Says how often it was tried.
fn after(mut fault: Fault, attempts: u32) -> Fault {
    if let Fault::Unreachable { tries, .. } | Fault::Failing { tries, .. } = &mut fault {
        *tries = attempts;
    }
    fault
}
