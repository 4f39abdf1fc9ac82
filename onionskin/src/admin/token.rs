//! The token of `admin_token_file`: who shows it in `Authorization: Bearer` may read metrics.

use std::path::Path;

use onionskin_keys::read_private_file;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::error::CommandError;

/// Longest file, in bytes.
const LIMIT: u64 = 4096;
/// Fewest characters. Whoever can reach the address can try as many as he likes.
const SHORTEST: usize = 16;

/// See the module.
pub struct Token(Zeroizing<Vec<u8>>);

impl Token {
    /// Reads a file that is for its owner only. Blanks and line breaks around the token do not
    /// count.
    pub fn read(path: &Path) -> Result<Token, CommandError> {
        let text = read_private_file(path, LIMIT)
            .map_err(|error| CommandError::AdminToken(error.to_string()))?;
        let wrong = |what: &str| CommandError::AdminToken(format!("{}: {what}", path.display()));
        let token = text.trim_ascii();
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(wrong(
                "a token has letters, digits and signs of ASCII, and no blanks",
            ));
        }
        if token.len() < SHORTEST {
            return Err(wrong(
                "the token in it has fewer than 16 characters: make one with openssl rand -hex 32",
            ));
        }
        Ok(Token(Zeroizing::new(token.to_vec())))
    }

    /// Whether the value of an `Authorization` header shows the token. How long that takes says
    /// nothing but its length.
    pub fn is_shown_in(&self, authorization: &[u8]) -> bool {
        const SCHEME: &[u8] = b"bearer ";
        let Some((scheme, shown)) = authorization.split_at_checked(SCHEME.len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(SCHEME) && shown.trim_ascii().ct_eq(&self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_counts() {
        let token = Token(Zeroizing::new(b"0123456789abcdef".to_vec()));
        assert!(token.is_shown_in(b"Bearer 0123456789abcdef"));
        assert!(token.is_shown_in(b"bearer  0123456789abcdef "));
        for wrong in [
            &b""[..],
            b"Bearer",
            b"Bearer ",
            b"Bearer 0123456789abcde",
            b"Bearer 0123456789abcdef0",
            b"Bearer 0123456789ABCDEF",
            b"Basic 0123456789abcdef",
            b"0123456789abcdef",
        ] {
            assert!(
                !token.is_shown_in(wrong),
                "{:?}",
                String::from_utf8_lossy(wrong)
            );
        }
    }
}
