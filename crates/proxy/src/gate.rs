//! Where clients are waited for, until that ends.
//!
//! Sockets that listen are shared by two programs while one takes over from the other. A connection
//! to the socket itself wakes either of them, so the end is told by a pipe.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};

/// See the module.
pub struct Gate {
    closed: AtomicBool,
    read: OwnedFd,
    write: OwnedFd,
}

impl Gate {
    /// It is open.
    pub fn new() -> io::Result<Gate> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok(Gate {
            closed: AtomicBool::new(false),
            read,
            write,
        })
    }

    /// Nobody is waited for any more. Whoever waits returns.
    pub fn close(&self) {
        if !self.closed.swap(true, Ordering::SeqCst) {
            // One byte that nobody reads: it always has room.
            let _ = rustix::io::write(&self.write, &[0]);
        }
    }

    /// Whether it is.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Waits for a client at one of these sockets, which do not block, and returns the place of the
    /// first that has one. `None`: the gate is closed.
    pub fn wait(&self, sockets: &[BorrowedFd<'_>]) -> io::Result<Option<usize>> {
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(sockets.len() + 1);
        polled.push(PollFd::new(&self.read, PollFlags::IN));
        polled.extend(sockets.iter().map(|s| PollFd::new(s, PollFlags::IN)));
        loop {
            if self.is_closed() {
                return Ok(None);
            }
            match poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
            if let Some(at) = polled[1..].iter().position(ready) {
                match self.is_closed() {
                    true => return Ok(None),
                    false => return Ok(Some(at)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn it_tells_clients_from_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let gate = Arc::new(Gate::new().expect("a gate"));
        let client = TcpStream::connect(listener.local_addr().expect("bound"));
        assert_eq!(gate.wait(&[listener.as_fd()]).expect("polled"), Some(0));
        drop(listener.accept().expect("accepted"));
        let closer = gate.clone();
        let closes = thread::spawn(move || {
            thread::sleep(std::time::Duration::from_millis(100));
            closer.close();
        });
        assert_eq!(gate.wait(&[listener.as_fd()]).expect("polled"), None);
        assert_eq!(gate.wait(&[listener.as_fd()]).expect("polled"), None);
        closes.join().expect("closed");
        drop(client);
    }
}
