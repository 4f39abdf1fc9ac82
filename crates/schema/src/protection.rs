//! How a column is protected, and the names of the physical columns that follow from it.

use onionskin_value::{Family, OrderWidth, SqlType};

use crate::check::{Check, refused_cell};
use crate::key_actions::KeyActions;
use crate::quote::{hex, identifier};
use crate::set::Whole;
use crate::tenant::{KEY_BY, TENANT_CELLS, Tenant};

/// How much longer a sealed cell is than its payload: 1 byte version and suite, 2 key id, 4 column
/// id, 12 nonce, 16 tag.
pub const CELL_OVERHEAD: u64 = 35;

/// How much longer cells with a tenant are than others: it stands in them.
const TENANT_BYTES: u64 = 8;

/// Bytes of an equality token.
const EQUALITY_TOKEN_BYTES: u32 = 16;

/// The most bits of an equality token that `eq:N` can ask for. Of more, values would hardly ever
/// share a token.
const MOST_TOKEN_BITS: u8 = 32;

/// Bytes of the order key for one byte of input.
const ORDER_KEY_BYTES_PER_BYTE: u32 = 4;

/// The longest identifier servers allow, in characters.
pub(crate) const MAX_IDENTIFIER: usize = 64;

pub(crate) const ENC_SUFFIX: &str = "$enc";
pub(crate) const EQ_INFIX: &str = "$eq_";
pub(crate) const ORD_INFIX: &str = "$ord_";
pub(crate) const GRAM_INFIX: &str = "$gram_";
/// Hex digits of the column id that stand at the end of a companion's name.
pub(crate) const SUFFIX_DIGITS: usize = 4;

/// How many bits of its companions a column keeps, where it does not keep all of them: `eq:N` and
/// `range:N`. Several values share what is left, so that the server tells them less well apart. It
/// finds candidates, and the proxy decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bits {
    /// Of equality tokens.
    pub eq: Option<u8>,
    /// Of the order bytes that order keys are made of.
    pub range: Option<u8>,
}

/// What the server can do with a column without being able to open it. Each one tells the server
/// something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capabilities {
    /// Equality: the server sees which rows are equal.
    pub eq: bool,
    /// Order: the server sees which of two rows is the greater, and more; see the threat model.
    pub range: bool,
    /// LIKE: the server sees which short runs of characters texts share; see the threat model.
    pub like: bool,
    /// Name of a group of columns whose tokens are comparable with each other.
    pub join: Option<String>,
    /// What of `eq` and `range` is less than all.
    pub bits: Bits,
    /// Whose rows are, if cells of different tenants have different keys. It allows the server
    /// nothing.
    pub tenant: Option<Tenant>,
}

/// How the names of the groups begin that keys are in by themselves.
const KEY_GROUP: &str = "key:";
/// The same, while the ids are not chosen yet.
const NEW_KEY_GROUP: &str = "key:#";

impl Capabilities {
    /// The group of a primary or unique key that a wildcard has protected. Foreign keys that refer
    /// to it join the group, which nobody has to name. The ids are in it, so that no other table
    /// has the same one.
    pub fn key_group(table_id: [u8; 8], column_id: [u8; 4]) -> String {
        format!("{KEY_GROUP}{}{}", hex(&table_id), hex(&column_id))
    }

    /// What stands for the group of a new column until its ids are chosen: the column's number.
    pub fn new_key_group(index: usize) -> String {
        format!("{NEW_KEY_GROUP}{index}")
    }

    /// The number of the column whose group it stands for, if it does.
    pub fn new_key_of(group: &str) -> Option<usize> {
        group.strip_prefix(NEW_KEY_GROUP)?.parse().ok()
    }

    /// Whether the column is in the group of a key, its own or one that it refers to.
    pub fn joins_key(&self) -> bool {
        self.join.as_deref().is_some_and(is_key_group)
    }

