//! What an attacker knows: values, and about how many rows have each.

use std::collections::HashMap;

use onionskin_physical::companions::order_source;
use onionskin_value::{GRAM_BYTES, WeightError, grams};

use super::{
    capability::Capability,
    dictionary::{Class, Dictionary, Payload},
    scheme::{put_length, sealed_length},
};

/// A value that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownValue {
    /// Which one.
    pub class: Class,
    /// The payload that most of its rows have.
    pub payload: Payload,
    /// How many rows have it.
    pub rows: f64,
    /// See [`sealed_length`].
    pub length: u32,
}

/// The most frequent first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// One for each class.
    pub values: Vec<KnownValue>,
}

/// Values that have one order key.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered {
    /// What the key is made of.
    pub bytes: Vec<u8>,
    /// The most frequent of them.
    pub class: Class,
    /// Rows of all of them.
    pub rows: f64,
}

impl Known {
    /// From payloads and their rows.
    pub fn of(dictionary: &Dictionary, rows: impl Iterator<Item = (Payload, f64)>) -> Self {
        let mut by_payload: HashMap<Payload, f64> = HashMap::new();
        for (payload, rows) in rows {
            *by_payload.entry(payload).or_default() += rows;
        }
        let mut sorted: Vec<(Payload, f64)> = by_payload.into_iter().collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut places: HashMap<Class, usize> = HashMap::new();
        let mut values: Vec<KnownValue> = Vec::new();
        for (payload, rows) in sorted {
            let class = dictionary.class(payload);
            let place = *places.entry(class).or_insert(values.len());
            match values.get_mut(place) {
                Some(value) => value.rows += rows,
                None => values.push(KnownValue {
                    class,
                    payload,
                    rows,
                    length: sealed_length(dictionary, payload),
                }),
            }
        }
        values.sort_by(|a, b| b.rows.total_cmp(&a.rows).then(a.class.cmp(&b.class)));
        Self { values }
    }

    /// Rows of each value.
    pub fn counts(&self) -> Vec<f64> {
        self.values.iter().map(|value| value.rows).collect()
    }

    /// The length beside each value.
    pub fn lengths(&self) -> Vec<u32> {
        self.values.iter().map(|value| value.length).collect()
    }

    /// By what their order keys are made of under a capability, ascending. Where keys have fewer
    /// bits, anybody can tell which values share one.
    pub fn ordered(
        &self,
        dictionary: &Dictionary,
        capability: Capability,
    ) -> Result<Vec<Ordered>, WeightError> {
        let capabilities = capability.capabilities();
        let mut all = Vec::with_capacity(self.values.len());
        for value in &self.values {
            let mut bytes = Vec::new();
            let payload = dictionary.payload(value.payload);
            order_source(dictionary.sql_type(), &capabilities, payload, &mut bytes)?;
            put_length(capability, value.length, &mut bytes);
            all.push(Ordered {
                bytes,
                class: value.class,
                rows: value.rows,
            });
        }
        // stable: of equal bytes the most frequent value stays first
        all.sort_by(|a, b| a.bytes.cmp(&b.bytes));
        all.dedup_by(|later, first| {
            let is_same = later.bytes == first.bytes;
            if is_same {
                first.rows += later.rows;
            }
            is_same
        });
        Ok(all)
    }
}

/// A gram as `onionskin_value` gives it.
pub type Gram = [u8; GRAM_BYTES];

/// The different grams of a payload.
pub fn grams_of(dictionary: &Dictionary, payload: Payload) -> Result<Vec<Gram>, WeightError> {
    let mut found = Vec::new();
    grams(dictionary.sql_type(), dictionary.payload(payload), |gram| {
        found.push(*gram);
    })?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use onionskin_value::{Family, SqlType};

    use super::*;

    #[test]
    fn rows_of_equal_values_are_added_up() {
        let ty = SqlType::parse("varchar(20)", Some("utf8mb4_general_ci")).expect("a type");
        let mut dictionary = Dictionary::new(ty, Family::MariaDb, 1_000);
        let [ulm, big_ulm, bonn] =
            ["Ulm", "ULM", "Bonn"].map(|v| dictionary.add_sent(v.as_bytes()).expect("it fits"));
        let rows = [(bonn, 3.0), (ulm, 1.0), (big_ulm, 2.5)];
        let known = Known::of(&dictionary, rows.into_iter());
        let found: Vec<_> = known
            .values
            .iter()
            .map(|v| (v.class, v.rows, v.length))
            .collect();
        assert_eq!(found, [(0, 3.5, 3), (1, 3.0, 4)]);
        let ordered = known
            .ordered(&dictionary, Capability::Range)
            .expect("weights");
        let order: Vec<_> = ordered.iter().map(|o| o.class).collect();
        assert_eq!(order, [1, 0], "Bonn stands before Ulm");
        assert_eq!(grams_of(&dictionary, ulm).expect("grams").len(), 3);
    }
}
