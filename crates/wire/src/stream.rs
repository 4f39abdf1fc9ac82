//! A transport: a TCP or Unix socket, plain or under TLS, blocking.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::deadline::Deadline;

/// A bare socket.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix domain socket.
    Unix(UnixStream),
}

impl Socket {
    /// A second handle on the same socket, with which another thread can end a blocked read.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(s) => s.try_clone().map(Self::Tcp),
            Self::Unix(s) => s.try_clone().map(Self::Unix),
        }
    }

    /// Ends both directions; blocked reads return end of file.
    pub fn shutdown(&self) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.shutdown(Shutdown::Both),
            Self::Unix(s) => s.shutdown(Shutdown::Both),
        }
    }

    /// Limits how long a read blocks; `None` for ever.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.set_read_timeout(limit),
            Self::Unix(s) => s.set_read_timeout(limit),
        }
    }

    /// Limits how long a write blocks; `None` for ever.
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.set_write_timeout(limit),
            Self::Unix(s) => s.set_write_timeout(limit),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(s) => s.as_fd(),
            Self::Unix(s) => s.as_fd(),
        }
    }
}

impl From<TcpStream> for Socket {
    fn from(s: TcpStream) -> Self {
        Self::Tcp(s)
    }
}

impl From<UnixStream> for Socket {
    fn from(s: UnixStream) -> Self {
        Self::Unix(s)
    }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.read(buf),
            Self::Unix(s) => s.read(buf),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.write(buf),
            Self::Unix(s) => s.write(buf),
        }
    }

    fn write_vectored(&mut self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.write_vectored(bufs),
            Self::Unix(s) => s.write_vectored(bufs),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Input buffer below TLS: a record of the largest size and its overhead.
const TLS_INPUT: usize = 17 * 1024;

/// A socket below TLS, with a buffer for what arrives.
///
/// rustls asks for 4 KiB at a time; without the buffer an answer of 16 KiB would cost five system
/// calls.
#[derive(Debug)]
pub struct TlsSocket {
    socket: Socket,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Of the connection. TLS reads as often as it takes for a record, so it has to be looked at
    /// below TLS.
    deadline: Option<Deadline>,
}

impl TlsSocket {
    /// Puts a buffer around a socket; `early` has been read from it already.
    pub(crate) fn new(socket: Socket, early: &[u8], deadline: Option<Deadline>) -> Self {
        Self {
            socket,
            deadline,
            buffer: early.to_vec(),
            start: 0,
            end: early.len(),
        }
    }

    /// The socket below.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    fn shrink_idle(&mut self) {
        if self.start == self.end {
            (self.buffer, self.start, self.end) = (Vec::new(), 0, 0);
        }
    }
}

impl Read for TlsSocket {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end {
            self.buffer.resize(TLS_INPUT, 0);
            (self.start, self.end) = (0, 0);
            let (socket, buffer) = (&mut self.socket, &mut self.buffer);
            self.end = match &self.deadline {
                None => socket.read(buffer)?,
                Some(deadline) => deadline.keep(
                    socket,
                    |socket, limit| socket.set_read_timeout(Some(limit)),
                    |socket| socket.read(buffer),
                )?,
            };
        }
        let n = buf.len().min(self.end - self.start);
        buf[..n].copy_from_slice(&self.buffer[self.start..self.start + n]);
        self.start += n;
        Ok(n)
    }
}

impl TlsSocket {
    fn write_in_time<T>(
        &mut self,
        write: impl FnMut(&mut Socket) -> io::Result<T>,
    ) -> io::Result<T> {
        let (socket, mut write) = (&mut self.socket, write);
        match &self.deadline {
            None => write(socket),
            Some(deadline) => deadline.keep(
                socket,
                |socket, limit| socket.set_write_timeout(Some(limit)),
                write,
            ),
        }
    }
}

