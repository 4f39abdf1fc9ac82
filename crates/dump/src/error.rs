//! What ends a dump.

use onionskin_rowstream::client::ClientError;

/// Why there is no dump. No text holds a value.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// What was asked for cannot be: a mask, a name that matches nothing, a type without a mask.
    #[error("{0}")]
    Request(String),
    /// The server or the proxy refuses something, or the connection broke.
    #[error("{doing}: {source}")]
    Server {
        /// What was asked.
        doing: String,
        /// The answer.
        source: ClientError,
    },
    /// What the proxy shows and what the server says do not belong together.
    #[error("{0}")]
    Mismatch(String),
    /// A table is another one than at the beginning.
    #[error("{table} was changed while it was read: run it again")]
    Changed {
        /// Database and table.
        table: String,
    },
    /// A value that has no replacement of its own.
    #[error("{column}: {reason}")]
    Value {
        /// Database, table and column.
        column: String,
        /// Why, without the value.
        reason: String,
    },
    /// The dump could not be written.
    #[error("the dump cannot be written: {0}")]
    Write(std::io::Error),
}

impl DumpError {
    /// Whether trying again cannot help.
    pub fn is_about_the_request(&self) -> bool {
        matches!(self, Self::Request(_))
    }

    /// For `map_err`: the server's answer to something.
    pub fn at(doing: impl Into<String>) -> impl FnOnce(ClientError) -> Self {
        let doing = doing.into();
        move |source| Self::Server { doing, source }
    }
}

impl From<ClientError> for DumpError {
    fn from(source: ClientError) -> Self {
        Self::at("the rows cannot be read")(source)
    }
}