    /// Takes in a word of the configuration other than that of a group: `eq`, `eq:N`, `range`,
    /// `range:N` or `like`; or `key_by:…`. False if it is none, or a second word of one kind.
    pub fn take_word(&mut self, word: &str) -> bool {
        if let Some(tenant) = word.strip_prefix(KEY_BY) {
            let read = Tenant::parse(tenant).filter(|_| self.tenant.is_none());
            let is_read = read.is_some();
            self.tenant = self.tenant.take().or(read);
            return is_read;
        }
        let (kind, bits) = match word.split_once(':') {
            None => (word, None),
            Some((kind, digits)) => match bits_of(digits) {
                Some(bits) => (kind, Some(bits)),
                None => return false,
            },
        };
        let (has, kept) = match kind {
            "eq" if bits.is_none_or(|n| n <= MOST_TOKEN_BITS) => (&mut self.eq, &mut self.bits.eq),
            "range" if bits.is_none_or(|n| n < 128) => (&mut self.range, &mut self.bits.range),
            "like" if bits.is_none() => {
                self.like = true;
                return true;
            }
            _ => return false,
        };
        let is_another = *has && *kept != bits;
        (*has, *kept) = (true, bits);
        !is_another
    }

    /// The order keys that a column of this type has with these capabilities.
    pub fn order_width(&self, sql_type: &SqlType) -> Option<OrderWidth> {
        Some(match self.order_bits(sql_type) {
            None => sql_type.order_width()?,
            Some(bits) => OrderWidth {
                bytes: bits.div_ceil(8),
                exact: false,
                invertible: false,
            },
        })
    }

    /// How many bits of such a type's order bytes order keys are made of; `None` for all.
    pub fn order_bits(&self, sql_type: &SqlType) -> Option<usize> {
        let all = sql_type.order_width()?.bytes * 8;
        self.bits.range.map(usize::from).filter(|bits| *bits < all)
    }

    /// Whether the server sees exactly which rows are equal, by tokens.
    pub fn has_whole_tokens(&self) -> bool {
        self.eq && self.bits.eq.is_none()
    }

    /// How many bits of an equality token are kept; `None` for all. Columns of a group keep all.
    pub fn token_bits(&self) -> Option<u8> {
        self.bits.eq.filter(|_| self.join.is_none())
    }

    /// Bytes of the column with equality tokens. Tokens of N bits have a bit more in front of them,
    /// so that none is zero.
    pub(crate) fn equality_bytes(&self) -> u32 {
        match self.token_bits() {
            Some(bits) => u32::from(bits) / 8 + 1,
            None => EQUALITY_TOKEN_BYTES,
        }
    }

    /// Bytes of the column with order keys; 0 for types that have none.
    pub(crate) fn order_key_bytes(&self, sql_type: &SqlType) -> u32 {
        self.order_width(sql_type)
            .and_then(|width| u32::try_from(width.bytes).ok())
            .unwrap_or(0)
            .saturating_mul(ORDER_KEY_BYTES_PER_BYTE)
    }

    /// As a definition has them: ``ENCRYPTED FOR (eq) KEY BY `tenant_id` ``.
    pub fn clause(&self) -> String {
        let words = self.listed(identifier).join(", ");
        match &self.tenant {
            None => format!("ENCRYPTED FOR ({words})"),
            Some(tenant) => format!("ENCRYPTED FOR ({words}) {}", tenant.clause()),
        }
    }

    /// One by one, as the configuration and `onionskin migrate` take them.
    pub fn list(&self) -> Vec<String> {
        let mut words = self.listed(str::to_owned);
        words.extend(self.tenant.as_ref().map(Tenant::word));
        words
    }

