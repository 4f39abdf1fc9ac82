//! Copies of the lines for a syslog daemon: a collector that already watches everything else, or a
//! machine whose administrators are others.
//!
//! The files are the log, and syslog is not: it may lose what it is sent, and says nothing of it.
//! So nothing waits for it. Lines go through a queue to a thread of its own; what the queue cannot
//! take, and what the daemon does not take in the end, is counted.
//!
//! A daemon on this machine reads `<priority>time tag: text` from datagrams (what the C library
//! sends). Others get RFC 5424, over UDP in one datagram each (RFC 5426), over TCP with the length
//! before each (RFC 6587, octet counting). Facility `authpriv`, severity `info`.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use chrono::SecondsFormat;
use parking_lot::Mutex;

use crate::line::now;

/// Facility `authpriv` (10), severity `info` (6).
const PRIORITY: u8 = 10 * 8 + 6;
/// Lines that wait, at most.
const QUEUE: usize = 10_000;
/// Time to connect, and to send a line.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between attempts to reach a daemon that is not there.
const AGAIN: Duration = Duration::from_secs(1);
/// How long lines that wait are sent at the end.
const LAST: Duration = Duration::from_secs(5);

/// Where the daemon is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogAddress {
    /// `unix:/dev/log`
    Unix(PathBuf),
    /// `udp:host:514`
    Udp(String),
    /// `tcp:host:601`
    Tcp(String),
}

