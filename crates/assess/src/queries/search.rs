//! The smallest policy that keeps the statements running.
//!
//! It begins with sealed columns and what keys need. Each statement that is not carried is given
//! the smallest set of further capabilities that carries it, and among sets of one size the one
//! that shows least. Afterwards each capability is taken away that nothing needs. The planner
//! decides every time.

use std::collections::{BTreeMap, BTreeSet};

use onionskin_plan::LexMode;
use onionskin_plan::lex::{TokenKind, tokens};
use onionskin_schema::{Bits, Capabilities, Policy, folded, possible};

use super::asked::Shape;
use super::columns::join;
use super::judge::{Choice, Judge, Verdict, View};
use super::schema::At;

/// Pairs of additions that are tried for a statement.
const MAX_PAIRS: usize = 1_500;
/// Questions to the planner after which single additions alone are tried.
const MAX_ASKED: usize = 300_000;
/// Columns of a statement between which joins are tried.
const MAX_JOINED: usize = 12;

/// Something more that the server may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addition {
    /// `eq`
    Equality(At),
    /// `join`, of both.
    Join(At, At),
    /// `like`
    Like(At),
    /// `range`
    Range(At),
}

impl Addition {
    /// How much it shows; more than two of the kind before are less than one.
    fn shows(self) -> u32 {
        match self {
            Self::Equality(_) => 1,
            Self::Join(..) => 2,
            Self::Like(_) => 10,
            Self::Range(_) => 50,
        }
    }

    fn columns(self) -> impl Iterator<Item = At> {
        let (first, second) = match self {
            Self::Equality(at) | Self::Like(at) | Self::Range(at) => (at, None),
            Self::Join(a, b) => (a, Some(b)),
        };
        std::iter::once(first).chain(second)
    }
}

/// A capability of a column, which may be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// `range`
    Range,
    /// `like`
    Like,
    /// `join:GROUP`
    Join,
    /// `eq`
    Equality,
}

impl Part {
    /// What shows most comes first.
    pub const ALL: [Self; 4] = [Self::Range, Self::Like, Self::Join, Self::Equality];

    /// Whether a column has it.
    pub fn is_in(self, capabilities: &Capabilities) -> bool {
        match self {
            Self::Range => capabilities.range,
            Self::Like => capabilities.like,
            Self::Join => capabilities.join.is_some(),
            Self::Equality => capabilities.eq,
        }
    }

    fn take(self, capabilities: &mut Capabilities) {
        match self {
            Self::Range => capabilities.range = false,
            Self::Like => capabilities.like = false,
            Self::Join => capabilities.join = None,
            Self::Equality => capabilities.eq = false,
        }
    }
}

/// What a statement is near to.
#[derive(Clone, Debug, Default)]
pub struct Near {
    /// Tables that it names.
    pub tables: BTreeSet<usize>,
    /// Protected columns of these that it names.
    pub columns: Vec<At>,
    /// It names a view.
    pub view: bool,
    /// It may define tables, for which the policy counts.
    defines: bool,
}

/// The search.
pub struct Search<'j, 's> {
    judge: &'j Judge<'s>,
    shapes: &'j [Shape],
    near: Vec<Near>,
    choice: Choice,
    /// With all columns. Capabilities count for definitions alone.
    policy: Policy,
    verdicts: Vec<Verdict>,
    /// How often the planner was asked.
    pub asked: usize,
}

impl<'j, 's> Search<'j, 's> {
    /// Searches, beginning with a choice.
    pub fn run(judge: &'j Judge<'s>, shapes: &'j [Shape], begin: Choice) -> Self {
        let near = shapes
            .iter()
            .map(|shape| near(judge, shape, &begin))
            .collect();
        let mut search = Self {
            judge,
            shapes,
            near,
            policy: judge.policy(&begin),
            choice: begin,
            verdicts: Vec::new(),
            asked: 0,
        };
        search.judge_all();
        // an addition may undo another one, so that a second look is due
        for _ in 0..2 {
            let before = search.choice.clone();
            for at in 0..shapes.len() {
                search.improve(at);
            }
            search.judge_all();
            if before == search.choice {
                break;
            }
        }
        search.prune();
        // the proof: everything once more, under the policy that is proposed
        search.judge_all();
        search
    }

