//! The administration address: how the proxy is, told over HTTP.
//!
//! | path | says |
//! |---|---|
//! | `/live` | 200 while the process runs |
//! | `/ready` | 200 if new sessions can be served, 503 otherwise |
//! | `/metrics` | what has been counted |
//!
//! It listens on a loopback address, on a Unix socket, or, with a token, anywhere. All of it is
//! bounded: threads that block, so many connections at once and no more, one request for each of
//! them, a request of a few kilobytes within seconds. Whoever floods it keeps others from asking at
//! worst; the sessions of the proxy share nothing with it but the processor.
//!
//! | file | holds |
//! |---|---|
//! | `address` | the setting, and the socket that is bound to it |
//! | `token` | who may read more than a status |
//! | `desk` | connections: how many, for how long, and who has to go first |
//! | `request` | the head of a request, read within bounds |
//! | `answer` | what is answered to what |

mod address;
mod answer;
mod desk;
mod request;
mod token;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use onionskin_proxy::Proxy;

pub use address::AdminAddress;

use crate::{config_file::ConfigFile, error::CommandError};
use address::Listener;
use answer::Clerk;
use desk::Desk;
use token::Token;

/// The administration address, bound and not served yet.
pub struct Admin {
    listener: Listener,
    token: Option<Token>,
}

/// The administration address while it is served.
pub struct Served {
    /// The file of a Unix socket.
    file: Option<PathBuf>,
}

impl Admin {
    /// Binds what the configuration says; `None` if it says nothing. The token is read first: an
    /// address that everybody could read is never bound.
    pub fn bind(file: &ConfigFile) -> Result<Option<Admin>, CommandError> {
        let Some(address) = &file.admin else {
            return match &file.admin_token_file {
                None => Ok(None),
                Some(_) => Err(CommandError::AdminToken(
                    "without admin there is nothing that asks for a token; set admin, or leave it out"
                        .into(),
                )),
            };
        };
        let token = match &file.admin_token_file {
            Some(path) => Some(Token::read(&file.folder().join(path))?),
            None => None,
        };
        let failed = |source| CommandError::AdminListen {
            address: address.to_string(),
            source,
        };
        if token.is_none() && !address.is_local().map_err(failed)? {
            return Err(CommandError::OpenAdmin {
                address: address.to_string(),
            });
        }
        let listener = address.bind().map_err(failed)?;
        Ok(Some(Admin { listener, token }))
    }

    /// Begins to answer.
    pub fn serve(self, proxy: &Proxy) -> io::Result<Served> {
        let clerk = Clerk::new(proxy.observer()?, self.token);
        let file = self.listener.file();
        tracing::info!("administration address {}", self.listener);
        let desk = Arc::new(Desk::new(clerk));
        thread::Builder::new()
            .name("admin".into())
            .spawn(move || desk.run(&self.listener))?;
        Ok(Served { file })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Gone already, if somebody was faster.
            let _ = std::fs::remove_file(file);
        }
    }
}
