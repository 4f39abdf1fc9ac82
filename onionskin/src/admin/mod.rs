//! The administration address: how the proxy is, told over HTTP.
//!
//! | path | says |
//! |---|---|
//! | `/live` | 200 while the process runs |
//! | `/ready` | 200 if new sessions can be served, 503 otherwise |
//! | `/metrics` | what has been counted |
//! | `/status`, `/status.json` | all that there is to tell: a page for people, JSON for programs |
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
//! | `page` | the status page |

mod answer;
mod desk;
mod page;
mod request;
mod token;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use onionskin_proxy::{Bound, Gate, Manner, Observer, SocketFile};

pub use token::Token;

use crate::{config_file::ConfigFile, error::CommandError, sockets::Given};
use answer::Clerk;
use desk::Desk;

/// How the address is bound. A Unix socket is for its owner and its group.
const MANNER: Manner = Manner {
    backlog: 128,
    mode: 0o660,
};

/// The administration address, bound and not served yet.
pub struct Admin {
    listener: Bound,
    token: Option<Token>,
}

/// The administration address while it is served.
pub struct Served {
    desk: Arc<Desk>,
    gate: Arc<Gate>,
    /// The file of a Unix socket.
    file: Option<SocketFile>,
    /// For a program that takes over.
    socket: Option<OwnedFd>,
}

/// The token that the configuration names, if it needs one or names one. An address that everybody
/// could read is an error.
pub fn token(file: &ConfigFile) -> Result<Option<Token>, CommandError> {
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
    let is_local = address
        .is_local()
        .map_err(|source| CommandError::AdminListen {
            address: address.to_string(),
            source,
        })?;
    match token.is_none() && !is_local {
        true => Err(CommandError::OpenAdmin {
            address: address.to_string(),
        }),
        false => Ok(token),
    }
}

impl Admin {
    /// Binds what the configuration says, or takes the socket that listens there already; `None` if
    /// it says nothing.
    pub fn bind(
        file: &ConfigFile,
        token: Option<Token>,
        given: &mut Given,
    ) -> Result<Option<Admin>, CommandError> {
        let Some(address) = &file.admin else {
            return Ok(None);
        };
        let bound = match given.take("admin", |socket| address.is_of(socket)) {
            Some(inherited) => address.take(inherited.socket, inherited.is_systemds),
            None => address.bind(MANNER),
        };
        let listener = bound.and_then(|listener| listener.set_nonblocking().map(|()| listener));
        let listener = listener.map_err(|source| CommandError::AdminListen {
            address: address.to_string(),
            source,
        })?;
        Ok(Some(Admin { listener, token }))
    }

    /// Begins to answer.
    pub fn serve(self, observer: Arc<Observer>) -> io::Result<Served> {
        let clerk = Clerk::new(observer, self.token);
        let file = self.listener.file().cloned();
        tracing::info!("administration address {}", self.listener);
        let desk = Arc::new(Desk::new(clerk));
        let gate = Arc::new(Gate::new()?);
        let socket = self.listener.duplicate()?;
        let (at, until) = (desk.clone(), gate.clone());
        thread::Builder::new()
            .name("admin".into())
            .spawn(move || at.run(&self.listener, &until))?;
        Ok(Served {
            desk,
            gate,
            file,
            socket: Some(socket),
        })
    }
}

impl Served {
    /// Asks for another token from now on.
    pub fn set_token(&self, token: Option<Token>) {
        self.desk.clerk().set_token(token);
    }

    /// The socket, for a program that takes over.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Nobody is answered here from now on. The file stays if another program answers by it.
    pub fn close(&mut self, file_stays: bool) {
        if file_stays {
            self.keep_file();
        }
        self.socket = None;
        self.gate.close();
    }

    /// The file stays when the program ends.
    pub fn keep_file(&mut self) {
        if let Some(file) = &mut self.file {
            file.keep();
        }
    }

    /// Whether it stays in any case.
    pub fn file_stays(&self) -> bool {
        self.file.as_ref().is_some_and(SocketFile::stays)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            file.remove();
        }
    }
}
