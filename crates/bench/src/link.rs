//! A link with a round trip between a proxy and its server: a TCP relay that passes bytes on later.
//!
//! Applications live half a millisecond away from their server, where each round trip of a
//! statement costs more than all that a proxy computes. The kernel could delay packets (netem), but
//! only where it has that module, for root, and with the server in a network namespace. This relay
//! runs everywhere, counts round trips, and is proved like everything else: by pings through it and
//! past it, see [`crate::ping`].
//!
//! - **Delay**: a piece is passed on half a round trip after it came, whatever else is on its way.
//!   The clock wakes a thread some microseconds after its time. The relay knows how late it usually
//!   is, and sets the clock to a moment that is earlier by as much. Where the system allows it, the
//!   thread is woken before all others, also those of other programs.
//! - **Order**: a connection's pieces keep their order in each direction, also when the round trip
//!   is changed meanwhile. The end of a direction travels like a piece: half-closed connections
//!   stay half-open.
//! - **No bandwidth**: what is on its way waits in memory, 64 MiB in each direction. Beyond that
//!   the sender waits: the receiver does not keep up then.
//! - **CPU**: one thread for all connections, which sleeps until something comes or is due. About
//!   ten system calls carry a round trip.
//!
//! What a real network has beside: loss, jitter, a connection's slow start, and a round trip before
//! a connection is there.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    fs,
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    fd::OwnedFd,
    io::Errno,
};

use crate::error::BenchError;

/// What may be on its way in one direction of a connection, in bytes.
const ON_ITS_WAY: usize = 64 << 20;
/// By which the relay changes its mind about how late it is woken.
const LATE_STEP: Duration = Duration::from_micros(1);
/// What is read at once, in bytes.
const PIECE: usize = 256 << 10;
/// The event of a connection that is new, or of the end.
const WOKEN: u64 = u64::MAX;
/// The places of a connection's ends and directions: requests come from the client's end.
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// A link that is there until it is dropped.
pub struct Link {
    port: u16,
    shared: Arc<Shared>,
    wake: UnixStream,
    /// The relay's thread, in the kernel's numbers.
    thread: i32,
    threads: Vec<JoinHandle<()>>,
}

/// What threads and owner have in common.
#[derive(Default)]
struct Shared {
    one_way_ns: AtomicU64,
    is_over: AtomicBool,
    /// Client and server of new connections.
    new: Mutex<Vec<[TcpStream; 2]>>,
    trips: AtomicU64,
    pieces: AtomicU64,
    off_ns: AtomicU64,
}

/// What has come by since the link was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Round trips: something was asked, behind an answer or at first. Questions that are asked
    /// together are one.
    pub trips: u64,
    /// Pieces, in both directions.
    pub pieces: u64,
    /// How far from their moments they were passed on, all pieces together, in seconds.
    pub off_seconds: f64,
    /// CPU time of the relay's thread; `None` where the kernel does not tell.
    pub cpu_seconds: Option<f64>,
}

impl Link {
    /// To a server, without a delay at first.
    pub fn to(host: &str, port: u16) -> Result<Self, BenchError> {
        let system = |error: io::Error| BenchError::system("making a link")(error);
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(system)?;
        let own = listener.local_addr().map_err(system)?.port();
        let (wake, woken) = UnixStream::pair().map_err(system)?;
        woken.set_nonblocking(true).map_err(system)?;
        let shared = Arc::<Shared>::default();
        let relay = Relay::new(Arc::clone(&shared), woken).map_err(system)?;
        let (tell, told) = mpsc::channel();
        let relaying = thread::spawn(move || {
            let thread = nix::unistd::gettid().as_raw();
            be_a_cable(thread);
            let _ = tell.send(thread);
            relay.run();
        });
        let accepting = {
            let (shared, host) = (Arc::clone(&shared), host.to_owned());
            let wake = wake.try_clone().map_err(system)?;
            thread::spawn(move || accept(&listener, &host, port, &shared, wake))
        };
        Ok(Self {
            port: own,
            shared,
            wake,
            thread: told.recv().unwrap_or(0),
            threads: vec![relaying, accepting],
        })
    }

    /// Where it listens on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How long a piece takes in each direction, from now on.
    pub fn set_one_way(&self, delay: Duration) {
        let nanoseconds = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.shared.one_way_ns.store(nanoseconds, Relaxed);
    }