impl Write for TlsSocket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_in_time(|socket| socket.write(buf))
    }

    fn write_vectored(&mut self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.write_in_time(|socket| socket.write_vectored(bufs))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// What a [`Connection`](crate::Connection) reads from and writes to.
#[derive(Debug)]
pub enum Transport {
    /// Plain TCP.
    Tcp(TcpStream),
    /// A plain Unix domain socket.
    Unix(UnixStream),
    /// TLS in which this side is the client.
    TlsClient(Box<StreamOwned<ClientConnection, TlsSocket>>),
    /// TLS in which this side is the server.
    TlsServer(Box<StreamOwned<ServerConnection, TlsSocket>>),
    /// Left behind when a TLS handshake failed; reads and writes fail.
    Closed,
}

fn closed() -> io::Error {
    io::Error::from(io::ErrorKind::NotConnected)
}

impl Transport {
    /// Wraps a TCP stream and turns Nagle's algorithm off: every write is a whole request or
    /// response.
    pub fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream))
    }

    /// True when a password may travel over this transport: TLS or a local socket.
    pub fn is_secure(&self) -> bool {
        self.is_tls() || matches!(self, Self::Unix(_))
    }

    /// True under TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::TlsClient(_) | Self::TlsServer(_))
    }

    /// The certificate that a client has shown, which was verified. `None`: it has shown none.
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::TlsServer(s) => s.conn.peer_certificates()?.first(),
            Self::TlsClient(_) | Self::Tcp(_) | Self::Unix(_) | Self::Closed => None,
        }
    }

    /// Takes the bare socket out of a plain transport and leaves [`Transport::Closed`].
    pub(crate) fn take_socket(&mut self) -> io::Result<Socket> {
        match std::mem::replace(self, Self::Closed) {
            Self::Tcp(s) => Ok(Socket::Tcp(s)),
            Self::Unix(s) => Ok(Socket::Unix(s)),
            other => {
                *self = other;
                Err(io::Error::other("the transport is not a plain socket"))
            }
        }
    }

    /// A second handle on the socket below, for shutting it down from another thread.
    pub fn try_clone_socket(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(s) => s.try_clone().map(Socket::Tcp),
            Self::Unix(s) => s.try_clone().map(Socket::Unix),
            Self::TlsClient(s) => s.sock.socket.try_clone(),
            Self::TlsServer(s) => s.sock.socket.try_clone(),
            Self::Closed => Err(closed()),
        }
    }

    /// The deadline of what is below TLS. Plain transports have none: the connection sees to
    /// theirs.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Deadline>) {
        match self {
            Self::TlsClient(s) => s.sock.deadline = deadline,
            Self::TlsServer(s) => s.sock.deadline = deadline,
            Self::Tcp(_) | Self::Unix(_) | Self::Closed => {}
        }
    }

    /// Gives back what TLS has buffered, if nothing of it is unread.
    pub(crate) fn shrink_idle(&mut self) {
        match self {
            Self::TlsClient(s) => s.sock.shrink_idle(),
            Self::TlsServer(s) => s.sock.shrink_idle(),
            Self::Tcp(_) | Self::Unix(_) | Self::Closed => {}
        }
    }

    /// Ends the connection in both directions, with a closing alert under TLS.
    pub fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.shutdown(Shutdown::Both),
            Self::Unix(s) => s.shutdown(Shutdown::Both),
            Self::TlsClient(s) => {
                s.conn.send_close_notify();
                // The peer may be gone already; then there is nobody to tell.
                let _ = s.conn.write_tls(&mut s.sock);
                s.sock.socket.shutdown()
            }
            Self::TlsServer(s) => {
                s.conn.send_close_notify();
                let _ = s.conn.write_tls(&mut s.sock);
                s.sock.socket.shutdown()
            }
            Self::Closed => Ok(()),
        }
    }

    /// Limits how long a read blocks; `None` for ever.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.set_read_timeout(limit),
            Self::Unix(s) => s.set_read_timeout(limit),
            Self::TlsClient(s) => s.sock.socket.set_read_timeout(limit),
            Self::TlsServer(s) => s.sock.socket.set_read_timeout(limit),
            Self::Closed => Err(closed()),
        }
    }

    /// Limits how long a write blocks; `None` for ever.
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.set_write_timeout(limit),
            Self::Unix(s) => s.set_write_timeout(limit),
            Self::TlsClient(s) => s.sock.socket.set_write_timeout(limit),
            Self::TlsServer(s) => s.sock.socket.set_write_timeout(limit),
            Self::Closed => Err(closed()),
        }
    }
}

impl From<Socket> for Transport {
    fn from(socket: Socket) -> Self {
        match socket {
            Socket::Tcp(s) => Self::Tcp(s),
            Socket::Unix(s) => Self::Unix(s),
        }
    }
}

impl Read for Transport {
    #[inline]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.read(buf),
            Self::Unix(s) => s.read(buf),
            Self::TlsClient(s) => s.read(buf),
            Self::TlsServer(s) => s.read(buf),
            Self::Closed => Err(closed()),
        }
    }
}

impl Write for Transport {
    #[inline]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.write(buf),
            Self::Unix(s) => s.write(buf),
            Self::TlsClient(s) => s.write(buf),
            Self::TlsServer(s) => s.write(buf),
            Self::Closed => Err(closed()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::TlsClient(s) => s.flush(),
            Self::TlsServer(s) => s.flush(),
            Self::Closed => Err(closed()),
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
        }
    }
}
