//! The tree whose leaves are the secrets of tenants, and from which leaves can be taken away.
//!
//! It is the pseudo-random function of Goldreich, Goldwasser and Micali (1986), which can be
//! *punctured* (Boneh and Waters, Kiayias and others, Boyle and others, all 2013). The 64 bits of a
//! tenant's id lead from the root to its leaf, the highest bit first:
//!
//! ```text
//! left ‖ right = SHA-256("onionskin/1 tenant tree" ‖ depth (1) ‖ path (8) ‖ node (16))
//! ```
//!
//! The depth is that of the node, 0 at the root. The path has the bits that led to it, and zeros
//! behind them; so no two nodes are hashed alike, and an attack on one says nothing of another.
//! All inputs have one length, 48 bytes, which is one block of the hash.
//!
//! At first the root is all that is kept, and every tenant has a secret before anybody has heard of
//! it. To forget a tenant is to replace the node above its leaf by the siblings along the way to
//! the leaf. From these all other leaves can be computed, and this one cannot: all nodes on its way
//! are gone. Which nodes are kept follows from which leaves are forgotten, in whatever order that
//! happened. For n forgotten tenants these are at most n · (64 − log2 n) nodes.

use std::{collections::BTreeMap, sync::Arc};

use aws_lc_rs::digest;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    TenantId,
    recent::Recent,
    tenant::{TENANT_SECRET_LEN, TenantSecret, TenantSecrets},
};

const LABEL: &[u8; 23] = b"onionskin/1 tenant tree";
const INPUT_LEN: usize = LABEL.len() + 1 + 8 + TENANT_SECRET_LEN;
/// Steps from the root to a leaf.
const DEPTH: u8 = 64;

/// Tenants whose secrets are kept, about a hundred bytes each.
const KEPT_SECRETS: usize = 1 << 16;

/// The secret of a node. Boxed, so that no copy stays where the map had it; wiped when dropped.
type NodeSecret = Box<Zeroizing<[u8; TENANT_SECRET_LEN]>>;

/// A node that is kept: its depth and its secret, by its path.
type Nodes = BTreeMap<u64, (u8, NodeSecret)>;

/// The secrets of all tenants that are not forgotten. Wiped when dropped.
pub struct TenantTree {
    nodes: Nodes,
    /// The 64 steps to a leaf take most of the time of a tenant's first cell, and a row has cells
    /// of several columns.
    recent: Recent<Arc<TenantSecret>>,
}

impl TenantTree {
    /// The tree from which nobody is forgotten. `root` must be secret and uniformly random.
    pub fn new(mut root: [u8; TENANT_SECRET_LEN]) -> Self {
        let secret = boxed(&root);
        root.zeroize();
        Self {
            nodes: BTreeMap::from([(0, (0, secret))]),
            recent: Recent::of(KEPT_SECRETS),
        }
    }

    /// The secret of a tenant; `None` if it was forgotten.
    pub fn secret(&self, tenant: TenantId) -> Option<TenantSecret> {
        if let Some(secret) = self.recent.get(tenant) {
            return Some(TenantSecret::from_bytes(secret.bytes()));
        }
        let path = u64::from_be_bytes(tenant.0);
        let (depth, node) = self.covering(path)?;
        let mut node = Zeroizing::new(***node);
        for depth in depth..DEPTH {
            let children = Children::of(path, depth, &node);
            node.copy_from_slice(children.at(is_right(path, depth)));
        }
        let kept = Arc::new(TenantSecret::from_bytes(&node));
        self.recent.keep(tenant, kept);
        Some(TenantSecret::from_bytes(&node))
    }

    /// Takes the secret of a tenant away for good; `false` if it was gone already.
    pub fn forget(&mut self, tenant: TenantId) -> bool {
        let path = u64::from_be_bytes(tenant.0);
        let Some((depth, _)) = self.covering(path) else {
            return false;
        };
        let Some((_, mut node)) = self.nodes.remove(&prefix(path, depth)) else {
            return false;
        };
        self.recent.remove(tenant);
        for depth in depth..DEPTH {
            let children = Children::of(path, depth, &node);
            let right = is_right(path, depth);
            let sibling = prefix(path, depth + 1) ^ bit(depth);
            let kept = (depth + 1, boxed(children.at(!right)));
            self.nodes.insert(sibling, kept);
            node.copy_from_slice(children.at(right));
        }
        true
    }

    /// Whether a tenant's secret was taken away.
    pub fn is_forgotten(&self, tenant: TenantId) -> bool {
        self.covering(u64::from_be_bytes(tenant.0)).is_none()
    }