    /// What was found.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// What becomes of each statement under it.
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// What each is near to.
    pub fn near(&self) -> &[Near] {
        &self.near
    }

    fn judge_all(&mut self) {
        let view = self.judge.view(&self.choice);
        let policy = self.judge.policy(&self.choice);
        self.verdicts = self
            .shapes
            .iter()
            .zip(&self.near)
            .map(|(shape, near)| match near.view {
                true => Verdict::Unknown("it names a view"),
                false => self.judge.judge_in(shape, &view, &policy),
            })
            .collect();
        self.asked += self.shapes.len();
    }

    /// What becomes of one statement under another choice, of which these tables differ.
    fn verdict(
        &mut self,
        at: usize,
        base: &View<'_>,
        tables: &BTreeSet<usize>,
        choice: &Choice,
    ) -> Verdict {
        if self.near[at].view {
            return Verdict::Unknown("it names a view");
        }
        self.asked += 1;
        let view = self.judge.changed(base, tables.iter().copied(), choice);
        let shape = &self.shapes[at];
        match self.near[at].defines {
            true => self
                .judge
                .judge_in(shape, &view, &self.judge.policy(choice)),
            false => self.judge.judge_in(shape, &view, &self.policy),
        }
    }

    fn with(&self, additions: &[Addition]) -> Choice {
        let mut choice = self.choice.clone();
        for addition in additions {
            if let Addition::Join(a, b) = *addition {
                join(&mut choice, self.judge.schema, a, b);
                continue;
            }
            for at in addition.columns() {
                if let Some(capabilities) = choice.get_mut(&at) {
                    match addition {
                        Addition::Equality(_) => capabilities.eq = true,
                        Addition::Like(_) => capabilities.like = true,
                        Addition::Range(_) => capabilities.range = true,
                        Addition::Join(..) => {}
                    }
                }
            }
        }
        choice
    }

    fn improve(&mut self, at: usize) {
        let judge = self.judge;
        let base_choice = self.choice.clone();
        let base = judge.view(&base_choice);
        let now = self.verdict(at, &base, &BTreeSet::new(), &base_choice);
        let level = now.level();
        self.verdicts[at] = now;
        let additions = self.additions(at);
        for goal in [2, 1] {
            if goal <= level || additions.is_empty() {
                return;
            }
            if let Some(found) = self.find(at, &base, &additions, goal) {
                self.choice = self.with(&found);
                return;
            }
        }
    }

    fn reaches(&mut self, at: usize, base: &View<'_>, set: &[Addition], goal: u8) -> bool {
        let choice = self.with(set);
        // a group is of all its columns' tables
        let mut tables: BTreeSet<usize> = set
            .iter()
            .flat_map(|addition| addition.columns())
            .map(|(table, _)| table)
            .collect();
        let joins = set.iter().any(|a| matches!(a, Addition::Join(..)));
        if joins {
            let changed = choice
                .iter()
                .filter(|(at, c)| self.choice.get(*at) != Some(*c));
            tables.extend(changed.map(|((table, _), _)| *table));
        }
        self.verdict(at, base, &tables, &choice).level() >= goal
    }

    /// The smallest set that reaches the goal, as far as sets are tried.
    fn find(
        &mut self,
        at: usize,
        base: &View<'_>,
        additions: &[Addition],
        goal: u8,
    ) -> Option<Vec<Addition>> {
        for addition in additions {
            if self.reaches(at, base, &[*addition], goal) {
                return Some(vec![*addition]);
            }
        }
        if self.asked > MAX_ASKED {
            return None;
        }
        let mut pairs: Vec<[Addition; 2]> = Vec::new();
        for (n, first) in additions.iter().enumerate() {
            pairs.extend(additions[n + 1..].iter().map(|second| [*first, *second]));
        }
        pairs.sort_by_key(|pair| pair.iter().map(|a| a.shows()).sum::<u32>());
        for pair in pairs.iter().take(MAX_PAIRS) {
            if self.reaches(at, base, pair, goal) {
                return Some(pair.to_vec());
            }
        }
        self.shrunk(at, base, additions, goal)
    }

