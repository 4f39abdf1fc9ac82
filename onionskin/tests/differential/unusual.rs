//! Random statements of kinds that applications write now and then, each from a file of its own.

use super::random::Random;
use super::schema::Table;
use super::script::{Statement, Step};
use super::{
    assigned_twice, hinted, key_lengths, mixed, modes, odd, own_table, parentheses, questions,
};
use super::{temporal, writes};
use onionskin_testkit::Kind;

/// The labels of the kinds: a run of ordinary length meets each of them.
pub const LABELS: [&str; 29] = [
    assigned_twice::UPDATE,
    assigned_twice::MET,
    mixed::QUERY,
    mixed::JOIN,
    mixed::NUMBERS,
    temporal::LABEL,
    modes::LABEL,
    modes::QUERY,
    modes::INSERT,
    modes::UPDATE,
    questions::LABEL,
    questions::SUBJECT,
    parentheses::QUERY,
    parentheses::UPDATE,
    odd::WHERE,
    odd::LIKE,
    odd::LIMIT,
    odd::UPDATE,
    odd::INSERT,
    odd::UPSERT,
    odd::DELETE,
    own_table::UPDATE,
    own_table::DELETE,
    key_lengths::KEYED,
    hinted::HINT,
    hinted::LOCK,
    hinted::DELETE,
    hinted::VIEW,
    hinted::STAR,
];

/// One kind: a statement, with those that it needs before or behind it.
pub fn steps(random: &mut Random, tables: &[Table], kind: Kind) -> Vec<Step> {
    let number = random.below(tables.len());
    let one = |statement: Statement| vec![Step::One(statement)];
    let found = match random.weighted(&[10, 12, 14, 12, 12, 10, 20, 4, 4, 12]) {
        0 => assigned_twice::step(random, tables, number).map(|step| vec![step]),
        1 => mixed::steps(random, tables, number),
        2 => temporal::query(random, tables).map(|mut query| {
            query.prepared = random.chance(40);
            one(query)
        }),
        3 => Some(modes::steps(random, tables, number, kind)),
        4 => Some(questions::steps(random, tables, number)),
        5 => Some(one(parentheses::statement(random, tables, number))),
        6 => Some(vec![odd::step(random, tables, number)]),
        7 => Some(one(own_table::change(random, tables, number))),
        8 => Some(key_lengths::steps(random, tables, number)),
        _ => Some(hinted::steps(random, tables, number, kind)),
    };
    // tables without a column for it get a row
    found.unwrap_or_else(|| {
        let insert = writes::fill(random, tables, number, 1);
        vec![Step::Insert(insert)]
    })
}
