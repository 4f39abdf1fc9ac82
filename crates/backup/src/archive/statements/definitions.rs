//! Definitions: what makes the server run, read or write what is no table of its own.

use super::readings::{gaps, next_word};

/// The first thing that definitions may not hold, wherever it stands: keyword and value. As for
/// settings, quotes do not count. An error if it cannot be told.
pub fn forbidden_in_definition(text: &[u8]) -> Result<Option<String>, String> {
    // Engines that read and write elsewhere; none of them is there as long as the server finds no
    // plugins.
    const ENGINES: [&[u8]; 5] = [b"FEDERATED", b"CONNECT", b"SPIDER", b"S3", b"SPHINX"];
    let word_at = |at: usize| {
        let (_, to) = next_word(text, at).filter(|(from, _)| *from == at)?;
        Some((text[at..to].to_ascii_uppercase(), to))
    };
    let mut at = 0;
    while let Some((from, to)) = next_word(text, at) {
        at = to;
        match text[from..to].to_ascii_uppercase().as_slice() {
            b"DATA" | b"INDEX" => {
                for next in gaps(text, to)? {
                    if let Some((word, to)) = word_at(next)
                        && word == b"DIRECTORY"
                        && names_a_file(text, to)?
                    {
                        return Ok(Some("with a DATA DIRECTORY or INDEX DIRECTORY".into()));
                    }
                }
            }
            b"SONAME" if names_a_file(text, to)? => return Ok(Some("with a SONAME".into())),
            b"ENGINE" => {
                for next in behind_equals(text, to)? {
                    let quote = matches!(text.get(next), Some(b'\'' | b'"' | b'`'));
                    if let Some((word, _)) = word_at(next + usize::from(quote))
                        && ENGINES.contains(&word.as_slice())
                    {
                        let name = String::from_utf8_lossy(&word);
                        return Ok(Some(format!("with ENGINE={name}")));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Whether a text in quotes follows, perhaps behind a sign of equality. The end of one does not
/// count: a comment of a column may end with these words.
fn names_a_file(text: &[u8], at: usize) -> Result<bool, String> {
    let mut places = gaps(text, at)?;
    places.extend(behind_equals(text, at)?);
    Ok(places.into_iter().any(|place| {
        let is_quote = matches!(text.get(place), Some(b'\'' | b'"'));
        let ended = match text.get(place + 1) {
            None => true,
            Some(next) => b",);*'\"".contains(next) || next.is_ascii_whitespace(),
        };
        is_quote && !ended
    }))
}

/// Where values begin, if a sign of equality follows.
fn behind_equals(text: &[u8], at: usize) -> Result<Vec<usize>, String> {
    let mut found = Vec::new();
    for place in gaps(text, at)? {
        if text.get(place) == Some(&b'=') {
            found.extend(gaps(text, place + 1)?);
        }
    }
    Ok(found)
}
