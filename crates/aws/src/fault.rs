//! What can go wrong before anybody is asked: one sentence, and the way out.

/// Why nobody can be asked. No text holds a key or a token.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Fault {
    /// The environment or the profile.
    #[error("{0}")]
    Setting(String),
    /// Nobody says who asks.
    #[error(
        "there are no credentials for {endpoint}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile that has them{why}"
    )]
    NoCredentials {
        /// For whom.
        endpoint: String,
        /// Empty, or more about it in brackets.
        why: String,
        /// A service that gives some out has not answered, and may do so later.
        may_pass: bool,
    },
}
