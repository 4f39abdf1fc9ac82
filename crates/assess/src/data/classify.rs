//! What a column holds, from its name, its type and a sample of its values.
//!
//! A [`Tally`] counts shapes while values pass by, and keeps none of them: which are equal it knows
//! by hashes under a key that ends with the program. [`judge`] weighs the counts with the name. It
//! asks nobody, so precision and recall are measured on tables in files.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use super::{
    kind::{Confidence, Kind},
    shapes::{self, Shape, WEAK},
    words::{self, Weight},
};

/// What a type leaves room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeClass {
    /// CHAR, VARCHAR, TEXT, ENUM, INET6.
    Text,
    /// Whole numbers, and years.
    Whole,
    /// FLOAT and DOUBLE: looked at by name alone.
    Fraction,
    /// DATE, DATETIME, TIMESTAMP.
    Date,
    /// JSON, or text that is.
    Json,
    /// Times, bits, spatial types, binary strings: looked at by name alone.
    Other,
}

impl TypeClass {
    /// By `information_schema.COLUMNS.DATA_TYPE`.
    pub fn of(data_type: &str) -> Self {
        match data_type.to_lowercase().as_str() {
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum"
            | "set" | "inet4" | "inet6" | "uuid" => Self::Text,
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "year" => {
                Self::Whole
            }
            "float" | "double" => Self::Fraction,
            "date" | "datetime" | "timestamp" => Self::Date,
            "json" => Self::Json,
            _ => Self::Other,
        }
    }
}

/// Counts of a sample.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Values that are neither NULL nor empty.
    values: usize,
    shapes: BTreeMap<Shape, usize>,
    forms: BTreeMap<String, usize>,
    /// Of dates: the first year, the last one.
    years: Option<(u32, u32)>,
    /// Hashes of the different values, and how many of those look like names of persons.
    different: HashSet<u64>,
    different_names: usize,
    hashes: RandomState,
    /// First letters of codes of diseases, a bit each.
    disease_letters: u32,
    /// Values that are written as names of places are.
    proper: usize,
    /// Values of a single digit.
    single_digits: usize,
    /// Values of as many digits as postcodes have.
    postcode_digits: usize,
}

/// Forms that are counted; a column that has more has none that is frequent.
const MAX_FORMS: usize = 64;
/// Different values that are told apart.
const MAX_DIFFERENT: usize = 1_000;
/// Values that are enough to rely on shapes.
const ENOUGH: usize = 5;
/// Different names that are not there by chance.
const A_FEW: usize = 3;
/// Values that are enough to rely on a single check digit.
const MANY: usize = 10;

impl Tally {
    /// Counts a value. It is not kept.
    pub fn add(&mut self, value: &str) {
        if value.trim().is_empty() {
            return;
        }
        self.values += 1;
        let is_new = self.different.len() < MAX_DIFFERENT
            && self.different.insert(self.hashes.hash_one(value.trim()));
        for shape in shapes::shapes(value) {
            *self.shapes.entry(shape).or_default() += 1;
            self.different_names += usize::from(is_new && shape.0 == Kind::Name);
            if shape.0 == Kind::Health {
                let letter = value.trim().bytes().next().unwrap_or_default();
                self.disease_letters |= 1 << (letter.to_ascii_uppercase().wrapping_sub(b'A') % 32);
            }
        }
        self.proper += usize::from(shapes::is_proper(value.trim()));
        let digits = match value.trim().bytes().all(|b| b.is_ascii_digit()) {
            true => value.trim().len(),
            false => 0,
        };
        self.single_digits += usize::from(digits == 1);
        self.postcode_digits += usize::from((4..=8).contains(&digits));
        if let Some(year) = shapes::year(value.trim()) {
            let (first, last) = self.years.unwrap_or((year, year));
            self.years = Some((first.min(year), last.max(year)));
        }
        let form = shapes::form(value);
        if self.forms.len() < MAX_FORMS || self.forms.contains_key(&form) {
            *self.forms.entry(form).or_default() += 1;
        }
    }

    /// How many values were counted.
    pub fn values(&self) -> usize {
        self.values
    }

