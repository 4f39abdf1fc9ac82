//! The choice of a kernel: which code runs, found out once for each process.

use std::fmt;
use std::sync::LazyLock;

use crate::ghash::{Parts, Powers};
use crate::portable;
use crate::schedule::RoundKeys;
#[cfg(target_arch = "x86_64")]
use crate::x86;
use crate::{BLOCK_LEN, KEY_LEN};

type Block = [u8; BLOCK_LEN];

/// What a kernel is: its name, the processors it runs on, and its functions.
///
/// The functions may be called only if `available` has returned true.
pub(crate) struct Ops {
    pub(crate) name: &'static str,
    pub(crate) available: fn() -> bool,
    /// Round keys in the form that the other functions of the same kernel take.
    pub(crate) expand: unsafe fn(&[u8; KEY_LEN]) -> RoundKeys,
    pub(crate) encrypt: unsafe fn(&RoundKeys, &mut [Block]),
    pub(crate) decrypt: unsafe fn(&RoundKeys, &mut [Block]),
    /// Leaves the last block of ciphertext in the place of the initialization vector.
    pub(crate) cbc_decrypt: unsafe fn(&RoundKeys, &mut Block, &mut [Block]),
    /// Adds the key stream that begins with this counter block; only its last four bytes count, and
    /// wrap.
    pub(crate) ctr: unsafe fn(&RoundKeys, &Block, &mut [u8]),
    /// As `ctr` with the counter block behind the given one, whose encryption it returns.
    pub(crate) ctr_behind: unsafe fn(&RoundKeys, &Block, &mut [u8]) -> Block,
    pub(crate) ghash_powers: unsafe fn(u128) -> Powers,
    /// Absorbs the parts.
    pub(crate) ghash: unsafe fn(&Powers, u128, Parts) -> u128,
}

/// From the slowest to the fastest.
static ALL: &[&Ops] = &[
    &portable::OPS,
    #[cfg(target_arch = "x86_64")]
    &x86::aesni::OPS,
    #[cfg(target_arch = "x86_64")]
    &x86::gfni256::OPS,
    #[cfg(target_arch = "x86_64")]
    &x86::gfni512::OPS,
];

static BEST: LazyLock<Kernel> = LazyLock::new(|| {
    Kernel::available()
        .last()
        .expect("the portable kernel runs everywhere")
});

/// An implementation of the cipher that this processor can run.
///
/// All kernels compute the same; [`Sm4::new`](crate::Sm4::new) takes the [`best`](Kernel::best).
/// Naming one is for tests, measurements, and for ruling one out.
#[derive(Clone, Copy)]
pub struct Kernel(&'static Ops);

impl Kernel {
    /// The fastest that this processor can run.
    pub fn best() -> Kernel {
        *BEST
    }

    /// All that this processor can run, the fastest last.
    pub fn available() -> impl Iterator<Item = Kernel> {
        ALL.iter()
            .filter(|ops| (ops.available)())
            .map(|ops| Kernel(ops))
    }

    /// The names of all kernels that were compiled in, whether or not this processor can run them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|ops| ops.name)
    }

    /// The kernel of this name, if this processor can run it.
    pub fn named(name: &str) -> Option<Kernel> {
        Kernel::available().find(|kernel| kernel.name() == name)
    }

    /// The kernel's name: `portable`, `aesni-avx2`, `gfni-avx2` or `gfni-avx512`.
    pub fn name(self) -> &'static str {
        self.0.name
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Kernel) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kernel {}

/// Calls of the kernel's functions. A `Kernel` is made nowhere but in [`Kernel::available`], which
/// asks the processor first.
#[allow(unsafe_code)]
impl Kernel {
    #[inline]
    pub(crate) fn expand(self, key: &[u8; KEY_LEN]) -> RoundKeys {
        // SAFETY: a `Kernel` exists only for a processor on which its functions run.
        unsafe { (self.0.expand)(key) }
    }

    #[inline]
    pub(crate) fn encrypt(self, round_keys: &RoundKeys, blocks: &mut [Block]) {
        // SAFETY: as in `expand`
        unsafe { (self.0.encrypt)(round_keys, blocks) }
    }

    #[inline]
    pub(crate) fn decrypt(self, round_keys: &RoundKeys, blocks: &mut [Block]) {
        // SAFETY: as in `expand`
        unsafe { (self.0.decrypt)(round_keys, blocks) }
    }

    #[inline]
    pub(crate) fn cbc_decrypt(self, round_keys: &RoundKeys, iv: &mut Block, blocks: &mut [Block]) {
        // SAFETY: as in `expand`
        unsafe { (self.0.cbc_decrypt)(round_keys, iv, blocks) }
    }

    #[inline]
    pub(crate) fn ctr(self, round_keys: &RoundKeys, counter: &Block, data: &mut [u8]) {
        // SAFETY: as in `expand`
        unsafe { (self.0.ctr)(round_keys, counter, data) }
    }

    #[inline]
    pub(crate) fn ctr_behind(self, round_keys: &RoundKeys, j0: &Block, data: &mut [u8]) -> Block {
        // SAFETY: as in `expand`
        unsafe { (self.0.ctr_behind)(round_keys, j0, data) }
    }

    #[inline]
    pub(crate) fn ghash_powers(self, key: u128) -> Powers {
        // SAFETY: as in `expand`
        unsafe { (self.0.ghash_powers)(key) }
    }

    #[inline]
    pub(crate) fn ghash(self, powers: &Powers, state: u128, parts: Parts) -> u128 {
        // SAFETY: as in `expand`
        unsafe { (self.0.ghash)(powers, state, parts) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_names() {
        let available: Vec<_> = Kernel::available().collect();
        assert_eq!(available.first().unwrap().name(), "portable");
        assert_eq!(*available.last().unwrap(), Kernel::best());
        for name in Kernel::names() {
            match Kernel::named(name) {
                Some(kernel) => assert_eq!(kernel.to_string(), name),
                None => assert!(available.iter().all(|kernel| kernel.name() != name)),
            }
        }
        assert_eq!(Kernel::named("none of them"), None);
    }
}