    /// See [`Counted`].
    pub fn counted(&self) -> Counted {
        // nanoseconds on a processor, then more
        let path = format!("/proc/self/task/{}/schedstat", self.thread);
        let cpu = fs::read_to_string(path).ok().and_then(|text| {
            let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
            Some(nanoseconds as f64 * 1e-9)
        });
        Counted {
            trips: self.shared.trips.load(Relaxed),
            pieces: self.shared.pieces.load(Relaxed),
            off_seconds: self.shared.off_ns.load(Relaxed) as f64 * 1e-9,
            cpu_seconds: cpu,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        let _ = self.wake.write(&[0]);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Who is woken late makes the way longer. All of this are improvements only, and mostly refused
/// without root: the proof of the round trip shows whether they were needed.
fn be_a_cable(thread: i32) {
    let _ = nix::sys::prctl::set_timerslack(1);
    // of this thread alone
    let _ = rustix::process::setpriority_process(None, -20);
    // The system call has no safe wrapper, and util-linux is everywhere.
    let mut real_time = Command::new("chrt");
    real_time.args(["--fifo", "--pid", "1", &thread.to_string()]);
    let _ = real_time
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Makes connections until the link is over. Beside the relay: the server may be far indeed.
fn accept(listener: &TcpListener, host: &str, port: u16, shared: &Shared, mut wake: UnixStream) {
    for client in listener.incoming() {
        if shared.is_over.load(Relaxed) {
            return;
        }
        let Ok(client) = client else { continue };
        let Ok(server) = TcpStream::connect((host, port)) else {
            continue;
        };
        let ends = [client, server];
        let ready = |end: &TcpStream| end.set_nodelay(true).and(end.set_nonblocking(true));
        if ends.iter().all(|end| ready(end).is_ok()) {
            let mut new = shared.new.lock().unwrap_or_else(PoisonError::into_inner);
            new.push(ends);
            drop(new);
            let _ = wake.write(&[0]);
        }
    }
}

/// The thread's own: all connections, and what is due when.
struct Relay {
    shared: Arc<Shared>,
    epoll: OwnedFd,
    woken: UnixStream,
    connections: HashMap<u64, Connection>,
    /// The number of the next connection. None is used twice.
    next: u64,
    /// When to wake for a piece of a connection's direction.
    due: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    /// How late the clock wakes this thread: about the median.
    late: Duration,
    buffer: Vec<u8>,
}

struct Connection {
    ends: [TcpStream; 2],
    /// From the end of the same number to the other one.
    ways: [Way; 2],
    /// The server has spoken last.
    is_answered: bool,
}

/// One direction.
#[derive(Default)]
struct Way {
    pieces: VecDeque<Piece>,
    /// In all pieces.
    bytes: usize,
    /// There may be something to read.
    is_readable: bool,
    /// The sender has said that it has ended, or is gone. What it said before may be unread.
    is_ending: bool,
    /// The sender's end was read.
    is_read: bool,
    /// The receiver took nothing more when it was last written to.
    is_stuck: bool,
    /// The receiver was told of the end.
    is_over: bool,
    last_due: Option<Instant>,
}

/// Without bytes it is the end.
struct Piece {
    /// When it is to be passed on.
    due: Instant,
    /// When the thread is to be woken for that.
    wake: Instant,
    bytes: Vec<u8>,
    written: usize,
}

impl Relay {
    fn new(shared: Arc<Shared>, woken: UnixStream) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(WOKEN);
        epoll::add(&epoll, &woken, data, epoll::EventFlags::IN)?;
        Ok(Self {
            shared,
            epoll,
            woken,
            connections: HashMap::new(),
            next: 0,
            due: BinaryHeap::new(),
            late: Duration::ZERO,
            buffer: vec![0; PIECE],
        })
    }

    fn run(mut self) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        while !self.shared.is_over.load(Relaxed) {
            self.write_due();
            events.clear();
            let none = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&none)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            if events.is_empty() {
                match self.sleep() {
                    Ok(()) | Err(Errno::INTR) => continue,
                    Err(_) => return,
                }
            }
            for event in &events {
                let (data, flags) = (event.data, event.flags);
                match data.u64() {
                    WOKEN => self.take_new(),
                    end => self.happened(end / 2, (end % 2) as usize, flags),
                }
            }
        }
    }

    /// Waits until something comes or is due. The set of sockets is itself a thing to be polled:
    /// `poll` counts in nanoseconds on every kernel, `epoll_wait` in milliseconds.
    fn sleep(&mut self) -> Result<(), Errno> {
        let due = self.due.peek().map(|Reverse((due, ..))| *due);
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut set = [PollFd::new(&self.epoll, PollFlags::IN)];
        let something_came = poll(&mut set, timeout.as_ref())? > 0;
        let has_slept = left.is_some_and(|left| !left.is_zero());
        if let (Some(due), true, false) = (due, has_slept, something_came) {
            // A step up or down each time leads to the median: an average would follow the few
            // times when others had the processor.
            self.late = match due.elapsed() > self.late {
                true => self.late + LATE_STEP,
                false => self.late.saturating_sub(LATE_STEP),
            };
        }
        Ok(())
    }

    fn take_new(&mut self) {
        let mut bytes = [0; 64];
        while let Ok(1..) = (&self.woken).read(&mut bytes) {}
        let mut new = self
            .shared
            .new
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for ends in new.drain(..) {
            let number = self.next;
            self.next += 1;
            use epoll::EventFlags as Flags;
            let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
            let added = ends.iter().enumerate().all(|(n, end)| {
                let data = epoll::EventData::new_u64(number * 2 + n as u64);
                epoll::add(&self.epoll, end, data, flags).is_ok()
            });
            if added {
                let connection = Connection {
                    ends,
                    ways: Default::default(),
                    is_answered: true,
                };
                self.connections.insert(number, connection);
            }
        }
    }

    /// Something has changed at an end of a connection.
    fn happened(&mut self, number: u64, end: usize, flags: epoll::EventFlags) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let (from, other) = (end, 1 - end);
        use epoll::EventFlags as Flags;
        if flags.contains(Flags::OUT) && connection.ways[other].is_stuck {
            connection.ways[other].is_stuck = false;
            self.write(number, other);
        }
        if flags.intersects(Flags::IN | Flags::RDHUP | Flags::HUP | Flags::ERR)
            && let Some(connection) = self.connections.get_mut(&number)
        {
            let way = &mut connection.ways[from];
            way.is_readable = true;
            way.is_ending |= flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
            self.read(number, from);
        }
    }