    fn share(&self, count: usize) -> f64 {
        count as f64 / self.values.max(1) as f64
    }

    /// Values of a kind, whatever else is known of them. A value counts once.
    fn of(&self, kind: Kind) -> usize {
        let counts = self.shapes.iter().filter(|((k, _), _)| *k == kind);
        counts
            .map(|(_, count)| *count)
            .sum::<usize>()
            .min(self.values)
    }

    /// The most frequent form, if most values have it.
    fn form(&self) -> Option<&str> {
        let (form, count) = self.forms.iter().max_by_key(|(_, count)| **count)?;
        (self.share(*count) >= 0.5).then_some(form)
    }
}

/// What a column holds, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What.
    pub kind: Kind,
    /// How sure it is.
    pub confidence: Confidence,
    /// In shape: no value is in it.
    pub evidence: Vec<String>,
}

/// What the column holds, or nothing.
pub fn judge(name: &str, class: TypeClass, tally: &Tally) -> Option<Judged> {
    let said = words::said(name, |kind, entry| fits(kind, entry, class, tally));
    let seen = seen(class, tally, said.map(|(kind, ..)| kind))
        // Firms and products are named after people.
        .filter(|seen| !(seen.kind == Kind::Name && words::is_of_thing(name)));
    let (kind, confidence) = match (said, &seen) {
        (None, None) => return None,
        (None, Some(seen)) => (seen.kind, seen.confidence),
        (Some((kind, weight, _)), Some(seen)) if agree(kind, seen.kind) => match weight {
            Weight::Strong => (kind, seen.confidence.max(Confidence::Likely)),
            Weight::Weak => (kind, seen.confidence),
        },
        // Check digits know better than names.
        (Some(_), Some(seen)) if seen.confidence == Confidence::Certain => {
            (seen.kind, seen.confidence)
        }
        (Some((kind, Weight::Strong, _)), _) => (kind, by_name(kind, tally)?),
        (Some((_, Weight::Weak, _)), Some(seen)) if seen.confidence >= Confidence::Likely => {
            (seen.kind, seen.confidence)
        }
        (Some((kind, Weight::Weak, _)), _) => {
            let speaks_against = match (kind, class) {
                (Kind::FreeText, _) => false,
                // places have no shape; words such as `open` are no state
                (Kind::Place, TypeClass::Text) => tally.share(tally.proper) < 0.8,
                _ => true,
            };
            match speaks_against && tally.values >= ENOUGH {
                true => {
                    return seen.map(|seen| told(seen.kind, seen.confidence, None, tally, &seen));
                }
                false => (kind, Confidence::Possible),
            }
        }
    };
    let none = Seen {
        kind,
        confidence,
        count: 0,
        details: Vec::new(),
    };
    Some(told(
        kind,
        confidence,
        said,
        tally,
        seen.as_ref().unwrap_or(&none),
    ))
}

/// Whether values of the type, and these, can be what an entry of the names says.
fn fits(kind: Kind, entry: &str, class: TypeClass, tally: &Tally) -> bool {
    let mostly = |count| tally.values < ENOUGH || tally.share(count) >= 0.8;
    match (class, kind) {
        (TypeClass::Text, _) => true,
        // A column of documents is looked at by its paths.
        (TypeClass::Json, _) => false,
        (TypeClass::Date, _) => kind == Kind::BirthDate,
        (TypeClass::Whole, Kind::BirthDate) => words::is_part_of_date(entry),
        // beside counts of people it says which people
        (TypeClass::Whole, Kind::Trait) if words::is_yes_or_no(entry) => {
            mostly(tally.single_digits)
        }
        // Names of places are texts. `cap` is a number of many things, too.
        (TypeClass::Whole, Kind::Place) if entry == "cap" => mostly(tally.postcode_digits),
        (TypeClass::Whole, Kind::Place) if words::is_postcode(entry) => true,
        (TypeClass::Whole | TypeClass::Fraction, Kind::Place) => words::is_coordinate(entry),
        (TypeClass::Whole, _) => matches!(
            kind,
            Kind::Card | Kind::National | Kind::Phone | Kind::Ip | Kind::Trait | Kind::Secret
        ),
        (TypeClass::Fraction, _) => kind == Kind::Trait && !words::is_yes_or_no(entry),
        (TypeClass::Other, _) => {
            matches!(kind, Kind::Secret | Kind::Ip | Kind::Trait | Kind::Place)
        }
    }
}

