//! What a slot is filled with.

use onionskin_crypt::SealError;
use onionskin_physical::companions;
use onionskin_plan::grams::most_numbers;
use onionskin_plan::{Escape, Piece, Purpose, Slot, Source, errors};
use onionskin_schema::GramForm;
use onionskin_value::{Pattern, WeightError};

use super::{Binder, Bound, Buffers, Filled, Last};
use crate::error::{Failure, Outcome};

impl Binder<'_> {
    /// Fills a slot. `base` is added to literal indexes; `row` counts from 1 for messages.
    pub fn fill(&mut self, slot: &Slot, base: usize, row: u64) -> Outcome<Filled<'_>> {
        let source = slot.source.behind(base);
        match slot.purpose {
            Purpose::Kept => return Ok(self.kept_constants(slot.column)),
            Purpose::CandidateGrams(escape) => {
                return self.candidate_grams(slot.column, source, escape);
            }
            Purpose::CandidateGram(escape, nth) => {
                return self.candidate_gram(slot.column, source, escape, nth);
            }
            _ => {}
        }
        let bound = self.coerce_once(slot, source, row)?;
        let place = (slot.column, source, row);
        let upserts = self.keyed.plan.upsert.is_some();
        if upserts
            && slot.purpose == Purpose::Seal
            && bound != Bound::Null
            && self.buffers.kept.cells.contains_key(&place)
        {
            let Buffers { kept, filled, .. } = &mut *self.buffers;
            filled.clear();
            filled.extend_from_slice(kept.cells.get(&place).map_or(b"", Vec::as_slice));
            return Ok(Filled::Bytes(filled));
        }
        self.make(slot, bound)
    }

    /// Cells that were sent before, as hexadecimal digits.
    fn kept_constants(&mut self, column: usize) -> Filled<'_> {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let Buffers { kept, filled, .. } = &mut *self.buffers;
        filled.clear();
        for byte in kept.constants.get(&column).into_iter().flatten() {
            filled.push(DIGITS[usize::from(byte >> 4)]);
            filled.push(DIGITS[usize::from(byte & 15)]);
        }
        Filled::Bytes(filled)
    }

    /// All grams of a pattern; nothing for a pattern that is NULL.
    fn candidate_grams(
        &mut self,
        column: usize,
        source: Source,
        escape: Escape,
    ) -> Outcome<Filled<'_>> {
        let found = self.pattern(column, source, escape)?;
        let filled = &mut self.buffers.filled;
        filled.clear();
        if let Pattern::Like(pattern) = found {
            let used = &self.keyed.plan.columns[column];
            let cipher = self.keyed.keys.cipher(column, used)?;
            companions::gram_search(cipher, &pattern, filled);
        }
        Ok(Filled::Bytes(filled))
    }

    /// One of the grams of a pattern that were chosen before: its number.
    fn candidate_gram(
        &mut self,
        column: usize,
        source: Source,
        escape: Escape,
        nth: u8,
    ) -> Outcome<Filled<'_>> {
        let Buffers {
            looked_up, filled, ..
        } = &mut *self.buffers;
        let decided = looked_up
            .iter()
            .find(|l| (l.column, l.pattern, l.escape) == (column, source, escape))
            .and_then(|l| l.number(nth));
        let Some(number) = decided else {
            return Err(Failure::refused(&errors::INTERNAL, "a pattern's grams"));
        };
        filled.clear();
        filled.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        Ok(Filled::Bytes(filled))
    }

    /// Coerces the slot's value, unless it was the last one to be coerced.
    #[inline]
    fn coerce_once(&mut self, slot: &Slot, source: Source, row: u64) -> Outcome<Bound> {
        let wanted = Last {
            column: slot.column,
            source,
            as_stored: slot.purpose.stores(),
            row,
        };
        let is_cell = slot.purpose == Purpose::Seal;
        if let Some((last, bound)) = self.last
            && last == wanted
            && !(is_cell && self.last_has_cell)
        {
            self.last_has_cell |= is_cell;
            return Ok(bound);
        }
        let bound = match slot.among {
            None => self.coerce(slot.column, source, wanted.as_stored, row)?,
            Some(among) => self.coerce_among(slot.column, source, among, row)?,
        };
        self.last = Some((wanted, bound));
        self.last_has_cell = is_cell;
        Ok(bound)
    }

    /// Makes what a slot is filled with from the payload in the buffers.
    fn make(&mut self, slot: &Slot, bound: Bound) -> Outcome<Filled<'_>> {
        if bound == Bound::Null {
            return Ok(Filled::Null);
        }
        if slot.purpose == Purpose::Seal && self.refuses(slot.column)? {
            return Ok(Filled::Bytes(&self.buffers.filled));
        }
        let used = &self.keyed.plan.columns[slot.column];
        let cipher = self.keyed.keys.cipher(slot.column, used)?;
        let protection = used.column().protection.as_ref();
        let (Some(ty), Some(protection)) = (used.column().sql_type.as_ref(), protection) else {
            return Err(Failure::refused(&errors::INTERNAL, used.path()));
        };
        let capabilities = &protection.capabilities;
        let tenant = self.tenant;
        let Buffers {
            payload,
            weight: weights,
            filled,
            sealed,
            ..
        } = &mut *self.buffers;
        let weighed =
            |e: WeightError| Failure::refused(&errors::VALUE, format!("{} ({e})", used.path()));
        filled.clear();
        match slot.purpose {
            Purpose::Kept | Purpose::CandidateGrams(_) | Purpose::CandidateGram(..) => {
                return Err(Failure::refused(&errors::INTERNAL, used.path()));
            }
            Purpose::StoreGrams => {
                let form = used
                    .column()
                    .grams()
                    .map_or(GramForm::Words, |(_, form)| form);
                let most = most_numbers(&used.table);
                companions::gram_tokens(cipher, ty, form, most, payload, filled)
                    .map_err(weighed)?;
            }
            Purpose::Seal => {
                match (&capabilities.tenant, tenant) {
                    (None, _) => cipher.seal(payload, filled),
                    (Some(_), Some(tenant)) => cipher.seal_for(tenant, payload, filled),
                    (Some(_), None) if self.keyed.keys.tenants().is_none() => {
                        Err(SealError::NoTenants)
                    }
                    (Some(_), None) => Err(SealError::NeedsTenant),
                }
                .map_err(|e| Failure::seal(&e, &used.path()))?;
                sealed.add(used, 1);
            }
            Purpose::StoreEquality | Purpose::CompareEquality => {
                if bound == Bound::Exact {
                    companions::equality_token(cipher, ty, capabilities, payload, weights, filled)
                        .map_err(weighed)?;
                } else {
                    // no value of the column is equal: a text that no token is
                    filled.push(0);
                }
            }
            Purpose::StoreOrder | Purpose::CompareOrder | Purpose::CandidateOrder => match bound {
                // below every key, or above it; between two keys by one byte more than the lower
                Bound::BelowAll => {}
                Bound::AboveAll => {
                    let width = capabilities.order_width(ty).map_or(0, |w| w.bytes);
                    filled.resize(onionskin_crypt::order_key_len(width) + 1, 0xff);
                }
                _ => {
                    companions::order_key(cipher, ty, capabilities, payload, weights, filled)
                        .map_err(weighed)?;
                    // behind the beginning that the key covers a candidate may still be greater
                    if bound == Bound::Between && slot.purpose != Purpose::CandidateOrder {
                        filled.push(0);
                    }
                }
            },
        }
        Ok(Filled::Bytes(filled))
    }

    /// Whether the payload in the buffers breaks a CHECK of its column. If so, a refused cell has
    /// been made.
    #[inline]
    fn refuses(&mut self, column: usize) -> Outcome<bool> {
        let used = &self.keyed.plan.columns[column];
        let protection = used.column().protection.as_ref();
        let Some(protection) = protection.filter(|p| !p.checks.is_empty()) else {
            return Ok(false);
        };
        let violated = self.violated(column, &self.buffers.payload)?;
        if violated.is_empty() {
            return Ok(false);
        }
        let filled = &mut self.buffers.filled;
        filled.clear();
        protection.refused_cell(violated, filled);
        Ok(true)
    }

    /// Whether every pattern of a text has grams, so that its indexes over grams can be used.
    pub fn can_index(&mut self, pieces: &[Piece]) -> Outcome<bool> {
        for piece in pieces {
            let Piece::Indexed(inner) = piece else {
                continue;
            };
            for piece in inner {
                if let Piece::Slot(slot) = piece
                    && let Filled::Bytes(b"") = self.fill(slot, 0, 1)?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Fills slots with a payload that tier 2 computed.
    pub fn fill_payload(&mut self, slot: &Slot, payload: &[u8]) -> Outcome<Filled<'_>> {
        self.last = None;
        self.buffers.payload.clear();
        self.buffers.payload.extend_from_slice(payload);
        self.make(slot, Bound::Exact)
    }
}
