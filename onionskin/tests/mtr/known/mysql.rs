//! Of MySQL's files.

use super::Known;

pub const KNOWN: &[Known] = &[];
