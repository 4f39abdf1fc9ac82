//! What SHOW GRANTS says.

use crate::folding::{folded, same_name};

/// Whether a privilege is among these grants, and not taken back for the database.
pub fn is_granted(grants: &[String], privilege: &str, database: &str, table: &str) -> bool {
    let mut granted = false;
    for grant in grants {
        let (rest, gives) = match (grant.strip_prefix("GRANT "), grant.strip_prefix("REVOKE ")) {
            (Some(rest), _) => (rest, true),
            (_, Some(rest)) => (rest, false),
            _ => continue,
        };
        let Some((privileges, target)) = rest.split_once(" ON ") else {
            // A role, whose own grants are listed, too.
            continue;
        };
        let names = privileges
            .split(',')
            .any(|name| [privilege, "ALL PRIVILEGES"].contains(&name.trim()));
        if names && covers(target, database, table) {
            if !gives {
                return false;
            }
            granted = true;
        }
    }
    granted
}

/// Whether `*.*`, `` `d`.* `` or `` `d`.`t` `` is about a table.
fn covers(target: &str, database: &str, table: &str) -> bool {
    let Some((pattern, rest)) = part(target) else {
        return false;
    };
    let Some((name, _)) = rest.strip_prefix('.').and_then(part) else {
        return false;
    };
    let is_all = |part: &Part| *part == Part::All;
    (is_all(&pattern) || pattern.is_like(database)) && (is_all(&name) || name.is(table))
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    All,
    Name(String),
}

impl Part {
    fn is(&self, name: &str) -> bool {
        matches!(self, Part::Name(text) if same_name(text, name))
    }

    /// A name of a database is a pattern as with LIKE.
    fn is_like(&self, name: &str) -> bool {
        match self {
            Part::All => true,
            Part::Name(pattern) => {
                let pattern: Vec<char> = folded(pattern).chars().collect();
                let name: Vec<char> = folded(name).chars().collect();
                is_like(&pattern, &name)
            }
        }
    }
}

fn is_like(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['%', rest @ ..], _) => {
            is_like(rest, name) || !name.is_empty() && is_like(pattern, &name[1..])
        }
        (['_', rest @ ..], [_, behind @ ..]) => is_like(rest, behind),
        (['\\', c, rest @ ..], [first, behind @ ..]) if c == first => is_like(rest, behind),
        ([c, rest @ ..], [first, behind @ ..]) if c == first => is_like(rest, behind),
        _ => false,
    }
}

/// The part that a text begins with, and what is behind.
fn part(text: &str) -> Option<(Part, &str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((Part::All, rest));
    }
    let quote = text.chars().next().filter(|c| matches!(c, '`' | '"'))?;
    let mut name = String::new();
    let mut rest = &text[1..];
    loop {
        let (before, behind) = rest.split_once(quote)?;
        name.push_str(before);
        match behind.strip_prefix(quote) {
            Some(behind) => {
                name.push(quote);
                rest = behind;
            }
            None => return Some((Part::Name(name), behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_of_everything_of_a_database_or_of_a_table() {
        for (grants, is) in [
            (["GRANT ALL PRIVILEGES ON *.* TO `a`@`%`"].as_slice(), true),
            (
                &[
                    "GRANT USAGE ON *.* TO `a`@`%`",
                    "GRANT SELECT, TRIGGER ON `app`.* TO `a`@`%`",
                ],
                true,
            ),
            (&["GRANT TRIGGER ON `a__`.* TO `a`@`%`"], true),
            (&["GRANT TRIGGER ON `%p`.* TO `a`@`%`"], true),
            (&["GRANT TRIGGER ON `a\\_p`.* TO `a`@`%`"], false),
            (&["GRANT TRIGGER ON `app`.`T` TO `a`@`%`"], true),
            (&["GRANT TRIGGER ON `app`.`u` TO `a`@`%`"], false),
            (
                &[
                    "GRANT SELECT ON `app`.* TO `a`@`%`",
                    "GRANT `r`@`%` TO `a`@`%`",
                ],
                false,
            ),
            (
                &[
                    "GRANT TRIGGER ON *.* TO `a`@`%`",
                    "REVOKE TRIGGER ON `app`.* FROM `a`@`%`",
                ],
                false,
            ),
            (&[], false),
        ] {
            let texts: Vec<String> = grants.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(is_granted(&texts, "TRIGGER", "app", "t"), is, "{grants:?}");
        }
    }
}
