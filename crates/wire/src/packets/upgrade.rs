//! TLS in the place of a plain connection.

use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};

use super::{Connection, Current};
use crate::error::{WireError, WireResult};
use crate::stream::{TlsSocket, Transport};

impl Connection {
    /// Goes on under TLS as the server, after the client's
    /// [`SslRequest`](crate::messages::SslRequest) was read. Bytes that the client has sent behind
    /// it already are taken as the beginning of TLS, never as plain packets.
    ///
    /// After an error the connection is closed.
    pub fn upgrade_server_tls(&mut self, config: Arc<ServerConfig>) -> WireResult<()> {
        self.flush()?;
        let mut tls = ServerConnection::new(config)?;
        let early = &self.input[self.start..self.end];
        let deadline = self.deadline.clone();
        let mut socket = TlsSocket::new(self.transport.take_socket()?, early, deadline);
        self.forget_input();
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(tls_error)?;
        }
        self.transport = Transport::TlsServer(Box::new(StreamOwned::new(tls, socket)));
        Ok(())
    }

    /// Goes on under TLS as the client, after an [`SslRequest`](crate::messages::SslRequest) was
    /// written. Bytes that the server has sent in the clear before are an error: whoever sits
    /// between could have put them there.
    ///
    /// After an error the connection is closed.
    pub fn upgrade_client_tls(
        &mut self,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> WireResult<()> {
        self.flush()?;
        let mut tls = ClientConnection::new(config, name)?;
        let deadline = self.deadline.clone();
        let mut socket = TlsSocket::new(self.transport.take_socket()?, &[], deadline);
        if self.has_buffered_input() {
            self.forget_input();
            return Err(WireError::Malformed("packet in the clear before TLS"));
        }
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(tls_error)?;
        }
        self.transport = Transport::TlsClient(Box::new(StreamOwned::new(tls, socket)));
        Ok(())
    }

    fn forget_input(&mut self) {
        (self.start, self.end) = (0, 0);
        self.joining = None;
        self.current = Current::Buffered(0, 0);
    }
}

/// rustls wraps its own errors in I/O errors; take them out again.
fn tls_error(e: io::Error) -> WireError {
    match e
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
    {
        Some(tls) => WireError::Tls(tls.clone()),
        None => WireError::Io(e),
    }
}
