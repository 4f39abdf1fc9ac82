//! The replay itself: segment by segment through the server's tool, and on into the client.

use std::{
    io::{self, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::atomic::AtomicBool,
    thread,
};

use super::{
    cut::Cut,
    filter::Filter,
    plan::Plan,
    point::{Point, Replayed},
    times::not_reached,
};
use crate::{
    Progress, SealedStream, StreamError,
    archive::{
        ArchiveError, Segment,
        folder::{Found, Keys, failed as file_failed},
    },
    store::Store,
};

impl Plan {
    /// Replays into the client, which must read statements from its standard input and end with an
    /// error at the first that fails. `tool` must read a binlog from its standard input. `loads`
    /// becomes true before the tool gets a file of LOAD DATA.
    pub fn run(
        &self,
        keys: Keys<'_>,
        tool: &dyn Fn() -> Command,
        client: Command,
        threads: usize,
        loads: &AtomicBool,
    ) -> Result<Replayed, ArchiveError> {
        let reader = Reader {
            store: &*self.store,
            keys,
            tool,
            threads,
            loads,
        };
        let mut client = Client::start(client)?;
        let mut cut = self.cut();
        let sent = self.send(&reader, &mut client.input, &mut cut);
        client.end(sent)?;
        cut.check_border()?;
        self.check_reached(&cut)?;
        Ok(cut.replayed())
    }

    /// Sends the statements of all wanted transactions; false if the client takes no more.
    fn send(
        &self,
        reader: &Reader<'_>,
        client: &mut (impl Write + Send),
        cut: &mut Cut,
    ) -> Result<bool, ArchiveError> {
        // In accounts' definitions: without this the server refuses them, because it did not ask
        // for a password.
        if client.write_all(b"FLUSH PRIVILEGES;\n").is_err() {
            return Ok(false);
        }
        for (found, segment) in &self.segments {
            if cut.is_settled() {
                break;
            }
            if !reader.replay(found, segment, client, cut)? {
                return Ok(false);
            }
            cut.check_times()?;
        }
        Ok(true)
    }

    /// An error if the archive ended before the point.
    fn check_reached(&self, cut: &Cut) -> Result<(), ArchiveError> {
        if cut.is_reached() {
            return Ok(());
        }
        match &self.point {
            Point::Gtid(gtid) => Err(ArchiveError::Point(format!(
                "transaction {gtid} is not in the archive behind the backup"
            ))),
            Point::Time(limit) if !self.has_file_since(*limit) => {
                Err(not_reached(cut.time_before(), *limit))
            }
            _ => Ok(()),
        }
    }
}

/// The client that sends statements to the server.
struct Client {
    name: String,
    child: Child,
    input: ChildStdin,
}

impl Client {
    fn start(mut command: Command) -> Result<Self, ArchiveError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| failed(&name, &format!("cannot be started: {error}")))?;
        let Some(input) = child.stdin.take() else {
            return Err(failed(&name, "has no standard input"));
        };
        Ok(Self { name, child, input })
    }

    /// Waits for its end. `sent` is what came of the sending.
    fn end(self, sent: Result<bool, ArchiveError>) -> Result<(), ArchiveError> {
        let Self {
            name,
            mut child,
            input,
        } = self;
        drop(input);
        let status = child.wait();
        match (sent?, status) {
            (true, Ok(status)) if status.success() => Ok(()),
            (_, Ok(status)) => Err(failed(&name, &format!("ended with {status}: see above"))),
            (_, Err(error)) => Err(failed(&name, &format!("cannot be waited for: {error}"))),
        }
    }
}

fn failed(program: &str, what: &str) -> ArchiveError {
    ArchiveError::Point(format!("{program} {what}"))
}

/// Turns sealed segments into statements.
struct Reader<'a> {
    store: &'a dyn Store,
    keys: Keys<'a>,
    /// The server's tool that prints a binlog as statements.
    tool: &'a dyn Fn() -> Command,
    threads: usize,
    loads: &'a AtomicBool,
}

impl Reader<'_> {
    /// Replays one segment; false if the client takes no more.
    fn replay(
        &self,
        found: &Found,
        segment: &Segment,
        client: &mut (impl Write + Send),
        cut: &mut Cut,
    ) -> Result<bool, ArchiveError> {
        let file_name = &found.file.name;
        let name = self.store.path(file_name).display().to_string();
        let of_stream = |source: StreamError| ArchiveError::Stream {
            name: name.clone(),
            source,
        };
        let file = self.store.open(file_name);
        let file = file.map_err(|source| file_failed(self.store, file_name, source))?;
        let stream = SealedStream::begin(file).map_err(of_stream)?;
        let key = (self.keys)(stream.header()).map_err(of_stream)?;
        let mut tool = (self.tool)();
        let program = tool.get_program().to_string_lossy().into_owned();
        let failed = |what: String| failed(&program, &what);
        let mut child = tool
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("cannot be started: {error}")))?;
        let (Some(input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("has no standard input and output".into()));
        };
        let (opened, finished, taken) = thread::scope(|scope| {
            let copied = scope.spawn(move || io::copy(&mut output, client));
            let mut filter = Filter::new(input, segment, cut, self.loads);
            let opened = stream.open(key, &mut filter, self.threads, &Progress::new());
            // Ends the tool's input, or else the tool waits for more, and the thread for the tool.
            let finished = filter.finish();
            (opened, finished, copied.join())
        });
        let status = child.wait();
        let taken = matches!(taken, Ok(Ok(_)));
        let is_whole = finished?;
        match (opened.map(|_| is_whole), status) {
            // A broken pipe is the failure of those behind it.
            (Err(StreamError::Write(error)), _) if error.kind() != io::ErrorKind::InvalidData => {
                match taken {
                    true => Err(failed(
                        "does not read its input to the end: see above".into(),
                    )),
                    false => Ok(false),
                }
            }
            (Err(StreamError::Write(_)) | Ok(false), _) => Err(ArchiveError::NotASegment(name)),
            (Err(error), _) => Err(of_stream(error)),
            (Ok(true), Ok(status)) if !status.success() && taken => {
                Err(failed(format!("ended with {status}: see above")))
            }
            (Ok(true), Ok(_)) => Ok(taken),
            (Ok(true), Err(error)) => Err(failed(format!("cannot be waited for: {error}"))),
        }
    }
}