    fn listed(&self, group: impl Fn(&str) -> String) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.eq.then(|| with_bits("eq", self.bits.eq)));
        words.extend(self.range.then(|| with_bits("range", self.bits.range)));
        words.extend(self.like.then(|| "like".to_owned()));
        words.extend(self.join.iter().map(|g| format!("join:{}", group(g))));
        words
    }

    /// Whether they tell the server nothing that `allowed` do not tell.
    pub fn show_no_more_than(&self, allowed: &Self) -> bool {
        let shown = |has: bool, bits: Option<u8>| has.then(|| bits.unwrap_or(u8::MAX));
        let eq = shown(self.eq, self.bits.eq);
        let range = shown(self.range, self.bits.range);
        let coarse = allowed.bits.eq.is_some() || allowed.bits.range.is_some();
        let tells_equality = match coarse {
            false => allowed.searchable(),
            true => allowed.like || allowed.join.is_some(),
        };
        (eq <= shown(allowed.eq, allowed.bits.eq)
            || tells_equality
            || allowed.range && allowed.bits.range.is_none())
            && range <= shown(allowed.range, allowed.bits.range)
            && (!self.like || allowed.like)
            && (self.join.is_none() || self.join == allowed.join || self.joins_key() && allowed.eq)
            && (allowed.tenant.is_none() || self.tenant == allowed.tenant)
    }

    /// What it has that no column with a tenant can have: an order key opens with the column's key,
    /// and grams tell most of a text, whatever has become of the tenant's secret.
    pub(crate) fn beside_tenant(&self) -> Option<&'static str> {
        self.tenant.as_ref()?;
        match (self.range, self.like, &self.join) {
            (true, ..) => Some("range"),
            (_, true, _) => Some("like"),
            (.., Some(_)) => Some("join"),
            _ => None,
        }
    }

    /// Whether the server can search the column at all.
    pub fn searchable(&self) -> bool {
        self.eq || self.range || self.like || self.join.is_some()
    }
}

fn bits_of(digits: &str) -> Option<u8> {
    let is_plain = digits.bytes().all(|c| c.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_plain)
}

fn with_bits(word: &str, bits: Option<u8>) -> String {
    match bits {
        Some(bits) => format!("{word}:{bits}"),
        None => word.to_owned(),
    }
}

/// Whether a name is that of a group which keys are in by themselves.
pub(crate) fn is_key_group(group: &str) -> bool {
    group.starts_with(KEY_GROUP)
}

/// How much longer a cell of this version is than its payload.
pub(crate) fn cell_overhead(version: u8) -> u64 {
    match version {
        TENANT_CELLS => CELL_OVERHEAD + TENANT_BYTES,
        _ => CELL_OVERHEAD,
    }
}

/// The two kinds of companions that a value is compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// An order key.
    Order,
    /// An equality token.
    Equality,
}

/// How the tokens of a column's grams are kept and searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GramForm {
    /// A text of words under a full-text index: MariaDB. MySQL's full-text indexes lose rows, so
    /// there a column of this form is written and never searched.
    Words,
    /// A JSON array of numbers under a multi-valued index, which InnoDB keeps with the row like any
    /// other: MySQL.
    Numbers,
}

impl GramForm {
    /// The form of new columns.
    pub fn of(family: Family) -> Self {
        match family {
            Family::MariaDb => Self::Words,
            Family::MySql => Self::Numbers,
        }
    }
}

/// Names of the columns that stand for a logical column on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhysicalNames {
    /// The sealed value.
    pub enc: String,
    /// The equality token.
    pub eq: Option<String>,
    /// The order key.
    pub ord: Option<String>,
    /// The gram tokens.
    pub gram: Option<String>,
    /// Whether the order key covers the whole value, so that it answers equality as well.
    pub exact_order: bool,
    /// Whether only equal values have the same equality token.
    pub exact_equality: bool,
    /// Of a view's column that the table calls otherwise.
    pub renamed: Option<Renamed>,
}

/// What a view's column is called in the table, and the two columns of the view that say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The table's name for it.
    pub original: String,
    /// See [`Alias`](crate::Alias).
    pub marks: [String; 2],
}

impl PhysicalNames {
    /// The names that the logical definition leads to.
    pub fn new(
        name: &str,
        column_id: [u8; 4],
        sql_type: &SqlType,
        capabilities: &Capabilities,
    ) -> Self {
        let mut digits = hex(&column_id);
        digits.truncate(SUFFIX_DIGITS);
        let width = capabilities.order_width(sql_type);
        let exact_order = capabilities.range && width.is_some_and(|width| width.exact);
        // The group of a key adds no companion: order keys that cover the value are compared, too.
        let joins = capabilities.join.is_some() && !capabilities.joins_key();
        let eq = joins || (capabilities.eq && !exact_order);
        Self {
            enc: format!("{name}{ENC_SUFFIX}"),
            eq: eq.then(|| format!("{name}{EQ_INFIX}{digits}")),
            ord: capabilities
                .range
                .then(|| format!("{name}{ORD_INFIX}{digits}")),
            gram: capabilities
                .like
                .then(|| format!("{name}{GRAM_INFIX}{digits}")),
            exact_order,
            exact_equality: capabilities.token_bits().is_none(),
            renamed: None,
        }
    }