    /// All additions of some kinds, without those that are not needed; what shows most goes first.
    fn shrunk(
        &mut self,
        at: usize,
        base: &View<'_>,
        additions: &[Addition],
        goal: u8,
    ) -> Option<Vec<Addition>> {
        let is_join = |a: &Addition| matches!(a, Addition::Join(..));
        let is_range = |a: &Addition| matches!(a, Addition::Range(_));
        let kinds: [&dyn Fn(&Addition) -> bool; 4] = [
            &|a| !is_range(a) && !is_join(a),
            &|a| !is_range(a),
            &|a| !is_join(a),
            &|_| true,
        ];
        for kind in kinds {
            let mut set: Vec<Addition> = additions.iter().copied().filter(|a| kind(a)).collect();
            if !self.reaches(at, base, &set, goal) {
                continue;
            }
            set.sort_by_key(|a| std::cmp::Reverse(a.shows()));
            let mut n = 0;
            while n < set.len() {
                let mut less = set.clone();
                less.remove(n);
                match self.reaches(at, base, &less, goal) {
                    true => set = less,
                    false => n += 1,
                }
            }
            return Some(set);
        }
        None
    }

    /// What could be added for a statement; what shows least comes first.
    fn additions(&self, at: usize) -> Vec<Addition> {
        let mut additions = Vec::new();
        let columns = &self.near[at].columns;
        for column in columns {
            let (Some(has), Some(template)) =
                (self.choice.get(column), self.judge.template(*column))
            else {
                continue;
            };
            let all = Capabilities {
                bits: Bits::default(),
                eq: true,
                range: true,
                like: self.judge.keeps_grams(),
                join: None,
                tenant: None,
            };
            let can = possible(&all, &template.sql_type);
            let tokens = has.eq || has.join.is_some();
            additions.extend((can.eq && !tokens).then_some(Addition::Equality(*column)));
            additions.extend((can.like && !has.like).then_some(Addition::Like(*column)));
            additions.extend((can.range && !has.range).then_some(Addition::Range(*column)));
        }
        if columns.len() <= MAX_JOINED {
            for (n, a) in columns.iter().enumerate() {
                let others = columns[n + 1..].iter().filter(|b| self.could_join(*a, **b));
                additions.extend(others.map(|b| Addition::Join(*a, *b)));
            }
        }
        additions.sort_by_key(|a| a.shows());
        additions
    }

    fn could_join(&self, a: At, b: At) -> bool {
        let kind = |at| {
            let template = self.judge.template(at)?;
            let ty = &template.sql_type;
            Some((std::mem::discriminant(&ty.kind), ty.is_enumerated()))
        };
        let group = |at| self.choice.get(&at).and_then(|c| c.join.as_ref());
        let joined = group(a).is_some() && group(a) == group(b);
        let is_same = kind(a).is_some_and(|(_, enumerated)| !enumerated) && kind(a) == kind(b);
        a.0 != b.0 && is_same && !joined
    }

    /// Takes away what nothing needs.
    fn prune(&mut self) {
        for _ in 0..3 {
            let before = self.choice.clone();
            for part in Part::ALL {
                for at in before.keys() {
                    self.try_without(*at, part);
                }
            }
            if before == self.choice {
                return;
            }
        }
    }

    fn try_without(&mut self, at: At, part: Part) {
        let Some(now) = self.choice.get(&at).filter(|c| part.is_in(c)).cloned() else {
            return;
        };
        let mut less = now.clone();
        part.take(&mut less);
        let mut tries = vec![less.clone()];
        if part == Part::Join {
            less.eq = true;
            tries.push(less);
        }
        for capabilities in tries {
            let mut choice = self.choice.clone();
            choice.insert(at, capabilities);
            if self.loses(at, &choice).is_none() {
                self.choice = choice;
                return;
            }
        }
    }

    /// What a choice without something of a column loses: statements, or (nothing) a definition.
    fn loses(&mut self, at: At, choice: &Choice) -> Option<Lost> {
        if !self.definitions_hold(at, choice) {
            return Some(Lost::Definition);
        }
        let judge = self.judge;
        let current = self.choice.clone();
        let base = judge.view(&current);
        let tables = BTreeSet::from([at.0]);
        for shape in 0..self.shapes.len() {
            let is_near = self.near[shape].tables.contains(&at.0);
            let level = self.verdicts[shape].level();
            if is_near && level > 0 && self.verdict(shape, &base, &tables, choice).level() < level {
                return Some(Lost::Statement);
            }
        }
        None
    }

