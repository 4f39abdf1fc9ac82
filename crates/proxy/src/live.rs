//! The configuration that holds now, and how sessions come to it.
//!
//! A reload puts another [`Shared`] in the place of the present one, in one step. Each session
//! looks before each command whether it still has the present one, and takes it over otherwise:
//! with new plans, and with nothing known of tables, if `[protect]`, keys or pins are others. So
//! from the moment of the exchange on no statement is begun under the configuration before,
//! whatever the session has prepared and whatever transaction it is in.
//!
//! Statements that run at that moment go on as they were planned. A reload waits for them, and
//! tells how many are left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use onionskin_schema::TableName;
use parking_lot::{Mutex, RwLock};

use crate::Shared;
use crate::catalog::Accounts;
use crate::config::Config;
use crate::members::{Leading, MemberState};

/// See the module.
pub(crate) struct Live {
    current: RwLock<Arc<Shared>>,
    /// That of the present one.
    edition: AtomicU64,
    /// What is known of tables, under all configurations that a session still has.
    accounts: Mutex<Vec<Weak<Accounts>>>,
    /// What was last found of each server, where there are several.
    members: Mutex<Vec<MemberState>>,
}

impl Live {
    pub fn new(shared: Arc<Shared>) -> Arc<Live> {
        Arc::new(Live {
            accounts: Mutex::new(vec![Arc::downgrade(&shared.accounts)]),
            edition: AtomicU64::new(shared.edition),
            current: RwLock::new(shared),
            members: Mutex::default(),
        })
    }

    /// What holds now.
    pub fn current(&self) -> Arc<Shared> {
        self.current.read().clone()
    }

    /// Whether this is what holds now. A session asks after it has said that it is busy, and a
    /// reload looks for busy sessions after the exchange: one of the two sees the other.
    #[inline]
    pub fn is_current(&self, shared: &Shared) -> bool {
        self.edition.load(Ordering::SeqCst) == shared.edition
    }

    /// Forgets what any session knows of these names: a definition has changed.
    pub fn forget(&self, names: &[TableName]) {
        let all: Vec<_> = self.accounts.lock().clone();
        for accounts in all.iter().filter_map(Weak::upgrade) {
            accounts.forget(names);
        }
    }

    /// Puts a configuration in the place of the present one.
    pub fn replace(&self, config: Arc<Config>) -> Arc<Shared> {
        self.exchange(|current| Some(current.with(config)))
    }

    /// The same for the sessions of `listen_read` at one member.
    pub fn beside(self: &Arc<Live>, number: u32) -> Arc<Live> {
        Live::new(self.current().beside(number, Arc::downgrade(self)))
    }

    /// Has another server lead, or none. `None` of the change: nothing is exchanged.
    pub fn lead(&self, change: impl FnOnce(&Leading) -> Option<Leading>) -> Arc<Shared> {
        self.exchange(|current| Some(current.led(change(&current.leading)?)))
    }

    /// What was last found of each server.
    pub fn members(&self) -> Vec<MemberState> {
        self.members.lock().clone()
    }

    /// Keeps that.
    pub fn tell_members(&self, members: Vec<MemberState>) {
        *self.members.lock() = members;
    }

    fn exchange(&self, make: impl FnOnce(&Shared) -> Option<Arc<Shared>>) -> Arc<Shared> {
        let mut current = self.current.write();
        let Some(next) = make(&current) else {
            return current.clone();
        };
        {
            let mut accounts = self.accounts.lock();
            accounts.retain(|known| known.strong_count() > 0);
            accounts.push(Arc::downgrade(&next.accounts));
        }
        *current = next.clone();
        self.edition.store(next.edition, Ordering::SeqCst);
        next
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use onionskin_keys::KeySet;

    use super::*;
    use crate::config::Backend;
    use crate::hot_path::bare_config;
    use crate::members::Place;

    fn place(identity: &str) -> Leading {
        let address = SocketAddr::from(([127, 0, 0, 1], 3306));
        Leading {
            place: Some(Place {
                member: Backend::Tcp {
                    host: "db".into(),
                    port: 3306,
                },
                address: Some(address),
                identity: identity.into(),
            }),
            ..Leading::default()
        }
    }

    /// Snapshots, plans and cells belong to one server. A look-up after a second would hide that
    /// they went over.
    #[test]
    fn nothing_known_of_tables_goes_over_into_another_term() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.json");
        KeySet::create_file(&file, None, &mut rand::rng()).unwrap();
        let keys = KeySet::load("file:keys.json", folder.path(), None).unwrap();
        let first = Shared::new(bare_config(Arc::new(keys)));
        let same = first.led(place("a"));
        assert!(Arc::ptr_eq(&first.accounts, &same.accounts));
        assert!(Arc::ptr_eq(&first.cell_memory, &same.cell_memory));
        let other = same.led(Leading {
            term: 1,
            ..place("b")
        });
        assert!(!Arc::ptr_eq(&first.accounts, &other.accounts));
        assert!(!Arc::ptr_eq(&first.cell_memory, &other.cell_memory));
        assert!(!Arc::ptr_eq(&first.told, &other.told));
        // a name that was protected once stays one
        let once = [&first, &other].map(|shared| shared.accounts.once_protected());
        assert!(Arc::ptr_eq(&once[0], &once[1]));
    }
}