    /// The names of a column of which no grams are kept.
    pub fn without_grams(self) -> Self {
        Self { gram: None, ..self }
    }

    /// The column that decides equality of two values, and how its values are made. Indexes, unique
    /// and primary keys are built on it.
    pub fn equality_column(&self) -> Option<(&str, TokenKind)> {
        match (&self.ord, &self.eq) {
            (Some(ord), _) if self.exact_order => Some((ord, TokenKind::Order)),
            (_, Some(eq)) if self.exact_equality => Some((eq, TokenKind::Equality)),
            _ => None,
        }
    }

    /// The column that an index which is not unique is built on: that of equality, or else the one
    /// by which the server finds candidates.
    pub fn search_column(&self) -> Option<&str> {
        let decides = self.equality_column().map(|(name, _)| name);
        decides.or(self.ord.as_deref()).or(self.eq.as_deref())
    }

    /// The companions.
    pub fn companions(&self) -> impl Iterator<Item = &str> {
        [&self.eq, &self.ord, &self.gram]
            .into_iter()
            .filter_map(Option::as_deref)
    }

    /// All of them, in the order in which they stand in the table; behind these, what a view says
    /// of its own name for the column.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let marks = self.renamed.iter().flat_map(|r| &r.marks);
        std::iter::once(self.enc.as_str())
            .chain(self.companions())
            .chain(marks.map(String::as_str))
    }

    /// The name that the table has for the column.
    pub fn original(&self) -> &str {
        match &self.renamed {
            Some(renamed) => &renamed.original,
            None => split_enc(&self.enc).unwrap_or_default(),
        }
    }
}

/// How a column is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// The column's logical type, which is always known of a protected one.
    pub sql_type: SqlType,
    /// Stands in every cell, and binds keys and tokens to the column.
    pub column_id: [u8; 4],
    /// The data key that the column's tokens are made under and new cells are sealed under.
    pub key_id: u16,
    /// Number of the cipher suite.
    pub suite: u8,
    /// Version of the format of the column's cells.
    pub cell_version: u8,
    /// What the server can do.
    pub capabilities: Capabilities,
    /// Names on the server.
    pub names: PhysicalNames,
    /// CHECK constraints over the column alone, in the order of their numbers.
    pub checks: Vec<Check>,
    /// What the foreign keys say whose first column it is.
    pub actions: KeyActions,
    /// How grams are kept, of columns that have them.
    pub grams: GramForm,
    /// Whether this and the table's others are all that were defined together.
    pub whole: Whole,
}

impl Protection {
    /// Whether there is a CHECK over the column that was not dropped.
    pub fn is_checked(&self) -> bool {
        self.checks.iter().any(Check::is_in_force)
    }

    /// Appends what is sent in the place of a value of which the conditions with these numbers are
    /// false: a cell that the server refuses.
    pub fn refused_cell(&self, violated: impl IntoIterator<Item = usize>, out: &mut Vec<u8>) {
        let first_byte = self.cell_version << 4 | (self.suite & 0x0f);
        let length = cell_overhead(self.cell_version) as usize;
        refused_cell(first_byte, self.column_id, length, violated, out);
    }
}

/// What a column beside a sealed one holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Companion {
    Equality,
    Order,
    Gram,
}

/// The column to which a token column of this name belongs, by the name's form.
pub fn split_token_name(name: &str) -> Option<&str> {
    split_companion(name).map(|(column, _, _)| column)
}

