//! What can go wrong with an object store: one sentence, and the way out.
//!
//! No text holds a key, a token, or an address that was signed.

use std::io;

/// Why a request came to nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Not an address.
    #[error("{0:?} is no address of a bucket: {1}; write s3://bucket/prefix")]
    Address(String, &'static str),
    /// The environment or the profile.
    #[error("{0}")]
    Setting(String),
    /// Nobody says who asks.
    #[error(transparent)]
    NoCredentials(onionskin_aws::Fault),
    /// 403 and its like.
    #[error(
        "{endpoint} refuses {action} ({code}): look at the credentials and at what they may do in bucket {bucket}"
    )]
    Refused {
        /// Who.
        endpoint: String,
        /// What was asked for.
        action: &'static str,
        /// The server's word for it.
        code: String,
        /// The bucket.
        bucket: String,
    },
    /// The clocks differ too much for signatures.
    #[error(
        "{endpoint} refuses the time of the request ({code}): this machine's clock is {minutes} minutes {} the store's; set it",
        if *behind { "behind" } else { "ahead of" }
    )]
    Clock {
        /// Who.
        endpoint: String,
        /// The server's word for it.
        code: String,
        /// By how much.
        minutes: u64,
        /// Or else ahead.
        behind: bool,
    },
    /// The bucket is not there.
    #[error("{endpoint} has no bucket {bucket}: make it first, or name another one")]
    NoBucket {
        /// Who.
        endpoint: String,
        /// Its name.
        bucket: String,
    },
    /// The bucket is in another region.
    #[error("bucket {bucket} is not in region {region}{}", found_in(there.as_deref()))]
    Region {
        /// Its name.
        bucket: String,
        /// Where it was looked for.
        region: String,
        /// Where the server says it is.
        there: Option<String>,
    },
    /// No such object.
    #[error("no such object")]
    NoObject,
    /// There is an object of this name.
    #[error("an object of this name exists, and is not replaced")]
    Exists,
    /// Somebody else has ended the upload.
    #[error(
        "somebody has aborted this upload while it was going on (a lifecycle rule, or a prune on another machine)"
    )]
    Aborted,
    /// It is locked.
    #[error("the store retains this object, and does not let it be removed")]
    Retained,
    /// No room.
    #[error("{endpoint} has no room left ({code})")]
    Full {
        /// Who.
        endpoint: String,
        /// The server's word for it.
        code: String,
    },
    /// Nobody has answered, or not in time.
    #[error("{endpoint} cannot be used: {why}{}", tried(*tries))]
    Unreachable {
        /// Who.
        endpoint: String,
        /// What happened at last.
        why: String,
        /// How often it was tried.
        tries: u32,
    },
    /// The server fails.
    #[error("{endpoint} fails {action} with {status} {code}{}", tried(*tries))]
    Failing {
        /// Who.
        endpoint: String,
        /// What was asked for.
        action: &'static str,
        /// The status of HTTP.
        status: u16,
        /// The server's word for it.
        code: String,
        /// How often it was tried.
        tries: u32,
    },
    /// What no server that speaks S3 says.
    #[error("{endpoint} gives an answer to {action} that S3 does not: {why}")]
    Answer {
        /// Who.
        endpoint: String,
        /// What was asked for.
        action: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// The certificate.
    #[error(
        "the certificate of {0} is not to be trusted ({1}): set AWS_CA_BUNDLE to a file with its authority"
    )]
    Certificate(String, String),
    /// The object is another one than a moment ago.
    #[error("the object was replaced or removed while it was read")]
    Changed,
    /// A lock of this process was left by a panic, or a thread could not be made.
    #[error("a thread could not be started, or ended early")]
    Lost,
    /// More than the format of S3 has room for.
    #[error("the stream is too long for one object")]
    TooLong,
}

fn found_in(there: Option<&str>) -> String {
    match there {
        Some(there) => format!(" but in {there}: set AWS_REGION={there}"),
        None => ": set AWS_REGION to the one where it is".into(),
    }
}

fn tried(tries: u32) -> String {
    match tries {
        0 | 1 => String::new(),
        tries => format!(" ({tries} tries)"),
    }
}

impl Fault {
    /// As errors of files are told apart.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NoObject | Self::NoBucket { .. } => io::ErrorKind::NotFound,
            Self::Exists => io::ErrorKind::AlreadyExists,
            Self::Refused { .. } | Self::Retained | Self::NoCredentials(..) => {
                io::ErrorKind::PermissionDenied
            }
            Self::Full { .. } => io::ErrorKind::StorageFull,
            Self::Unreachable { .. } => io::ErrorKind::TimedOut,
            Self::Address(..) | Self::Setting(_) => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        }
    }

    /// Whether the arguments or the environment are wrong, so that trying again cannot help.
    pub fn is_about_the_setup(&self) -> bool {
        matches!(
            self,
            Self::Address(..) | Self::Setting(_) | Self::NoCredentials(..)
        )
    }
}

impl From<onionskin_aws::Fault> for Fault {
    fn from(fault: onionskin_aws::Fault) -> Self {
        match fault {
            onionskin_aws::Fault::Setting(text) => Self::Setting(text),
            fault @ onionskin_aws::Fault::NoCredentials { .. } => Self::NoCredentials(fault),
        }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        Self::new(fault.kind(), fault)
    }
}
