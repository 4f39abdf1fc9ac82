//! Keys that stay in memory, and are never written to swap.
//!
//! Locked are the data keys, from which all others derive, each in the page that it lies in. The
//! keys of columns lie inside the cryptographic library, which does not say where, and the metadata
//! key with them. Systems limit what a process may lock (`ulimit -l`); what cannot be locked works
//! all the same.

use onionskin_crypt::{DataKey, dangerous_bytes};

/// Locks the pages that these keys lie in, for as long as the process lives. The error is the first
/// one.
pub(crate) fn lock<'a>(keys: impl Iterator<Item = &'a DataKey>) -> std::io::Result<()> {
    for key in keys {
        lock_bytes(dangerous_bytes::bytes_of_data_key(key))?;
    }
    Ok(())
}

#[allow(unsafe_code)]
fn lock_bytes(bytes: &[u8]) -> std::io::Result<()> {
    // SAFETY: the range is that of a live reference. Locking changes nothing about the memory but
    // whether it can be swapped out, and the lock outlives the reference without harm.
    unsafe { rustix::mm::mlock(bytes.as_ptr().cast_mut().cast(), bytes.len()) }.map_err(Into::into)
}