    /// Whether the definitions of a column's table, and of those that foreign keys tie to it, can
    /// be had.
    fn definitions_hold(&mut self, at: At, choice: &Choice) -> bool {
        let mut tables = BTreeSet::from([at.0]);
        for (from, to) in &self.judge.schema.references {
            if from.0 == at.0 || to.0 == at.0 {
                tables.extend([from.0, to.0]);
            }
        }
        self.asked += tables.len();
        tables
            .iter()
            .all(|table| self.judge.definition(*table, choice).is_ok())
    }

    /// For each capability, which statements need it, and whether a definition does.
    pub fn needs(&mut self) -> BTreeMap<(At, Part), Needs> {
        let mut needs = BTreeMap::new();
        for (at, capabilities) in self.choice.clone() {
            for part in Part::ALL.into_iter().filter(|p| p.is_in(&capabilities)) {
                let mut choice = self.choice.clone();
                if let Some(capabilities) = choice.get_mut(&at) {
                    part.take(capabilities);
                }
                let judge = self.judge;
                let current = self.choice.clone();
                let base = judge.view(&current);
                let tables = BTreeSet::from([at.0]);
                let mut found = Needs {
                    definition: !self.definitions_hold(at, &choice),
                    shapes: Vec::new(),
                };
                for shape in 0..self.shapes.len() {
                    let is_near = self.near[shape].tables.contains(&at.0);
                    let level = self.verdicts[shape].level();
                    let loses = is_near
                        && level > 0
                        && self.verdict(shape, &base, &tables, &choice).level() < level;
                    found.shapes.extend(loses.then_some(shape));
                }
                needs.insert((at, part), found);
            }
        }
        needs
    }

    /// For statements that the proxy or the engine does: one more capability by which an earlier
    /// tier does them.
    pub fn faster(&mut self) -> BTreeMap<usize, (Addition, u8)> {
        let judge = self.judge;
        let current = self.choice.clone();
        let base = judge.view(&current);
        let mut faster = BTreeMap::new();
        for shape in 0..self.shapes.len() {
            let Some(tier) = self.verdicts[shape].tier().filter(|tier| *tier > 1) else {
                continue;
            };
            for addition in self.additions(shape) {
                let choice = self.with(&[addition]);
                let changed = choice.iter().filter(|(at, c)| current.get(*at) != Some(*c));
                let tables: BTreeSet<usize> = changed.map(|((table, _), _)| *table).collect();
                let verdict = self.verdict(shape, &base, &tables, &choice);
                if let Some(then) = verdict.tier().filter(|then| *then < tier) {
                    faster.insert(shape, (addition, then));
                    break;
                }
            }
        }
        faster
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    Definition,
    Statement,
}

/// What needs a capability.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// A key or foreign key of a definition.
    pub definition: bool,
    /// Statements, by their places.
    pub shapes: Vec<usize>,
}

/// What a statement names.
fn near(judge: &Judge<'_>, shape: &Shape, choice: &Choice) -> Near {
    let sql = shape.sql.as_bytes();
    let Ok(tokens) = tokens(sql, LexMode::default()) else {
        return Near::default();
    };
    let mut names = BTreeSet::new();
    for token in &tokens {
        let text = String::from_utf8_lossy(token.text(sql));
        match token.kind {
            TokenKind::Word => names.insert(folded(&text)),
            TokenKind::Quoted => names.insert(folded(text.trim_matches('`'))),
            _ => false,
        };
    }
    let schema = judge.schema;
    let tables: BTreeSet<usize> = schema
        .tables
        .iter()
        .enumerate()
        .filter(|(_, t)| names.contains(&folded(&t.table.name)))
        .map(|(at, _)| at)
        .collect();
    let columns = choice.keys().copied().filter(|(table, column)| {
        let column = &schema.tables[*table].table.columns[*column];
        tables.contains(table) && names.contains(&folded(&column.name))
    });
    let first = tokens.first();
    let defines = first.is_some_and(|t| t.is_word(sql, "create") || t.is_word(sql, "alter"));
    Near {
        columns: columns.collect(),
        tables,
        view: schema.views.iter().any(|view| names.contains(view)),
        defines,
    }
}