    /// How many nodes are kept.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node that leads to this leaf.
    fn covering(&self, path: u64) -> Option<(u8, &NodeSecret)> {
        let (&start, (depth, secret)) = self.nodes.range(..=path).next_back()?;
        (start == prefix(path, *depth)).then_some((*depth, secret))
    }

    /// The secrets of the nodes that are kept, one behind the other, in the order of their paths.
    pub(crate) fn secrets(&self) -> Zeroizing<Vec<u8>> {
        let mut secrets = Zeroizing::new(Vec::with_capacity(self.nodes.len() * TENANT_SECRET_LEN));
        for (_, secret) in self.nodes.values() {
            secrets.extend_from_slice(&***secret);
        }
        secrets
    }

    /// The tree from which these tenants are forgotten, with these secrets of its nodes; `None` if
    /// it has not as many.
    pub(crate) fn from_secrets(forgotten: &[TenantId], secrets: &[u8]) -> Option<Self> {
        let mut paths: Vec<u64> = forgotten
            .iter()
            .map(|id| u64::from_be_bytes(id.0))
            .collect();
        paths.sort_unstable();
        paths.dedup();
        let mut places = Vec::new();
        kept_places(0, 0, &paths, &mut places);
        let (chunks, rest) = secrets.as_chunks::<TENANT_SECRET_LEN>();
        if !rest.is_empty() || chunks.len() != places.len() {
            return None;
        }
        let node = |((path, depth), secret)| (path, (depth, boxed(secret)));
        Some(Self {
            nodes: places.into_iter().zip(chunks).map(node).collect(),
            recent: Recent::of(KEPT_SECRETS),
        })
    }
}

impl TenantSecrets for TenantTree {
    fn secret(&self, tenant: TenantId) -> Option<TenantSecret> {
        TenantTree::secret(self, tenant)
    }
}

/// The places of the nodes that are kept below the node at `path` and `depth`, when these leaves
/// below it are forgotten, which are sorted.
fn kept_places(path: u64, depth: u8, forgotten: &[u64], places: &mut Vec<(u64, u8)>) {
    if forgotten.is_empty() {
        places.push((path, depth));
    } else if depth < DEPTH {
        let right = path | bit(depth);
        let (left_ones, right_ones) = forgotten.split_at(forgotten.partition_point(|&p| p < right));
        kept_places(path, depth + 1, left_ones, places);
        kept_places(right, depth + 1, right_ones, places);
    }
}

/// The bit of a path that says where it goes from a node of this depth.
fn bit(depth: u8) -> u64 {
    1 << (DEPTH - 1 - depth)
}

fn is_right(path: u64, depth: u8) -> bool {
    path & bit(depth) != 0
}

/// The first `depth` bits of a path.
fn prefix(path: u64, depth: u8) -> u64 {
    path & !u64::MAX.checked_shr(u32::from(depth)).unwrap_or_default()
}

fn boxed(secret: &[u8; TENANT_SECRET_LEN]) -> NodeSecret {
    let mut boxed = Box::new(Zeroizing::new([0; TENANT_SECRET_LEN]));
    boxed.copy_from_slice(secret);
    boxed
}

/// Both secrets below a node.
struct Children(digest::Digest);

impl Children {
    fn of(path: u64, depth: u8, node: &[u8; TENANT_SECRET_LEN]) -> Self {
        let mut input = Zeroizing::new([0; INPUT_LEN]);
        let (label, rest) = input.split_at_mut(LABEL.len());
        let (place, secret) = rest.split_at_mut(1 + 8);
        label.copy_from_slice(LABEL);
        place[0] = depth;
        place[1..].copy_from_slice(&prefix(path, depth).to_be_bytes());
        secret.copy_from_slice(node);
        Self(digest::digest(&digest::SHA256, &input[..]))
    }

