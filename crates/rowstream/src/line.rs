//! The stream of the binary log, made again where it breaks.
//!
//! A server ends the stream of a reader that takes nothing for too long (`net_write_timeout`), of
//! one that somebody kills, and when it shuts down; networks lose connections. None of it is a
//! reason to give a migration up: the log is still there, and whoever goes on at the end of the
//! last whole transaction gets all that follows. Of a transaction that had been handed out in part
//! all comes once more, which does no harm to who keeps the last change of each key.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onionskin_wire::{Socket, WireError};
use parking_lot::Mutex;

use crate::binlog::{BinlogError, FollowOptions, Follower, Item, Position};
use crate::client::ClientError;
use crate::session::Login;

/// For how long it is tried to go on from one place.
const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The upper half of the ids under which servers know us among their replicas, which are small
/// numbers or made from addresses.
const SERVER_ID: u32 = 0x6F6E_0000;

/// A reader of the log that outlives its connections.
pub(crate) struct Line {
    login: Login,
    options: FollowOptions,
    follower: Follower,
    cutter: Cutter,
    /// When its connection was made.
    connected: Instant,
    /// Where it broke last, and since when it has not come further.
    stuck: Option<(Position, Instant)>,
}

/// Ends a [`Line`] from another thread.
#[derive(Clone, Default)]
pub(crate) struct Cutter(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    is_over: bool,
    socket: Option<Socket>,
}

impl Cutter {
    /// Ends the line's connection, and keeps it from making another.
    pub fn cut(&self) {
        let mut held = self.0.lock();
        held.is_over = true;
        if let Some(socket) = held.socket.take() {
            let _ = socket.shutdown();
        }
    }

    fn is_over(&self) -> bool {
        self.0.lock().is_over
    }

    /// Takes a new connection under its control; false if it is over.
    fn hold(&self, follower: &Follower) -> bool {
        let mut held = self.0.lock();
        held.socket = follower.closer().ok();
        if held.is_over
            && let Some(socket) = held.socket.take()
        {
            let _ = socket.shutdown();
        }
        !held.is_over
    }
}

impl Line {
    /// Begins behind `from`. What does not work the first time is an error.
    pub fn open(
        login: &Login,
        options: FollowOptions,
        from: &Position,
    ) -> Result<Self, BinlogError> {
        let follower = Follower::connect(login, options.clone(), from)?;
        let cutter = Cutter::default();
        cutter.hold(&follower);
        Ok(Self {
            login: login.clone(),
            options,
            follower,
            cutter,
            connected: Instant::now(),
            stuck: None,
        })
    }

    /// What ends it from another thread.
    pub fn cutter(&self) -> Cutter {
        self.cutter.clone()
    }

    /// Where it would go on.
    pub fn position(&self) -> &Position {
        self.follower.position()
    }

    /// What happened next.
    pub fn next(&mut self) -> Result<Item, BinlogError> {
        match self.follower.next_item() {
            Ok(Some(item)) => Ok(item),
            Ok(None) => Err(ClientError::from(WireError::Closed).into()),
            Err(error) => Err(error),
        }
    }

    /// Connects again after [`Self::next`] has failed. What failed is given back where trying again
    /// cannot help, or has not for a minute.
    pub fn mend(&mut self, mut cause: BinlogError) -> Result<(), BinlogError> {
        let from = self.position().clone();
        let since = match &self.stuck {
            // Where nothing happens to read, a connection that held for so long is as good as one
            // that came further.
            Some((place, since)) if *place == from && self.connected.elapsed() < PATIENCE => *since,
            _ => Instant::now(),
        };
        self.stuck = Some((from.clone(), since));
        let mut pause = FIRST_PAUSE;
        while may_pass(&cause) && since.elapsed() < PATIENCE && !self.cutter.is_over() {
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            // A server ends the older of two streams with one id, and another program's may have
            // ended ours.
            self.options.stream.server_id = other_id(self.options.stream.server_id);
            match Follower::connect(&self.login, self.options.clone(), &from) {
                Ok(follower) => {
                    self.follower = follower;
                    self.connected = Instant::now();
                    if self.cutter.hold(&self.follower) {
                        return Ok(());
                    }
                }
                Err(error) => cause = error,
            }
        }
        Err(cause)
    }
}

/// Another id than this one, and hardly one that is in use.
fn other_id(id: u32) -> u32 {
    let clock = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.subsec_micros());
    let other = SERVER_ID | clock & 0xffff;
    if other == id { other ^ 1 } else { other }
}

/// Whether the same may succeed a moment later.
fn may_pass(error: &BinlogError) -> bool {
    // Too many connections, shutdown, a dump that was ended (the server's or an administrator's
    // word), trouble of its own while sending.
    const PASSING: [u16; 11] = [
        1040, 1053, 1077, 1158, 1159, 1160, 1161, 1203, 1226, 1927, 3169,
    ];
    const INTERRUPTED: u16 = 1317;
    const NOT_SENT: u16 = 1236;
    match error {
        BinlogError::Client(ClientError::Server { code, message }) => {
            PASSING.contains(code)
                || *code == INTERRUPTED
                || *code == NOT_SENT && message.contains("same server")
        }
        // a name of several servers leads to the right one again, or does not
        BinlogError::Client(ClientError::OtherServer { .. }) => true,
        BinlogError::Client(ClientError::Wire(WireError::Io(_))) => true,
        other => other.is_disconnect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_broke_may_pass_and_what_is_wrong_may_not() {
        let server = |code, message: &str| {
            BinlogError::Client(ClientError::Server {
                code,
                message: message.into(),
            })
        };
        assert!(may_pass(&ClientError::from(WireError::Closed).into()));
        assert!(may_pass(&BinlogError::Silent(10)));
        assert!(may_pass(&server(1053, "shutdown in progress")));
        assert!(may_pass(&server(
            1236,
            "A replica with the same server_uuid/server_id as this replica has connected"
        )));
        assert!(!may_pass(&server(
            1236,
            "Could not find first log file name in binary log index file"
        )));
        assert!(!may_pass(&server(1045, "Access denied")));
        assert!(!may_pass(&BinlogError::Incident));
        assert!(!may_pass(&BinlogError::Malformed("event")));
    }

    #[test]
    fn another_id_is_another_one_in_the_same_range() {
        for id in [SERVER_ID, SERVER_ID | 7] {
            let other = other_id(id);
            assert!(other != id && other & 0xffff_0000 == SERVER_ID);
        }
    }
}
