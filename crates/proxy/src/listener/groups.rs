//! How groups of addresses have behaved.
//!
//! What is kept of groups is bounded: those whose logins came to nothing by [`MAX_GROUPS`], those
//! who have logged in by another [`MAX_GROUPS`], so that nobody without a password makes the second
//! be forgotten.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::client_address::Group;

/// Groups that are remembered, of either kind.
pub(super) const MAX_GROUPS: usize = 4096;
/// After this time, time held in vain counts half.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// For how long a group goes first that has logged in.
const TRUST: Duration = Duration::from_secs(3600);
/// A group that has held places in vain for more seconds than this does not go first.
const PATIENCE: f64 = 8.0;
/// By how much a group must be better than another one to take a place away from it at once.
const MARGIN: f64 = 2.0;

/// Who goes first: the smaller one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Standing {
    /// It has not logged in lately, or has held places in vain since.
    is_stranger: bool,
    /// Logins that go on, and the seconds of those that came to nothing lately.
    burden: f64,
}

impl Standing {
    pub fn order(&self, other: &Self) -> Ordering {
        self.is_stranger
            .cmp(&other.is_stranger)
            .then(self.burden.total_cmp(&other.burden))
    }

    /// The same with so many connections more.
    pub fn with(self, more: usize) -> Self {
        Standing {
            burden: self.burden + more as f64,
            ..self
        }
    }

    /// Whether it would be better still if it had a place of `other`'s.
    pub fn is_much_better(&self, other: &Self) -> bool {
        match self.is_stranger.cmp(&other.is_stranger) {
            Ordering::Less => true,
            Ordering::Equal => self.burden + MARGIN <= other.burden,
            Ordering::Greater => false,
        }
    }

    pub fn is_stranger(&self) -> bool {
        self.is_stranger
    }
}

/// What is remembered of groups.
#[derive(Default)]
pub(super) struct Groups {
    /// Seconds held in vain, at a moment.
    in_vain: HashMap<Group, (f64, Instant)>,
    /// When it logged in last.
    logged_in: HashMap<Group, Instant>,
}

impl Groups {
    /// How a group stands that has so many logins going on.
    pub fn standing(&self, group: Group, running: usize, now: Instant) -> Standing {
        let in_vain = self.in_vain.get(&group);
        let in_vain = in_vain.map_or(0.0, |held| decayed(held, now));
        let is_known = self
            .logged_in
            .get(&group)
            .is_some_and(|at| now.saturating_duration_since(*at) < TRUST);
        Standing {
            is_stranger: !is_known || in_vain > PATIENCE,
            burden: running as f64 + in_vain,
        }
    }

    /// A login came to nothing that has held its place for so long.
    pub fn has_failed(&mut self, group: Group, held: Duration, now: Instant) {
        if self.in_vain.len() >= MAX_GROUPS && !self.in_vain.contains_key(&group) {
            let least = |a: &(f64, Instant), b: &(f64, Instant)| {
                decayed(a, now).total_cmp(&decayed(b, now))
            };
            drop_least(&mut self.in_vain, least);
        }
        let entry = self.in_vain.entry(group).or_insert((0.0, now));
        *entry = (decayed(entry, now) + held.as_secs_f64(), now);
    }

    /// A client of the group has logged in.
    pub fn has_logged_in(&mut self, group: Group, now: Instant) {
        if self.logged_in.len() >= MAX_GROUPS && !self.logged_in.contains_key(&group) {
            drop_least(&mut self.logged_in, Instant::cmp);
        }
        self.logged_in.insert(group, now);
    }

    #[cfg(test)]
    pub fn remembered(&self) -> (usize, usize) {
        (self.in_vain.len(), self.logged_in.len())
    }
}

fn decayed(&(held, at): &(f64, Instant), now: Instant) -> f64 {
    let age = now.saturating_duration_since(at).as_secs_f64();
    held * (-age / HALF_LIFE.as_secs_f64()).exp2()
}

fn drop_least<V>(map: &mut HashMap<Group, V>, order: impl Fn(&V, &V) -> Ordering) {
    let least = map.iter().min_by(|a, b| order(a.1, b.1));
    if let Some(group) = least.map(|(group, _)| *group) {
        map.remove(&group);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn group(address: &str) -> Group {
        address.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn a_network_of_64_bits_is_one_group() {
        assert_eq!(group("2001:db8:1:2::1"), group("2001:db8:1:2:ffff::9"));
        assert_ne!(group("2001:db8:1:2::1"), group("2001:db8:1:3::1"));
        assert_eq!(group("::ffff:10.0.0.1"), group("10.0.0.1"));
        assert_ne!(group("10.0.0.2"), group("10.0.0.1"));
    }

    #[test]
    fn what_was_held_in_vain_is_forgotten_by_and_by() {
        let mut groups = Groups::default();
        let (it, begin) = (group("10.0.0.1"), Instant::now());
        groups.has_logged_in(it, begin);
        groups.has_failed(it, Duration::from_secs(12), begin);
        assert!(groups.standing(it, 0, begin).is_stranger());
        let later = begin + HALF_LIFE;
        let standing = groups.standing(it, 3, later);
        assert!(!standing.is_stranger() && (standing.burden - 9.0).abs() < 1e-6);
        let much_later = begin + TRUST;
        assert!(groups.standing(it, 0, much_later).is_stranger());
    }

    #[test]
    fn only_so_many_groups_are_remembered() {
        let mut groups = Groups::default();
        let begin = Instant::now();
        let (honest, bad) = (group("192.168.0.1"), group("192.168.0.2"));
        groups.has_logged_in(honest, begin);
        groups.has_failed(bad, Duration::from_secs(50), begin);
        for n in 0..2 * MAX_GROUPS as u32 {
            let other = Group::from(IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + n)));
            groups.has_failed(other, Duration::from_millis(250), begin);
        }
        assert_eq!(groups.remembered(), (MAX_GROUPS, 1));
        assert!(!groups.standing(honest, 0, begin).is_stranger());
        assert!(groups.standing(bad, 0, begin).burden > 49.0);
    }
}
