//! Why a statement is not understood (OS1001) is a variant of `NotUnderstood`, not a text: code
//! that looks at a refusal looks at its entry or its reason, and a reason has no words of the
//! statement. Types see to most of it; here is the rest. No server is needed.

use std::fs;
use std::path::{Path, PathBuf};

/// May name the entry, and makes texts.
const ERRORS: &str = "crates/plan/src/errors/";
const REASONS: &str = "crates/plan/src/errors/not_understood.rs";

/// Crates that know refusals, and the program.
const USERS: [&str; 5] = [
    "crates/assess/",
    "crates/plan/",
    "crates/physical/",
    "crates/proxy/",
    "onionskin/",
];

/// What asks for the words of a refusal, to decide by them.
const LOOKS_AT_WORDS: [&str; 5] = [
    ".message() ==",
    ".message() !=",
    ".message().contains(",
    ".message().starts_with(",
    ".message().ends_with(",
];

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of the checkout") {
        let path = entry.expect("a file of the checkout").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.strip_prefix(checkout()).expect("below the checkout");
            let text = fs::read_to_string(&path).expect("a source");
            found.push((name.to_string_lossy().into_owned(), text));
        }
    }
}

/// The program's own files and those of its crates, without tests, by their names.
fn program() -> Vec<(String, String)> {
    let mut found = Vec::new();
    sources(&checkout().join("onionskin/src"), &mut found);
    for entry in fs::read_dir(checkout().join("crates")).expect("the crates") {
        sources(&entry.expect("a crate").path().join("src"), &mut found);
    }
    found.retain(|(name, _)| !name.contains("/tests"));
    assert!(found.iter().any(|(name, _)| name == REASONS));
    found
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a word stands there by itself.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let behind = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    })
}

/// Whether a field of the name `about` is read.
fn reads_about(line: &str) -> bool {
    let mut behind = line.split(".about").skip(1);
    behind.any(|text| !text.starts_with(|c| is_part(c) || c == '('))
}

#[test]
fn no_code_decides_by_the_words_of_a_refusal() {
    let mut found = Vec::new();
    for (name, text) in program() {
        let is_user = USERS.iter().any(|user| name.starts_with(user));
        if !is_user || name.starts_with(ERRORS) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let names_entry = has_word(line, "NOT_UNDERSTOOD") || line.contains("\"OS1001");
            let looks = LOOKS_AT_WORDS.iter().any(|looks| line.contains(looks));
            if names_entry || looks || reads_about(line) {
                found.push(format!("{name}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert!(
        found.is_empty(),
        "take a variant of NotUnderstood, and compare it:\n{}",
        found.join("\n")
    );
}

#[test]
fn a_clause_is_keywords() {
    let mut found = Vec::new();
    let mut clauses = 0;
    for (name, text) in program() {
        for (at, _) in text.match_indices("NotUnderstood::Clause(\"") {
            let clause = text[at..].split('"').nth(1).unwrap_or_default();
            let is_keyword = |c: char| c.is_ascii_uppercase() || c == ' ' || c == '…';
            clauses += 1;
            if !clause.chars().all(is_keyword) {
                found.push(format!("{name}: {clause}"));
            }
        }
    }
    assert!(clauses > 30, "{clauses}");
    assert!(
        found.is_empty(),
        "what is no clause gets a variant of its own:\n{}",
        found.join("\n")
    );
}

#[test]
fn every_reason_has_a_place_that_gives_it() {
    let files = program();
    let (_, reasons) = files
        .iter()
        .find(|(name, _)| name == REASONS)
        .expect("the reasons");
    let table = reasons.split("\nreasons! {").nth(1).unwrap_or_default();
    let (table, behind) = table.split_once("\n}\n").expect("the end of the table");
    let declared = table.lines().filter_map(|line| {
        let name = line.strip_prefix("        ")?;
        let end = name.find(['(', ' '])?;
        name.starts_with(|c: char| c.is_ascii_uppercase())
            .then_some(&name[..end])
    });
    let declared: Vec<&str> = declared.collect();
    assert!(declared.len() > 50, "{declared:?}");
    let is_given = |reason: &&str| {
        let path = format!("NotUnderstood::{reason}");
        let others = files.iter().filter(|(name, _)| name != REASONS);
        let texts = others.map(|(_, text)| text.as_str());
        texts.chain([behind]).any(|text| has_word(text, &path))
    };
    let idle: Vec<&str> = declared.into_iter().filter(|r| !is_given(r)).collect();
    assert!(idle.is_empty(), "nothing gives these reasons: {idle:?}");
}

/// Servers fold names letter by letter, and words of the language are ASCII. What folds otherwise
/// takes two names for two that are one to a server: see docs/decisions/folded-names.md.
#[test]
fn names_are_folded_in_one_place() {
    const FOLDERS: [&str; 6] = [
        "plan/src",
        "schema/src",
        "proxy/src",
        "physical/src",
        "migrate/src",
        "assess/src/queries",
    ];
    // no names that a rule goes by, a format that is written already, or a looser comparison
    const OTHERS: [&str; 8] = [
        "schema/src/folding.rs",
        "schema/src/plain_mark.rs",
        "proxy/src/renewal/lists.rs",
        "plan/src/errors/mod.rs",
        "migrate/src/trigger_text.rs",
        "migrate/src/trigger_reach.rs",
        "migrate/src/conflict.rs",
        "migrate/src/triggers.rs",
    ];
    let mut found = Vec::new();
    for folder in FOLDERS {
        sources(&checkout().join("crates").join(folder), &mut found);
    }
    let is_other = |path: &str| OTHERS.iter().any(|other| path.ends_with(other));
    let folds = |text: &str| text.contains("to_lowercase") || text.contains("to_uppercase");
    assert!(
        found
            .iter()
            .any(|(path, text)| is_other(path) && folds(text))
    );
    let wrong: Vec<&str> = found
        .iter()
        .filter(|(path, text)| !is_other(path) && folds(text))
        .map(|(path, _)| path.as_str())
        .collect();
    assert!(
        wrong.is_empty(),
        "onionskin_schema::folded is for names: {wrong:?}"
    );
}
