//! The sessions that there are, so that they can be counted, watched and ended.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use onionskin_wire::Socket;
use parking_lot::{Condvar, Mutex};
use socket2::SockRef;

use crate::client_address::Group;
use crate::config::SessionLimits;
use crate::members::{Drained, Era};
use crate::session_limits::TooMany;
use crate::watch::{Activity, Owner, Side, Watch};

/// How long a session may go on with its command after [`Stopper::stop`].
pub const GRACE: Duration = Duration::from_secs(5);
/// How often, meanwhile, sessions that have become idle are looked for.
const TICK: Duration = Duration::from_millis(20);
/// How long sessions may take to notice that their sockets are shut down.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The sessions, so that they can be counted and ended.
#[derive(Default)]
pub(crate) struct Registry {
    sessions: Mutex<Sessions>,
    /// The sockets of all of them, once a proxy runs.
    pub(crate) watch: OnceLock<io::Result<Watch>>,
    /// Signalled when a session is gone.
    left: Condvar,
}

#[derive(Default)]
struct Sessions {
    /// By the number they were accepted under.
    by_number: HashMap<u64, Handles>,
    /// How many of them are sessions, and not connections that are going to log in.
    logged_in: usize,
    closing: bool,
}

/// What a session is ended by.
struct Handles {
    client: Socket,
    server: Option<Socket>,
    /// That of a login that goes on, where there are several servers.
    logging_in: Option<Socket>,
    /// `None`: it has no connection to a server yet.
    era: Option<Era>,
    activity: Arc<Activity>,
}

/// A session's place in the registry; it leaves when this is dropped, also by a panic.
pub(crate) struct Entry {
    registry: Arc<Registry>,
    pub number: u64,
    /// It is idle from the login on.
    pub activity: Arc<Activity>,
}

impl Registry {
    /// Watches the sockets of the sessions, until [`Watch::end`].
    pub(crate) fn watch(&self) {
        if let Some(Ok(watch)) = self.watch.get() {
            watch.run(self);
        }
    }

    /// What a session is doing, while it is there.
    pub(crate) fn activity(&self, number: u64) -> Option<Arc<Activity>> {
        let sessions = self.sessions.lock();
        let handles = sessions.by_number.get(&number)?;
        Some(handles.activity.clone())
    }

    /// The server has ended a session's connection. The session is woken if it waits for its
    /// client.
    pub(crate) fn server_ended(&self, number: u64) {
        let sessions = self.sessions.lock();
        if let Some(handles) = sessions.by_number.get(&number)
            && handles.activity.server_is_gone()
        {
            // Fails when the client is gone, too; then the session ends by itself.
            let _ = SockRef::from(&handles.client).shutdown(Shutdown::Read);
        }
    }

    /// Ends a session whose client has gone while a command runs. When the proxy stops, clients'
    /// sockets are shut down by itself.
    pub(crate) fn cut(&self, number: u64) {
        let sessions = self.sessions.lock();
        let Some(handles) = sessions.by_number.get(&number) else {
            return;
        };
        if !sessions.closing {
            tracing::info!(
                session = number,
                "the client has gone; its statement is ended"
            );
            handles.cut();
        }
    }

    /// Takes a connection in, unless there are `max` sessions already.
    pub(crate) fn enter(
        self: &Arc<Self>,
        number: u64,
        client: Socket,
        max: usize,
    ) -> Option<Entry> {
        let mut sessions = self.sessions.lock();
        if sessions.logged_in >= max {
            return None;
        }
        let handles = Handles {
            client,
            server: None,
            logging_in: None,
            era: None,
            activity: Arc::default(),
        };
        let activity = handles.activity.clone();
        sessions.by_number.insert(number, handles);
        Some(Entry {
            registry: self.clone(),
            number,
            activity,
        })
    }

    /// Whether there may be one session more from this address: asked before the server is.
    pub(crate) fn has_room(&self, address: Group, limits: &SessionLimits) -> Result<(), TooMany> {
        self.sessions.lock().room_for_address(address, limits, None)
    }

    /// A session that is logged in becomes another account's, unless that has too many.
    pub(crate) fn change_account(
        &self,
        activity: &Arc<Activity>,
        account: String,
        limits: &SessionLimits,
    ) -> Result<(), TooMany> {
        let sessions = self.sessions.lock();
        sessions.room_for_account(&account, limits, Some(activity))?;
        if let Some(owner) = activity.owner() {
            activity.set_owner(Owner { account, ..owner });
        }
        Ok(())
    }

    /// How many sessions are logged in.
    pub(crate) fn logged_in(&self) -> usize {
        self.sessions.lock().logged_in
    }

    /// How many sessions are in a command that began under an earlier configuration.
    pub(crate) fn busy_before(&self, edition: u64) -> usize {
        let sessions = self.sessions.lock();
        let activities = sessions.by_number.values().map(|h| &h.activity);
        activities
            .filter(|activity| activity.is_busy() && activity.edition() < edition)
            .count()
    }

    /// Ends sessions of the same side and earlier terms: those that are idle and not in a
    /// transaction, and logins; if `cuts`, all of them. If `closed`, logins of the present term as
    /// well. Tells how many there were.
    pub(crate) fn drain(&self, now: Era, cuts: bool, closed: bool) -> Drained {
        let sessions = self.sessions.lock();
        let mut drained = Drained::default();
        let is_meant = |handles: &&Handles| {
            let Some(era) = handles.era.filter(|era| era.side == now.side) else {
                return false;
            };
            era.term < now.term || closed && era.term == now.term && handles.logging_in.is_some()
        };
        for handles in sessions.by_number.values().filter(is_meant) {
            drained.left += 1;
            let activity = &handles.activity;
            if let Some(socket) = &handles.logging_in {
                let _ = socket.shutdown();
            } else if !activity.is_busy() && (cuts || !activity.is_in_transaction()) {
                // it wakes, and tells its client why
                let _ = SockRef::from(&handles.client).shutdown(Shutdown::Read);
            } else if cuts && !activity.is_cut() {
                drained.cut += 1;
                handles.cut();
            }
        }
        drained
    }

