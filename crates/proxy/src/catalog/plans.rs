//! The plans of an account, by the settings that they were made under and by their shapes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ahash::RandomState;
use onionskin_plan::{ColumnUse, Plan, Settings};
use onionskin_schema::TableName;
use parking_lot::RwLock;

use crate::age::Age;
use crate::mask::PlanKeys;
use crate::metrics::Label;
use crate::shown::Shown;

/// Combinations of settings for which plans are kept.
const SPACES: usize = 1024;
/// Plans kept for one combination of settings.
const PLANS: usize = 4096;
/// Bytes that the plans of one account may take, about.
const PLANS_WEIGH: usize = 128 << 20;
/// Statements with longer shapes are planned every time.
const LONGEST_SHAPE: usize = 16 * 1024;

/// A plan with what executing it needs: the ciphers of its columns, and what it rests on.
pub(crate) struct KeyedPlan {
    pub plan: Plan,
    /// A cipher for each of the plan's columns.
    pub keys: PlanKeys,
    /// The number of the account's snapshot that it was made from.
    pub snapshot: u64,
    /// Of what was known of tables when it was made.
    pub generation: u64,
    /// Of the rules that it was made under.
    pub edition: u64,
    /// What the result's definitions were the last time.
    pub shown: RwLock<Option<Arc<Shown>>>,
    /// The ages of the lists and tables that it rests on.
    pub basis: Vec<Arc<Age>>,
    /// Where its statements are counted.
    pub label: Label,
    /// A stored program may run: it is called, stands in a view, or is the statement itself.
    pub runs_programs: bool,
    /// Where an audit log is written: protected columns that the statement names.
    pub named: Vec<ColumnUse>,
}

/// The plans made under one combination of settings.
pub(crate) struct PlanSpace {
    pub settings: Settings,
    plans: RwLock<Kept>,
    /// Of all the account's spaces.
    weigh: Arc<AtomicUsize>,
}

/// Plans by their shapes.
#[derive(Default)]
struct Kept {
    plans: HashMap<Vec<u8>, Arc<KeyedPlan>, RandomState>,
    /// Their bytes.
    weight: usize,
}

/// The plans of an account.
#[derive(Default)]
pub(crate) struct PlanSpaces {
    spaces: RwLock<HashMap<Vec<u8>, Arc<PlanSpace>>>,
    /// How many bytes the plans of all spaces take.
    weigh: Arc<AtomicUsize>,
}

impl PlanSpaces {
    /// How many plans there are.
    pub fn plans(&self) -> usize {
        let spaces = self.spaces.read();
        let plans = spaces.values().map(|space| space.plans.read().plans.len());
        plans.sum()
    }

    /// The plans under one combination of settings, which has this key.
    pub fn get(&self, key: Vec<u8>, settings: Settings) -> Arc<PlanSpace> {
        if self.weigh.load(Ordering::Relaxed) > PLANS_WEIGH / 2 {
            for space in self.spaces.read().values() {
                space.empty(&mut space.plans.write());
            }
        }
        if let Some(found) = self.spaces.read().get(&key) {
            return Arc::clone(found);
        }
        let mut spaces = self.spaces.write();
        if spaces.len() >= SPACES {
            spaces.clear();
        }
        Arc::clone(spaces.entry(key).or_insert_with(|| {
            Arc::new(PlanSpace {
                settings,
                plans: RwLock::default(),
                weigh: Arc::clone(&self.weigh),
            })
        }))
    }
}

impl PlanSpace {
    pub fn get(&self, shape: &[u8]) -> Option<Arc<KeyedPlan>> {
        self.plans.read().plans.get(shape).cloned()
    }

    pub fn put(&self, shape: &[u8], keyed: &Arc<KeyedPlan>) {
        if shape.len() > LONGEST_SHAPE {
            return;
        }
        let weight = keyed.weight(shape);
        let mut kept = self.plans.write();
        let is_full = |kept: &Kept| {
            kept.plans.len() >= PLANS || self.weigh.load(Ordering::Relaxed) + weight > PLANS_WEIGH
        };
        if is_full(&kept) {
            self.empty(&mut kept);
        }
        // what other spaces hold goes when the next session asks for a space
        if is_full(&kept) {
            return;
        }
        if let Some(before) = kept.plans.insert(shape.to_vec(), Arc::clone(keyed)) {
            let before = before.weight(shape);
            kept.weight -= before;
            self.weigh.fetch_sub(before, Ordering::Relaxed);
        }
        kept.weight += weight;
        self.weigh.fetch_add(weight, Ordering::Relaxed);
    }

    fn empty(&self, kept: &mut Kept) {
        let kept = std::mem::take(kept);
        self.weigh.fetch_sub(kept.weight, Ordering::Relaxed);
    }
}

impl Drop for PlanSpace {
    fn drop(&mut self) {
        let mut kept = std::mem::take(&mut *self.plans.write());
        self.empty(&mut kept);
    }
}

impl KeyedPlan {
    /// Whether the server's warnings may be about tokens: of rows with duplicates that are left
    /// out.
    pub fn warns_of_tokens(&self) -> bool {
        self.plan.facts.may_ignore() && !self.plan.columns.is_empty()
    }

    /// About as many bytes as the plan takes under its shape.
    fn weight(&self, shape: &[u8]) -> usize {
        let name = |table: &TableName| 64 + table.database.len() + table.name.len();
        let names: usize = self.plan.names.iter().map(name).sum();
        // the text is there once more as the server gets it
        2048 + 4 * shape.len() + names + 512 * self.plan.columns.len()
    }
}
