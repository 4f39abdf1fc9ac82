//! What was made of tenants lately, and would be costly to make again.

use std::{collections::HashMap, mem};

use parking_lot::RwLock;

use crate::TenantId;

/// Values of few tenants, in two halves. What is asked for of the old half moves to the young one;
/// when that is full, the old half is dropped and the young one grows old. So what is asked for
/// again and again stays.
pub(crate) struct Recent<V>(RwLock<Halves<V>>);

struct Halves<V> {
    young: HashMap<TenantId, V>,
    old: HashMap<TenantId, V>,
    /// Of each.
    most: usize,
}

impl<V> Recent<V> {
    /// Keeps values of so many tenants at most.
    pub(crate) fn of(tenants: usize) -> Self {
        Self(RwLock::new(Halves {
            young: HashMap::new(),
            old: HashMap::new(),
            most: tenants / 2,
        }))
    }
}

impl<V: Clone> Recent<V> {
    /// What is kept of a tenant.
    pub(crate) fn get(&self, tenant: TenantId) -> Option<V> {
        if let Some(value) = self.0.read().young.get(&tenant) {
            return Some(value.clone());
        }
        let mut halves = self.0.write();
        let value = halves.old.remove(&tenant)?;
        halves.keep(tenant, value.clone());
        Some(value)
    }

    /// Keeps it.
    pub(crate) fn keep(&self, tenant: TenantId, value: V) {
        self.0.write().keep(tenant, value);
    }

    /// Forgets a tenant.
    pub(crate) fn remove(&mut self, tenant: TenantId) {
        let halves = self.0.get_mut();
        halves.young.remove(&tenant);
        halves.old.remove(&tenant);
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        let halves = self.0.read();
        halves.young.len() + halves.old.len()
    }
}

impl<V> Halves<V> {
    fn keep(&mut self, tenant: TenantId, value: V) {
        if self.young.len() >= self.most {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(tenant, value);
    }
}
