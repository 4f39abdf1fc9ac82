//! Where sessions go that only read: those of `listen_read`.
//!
//! Each member that is, or was, one to read from is a side of its own (see [`crate::members`]), and
//! a [`Lead`] for it says whether sessions go there. A client is given the side with the fewest
//! sessions when it is accepted, and stays with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::lead::Lead;
use crate::config::{Backend, Config};
use crate::live::Live;

/// See the module.
pub struct Reads {
    /// That of the sessions of `listen`.
    primary: Arc<Live>,
    places: Mutex<Vec<Place>>,
}

struct Place {
    member: Backend,
    live: Arc<Live>,
    seated: Seats,
}

type Seats = Arc<AtomicUsize>;

/// A session is counted for its side until this is dropped.
pub(super) struct Seat(Seats);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Reads {
    pub(super) fn beside(primary: Arc<Live>) -> Arc<Reads> {
        Arc::new(Reads {
            primary,
            places: Mutex::default(),
        })
    }

    /// Says whether sessions go to this member. Nobody goes to one that was not led to yet.
    pub fn lead(&self, member: &Backend) -> Lead {
        let mut places = self.places.lock();
        if let Some(place) = places.iter().find(|place| place.member == *member) {
            return Lead::new(place.live.clone());
        }
        let number = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let place = Place {
            member: member.clone(),
            live: self.primary.beside(number),
            seated: Seats::default(),
        };
        let lead = Lead::new(place.live.clone());
        places.push(place);
        lead
    }

    /// The side for a client that has come: one that takes sessions, and has the fewest of them. If
    /// there is none, any of them tells the client why.
    pub(super) fn choose(&self) -> (Arc<Live>, Option<Seat>) {
        let places = self.places.lock();
        let order = |place: &&Place| {
            let is_closed = place.live.current().leading.closed.is_some();
            (is_closed, place.seated.load(Ordering::Relaxed))
        };
        match places.iter().min_by_key(order) {
            Some(place) => {
                place.seated.fetch_add(1, Ordering::Relaxed);
                (place.live.clone(), Some(Seat(place.seated.clone())))
            }
            // a side without a name, which nobody opens
            None => (self.primary.beside(u32::MAX), None),
        }
    }

    /// Puts a configuration in the place of the present one, at all sides.
    pub(super) fn replace(&self, config: &Arc<Config>) {
        for place in self.places.lock().iter() {
            place.live.replace(config.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use onionskin_keys::KeySet;

    use super::*;
    use crate::hot_path::bare_config;
    use crate::{CatchUp, Place as Server, Shared};

    /// Snapshots, plans and cells are each member's own; the names that were protected once are
    /// everybody's.
    #[test]
    fn each_member_is_a_side_of_its_own_and_the_emptiest_is_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.json");
        KeySet::create_file(&file, None, &mut rand::rng()).unwrap();
        let keys = KeySet::load("file:keys.json", folder.path(), None).unwrap();
        let primary = Live::new(Shared::new(bare_config(Arc::new(keys))));
        let reads = Reads::beside(primary.clone());
        assert!(reads.choose().0.current().leading.closed.is_some());
        for name in ["a:1", "b:1", "c:1"] {
            let member: Backend = name.parse().unwrap();
            let lead = reads.lead(&member);
            if name != "c:1" {
                let place = Server {
                    member,
                    address: None,
                    identity: name.into(),
                };
                lead.open_to(&place, CatchUp::No, std::time::Duration::ZERO);
            }
        }
        let (one, first) = reads.choose();
        let (other, _second) = reads.choose();
        assert_ne!(one.current().leading.side, other.current().leading.side);
        drop(first);
        let (again, _third) = reads.choose();
        assert_eq!(again.current().leading.side, one.current().leading.side);
        let all = [&primary, &one, &other].map(|live| live.current());
        for (index, shared) in all.iter().enumerate() {
            let next = &all[(index + 1) % 3];
            assert!(!Arc::ptr_eq(&shared.accounts, &next.accounts));
            assert!(!Arc::ptr_eq(&shared.cell_memory, &next.cell_memory));
            let once = [shared, next].map(|shared| shared.accounts.once_protected());
            assert!(Arc::ptr_eq(&once[0], &once[1]));
            assert!(Arc::ptr_eq(&shared.sessions, &next.sessions));
        }
    }
}