    /// Waits until all sessions have ended by themselves, those included that are logging in, or
    /// somebody does not want to wait any more.
    pub(crate) fn wait_for_end(&self, until: Instant, hurries: impl Fn() -> bool) {
        let mut sessions = self.sessions.lock();
        while !sessions.by_number.is_empty() && Instant::now() < until && !hurries() {
            self.left.wait_for(&mut sessions, TICK);
        }
    }

    /// Ends all sessions and waits for them.
    pub(crate) fn end(&self) {
        let mut sessions = self.sessions.lock();
        sessions.closing = true;
        let deadline = Instant::now() + GRACE;
        while !sessions.by_number.is_empty() && Instant::now() < deadline {
            for handles in sessions.by_number.values() {
                if !handles.activity.is_busy() {
                    // Fails when the client is gone; then the session ends by itself.
                    let _ = SockRef::from(&handles.client).shutdown(Shutdown::Read);
                }
            }
            self.left.wait_for(&mut sessions, TICK);
        }
        let cut = sessions.by_number.len();
        for handles in sessions.by_number.values() {
            let _ = SockRef::from(&handles.client).shutdown(Shutdown::Both);
            handles.cut();
        }
        if cut > 0 {
            tracing::warn!(sessions = cut, "sessions were cut off in a command");
        }
        let deadline = Instant::now() + LAST_WAIT;
        while !sessions.by_number.is_empty() && Instant::now() < deadline {
            self.left.wait_until(&mut sessions, deadline);
        }
    }
}

impl Sessions {
    /// Sessions beside this one of which something is true.
    fn count(&self, beside: Option<&Arc<Activity>>, is_it: impl Fn(&Owner) -> bool) -> usize {
        let activities = self.by_number.values().map(|handles| &handles.activity);
        let others = activities.filter(|a| beside.is_none_or(|b| !Arc::ptr_eq(a, b)));
        others.filter(|a| a.owner_is(&is_it)).count()
    }

    fn room_for_address(
        &self,
        address: Group,
        limits: &SessionLimits,
        beside: Option<&Arc<Activity>>,
    ) -> Result<(), TooMany> {
        match limits.per_address {
            Some(most) if self.count(beside, |owner| owner.address == address) >= most => {
                Err(TooMany::FromAddress)
            }
            _ => Ok(()),
        }
    }

    fn room_for_account(
        &self,
        account: &str,
        limits: &SessionLimits,
        beside: Option<&Arc<Activity>>,
    ) -> Result<(), TooMany> {
        match limits.per_account {
            Some(most) if self.count(beside, |owner| owner.account == account) >= most => {
                Err(TooMany::OfAccount(account.to_owned()))
            }
            _ => Ok(()),
        }
    }
}

impl Handles {
    /// Ends what a session does at its server and at the scratch engine.
    fn cut(&self) {
        self.activity.cut();
        if let Some(server) = &self.server {
            let _ = server.shutdown();
        }
        self.activity.end_engine();
    }

    /// Registers both sockets.
    fn watch(&self, watch: &Watch, number: u64) -> io::Result<()> {
        let Some(server) = &self.server else {
            return Ok(());
        };
        watch.add(server, number, Side::Server)?;
        watch.add(&self.client, number, Side::Client)
    }
}

impl Entry {
    /// The connection has one to a server, of that era, and is going to log in there.
    pub(crate) fn connected(&self, server: Socket, era: Era) {
        let mut sessions = self.registry.sessions.lock();
        if let Some(handles) = sessions.by_number.get_mut(&self.number) {
            handles.logging_in = Some(server);
            handles.era = Some(era);
        }
    }

    /// The session has both of its connections, which are watched from now on; unless there are too
    /// many others.
    pub(crate) fn logged_in(
        &self,
        server: Socket,
        era: Era,
        owner: Owner,
        limits: &SessionLimits,
    ) -> io::Result<Result<(), TooMany>> {
        let registry = &self.registry;
        let mut sessions = registry.sessions.lock();
        let closing = sessions.closing;
        let has_room = match sessions.logged_in >= limits.all {
            true => Err(TooMany::InAll),
            false => sessions
                .room_for_address(owner.address, limits, None)
                .and_then(|()| sessions.room_for_account(&owner.account, limits, None)),
        };
        if let Err(too_many) = has_room {
            return Ok(Err(too_many));
        }
        let Some(handles) = sessions.by_number.get_mut(&self.number) else {
            return Ok(Ok(()));
        };
        handles.activity.set_owner(owner);
        handles.server = Some(server);
        handles.logging_in = None;
        handles.era = Some(era);
        if closing {
            // It may have been busy with its login when the others were looked at.
            let _ = SockRef::from(&handles.client).shutdown(Shutdown::Read);
        }
        let watched = match registry.watch.get() {
            Some(Ok(watch)) => handles.watch(watch, self.number),
            _ => Ok(()),
        };
        sessions.logged_in += 1;
        watched.map(Ok)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let registry = &self.registry;
        let mut sessions = registry.sessions.lock();
        if let Some(handles) = sessions.by_number.remove(&self.number)
            && let Some(server) = &handles.server
        {
            sessions.logged_in -= 1;
            if let Some(Ok(watch)) = registry.watch.get() {
                // Before they are closed: their numbers may be other sockets' then.
                watch.remove(server);
                watch.remove(&handles.client);
            }
        }
        drop(sessions);
        registry.left.notify_all();
    }
}
