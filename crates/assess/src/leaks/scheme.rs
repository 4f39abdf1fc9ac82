//! Stand-ins as the real scheme makes them, under a key that is drawn by a seed and seals nothing
//! else.

use std::collections::HashMap;

use onionskin_crypt::{ColumnCipher, ColumnId, DataKey, Suite};
use onionskin_physical::companions;
use onionskin_schema::GramForm;
use onionskin_value::WeightError;
use rand::CryptoRng;

use super::{
    capability::Capability,
    dictionary::{Class, Dictionary, Payload},
    seen::{Counting, Seen},
};

/// What the server sees, and, apart from it, what is true. No attack gets the second.
pub struct Made {
    /// For the attacker.
    pub seen: Seen,
    /// For each token: the classes that it stands for, with their rows.
    pub truth: Vec<Vec<(Class, u64)>>,
}

/// A column's cipher.
pub struct Scheme {
    cipher: ColumnCipher,
}

impl Scheme {
    /// Under a new key.
    pub fn drawn(rng: &mut impl CryptoRng) -> Self {
        let mut id = ColumnId {
            table: [0; 8],
            column: [0; 4],
        };
        rng.fill_bytes(&mut id.table);
        rng.fill_bytes(&mut id.column);
        let key = DataKey::generate(rng);
        Self {
            cipher: ColumnCipher::new(Suite::Aes, 1, &key, id, None),
        }
    }

    /// Seals these rows for one capability.
    pub fn make(
        &self,
        capability: Capability,
        dictionary: &Dictionary,
        rows: impl Iterator<Item = Payload>,
    ) -> Result<Made, WeightError> {
        let mut of: HashMap<Payload, u64> = HashMap::new();
        for payload in rows {
            *of.entry(payload).or_default() += 1;
        }
        let mut counting = Counting::default();
        let mut truth: HashMap<Vec<u8>, HashMap<Class, u64>> = HashMap::new();
        let mut scratch = Vec::new();
        for (number, rows) in of {
            let mut bytes = Vec::new();
            self.stand_in(capability, dictionary, number, &mut scratch, &mut bytes)?;
            put_length(capability, sealed_length(dictionary, number), &mut bytes);
            counting.add(&bytes, sealed_length(dictionary, number), rows);
            let classes = truth.entry(bytes).or_default();
            *classes.entry(dictionary.class(number)).or_default() += rows;
        }
        let seen = counting.finish();
        let classes = |bytes: &Vec<u8>| -> Vec<(Class, u64)> {
            let mut classes: Vec<(Class, u64)> =
                truth.remove(bytes).into_iter().flatten().collect();
            classes.sort_unstable();
            classes
        };
        let truth = seen.tokens.iter().map(|t| &t.bytes).map(classes).collect();
        Ok(Made { seen, truth })
    }

    /// How many rows a search for a value returns beside those that have it: on average over the
    /// rows, if each row's value is looked for once.
    pub fn beside(
        &self,
        capability: Capability,
        dictionary: &Dictionary,
        rows: impl Iterator<Item = Payload>,
    ) -> Result<f64, WeightError> {
        let mut of_classes: HashMap<Class, (Payload, f64)> = HashMap::new();
        for payload in rows {
            let class = dictionary.class(payload);
            of_classes.entry(class).or_insert((payload, 0.0)).1 += 1.0;
        }
        let mut of_tokens: HashMap<Vec<u8>, f64> = HashMap::new();
        let mut scratch = Vec::new();
        for (payload, rows) in of_classes.values() {
            let mut bytes = Vec::new();
            self.stand_in(capability, dictionary, *payload, &mut scratch, &mut bytes)?;
            *of_tokens.entry(bytes).or_default() += rows;
        }
        let squares = |rows: &mut dyn Iterator<Item = f64>| rows.map(|n| n * n).sum::<f64>();
        let all: f64 = of_tokens.values().sum();
        let returned = squares(&mut of_tokens.values().copied());
        let wanted = squares(&mut of_classes.values().map(|(_, rows)| *rows));
        Ok((returned - wanted) / all.max(1.0))
    }

    fn stand_in(
        &self,
        capability: Capability,
        dictionary: &Dictionary,
        number: Payload,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), WeightError> {
        let (ty, payload) = (dictionary.sql_type(), dictionary.payload(number));
        let capabilities = &capability.capabilities();
        match capability {
            // sealed cells differ, their lengths do not
            Capability::Sealed => {
                out.extend_from_slice(&sealed_length(dictionary, number).to_be_bytes())
            }
            Capability::Eq | Capability::CoarseEq(_) => {
                companions::equality_token(&self.cipher, ty, capabilities, payload, scratch, out)?;
            }
            Capability::Range | Capability::CoarseRange(_) => {
                companions::order_key(&self.cipher, ty, capabilities, payload, scratch, out)?;
            }
            Capability::Like => companions::gram_tokens(
                &self.cipher,
                ty,
                GramForm::Words,
                usize::MAX,
                payload,
                out,
            )?,
        }
        Ok(())
    }

    /// The number by which gram tokens are told apart, of a gram.
    pub fn gram(&self, gram: &[u8; onionskin_value::GRAM_BYTES]) -> [u8; 6] {
        self.cipher.gram_token(gram).word()
    }
}

/// Values that share a token or a key are told apart by the length of their cells, where lengths
/// differ: then the two together are the stand-in.
pub fn put_length(capability: Capability, length: u32, bytes: &mut Vec<u8>) {
    if capability != capability.whole() && length > 0 {
        bytes.extend_from_slice(&length.to_be_bytes());
    }
}

/// What the length of the sealed cell tells: of texts and binary values their own, of others
/// nothing.
pub fn sealed_length(dictionary: &Dictionary, number: Payload) -> u32 {
    match dictionary.sql_type().payload_fixed() {
        Some(_) => 0,
        None => dictionary.payload(number).len() as u32,
    }
}
