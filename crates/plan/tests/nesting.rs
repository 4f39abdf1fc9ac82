//! Statements that are deep, long or lean to the left do not overflow a session's stack, and do not
//! take long: what the fuzz target `deep` chooses from, each at a few sizes.

#[path = "../../../fuzz/src/deep.rs"]
#[allow(dead_code)]
mod deep;

use std::time::{Duration, Instant};

/// Each statement by itself, on the stack of a session; those that took too long.
fn slow(statements: impl Iterator<Item = (String, Vec<u8>)>, limit: Duration) -> Vec<String> {
    let mut found = Vec::new();
    for (n, (name, sql)) in statements.enumerate() {
        let flags = [0, 68, 64, 4][n % 4];
        // the last line before an overflow says where it was
        println!("{name}: {} bytes", sql.len());
        let begun = Instant::now();
        deep::on_session_stack(vec![(flags, sql)]);
        let took = begun.elapsed();
        println!("  {took:?}");
        if took > limit {
            found.push(format!("{name}: {took:?}"));
        }
    }
    found
}

/// From ordinary sizes, where the whole tree is walked, to ones that are refused. The last two are
/// the most that is let through, and more than that.
const SIZES: [usize; 4] = [40, 700, 9_000, 70_000];

#[test]
fn no_operator_overflows_the_stack() {
    let forms = deep::FORMS.iter().enumerate();
    let statements = forms.flat_map(|(n, form)| {
        SIZES.into_iter().map(move |count| {
            let name = format!("{form:?} x {count}");
            (
                name,
                deep::with_forms([0, 1, 5, 8][n % 4], "1", &[(*form, count)]),
            )
        })
    });
    let slow = slow(statements, Duration::from_secs(8));
    assert!(slow.is_empty(), "{slow:#?}");
}

#[test]
fn no_clause_overflows_the_stack() {
    let statements = (0..deep::STATEMENTS.len()).flat_map(|which| {
        SIZES.into_iter().map(move |count| {
            let name = format!("{:?} x {count}", deep::STATEMENTS[which]);
            (name, deep::statement(which, count))
        })
    });
    let slow = slow(statements, Duration::from_secs(8));
    assert!(slow.is_empty(), "{slow:#?}");
}

/// Two forms within each other: neither hides the other from the bound.
#[test]
fn no_two_forms_overflow_the_stack() {
    let mut seed = 20_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let statements = (0..400).map(move |n| {
        let sizes = [(48, 400), (1200, 12), (4, 5000), (30_000, 2), (16, 16)];
        let (first, second) = sizes[random(sizes.len())];
        let mut form = || deep::FORMS[random(deep::FORMS.len())];
        let forms = [(form(), first), (form(), second), (form(), 1)];
        let name = format!("{n}: {forms:?}");
        (name, deep::with_forms(random(12), "k", &forms))
    });
    let slow = slow(statements, Duration::from_secs(8));
    assert!(slow.is_empty(), "{slow:#?}");
}

/// The parser is called in one place, behind the bound.
#[test]
fn one_door_to_the_parser() {
    fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => files(&path, found),
                false => found.push(path),
            }
        }
    }
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&sources, &mut found);
    assert!(found.len() > 50);
    found.retain(|path| {
        let text = std::fs::read_to_string(path).expect("a source file");
        ["sqlparser::parser", "Parser::", "Tokenizer::"]
            .iter()
            .any(|word| text.contains(word))
    });
    found.sort();
    // the dialect is what the parser calls, and opens none
    let dialect = sources.join("dialect.rs");
    assert_eq!(found, [dialect.clone(), sources.join("parse.rs")]);
    let text = std::fs::read_to_string(dialect).expect("a source file");
    assert!(!text.contains("Parser::") && !text.contains("Tokenizer::"));
}
