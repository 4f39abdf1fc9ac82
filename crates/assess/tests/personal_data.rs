//! Precision and recall on labelled tables, which `scripts/assess_corpus.py` makes with Python's
//! Faker. The recorded ones are in `corpus/tables.json`; `ONIONSKIN_ASSESS_CORPUS` names others, and
//! then the figures are printed, and held to the same bounds.
//!
//! Faker's values are regular. Figures on them say that rules do what they are for and that a change
//! makes none of them worse; those on real tables are lower.

use std::collections::BTreeMap;

use onionskin_assess::data::{
    classify::{Tally, TypeClass, judge},
    kind::{Confidence, Kind},
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Corpus {
    tables: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    locale: String,
    /// `named`, `opaque`, `things`, `opaque-things`
    how: String,
    columns: Vec<Column>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    data_type: String,
    label: Option<Kind>,
    values: Vec<Option<String>>,
}

/// A column with what it holds and what was said.
struct Case<'a> {
    table: &'a Table,
    column: &'a Column,
    said: Option<(Kind, Confidence)>,
}

fn corpus() -> Corpus {
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/tables.json");
    let path = std::env::var("ONIONSKIN_ASSESS_CORPUS").unwrap_or_else(|_| recorded.into());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).expect("a corpus")
}

fn cases(corpus: &Corpus) -> Vec<Case<'_>> {
    let each = corpus.tables.iter().flat_map(|table| table.columns.iter().map(move |c| (table, c)));
    each.map(|(table, column)| {
        let mut tally = Tally::default();
        column.values.iter().flatten().for_each(|value| tally.add(value));
        let judged = judge(&column.name, TypeClass::of(&column.data_type), &tally);
        Case {
            table,
            column,
            said: judged.map(|judged| (judged.kind, judged.confidence)),
        }
    })
    .collect()
}

#[derive(Default, Debug, Clone, Copy)]
struct Counts {
    right: usize,
    wrong: usize,
    missed: usize,
}

impl Counts {
    fn add(&mut self, label: Option<Kind>, said: Option<Kind>) {
        match (label, said) {
            (Some(label), Some(said)) if label == said => self.right += 1,
            (Some(_), Some(_)) => {
                self.wrong += 1;
                self.missed += 1;
            }
            (None, Some(_)) => self.wrong += 1,
            (Some(_), None) => self.missed += 1,
            (None, None) => {}
        }
    }

    fn precision(self) -> f64 {
        self.right as f64 / (self.right + self.wrong).max(1) as f64
    }

    fn recall(self) -> f64 {
        self.right as f64 / (self.right + self.missed).max(1) as f64
    }
}

fn counted<'a>(cases: impl Iterator<Item = &'a Case<'a>>, least: Confidence) -> Counts {
    let mut counts = Counts::default();
    for case in cases {
        let said = case.said.filter(|(_, confidence)| *confidence >= least);
        counts.add(case.column.label, said.map(|(kind, _)| kind));
    }
    counts
}

#[test]
fn personal_data_is_found_and_things_are_not() {
    let corpus = corpus();
    let cases = cases(&corpus);
    assert!(cases.len() >= 8 * 80, "{}", cases.len());
    let with_names = |case: &&Case<'_>| matches!(case.table.how.as_str(), "named" | "things");
    let without = |case: &&Case<'_>| !with_names(case);
    for (title, likely, possible) in [
        (
            "with names",
            counted(cases.iter().filter(with_names), Confidence::Likely),
            counted(cases.iter().filter(with_names), Confidence::Possible),
        ),
        (
            "without names",
            counted(cases.iter().filter(without), Confidence::Likely),
            counted(cases.iter().filter(without), Confidence::Possible),
        ),
    ] {
        for (how, counts) in [("likely", likely), ("possible", possible)] {
            println!(
                "{title}, at least {how}: precision {:.3}, recall {:.3} {counts:?}",
                counts.precision(),
                counts.recall()
            );
        }
    }
    let mut by_kind: BTreeMap<Kind, Counts> = BTreeMap::new();
    for case in cases.iter().filter(without) {
        let said = case.said.map(|(kind, _)| kind);
        if let Some(label) = case.column.label {
            by_kind.entry(label).or_default().add(Some(label), said);
        } else if let Some(said) = said {
            by_kind.entry(said).or_default().wrong += 1;
        }
        if case.column.label != said {
            println!(
                "  {} {} {}: {:?}, said {:?}",
                case.table.locale, case.table.how, case.column.name, case.column.label, case.said
            );
        }
    }
    for case in cases.iter().filter(with_names) {
        if case.column.label != case.said.map(|(kind, _)| kind) {
            println!(
                "  {} {} {}: {:?}, said {:?}",
                case.table.locale, case.table.how, case.column.name, case.column.label, case.said
            );
        }
    }
    for (kind, counts) in &by_kind {
        println!("without names, {}: precision {:.2}, recall {:.2}", kind.title(), counts.precision(), counts.recall());
    }
}