/// Whether two kinds are said of one thing.
fn agree(name: Kind, values: Kind) -> bool {
    name == values || matches!((name, values), (Kind::Health, Kind::FreeText))
}

/// By its name alone: less, if there are values, and none has the shape.
fn by_name(kind: Kind, tally: &Tally) -> Option<Confidence> {
    let has_none = kind.has_shape() && tally.values >= ENOUGH && tally.of(kind) == 0;
    match has_none {
        // An IBAN or a telephone may be written in a way that is not known here; an e-mail not.
        true if matches!(kind, Kind::Email | Kind::Ip) => None,
        true => Some(Confidence::Possible),
        false => Some(Confidence::Likely),
    }
}

/// What values say.
struct Seen {
    kind: Kind,
    confidence: Confidence,
    count: usize,
    details: Vec<&'static str>,
}

/// The kind that the values look like most. `named` goes first among equals.
fn seen(class: TypeClass, tally: &Tally, named: Option<Kind>) -> Option<Seen> {
    if class == TypeClass::Date {
        return born(tally);
    }
    let order = [
        Kind::Email,
        Kind::Iban,
        Kind::Card,
        Kind::Ip,
        Kind::National,
        Kind::Secret,
        Kind::Phone,
        Kind::Address,
        Kind::Name,
        Kind::Health,
        Kind::FreeText,
        Kind::BirthDate,
    ];
    let kinds = named.into_iter().chain(order);
    let found = kinds.filter_map(|kind| of_kind(kind, tally, named == Some(kind)));
    // The first of those that are as sure as any.
    found.fold(None, |best: Option<Seen>, next| match best {
        Some(best) if best.confidence >= next.confidence => Some(best),
        _ => Some(next),
    })
}

