//! LIKE: which values a pattern matches, and the grams by which values that may match are found.
//!
//! The servers compare LIKE **character by character**. So it differs from `=`: nothing is padded
//! (`'a '` is not LIKE `'a'`), a character that weighs as two others do is not LIKE them (`'ß'` is
//! not LIKE `'ss'`), and a character without weight counts (the value must have one in its place).
//! Two characters are LIKE each other if
//!
//! | collations | |
//! |---|---|
//! | `…_bin`, binary types | they are the same, in the sets of tables (gbk, cp1251, …) byte for byte |
//! | `…_general_ci`, `latin1_swedish_ci` and what else weighs byte by byte | they have the same weight |
//! | `gbk_chinese_ci` and the like | they have the same weight if they are ASCII; others are the same |
//! | `…_unicode_ci`, `…_uca1400_ai_ci`, `utf8mb4_0900_ai_ci` | the collation's table lists both, with the same weights; or they are the same. Ideographs, Hangul syllables and, in `…_unicode_ci`, whatever is outside of the basic plane are not listed |
//!
//! Measured on MariaDB 10.11 and MySQL 9.7; `onionskin/tests/like.rs` compares every character of
//! the basic plane and random patterns with both servers.
//!
//! Numbers and dates are matched as the texts that servers show.
//!
//! # Grams
//!
//! A gram is three characters of a value in a row, as LIKE compares them; its beginning and its end
//! count as characters. Every value that a pattern matches has the grams of each stretch of the
//! pattern between its wildcards. So an index over grams finds candidates and loses none.
//!
//! | file | holds |
//! |---|---|
//! | `key` | what LIKE compares of a character |
//! | `pattern` | patterns, and which values match them |
//! | `grams` | the grams of values and patterns |

mod grams;
mod key;
mod pattern;

pub use grams::{GRAM_BYTES, grams, has_grams, most_grams};
pub use pattern::{Escape, LikePattern, Pattern};

#[cfg(test)]
mod tests;
