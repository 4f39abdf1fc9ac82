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

    fn stand_in(
        &self,
        capability: Capability,
        dictionary: &Dictionary,
        number: Payload,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), WeightError> {
        let (ty, payload) = (dictionary.sql_type(), dictionary.payload(number));
        match capability {
            // sealed cells differ, their lengths do not
            Capability::Sealed => {
                out.extend_from_slice(&sealed_length(dictionary, number).to_be_bytes())
            }
            Capability::Eq => {
                companions::equality_token(&self.cipher, ty, payload, scratch, out)?;
            }
            Capability::Range => companions::order_key(&self.cipher, ty, payload, scratch, out)?,
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

/// What the length of the sealed cell tells: of texts and binary values their own, of others
/// nothing.
pub fn sealed_length(dictionary: &Dictionary, number: Payload) -> u32 {
    match dictionary.sql_type().payload_fixed() {
        Some(_) => 0,
        None => dictionary.payload(number).len() as u32,
    }
}