impl FromStr for SyslogAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is none of unix:/PATH, udp:HOST:PORT and tcp:HOST:PORT");
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let is_address = || {
            let port = rest.rsplit_once(':').map(|(host, port)| {
                !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
            });
            port == Some(true)
        };
        match kind {
            "unix" if rest.starts_with('/') => Ok(SyslogAddress::Unix(rest.into())),
            "udp" if is_address() => Ok(SyslogAddress::Udp(rest.to_owned())),
            "tcp" if is_address() => Ok(SyslogAddress::Tcp(rest.to_owned())),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for SyslogAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyslogAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            SyslogAddress::Udp(address) => write!(f, "udp:{address}"),
            SyslogAddress::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// The way of copies to the daemon.
pub(crate) struct Copies {
    queue: Mutex<Option<SyncSender<Box<[u8]>>>>,
    lost: Arc<AtomicU64>,
    is_ending: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Copies {
    /// Begins to send.
    pub fn begin(address: SyslogAddress) -> io::Result<Copies> {
        let (queue, lines) = sync_channel(QUEUE);
        let (lost, is_ending) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let sender = Sender {
            head: Head::of_this_program(),
            address,
            link: None,
            lost: lost.clone(),
            is_ending: is_ending.clone(),
        };
        let thread = thread::Builder::new()
            .name("audit syslog".into())
            .spawn(move || sender.run(&lines))?;
        Ok(Copies {
            queue: Mutex::new(Some(queue)),
            lost,
            is_ending,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Sends lines that were written, each with its end.
    pub fn send(&self, lines: &[u8]) {
        let queue = self.queue.lock();
        for line in lines.split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            let taken = queue.as_ref().map(|queue| queue.try_send(line.into()));
            if !matches!(taken, Some(Ok(()))) {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Lines that the daemon has not got.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Sends what waits, for some seconds, and ends.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        self.queue.lock().take();
        if let Some(thread) = self.thread.lock().take() {
            // it does nothing that can panic
            let _ = thread.join();
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread's side.
struct Sender {
    address: SyslogAddress,
    head: Head,
    link: Option<Link>,
    lost: Arc<AtomicU64>,
    is_ending: Arc<AtomicBool>,
}

impl Sender {
    fn run(mut self, lines: &Receiver<Box<[u8]>>) {
        let mut until = None;
        loop {
            match lines.recv_timeout(AGAIN) {
                Ok(line) => self.deliver(&line, &mut until),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Sends a line, however long the daemon is away, but not behind the end.
    fn deliver(&mut self, line: &[u8], until: &mut Option<Instant>) {
        let mut is_told = false;
        loop {
            let is_ending = self.is_ending.load(Ordering::SeqCst);
            let mut end = || *until.get_or_insert_with(|| Instant::now() + LAST);
            if is_ending && Instant::now() >= end() {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let error = match self.send(line) {
                Ok(()) => {
                    if is_told {
                        tracing::info!(
                            "syslog at {} takes lines of the audit log again",
                            self.address
                        );
                    }
                    return;
                }
                Err(error) => error,
            };
            self.link = None;
            if !is_told {
                is_told = true;
                tracing::warn!(%error, "syslog at {} takes no lines of the audit log", self.address);
            }
            // one that is too long will not become shorter
            let is_hopeless =
                error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error());
            if is_hopeless {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let pause = if is_ending { AGAIN / 10 } else { AGAIN };
            thread::sleep(pause);
        }
    }

    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        let link = match &mut self.link {
            Some(link) => link,
            none => none.insert(Link::to(&self.address)?),
        };
        link.send(&self.head, line)
    }
}

/// What stands before a line.
struct Head {
    host: String,
    process: u32,
}

impl Head {
    fn of_this_program() -> Head {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let is_plain = |host: &str| !host.is_empty() && host.bytes().all(|b| b.is_ascii_graphic());
        let host = host.trim();
        Head {
            host: if is_plain(host) { host } else { "-" }.to_owned(),
            process: std::process::id(),
        }
    }

    /// As the C library does.
    fn local(&self) -> String {
        let time = now().format("%b %e %T");
        format!("<{PRIORITY}>{time} onionskin[{}]: ", self.process)
    }

    /// RFC 5424, without structured data.
    fn standard(&self) -> String {
        let time = now().to_rfc3339_opts(SecondsFormat::Micros, true);
        let Head { host, process } = self;
        format!("<{PRIORITY}>1 {time} {host} onionskin {process} audit - ")
    }
}

/// A way to the daemon.
enum Link {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Link {
    fn to(address: &SyslogAddress) -> io::Result<Link> {
        match address {
            SyslogAddress::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Ok(Link::Unix(socket))
            }
            SyslogAddress::Udp(address) => first_of(address, |address| {
                let any = match address {
                    SocketAddr::V4(_) => "0.0.0.0:0",
                    SocketAddr::V6(_) => "[::]:0",
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                Ok(Link::Udp(socket))
            }),
            SyslogAddress::Tcp(address) => first_of(address, |address| {
                let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Ok(Link::Tcp(socket))
            }),
        }
    }

    fn send(&mut self, head: &Head, line: &[u8]) -> io::Result<()> {
        match self {
            Link::Unix(socket) => {
                let whole = [head.local().as_bytes(), line].concat();
                socket.send(&whole).map(drop)
            }
            Link::Udp(socket) => {
                let whole = [head.standard().as_bytes(), line].concat();
                socket.send(&whole).map(drop)
            }
            Link::Tcp(socket) => {
                let head = head.standard();
                let length = format!("{} ", head.len() + line.len());
                socket.write_all(&[length.as_bytes(), head.as_bytes(), line].concat())
            }
        }
    }
}

/// Tries the addresses of a name.
fn first_of(address: &str, to: impl Fn(SocketAddr) -> io::Result<Link>) -> io::Result<Link> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match to(address) {
            Ok(link) => return Ok(link),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn addresses_are_read() {
        for good in [
            "unix:/dev/log",
            "udp:10.0.0.9:514",
            "tcp:[::1]:601",
            "tcp:logs:601",
        ] {
            let address: SyslogAddress = good.parse().expect(good);
            assert_eq!(address.to_string(), good);
        }
        for bad in [
            "", "/dev/log", "unix:", "unix:log", "udp:host", "tcp::1", "udp:h:0", "x:h:1",
        ] {
            assert!(bad.parse::<SyslogAddress>().is_err(), "{bad}");
        }
    }

    /// What stands behind the head, which is looked at.
    fn text_of(message: &str) -> &str {
        let rest = message.strip_prefix("<86>1 ").expect("a priority");
        let parts: Vec<&str> = rest.splitn(7, ' ').collect();
        assert!(parts[0].ends_with('Z') && parts[0].len() == 27, "{rest}");
        assert_eq!((parts[2], parts[4], parts[5]), ("onionskin", "audit", "-"));
        parts[6]
    }

    #[test]
    fn each_line_is_a_message() {
        let udp = UdpSocket::bind("127.0.0.1:0").expect("bound");
        let address = SyslogAddress::Udp(udp.local_addr().expect("bound").to_string());
        let copies = Copies::begin(address).expect("begun");
        copies.send(b"{\"n\":1}\n{\"n\":2}\n");
        let mut room = [0; 1000];
        for n in 1..=2 {
            let length = udp.recv(&mut room).expect("a datagram");
            let message = String::from_utf8_lossy(&room[..length]);
            assert_eq!(text_of(&message), format!("{{\"n\":{n}}}"));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let unix = UnixDatagram::bind(&path).expect("bound");
        let copies = Copies::begin(SyslogAddress::Unix(path)).expect("begun");
        copies.send(b"{\"n\":3}\n");
        let length = unix.recv(&mut room).expect("a datagram");
        let message = String::from_utf8_lossy(&room[..length]).into_owned();
        let tag = format!(" onionskin[{}]: {{\"n\":3}}", std::process::id());
        assert!(
            message.starts_with("<86>") && message.ends_with(&tag),
            "{message}"
        );
        assert_eq!(copies.lost(), 0);
    }

    #[test]
    fn a_daemon_that_is_away_gets_what_waits() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let at = listener.local_addr().expect("bound");
        drop(listener);
        let copies = Copies::begin(SyslogAddress::Tcp(at.to_string())).expect("begun");
        copies.send(b"{\"n\":1}\n");
        thread::sleep(Duration::from_millis(100));
        let listener = TcpListener::bind(at).expect("bound again");
        copies.send(b"{\"n\":2}\n");
        let (mut socket, _) = listener.accept().expect("it comes back");
        copies.end();
        let mut text = String::new();
        socket.read_to_string(&mut text).expect("read");
        let mut rest = text.as_str();
        for n in 1..=2 {
            let (length, behind) = rest.split_once(' ').expect("a length");
            let (message, behind) = behind.split_at(length.parse().expect("a length"));
            assert_eq!(text_of(message), format!("{{\"n\":{n}}}"));
            rest = behind;
        }
        assert_eq!((rest, copies.lost()), ("", 0));
    }

    #[test]
    fn nothing_waits_for_a_daemon_that_stays_away() {
        let copies = Copies::begin(SyslogAddress::Unix("/nowhere/log".into())).expect("begun");
        let begin = Instant::now();
        for _ in 0..QUEUE + 100 {
            copies.send(b"{}\n");
        }
        assert!(begin.elapsed() < Duration::from_secs(1));
        assert!((99..=100).contains(&copies.lost()), "{}", copies.lost());
        copies.end();
        assert!(begin.elapsed() < LAST + Duration::from_secs(3));
        assert_eq!(copies.lost(), QUEUE as u64 + 100);
    }
}
