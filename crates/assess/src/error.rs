//! Why nothing can be said.

use std::{io, path::PathBuf};

use onionskin_rowstream::client::ClientError;

/// Why an assessment ended without a report.
#[derive(Debug, thiserror::Error)]
pub enum AssessError {
    /// The server cannot be asked.
    #[error("the server cannot be asked: {0}; see --user, --password-env, --backend and -c")]
    Server(ClientError),
    /// The connection broke, or the server sent more than it was asked for.
    #[error("the server stopped answering: {0}; nothing was assessed")]
    Broken(ClientError),
    /// A file or folder.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// What was asked for does not fit.
    #[error("{0}")]
    Request(String),
    /// The server is in a state in which nothing (more) is changed.
    #[error("{0}")]
    State(String),
    /// The planted table could not be made, or not be removed.
    #[error("--plant: {0}")]
    Plant(String),
}

impl AssessError {
    /// Whether trying again cannot help.
    pub fn is_about_the_request(&self) -> bool {
        matches!(self, Self::Request(_))
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