fn of_kind(kind: Kind, tally: &Tally, is_named: bool) -> Option<Seen> {
    let enough = tally.values >= ENOUGH;
    let mut details: Vec<(&'static str, usize)> = tally
        .shapes
        .iter()
        .filter(|((k, _), _)| *k == kind)
        .map(|((_, detail), count)| (*detail, *count))
        .collect();
    details.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let count = match kind {
        // Of one country: many pass as two countries' by chance.
        Kind::National => details.first().map_or(0, |(_, count)| *count),
        _ => tally.of(kind),
    };
    let share = tally.share(count);
    let strong = details
        .iter()
        .filter(|(detail, _)| *detail != WEAK)
        .map(|(_, c)| *c)
        .sum::<usize>();
    let confidence = match kind {
        _ if count == 0 => return None,
        Kind::Email | Kind::Iban | Kind::Ip if enough && share >= 0.8 => Confidence::Certain,
        Kind::Card if tally.values >= MANY && share >= 0.8 => Confidence::Certain,
        Kind::Card if enough && share >= 0.8 => Confidence::Likely,
        // One of ten random numbers passes, if it begins so.
        Kind::Card if tally.values >= MANY && share >= 0.3 => Confidence::Possible,
        Kind::Card => return None,
        Kind::National => return national(tally, &details, is_named),
        Kind::Secret if enough && share >= 0.8 => Confidence::Likely,
        Kind::Phone if enough && tally.share(strong) >= 0.8 => Confidence::Likely,
        Kind::Phone if enough && is_named && share >= 0.5 => Confidence::Likely,
        Kind::Phone if enough && tally.share(strong) >= 0.5 => Confidence::Possible,
        Kind::Phone => return None,
        Kind::Address if enough && share >= 0.5 => Confidence::Likely,
        Kind::Address if enough && share >= 0.2 => Confidence::Possible,
        Kind::Address => return None,
        // A few words that come again and again are none, unless the column's name says so.
        Kind::Name if !is_named && tally.different_names < A_FEW => return None,
        // Nothing else has frequent names of persons in so many of its values.
        Kind::Name if enough && share >= 0.4 => Confidence::Likely,
        Kind::Name if enough && share >= 0.15 => Confidence::Possible,
        Kind::Name => return None,
        // Codes that all begin with one letter are numbers of something.
        Kind::Health if !is_named && tally.disease_letters.count_ones() < 2 => return None,
        Kind::Health if enough && share >= 0.8 => Confidence::Possible,
        Kind::Health => return None,
        Kind::FreeText if enough && share >= 0.5 => Confidence::Possible,
        Kind::FreeText => return None,
        Kind::BirthDate => return born(tally).filter(|_| is_named || enough && share >= 0.8),
        // A few of many: somebody writes them there.
        _ if enough && count >= 2 => Confidence::Possible,
        _ if is_named => Confidence::Possible,
        _ => return None,
    };
    let details = details.iter().map(|(detail, _)| *detail);
    Some(Seen {
        kind,
        confidence,
        count,
        details: details
            .filter(|d| !d.is_empty() && *d != WEAK)
            .take(3)
            .collect(),
    })
}

/// National numbers. How sure it is depends on how many numbers pass by chance: one of ten or
/// eleven with one check digit, so that ten values pass with a chance of one in a thousand million.
fn national(tally: &Tally, details: &[(&'static str, usize)], is_named: bool) -> Option<Seen> {
    let best = details.first()?.1;
    let country = details
        .iter()
        .filter(|(_, count)| *count == best)
        .map(|(country, _)| *country);
    // Among equals the order of `countries`: those with more check digits and dates go first.
    let country = country.min_by_key(|country| rank(country))?;
    let share = tally.share(best);
    let is_ssn = country.starts_with("United States");
    let confidence = match (is_ssn, is_named) {
        (true, true) if tally.values >= ENOUGH && share >= 0.8 => Confidence::Likely,
        (true, false) if tally.values >= ENOUGH && share >= 0.9 => Confidence::Possible,
        (true, _) => return None,
        _ if tally.values >= MANY && share >= 0.9 => Confidence::Certain,
        (_, true) if tally.values >= ENOUGH && share >= 0.5 => Confidence::Certain,
        _ if tally.values >= ENOUGH && share >= 0.9 => Confidence::Likely,
        _ if tally.values >= MANY && share >= 0.6 => Confidence::Possible,
        _ => return None,
    };
    Some(Seen {
        kind: Kind::National,
        confidence,
        count: best,
        details: vec![country],
    })
}

fn rank(country: &str) -> usize {
    const ORDER: [&str; 17] = [
        "China",
        "Italy",
        "Spain",
        "Finland",
        "France",
        "South Korea",
        "Switzerland",
        "Belgium",
        "Norway",
        "Turkey",
        "Brazil",
        "Poland",
        "Sweden",
        "Germany",
        "India",
        "Netherlands",
        "United States",
    ];
    ORDER
        .iter()
        .position(|known| country.starts_with(known))
        .unwrap_or(ORDER.len())
}

/// Dates that are spread over lives: begun long ago, none to come, over more than thirty years.
fn born(tally: &Tally) -> Option<Seen> {
    let (first, last) = tally.years?;
    let is_spread = (1900..1990).contains(&first) && last <= 2026 && last - first >= 30;
    (is_spread && tally.values >= ENOUGH).then_some(Seen {
        kind: Kind::BirthDate,
        confidence: Confidence::Possible,
        count: tally.values,
        details: vec!["dates over more than thirty years"],
    })
}

fn told(
    kind: Kind,
    confidence: Confidence,
    said: Option<(Kind, Weight, &'static str)>,
    tally: &Tally,
    seen: &Seen,
) -> Judged {
    let mut evidence = Vec::new();
    if let Some((_, weight, entry)) = said {
        evidence.push(match weight {
            Weight::Strong => format!("the name has `{entry}`"),
            Weight::Weak => format!("the name has `{entry}`, which may be something else"),
        });
    }
    if seen.kind == kind && seen.count > 0 {
        let details = match seen.details.is_empty() {
            true => String::new(),
            false => format!(" ({})", seen.details.join("; ")),
        };
        evidence.push(format!(
            "{} of {} values look so{details}",
            seen.count, tally.values
        ));
    } else {
        evidence.push(match tally.values {
            0 => "no values were there to look at".into(),
            values => format!("{values} values neither show nor deny it"),
        });
    }
    if kind != Kind::FreeText
        && let Some(form) = tally.form()
    {
        evidence.push(format!("most frequent form: {form}"));
    }
    Judged {
        kind,
        confidence,
        evidence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, class: TypeClass, values: &[&str]) -> Option<(Kind, Confidence)> {
        let mut tally = Tally::default();
        values.iter().for_each(|value| tally.add(value));
        judge(name, class, &tally).map(|j| (j.kind, j.confidence))
    }

    #[test]
    fn names_and_values_are_weighed() {
        let mails = [
            "a@example.org",
            "b.c@example.org",
            "d@example.net",
            "e@example.org",
            "f@example.com",
        ];
        let email = |confidence| Some((Kind::Email, confidence));
        assert_eq!(
            of("c1", TypeClass::Text, &mails),
            email(Confidence::Certain)
        );
        assert_eq!(of("email", TypeClass::Text, &[]), email(Confidence::Likely));
        assert_eq!(
            of("email", TypeClass::Whole, &[]),
            None,
            "a number is no address"
        );
        let words = ["yes", "no", "yes", "no", "maybe"];
        assert_eq!(
            of("email", TypeClass::Text, &words),
            None,
            "values speak against it"
        );
        assert_eq!(
            of(
                "name",
                TypeClass::Text,
                &["red", "green", "blue", "grey", "pink"]
            ),
            None
        );
        assert_eq!(
            of("name", TypeClass::Text, &[]),
            Some((Kind::Name, Confidence::Possible))
        );
    }

    #[test]
    fn check_digits_are_certain_and_few_values_are_not() {
        let cpf = "11144477735";
        let national = |confidence| Some((Kind::National, confidence));
        assert_eq!(
            of("c1", TypeClass::Text, &[cpf; 12]),
            national(Confidence::Certain)
        );
        assert_eq!(
            of("c1", TypeClass::Text, &[cpf; 6]),
            national(Confidence::Likely)
        );
        assert_eq!(of("c1", TypeClass::Text, &[cpf]), None);
    }

    #[test]
    fn weak_names_of_places_stand_where_values_are_written_so() {
        let possible = Some((Kind::Place, Confidence::Possible));
        let states = ["Ohio", "Texas", "New York", "Utah", "Maine", "Iowa"];
        assert_eq!(of("state", TypeClass::Text, &states), possible);
        let codes = ["OH", "TX", "NY", "UT", "ME", "IA"];
        assert_eq!(of("billing_state", TypeClass::Text, &codes), possible);
        let orders = ["open", "paid", "sent", "open", "paid", "sent"];
        assert_eq!(of("state", TypeClass::Text, &orders), None);
        let constants = ["OPEN", "PAID", "SENT", "OPEN", "PAID", "SENT"];
        assert_eq!(of("state", TypeClass::Text, &constants), None);
        let numbers = ["1", "2", "1", "3", "2", "1"];
        assert_eq!(of("state", TypeClass::Whole, &numbers), None);
    }

    #[test]
    fn a_few_words_that_come_again_are_no_names() {
        let colours = ["Brown", "Blue", "Hazel", "Green"].repeat(6);
        assert_eq!(of("eye", TypeClass::Text, &colours), None);
        let likely = Some((Kind::Name, Confidence::Likely));
        let people = ["Anna", "Peter", "Maria", "Thomas", "Laura", "Paul"].repeat(3);
        assert_eq!(of("c1", TypeClass::Text, &people), likely);
        // where the name says so, a few are enough
        let two = ["Anna", "Peter"].repeat(6);
        assert_eq!(of("c1", TypeClass::Text, &two), None);
        assert_eq!(of("name", TypeClass::Text, &two), likely);
    }

    #[test]
    fn numbers_of_things_are_no_diseases() {
        let ids = ["X01", "X02", "X03", "X04", "X05", "X06"];
        assert_eq!(of("id", TypeClass::Text, &ids), None);
        let codes = ["E11", "I10", "J45", "E11", "M54", "F32"];
        let possible = Some((Kind::Health, Confidence::Possible));
        assert_eq!(of("c1", TypeClass::Text, &codes), possible);
        let one = ["F20", "F32", "F33", "F41", "F43", "F60"];
        let named = of("diagnosis", TypeClass::Text, &one);
        assert_eq!(named, Some((Kind::Health, Confidence::Likely)));
    }

    #[test]
    fn places_that_are_numbers_are_postcodes_or_coordinates() {
        let likely = Some((Kind::Place, Confidence::Likely));
        let numbers = ["10115", "20095", "80331", "50667", "1067", "4109"];
        assert_eq!(of("plz", TypeClass::Whole, &numbers), likely);
        assert_eq!(of("cap", TypeClass::Whole, &numbers), likely);
        let seats = ["40", "65", "65", "47", "12", "40"];
        assert_eq!(of("cap", TypeClass::Whole, &seats), None);
        assert_eq!(of("cap", TypeClass::Fraction, &[]), None);
        assert_eq!(of("city", TypeClass::Whole, &seats), None);
        assert_eq!(of("city", TypeClass::Fraction, &[]), None);
        let short = ["150", "283", "101", "558", "283", "150"];
        assert_eq!(of("postcode", TypeClass::Whole, &short), likely);
        // the word that fits the type counts
        for (name, class) in [
            ("latitude", TypeClass::Fraction),
            ("city_latitude", TypeClass::Fraction),
            ("city_zip", TypeClass::Whole),
            ("city", TypeClass::Other),
        ] {
            assert_eq!(of(name, class, &[]), likely, "{name}");
        }
        let possible = Some((Kind::Place, Confidence::Possible));
        assert_eq!(of("location", TypeClass::Other, &[]), possible);
        assert_eq!(of("location_lat", TypeClass::Fraction, &[]), possible);
    }

    #[test]
    fn traits_that_are_yes_or_no_are_no_counts() {
        let likely = Some((Kind::Trait, Confidence::Likely));
        let yes = ["0", "1", "1", "0", "0", "1"];
        let counts = ["170", "312", "95", "204", "511", "78"];
        assert_eq!(of("female", TypeClass::Whole, &yes), likely);
        assert_eq!(of("female", TypeClass::Whole, &counts), None);
        assert_eq!(of("Rural Female", TypeClass::Fraction, &[]), None);
        assert_eq!(of("married", TypeClass::of("bit"), &[]), likely);
        assert_eq!(of("marital", TypeClass::Whole, &yes), likely);
        assert_eq!(of("hourly_wage", TypeClass::Fraction, &[]), likely);
    }

    #[test]
    fn dates_of_birth_may_be_in_parts() {
        let likely = Some((Kind::BirthDate, Confidence::Likely));
        let years = ["1934", "1951", "1988", "1990", "1972", "2001"];
        for name in ["birthYear", "year_of_birth", "Geburtsjahr"] {
            assert_eq!(of(name, TypeClass::Whole, &years), likely, "{name}");
        }
        assert_eq!(of("birth_year", TypeClass::of("year"), &years), likely);
        let days = ["1", "12", "28", "30", "7", "19"];
        assert_eq!(of("birth_day", TypeClass::Whole, &days), likely);
        assert_eq!(of("born", TypeClass::Whole, &days), None);
    }

    #[test]
    fn evidence_has_no_values() {
        let mut tally = Tally::default();
        for value in ["wilhelmina.canary@example.org"; 6] {
            tally.add(value);
        }
        let judged = judge("email", TypeClass::Text, &tally).expect("found");
        let told = judged.evidence.join("\n");
        assert!(
            !told.contains("canary") && told.contains("a.a@a.a"),
            "{told}"
        );
    }
}
