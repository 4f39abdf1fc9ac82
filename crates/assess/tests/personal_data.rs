//! Precision and recall on labelled tables, which `scripts/assess_corpus.py` makes with Python's
//! Faker. The recorded ones are in `corpus/tables.json`; `ONIONSKIN_ASSESS_CORPUS` names others,
//! which are held to the same bounds.
//!
//! Faker's values are regular. Figures on them say that rules do what they are for and that a
//! change makes none of them worse; those on real tables are lower.

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
    let each = corpus
        .tables
        .iter()
        .flat_map(|table| table.columns.iter().map(move |c| (table, c)));
    each.map(|(table, column)| {
        let mut tally = Tally::default();
        column
            .values
            .iter()
            .flatten()
            .for_each(|value| tally.add(value));
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

/// Bounds: at least this precision and recall of columns that are likely, and this recall of those
/// that are possible.
struct Bounds {
    precision: f64,
    recall: f64,
    recall_of_possible: f64,
}

/// Names and values together.
const WITH_NAMES: Bounds = Bounds {
    precision: 0.97,
    recall: 0.92,
    recall_of_possible: 0.97,
};
/// Values alone. Places, postcodes and traits have no shape, so a fifth cannot be found.
const WITHOUT_NAMES: Bounds = Bounds {
    precision: 0.93,
    recall: 0.50,
    recall_of_possible: 0.70,
};

fn has_names(case: &&Case<'_>) -> bool {
    matches!(case.table.how.as_str(), "named" | "things")
}

#[test]
fn personal_data_is_found_and_things_are_not() {
    let corpus = corpus();
    let cases = cases(&corpus);
    assert!(cases.len() >= 8 * 80, "{}", cases.len());
    for (title, names, bounds) in [
        ("with names", true, WITH_NAMES),
        ("without names", false, WITHOUT_NAMES),
    ] {
        let counts = |least| counted(cases.iter().filter(|case| has_names(case) == names), least);
        let (likely, possible) = (counts(Confidence::Likely), counts(Confidence::Possible));
        for (how, counts) in [("likely", likely), ("possible", possible)] {
            println!(
                "{title}, at least {how}: precision {:.3}, recall {:.3} {counts:?}",
                counts.precision(),
                counts.recall()
            );
        }
        assert!(
            likely.precision() >= bounds.precision,
            "{title}: {likely:?}"
        );
        assert!(likely.recall() >= bounds.recall, "{title}: {likely:?}");
        assert!(
            possible.recall() >= bounds.recall_of_possible,
            "{title}: {possible:?}"
        );
    }
    for case in &cases {
        if case.column.label != case.said.map(|(kind, _)| kind) {
            println!(
                "  {} {} {}: {:?}, said {:?}",
                case.table.locale, case.table.how, case.column.name, case.column.label, case.said
            );
        }
    }
    let mut by_kind: BTreeMap<Kind, Counts> = BTreeMap::new();
    for case in cases.iter().filter(|case| !has_names(case)) {
        let said = case.said.map(|(kind, _)| kind);
        if let Some(kind) = case.column.label.or(said) {
            by_kind
                .entry(kind)
                .or_default()
                .add(case.column.label, said);
        }
    }
    for (kind, counts) in &by_kind {
        println!("without names, {}: {counts:?}", kind.title());
    }
}

/// The figures above are not what any corpus would give: under labels that belong to the next
/// column, and without values, nothing is right.
#[test]
fn figures_do_not_come_by_chance() {
    let mut turned = corpus();
    for table in &mut turned.tables {
        let labels: Vec<Option<Kind>> = table.columns.iter().map(|c| c.label).collect();
        for (at, column) in table.columns.iter_mut().enumerate() {
            column.label = labels[(at + 3) % labels.len()];
        }
    }
    let cases_of_turned = cases(&turned);
    let counts = counted(cases_of_turned.iter(), Confidence::Possible);
    assert!(counts.precision() < 0.15, "{counts:?}");
    let mut empty = corpus();
    for column in empty.tables.iter_mut().flat_map(|table| &mut table.columns) {
        column.values.clear();
    }
    let cases_of_empty = cases(&empty);
    let opaque = cases_of_empty.iter().filter(|case| !has_names(case));
    assert_eq!(counted(opaque, Confidence::Possible).right, 0);
}

/// What a finding says has no value in it, of whatever column.
#[test]
fn no_value_is_told() {
    for table in &corpus().tables {
        for column in &table.columns {
            let mut tally = Tally::default();
            column
                .values
                .iter()
                .flatten()
                .for_each(|value| tally.add(value));
            let judged = judge("c", TypeClass::of(&column.data_type), &tally);
            let told = judged
                .map(|judged| judged.evidence.join("\n"))
                .unwrap_or_default();
            // Shorter ones may stand in our own words.
            let long = column
                .values
                .iter()
                .flatten()
                .filter(|value| value.chars().count() > 4);
            for value in long {
                assert!(!told.contains(value.as_str()), "{}: {told}", column.name);
            }
        }
    }
}
