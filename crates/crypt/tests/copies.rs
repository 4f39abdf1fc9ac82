//! A process that was copied, as it is with a virtual machine that is cloned, or resumed twice from
//! one snapshot.
//!
//! `fork` makes such a copy: the child has the parent's memory, and with it the state of every
//! generator. What the two of them seal from there on must not meet in a nonce.

use std::io::{Read, Write};

use onionskin_crypt::{
    ColumnCipher, ColumnId, Suite, dangerous_bytes::data_key_from_bytes, fresh_bytes,
};

const HEADER: usize = 7;
const NONCE: usize = 12;

/// What `make` gives here, and in a copy of this process.
fn in_both(make: impl Fn(bool) -> Vec<u8>) -> [Vec<u8>; 2] {
    let (mut read, mut write) = std::io::pipe().unwrap();
    // SAFETY: the child uses no lock that another thread may hold but the allocator's, which the C
    // library makes usable after `fork`, and ends without returning.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        let written = write.write_all(&make(true)).is_ok();
        // SAFETY: ends the process at once.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(i32::from(!written))
        }
    }
    drop(write);
    let mut theirs = Vec::new();
    read.read_to_end(&mut theirs).unwrap();
    let mut status = 0;
    // SAFETY: waits for the child of this call.
    #[allow(unsafe_code)]
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0));
    [make(false), theirs]
}

fn cell(payload: &[u8]) -> impl Fn(bool) -> Vec<u8> {
    let id = ColumnId {
        table: *b"table001",
        column: *b"col1",
    };
    let cipher = ColumnCipher::new(Suite::Sm, 1, &data_key_from_bytes([1; 32]), id, None);
    // The generator of this thread is in use.
    cipher.seal(b"before", &mut Vec::new()).unwrap();
    move |copy| {
        let mut payload = payload.to_vec();
        payload.push(u8::from(copy));
        let mut cell = Vec::new();
        cipher.seal(&payload, &mut cell).unwrap();
        cell
    }
}

#[test]
fn a_copy_of_the_process_seals_under_other_nonces() {
    let [ours, theirs] = in_both(cell(b"payload"));
    assert_ne!(ours, theirs);
    let nonce = |cell: &[u8]| cell[HEADER..HEADER + NONCE].to_vec();
    assert_ne!(
        nonce(&ours),
        nonce(&theirs),
        "one nonce for two payloads: GCM gives away its authentication key"
    );
}

#[test]
fn a_copy_of_the_process_draws_other_salts() {
    let _: [u8; 32] = fresh_bytes();
    let [ours, theirs] = in_both(|_| fresh_bytes::<32>().to_vec());
    assert_eq!(ours.len(), 32);
    assert_ne!(ours, theirs);
}