/// Splits the name of a companion into the logical name, its kind and its suffix.
pub(crate) fn split_companion(name: &str) -> Option<(&str, Companion, &str)> {
    let cut = name.len().checked_sub(SUFFIX_DIGITS)?;
    let (front, suffix) = (name.get(..cut)?, name.get(cut..)?);
    if !suffix
        .bytes()
        .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    {
        return None;
    }
    let kinds = [
        (EQ_INFIX, Companion::Equality),
        (ORD_INFIX, Companion::Order),
        (GRAM_INFIX, Companion::Gram),
    ];
    let mut known = kinds
        .iter()
        .filter_map(|(infix, kind)| Some((front.strip_suffix(infix)?, *kind)));
    let (base, kind) = known.next()?;
    (!base.is_empty()).then_some((base, kind, suffix))
}

/// The logical name, if `name` is that of a sealed column.
pub(crate) fn split_enc(name: &str) -> Option<&str> {
    name.strip_suffix(ENC_SUFFIX)
        .filter(|base| !base.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(words: &[&str]) -> Option<Capabilities> {
        let mut capabilities = Capabilities::default();
        let mut words = words.iter();
        words
            .all(|word| capabilities.take_word(word))
            .then_some(capabilities)
    }

    #[test]
    fn words_have_bits() {
        let both = taken(&["eq:12", "range:127", "like"]).expect("words");
        assert_eq!(both.list(), ["eq:12", "range:127", "like"]);
        assert!(both.like && !both.has_whole_tokens());
        assert_eq!(taken(&["eq:32"]).expect("a word").equality_bytes(), 5);
        assert_eq!(taken(&["eq:7"]).expect("a word").equality_bytes(), 1);
        assert_eq!(taken(&["eq"]).expect("a word").equality_bytes(), 16);
        for refused in [
            &["eq:0"][..],
            &["eq:33"],
            &["eq:08"],
            &["eq:"],
            &["eq:+8"],
            &["eq: 8"],
            &["eq:8:8"],
            &["eq:256"],
            &["range:128"],
            &["like:3"],
            &["sealed"],
            &["EQ"],
            &["eq", "eq:8"],
            &["range:9", "range:10"],
        ] {
            assert_eq!(taken(refused), None, "{refused:?}");
        }
        assert!(taken(&["eq:8", "eq:8"]).is_some());
    }

    #[test]
    fn keys_of_fewer_bits_are_not_exact() {
        let int = SqlType::parse("int", None).expect("known");
        let width = |word: &str| taken(&[word]).and_then(|c| c.order_width(&int));
        let cut = width("range:17").expect("an order");
        assert_eq!((cut.bytes, cut.exact, cut.invertible), (3, false, false));
        assert_eq!(width("range:32"), width("range"));
        let names =
            |words: &[&str]| PhysicalNames::new("k", [0; 4], &int, &taken(words).expect("words"));
        assert!(names(&["range:40"]).exact_order && !names(&["range:31"]).exact_order);
        assert_eq!(names(&["eq:3"]).equality_column(), None);
        assert_eq!(names(&["eq:3"]).search_column(), Some("k$eq_0000"));
        assert_eq!(
            names(&["eq:3", "range:9"]).search_column(),
            Some("k$ord_0000")
        );
        assert_eq!(names(&["eq", "range:9"]).search_column(), Some("k$eq_0000"));
        assert_eq!(names(&[]).search_column(), None);
    }

    #[test]
    fn companions_are_recognized_by_their_names() {
        assert_eq!(
            split_companion("k$ord_1a2b"),
            Some(("k", Companion::Order, "1a2b"))
        );
        assert_eq!(
            split_companion("a$b$eq_00ff"),
            Some(("a$b", Companion::Equality, "00ff"))
        );
        assert_eq!(
            split_companion("c$gram_0a0b"),
            Some(("c", Companion::Gram, "0a0b"))
        );
        for other in [
            "k$enc",
            "k$eq_1A2B",
            "$eq_1a2b",
            "k$eq_1a2",
            "é",
            "",
            "k$ord1a2b",
        ] {
            assert_eq!(split_companion(other), None, "{other}");
        }
        assert_eq!(split_enc("a$b$enc"), Some("a$b"));
        assert_eq!(split_enc("$enc"), None);
    }
}