    /// Reads what is there, as far as there is room.
    fn read(&mut self, number: u64, from: usize) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let way = &mut connection.ways[from];
        while way.is_readable && !way.is_read && way.bytes < ON_ITS_WAY {
            let read = match (&connection.ends[from]).read(&mut self.buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    way.is_readable = false;
                    break;
                }
                // The other end learns of it when it writes.
                Err(_) => 0,
            };
            way.is_read = read == 0;
            // A socket that gives less has no more, and a new event comes with more.
            way.is_readable = read == PIECE || way.is_ending;
            if read > 0 && from == CLIENT && connection.is_answered {
                self.shared.trips.fetch_add(1, Relaxed);
            }
            connection.is_answered = from == SERVER;
            let now = Instant::now();
            let due = now + Duration::from_nanos(self.shared.one_way_ns.load(Relaxed));
            let due = way.last_due.map_or(due, |last| last.max(due));
            way.last_due = Some(due);
            let wake = due.checked_sub(self.late).unwrap_or(due).max(now);
            way.bytes += read;
            way.pieces.push_back(Piece {
                due,
                wake,
                bytes: self.buffer[..read].to_vec(),
                written: 0,
            });
            self.due.push(Reverse((wake, number, from)));
        }
    }

    fn write_due(&mut self) {
        while let Some(Reverse((wake, number, from))) = self.due.peek().copied() {
            if wake > Instant::now() {
                return;
            }
            self.due.pop();
            self.write(number, from);
        }
    }

    /// Writes what is due of a direction, as far as the receiver takes it.
    fn write(&mut self, number: u64, from: usize) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let (way, to) = (&mut connection.ways[from], &connection.ends[1 - from]);
        let was_full = way.bytes >= ON_ITS_WAY;
        let mut is_broken = false;
        while let (Some(piece), false) = (way.pieces.front_mut(), way.is_stuck) {
            let now = Instant::now();
            if piece.wake > now {
                break;
            }
            if piece.written == 0 {
                let off = (now - piece.due).max(piece.due - now);
                self.shared.pieces.fetch_add(1, Relaxed);
                self.shared.off_ns.fetch_add(off.as_nanos() as u64, Relaxed);
            }
            if piece.bytes.is_empty() {
                let _ = to.shutdown(Shutdown::Write);
                way.is_over = true;
                way.pieces.pop_front();
                continue;
            }
            let mut to = to;
            match to.write(&piece.bytes[piece.written..]) {
                Ok(written) => {
                    piece.written += written;
                    way.bytes -= written;
                    if piece.written == piece.bytes.len() {
                        way.pieces.pop_front();
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => way.is_stuck = true,
                Err(_) => {
                    is_broken = true;
                    break;
                }
            }
        }
        let has_room = was_full && way.bytes < ON_ITS_WAY;
        if is_broken || connection.ways.iter().all(|way| way.is_over) {
            // Both sockets leave the set when they are closed.
            self.connections.remove(&number);
        } else if has_room {
            self.read(number, from);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
