//! Searching bytes for values in every form in which a leak could carry them.
//!
//! All values of a test share a marker, so that a search for a few patterns finds any of them: a
//! rare string for texts, the leading digits of numbers, a far year for dates.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use aho_corasick::packed;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// A value's form to look for.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What it is, for messages.
    pub name: String,
    bytes: Vec<u8>,
    finder: memchr::memmem::Finder<'static>,
}

impl Pattern {
    fn new(name: String, bytes: Vec<u8>) -> Pattern {
        let finder = memchr::memmem::Finder::new(&bytes).into_owned();
        Pattern {
            name,
            bytes,
            finder,
        }
    }

    /// These bytes.
    #[allow(dead_code)] // for texts in other character sets
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Pattern {
        Pattern::new(name.to_owned(), bytes)
    }

    /// A text in all its forms: as it is, in either case, as UTF-16, in hexadecimal, in base64.
    pub fn of_text(marker: &str) -> Vec<Pattern> {
        let mut forms: Vec<(String, Vec<u8>)> = Vec::new();
        let mut spellings = vec![
            marker.to_owned(),
            marker.to_lowercase(),
            marker.to_uppercase(),
        ];
        spellings.dedup();
        for spelling in spellings {
            let hex: String = spelling.bytes().map(|b| format!("{b:02x}")).collect();
            forms.push((
                format!("hex of {spelling}"),
                hex.to_uppercase().into_bytes(),
            ));
            forms.push((format!("hex of {spelling}"), hex.into_bytes()));
            for offset in 0..3 {
                forms.push((
                    format!("base64 of {spelling}"),
                    base64_inside(spelling.as_bytes(), offset),
                ));
            }
            let wide: Vec<u8> = spelling.bytes().flat_map(|b| [b, 0]).collect();
            // Without the last zero it is found in big-endian UTF-16 as well.
            forms.push((
                format!("UTF-16 of {spelling}"),
                wide[..wide.len() - 1].to_vec(),
            ));
            forms.push((spelling.clone(), spelling.into_bytes()));
        }
        forms
            .into_iter()
            .map(|(name, bytes)| Pattern::new(name, bytes))
            .collect()
    }

    /// The integers `first ..= first + span`, as binary numbers of eight bytes: little-endian as in
    /// the binary protocol, and big-endian with the sign bit flipped as in InnoDB. Their digits are
    /// a text.
    pub fn of_integers(first: i64, span: i64) -> Vec<Pattern> {
        let common = |a: [u8; 8], b: [u8; 8]| -> Vec<u8> {
            a.iter()
                .zip(b)
                .take_while(|(x, y)| **x == *y)
                .map(|(x, _)| *x)
                .collect()
        };
        let last = first + span;
        let big = common(first.to_be_bytes(), last.to_be_bytes());
        assert!(big.len() >= 5, "too short a pattern is found by chance");
        let mut little = big.clone();
        little.reverse();
        let mut flipped = big.clone();
        flipped[0] ^= 0x80;
        vec![
            Pattern::new(format!("{first}… little-endian"), little),
            Pattern::new(format!("{first}… big-endian"), big),
            Pattern::new(format!("{first}… in InnoDB's form"), flipped),
        ]
    }
}

/// Places in `haystack` where one of the patterns stands, the first few of each pattern, with their
/// surroundings.
pub fn find_all(patterns: &[Pattern], haystack: &[u8]) -> Vec<String> {
    const OF_EACH: usize = 4;
    let mut found = Vec::new();
    if !has_any(patterns, haystack) {
        return found;
    }
    for pattern in patterns {
        for at in pattern.finder.find_iter(haystack).take(OF_EACH) {
            let end = (at + pattern.bytes.len() + 60).min(haystack.len());
            let context = &haystack[at.saturating_sub(60)..end];
            found.push(format!(
                "{} at {at}: …{}…",
                pattern.name,
                context.escape_ascii()
            ));
        }
    }
    found
}

/// Whether one of the patterns stands there: one pass over what is usually a server's whole data.
fn has_any(patterns: &[Pattern], haystack: &[u8]) -> bool {
    let mut builder = packed::Config::new().builder();
    builder.extend(patterns.iter().map(|pattern| &pattern.bytes));
    builder
        .build()
        .is_none_or(|searcher| searcher.find(haystack).is_some())
}

/// What stands in a file, without its holes: servers make large files of which most was never
/// written. Empty if it cannot be read.
pub fn written_in(path: &Path) -> Vec<u8> {
    read_written(path).unwrap_or_default()
}

fn read_written(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut written = Vec::new();
    let mut end = 0;
    loop {
        let start = match seek(&file, SeekFrom::Data(end)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(written),
            // not every file has such places
            Err(_) => {
                file.read_to_end(&mut written)?;
                return Ok(written);
            }
        };
        end = seek(&file, SeekFrom::Hole(start))?;
        seek(&file, SeekFrom::Start(start))?;
        (&mut file).take(end - start).read_to_end(&mut written)?;
    }
}

/// The part of the base64 text of `bytes`, when it starts at this offset (modulo 3) of a longer
/// text, that depends on nothing else.
fn base64_inside(bytes: &[u8], offset: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let padded: Vec<u8> = std::iter::repeat_n(0, offset)
        .chain(bytes.iter().copied())
        .collect();
    let bit = |n: usize| padded.get(n / 8).map_or(0, |byte| byte >> (7 - n % 8) & 1);
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    (first..last)
        .map(|digit| {
            let index = (0..6).fold(0, |value, n| value << 1 | bit(digit * 6 + n));
            ALPHABET[index as usize]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    #[test]
    fn texts_are_found_behind_holes() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(b"in front").expect("written");
        file.seek(io::SeekFrom::Start(20 << 20)).expect("a place");
        file.write_all(b"xx Hb4YqMz7 xx").expect("written");
        let written = written_in(file.path());
        assert!(written.len() < 1 << 20, "{}", written.len());
        let patterns = Pattern::of_text("Hb4YqMz7");
        assert!(!find_all(&patterns, &written).is_empty());
        assert!(find_all(&Pattern::of_text("Hb4YqMz8"), &written).is_empty());
        for pattern in &patterns {
            let hidden = [b"..", &pattern.bytes[..], b".."].concat();
            assert!(!find_all(&patterns, &hidden).is_empty(), "{}", pattern.name);
        }
        assert!(written_in(Path::new("/nowhere")).is_empty());
    }
}
