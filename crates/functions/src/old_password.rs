//! `OLD_PASSWORD`: the password hash of MySQL before 4.1, 62 bits without a salt. It seeds
//! [`encode`](crate::encode), too.
//!
//! Source: public descriptions of the algorithm (Passlib's documentation of `mysql323`), checked
//! against the behaviour of MariaDB 10.11.19.

/// The two halves of the hash, 31 bits each. Spaces and tabs are not looked at.
pub(crate) fn halves(text: &[u8]) -> [u32; 2] {
    let mut first: u32 = 1_345_345_333;
    let mut second: u32 = 0x1234_5671;
    let mut sum: u32 = 7;
    for &byte in text.iter().filter(|byte| !matches!(byte, b' ' | b'\t')) {
        let byte = u32::from(byte);
        let mixed = (first & 63).wrapping_add(sum).wrapping_mul(byte);
        first ^= mixed.wrapping_add(first << 8);
        second = second.wrapping_add((second << 8) ^ first);
        sum = sum.wrapping_add(byte);
    }
    [first, second].map(|half| half & 0x7fff_ffff)
}

/// `OLD_PASSWORD`: 16 lower-case digits, and nothing for an empty text. (A blank is a text, and
/// gives the hash of nothing.) `PASSWORD` does the same under `old_passwords = 1`.
pub fn old_password(text: &[u8]) -> String {
    if text.is_empty() {
        return String::new();
    }
    let [first, second] = halves(text);
    format!("{first:08x}{second:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the documentation of Passlib and of Perl's Authen::Passphrase.
    #[test]
    fn equals_published_vectors() {
        assert_eq!(old_password(b"password"), "5d2e19393cc5ef67");
        assert_eq!(old_password(b"passphrase"), "2af8a0a82c8f9086");
        assert_eq!(old_password(b"pass\t word"), "5d2e19393cc5ef67");
        assert_eq!(old_password(b" "), "5030573512345671");
        assert_eq!(old_password(b""), "");
    }
}