    fn at(&self, right: bool) -> &[u8; TENANT_SECRET_LEN] {
        let (halves, _) = self.0.as_ref().as_chunks::<TENANT_SECRET_LEN>();
        &halves[usize::from(right)]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const ROOT: [u8; 16] = *b"sixteen of them.";

    fn tree() -> TenantTree {
        TenantTree::new(ROOT)
    }

    fn id(path: u64) -> TenantId {
        TenantId(path.to_be_bytes())
    }

    fn secret(tree: &TenantTree, path: u64) -> Option<[u8; 16]> {
        tree.secret(id(path)).map(|secret| *secret.bytes())
    }

    fn forget_all(tree: &mut TenantTree, paths: &[u64]) {
        for &path in paths {
            tree.forget(id(path));
        }
    }

    fn kept(tree: &TenantTree) -> Vec<(u64, u8, [u8; 16])> {
        let node = |(&path, (depth, secret)): (&u64, &(u8, NodeSecret))| (path, *depth, ***secret);
        tree.nodes.iter().map(node).collect()
    }

    /// Ids that are near to each other as well as far apart.
    fn paths() -> impl Strategy<Value = Vec<u64>> {
        let path = prop_oneof![
            any::<u64>(),
            0..8u64,
            (0..8u64).prop_map(|low| u64::MAX - low)
        ];
        proptest::collection::vec(path, 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn only_what_is_forgotten_dies(forgotten in paths(), others in paths()) {
            let (whole, mut tree) = (tree(), tree());
            let mut gone = BTreeSet::new();
            for &path in &forgotten {
                // What was asked for before is gone, too.
                prop_assert_eq!(tree.secret(id(path)).is_some(), !gone.contains(&path));
                prop_assert_eq!(tree.forget(id(path)), gone.insert(path));
            }
            let neighbours = forgotten.iter().flat_map(|path| [path ^ 1, path ^ 2, path ^ (1 << 63)]);
            for path in others.iter().copied().chain(neighbours).chain(forgotten.iter().copied()) {
                let is_gone = gone.contains(&path);
                prop_assert_eq!(tree.is_forgotten(id(path)), is_gone);
                let expected = secret(&whole, path).filter(|_| !is_gone);
                prop_assert_eq!(secret(&tree, path), expected);
            }
        }

        #[test]
        fn the_order_of_forgetting_leaves_no_trace(mut forgotten in paths()) {
            let (mut one, mut other) = (tree(), tree());
            forget_all(&mut one, &forgotten);
            forgotten.reverse();
            forget_all(&mut other, &forgotten);
            prop_assert_eq!(kept(&one), kept(&other));
            // The secrets alone make the same tree again.
            let ids: Vec<TenantId> = forgotten.iter().map(|&path| id(path)).collect();
            let again = TenantTree::from_secrets(&ids, &one.secrets()).unwrap();
            prop_assert_eq!(kept(&one), kept(&again));
        }

        /// No node that is kept lies on the way to a leaf that is forgotten, and each leaf that is
        /// not forgotten lies below exactly one. From a node nothing can be computed but what lies
        /// below it.
        #[test]
        fn nothing_on_the_way_to_a_forgotten_leaf_is_kept(forgotten in paths()) {
            let mut tree = tree();
            forget_all(&mut tree, &forgotten);
            let gone: BTreeSet<u64> = forgotten.iter().copied().collect();
            let mut leaves = gone.len() as u128;
            for (start, depth, secret) in kept(&tree) {
                prop_assert_eq!(start, prefix(start, depth));
                for &path in &gone {
                    prop_assert_ne!(prefix(path, depth), start);
                    // Nor does the secret of one stand at another place.
                    let mut node = ROOT;
                    for depth in 0..DEPTH {
                        prop_assert_ne!(node, secret);
                        node = *Children::of(path, depth, &node).at(is_right(path, depth));
                    }
                    prop_assert_ne!(node, secret);
                }
                leaves += 1 << (DEPTH - depth);
            }
            prop_assert_eq!(leaves, 1 << 64);
            prop_assert!(tree.nodes() <= 1.max(64 * gone.len()));
        }
    }

    #[test]
    fn all_of_a_small_subtree_can_go() {
        let mut tree = tree();
        for path in 0..16 {
            assert!(tree.forget(id(path)));
        }
        assert_eq!(tree.nodes(), 60, "the way to the subtree");
        assert!(!tree.forget(id(7)));
        assert!(secret(&tree, 16).is_some());
    }

    #[test]
    fn secrets_of_another_tree_are_refused() {
        let mut tree = tree();
        tree.forget(id(5));
        let secrets = tree.secrets();
        assert_eq!(secrets.len(), 64 * 16);
        for (forgotten, secrets) in [
            (&[][..], &secrets[..]),
            (&[id(4), id(5)], &secrets),
            (&[id(5)], &secrets[..63 * 16]),
            (&[id(5)], &secrets[1..]),
            (&[id(5)], &[]),
        ] {
            assert!(TenantTree::from_secrets(forgotten, secrets).is_none());
        }
        assert!(TenantTree::from_secrets(&[id(5)], &secrets).is_some());
    }
}
