//! The attacks. Each is a function from what a server sees and what an attacker knows to guesses;
//! none has a key, a value or the truth.
//!
//! | module | attack | after |
//! |---|---|---|
//! | [`frequency`] | equality tokens, by how often each occurs | Naveed, Kamara, Wright, CCS 2015 |
//! | [`order`] | order keys, by their places: sorting, cumulative, likelihood | the same; Grubbs and others, S&P 2017; Bindschaedler and others, PVLDB 2018 |
//! | [`digits`] | order keys, by the digits that our scheme shows | docs/threat-model.md |
//! | [`grams`] | gram tokens, by how often they occur and which occur together | Islam, Kuzu, Kantarcioglu, NDSS 2012 |
//! | [`pairs`] | two columns of equality tokens, by which occur together | Durak, DuBuisson, Cash, CCS 2016 |
//! | `assignment`, `alignment` | the cheapest matching, and the cheapest one that keeps an order | |
//! | `together` | matching by company, for grams and pairs | |
//!
//! A guess is a place in the list of known values, or none.

mod alignment;
mod assignment;
pub mod digits;
pub mod frequency;
pub mod grams;
pub mod order;
pub mod pairs;
mod together;

/// For each token, the place of the value that it is taken for.
pub type Guesses = Vec<Option<usize>>;
