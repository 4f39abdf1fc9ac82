//! What becomes of a statement if columns were protected. The planner says so: it is given tables
//! that do not exist, and asked what it would do. It executes nothing and needs no key.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use onionskin_plan::{
    Action, COLLATION, Catalog, Known, LexMode, Outcome, Plan, Refusal, Request, Scratch, Settings,
    Template, UseScratch, errors, plan, reads_program,
};
use onionskin_schema::{
    Capabilities, Column, Default as ColumnDefault, DefaultLiteral, GramForm, NewColumn,
    PhysicalNames, Policy, Protection, Table, TableName, Whole, folded, split_foreign_keys,
};
use onionskin_value::Family;

use super::asked::Shape;
use super::narrowed::narrows;
use super::schema::{At, Described, Schema};

/// Columns that are protected, and what the server may do with them.
pub type Choice = BTreeMap<At, Capabilities>;

/// What becomes of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It runs.
    Runs {
        /// 0: relayed.
        tier: u8,
        /// Tables of some size that are read whole.
        whole: Vec<String>,
    },
    /// It does not.
    Refused {
        /// Of the table of errors.
        code: &'static str,
        /// What a client would be told.
        message: String,
    },
    /// Nothing can be said of it, and why.
    Unknown(&'static str),
}

impl Verdict {
    /// 2: it is carried. 1: it runs, and reads tables whole. 0: neither.
    pub fn level(&self) -> u8 {
        match self {
            Self::Runs { whole, .. } if whole.is_empty() => 2,
            Self::Runs { .. } => 1,
            Self::Refused { .. } | Self::Unknown(_) => 0,
        }
    }

    /// The tier at which it runs.
    pub fn tier(&self) -> Option<u8> {
        match self {
            Self::Runs { tier, .. } => Some(*tier),
            _ => None,
        }
    }
}

/// Asks the planner.
pub struct Judge<'s> {
    pub(super) schema: &'s Schema,
    engine: bool,
    small: u64,
    grams: bool,
    /// What the planner made of each column's definition.
    templates: BTreeMap<At, NewColumn>,
    places: HashMap<String, usize>,
}

/// What a definition needs the planner to say of foreign keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Without,
    With,
}

impl<'s> Judge<'s> {
    /// `grams`: whether grams of texts are kept. `small`: rows of a table that may be read whole.
    pub fn new(schema: &'s Schema, engine: bool, small: u64, grams: bool) -> Self {
        let names = schema.tables.iter().enumerate();
        Self {
            schema,
            engine,
            small,
            grams,
            templates: BTreeMap::new(),
            places: names.map(|(at, t)| (folded(&t.table.name), at)).collect(),
        }
    }

    /// Learns how a table's columns would be defined. What cannot be is an error with the planner's
    /// words.
    pub fn learn(&mut self, table: usize, choice: &Choice) -> Result<(), Refusal> {
        let columns = self.defined(table, choice, Keys::Without)?;
        self.keep(table, columns);
        Ok(())
    }

    /// The same with the table's foreign keys, for which the others have to be known.
    pub fn learn_keys(&mut self, table: usize, choice: &Choice) -> Result<(), Refusal> {
        let columns = self.defined(table, choice, Keys::With)?;
        self.keep(table, columns);
        Ok(())
    }

    fn keep(&mut self, table: usize, columns: Vec<NewColumn>) {
        let described = &self.schema.tables[table].table;
        for column in columns {
            let place = described.columns.iter().position(|c| c.name == column.name);
            if let Some(place) = place {
                self.templates.insert((table, place), column);
            }
        }
    }

    /// Whether a table can be defined so.
    pub fn definition(&self, table: usize, choice: &Choice) -> Result<(), Refusal> {
        self.defined(table, choice, Keys::With).map(|_| ())
    }

    fn defined(
        &self,
        table: usize,
        choice: &Choice,
        keys: Keys,
    ) -> Result<Vec<NewColumn>, Refusal> {
        let wanted = choice.range((table, 0)..(table + 1, 0)).count();
        if wanted == 0 {
            return Ok(Vec::new());
        }
        let described = &self.schema.tables[table];
        let sql = match keys {
            Keys::With => described.definition.clone(),
            Keys::Without => split_foreign_keys(&described.definition).0,
        };
        let mut view = self.view(choice);
        view.hidden = Some(table);
        let policy = self.policy(choice);
        let planned = self.plan(&sql, &self.schema.database, &view, &policy);
        match planned.map(|plan| plan.action) {
            Some(Action::Define(ddl)) if ddl.new_columns.len() >= wanted => {
                // A column joins the group of what it refers to by itself. Tables that are there
                // already are changed one by one, so the group has to be said.
                let joins = |column: &NewColumn| {
                    let at = self.schema.find(&described.table.name, &column.name);
                    let chosen = at.and_then(|at| choice.get(&at));
                    chosen.is_some_and(|chosen| chosen.join == column.capabilities.join)
                };
                match ddl.new_columns.iter().all(joins) {
                    true => Ok(ddl.new_columns),
                    false => Err(Refusal::new(&errors::OTHER_KEY, "")),
                }
            }
            Some(Action::Refuse(refusal)) => Err(refusal),
            _ => Err(Refusal::new(&errors::DEFINITION, "")),
        }
    }

    /// What becomes of a statement.
    pub fn judge(&self, shape: &Shape, choice: &Choice) -> Verdict {
        let view = self.view(choice);
        self.judge_in(shape, &view, &self.policy(choice))
    }

    /// The same with a view and a policy that are made once for many statements.
    pub fn judge_in(&self, shape: &Shape, view: &View<'_>, policy: &Policy) -> Verdict {
        let mut sql = shape.sql.clone();
        let mut least = 0;
        // constants that the engine computes are literals afterwards
        for _ in 0..3 {
            let Some(plan) = self.plan(&sql, &shape.database, view, policy) else {
                return Verdict::Unknown("it is several statements, or cannot be read");
            };
            let Action::Compute { computed } = &plan.action else {
                return self.verdict(&plan, least);
            };
            least = 3;
            let mut places: Vec<_> = computed.iter().map(|c| c.place).collect();
            places.sort_unstable();
            for (start, end) in places.into_iter().rev() {
                if !sql.is_char_boundary(start) || !sql.is_char_boundary(end) {
                    return Verdict::Unknown("its constants cannot be put in");
                }
                sql.replace_range(start..end, "''");
            }
        }
        Verdict::Unknown("its constants cannot be put in")
    }

    /// Names of tables that are not known yet. Asked before anything else.
    pub fn missing(&self, shape: &Shape) -> Vec<TableName> {
        let mut template = Template::default();
        let mut view = self.view(&Choice::new());
        view.asks = true;
        if template
            .read(shape.sql.as_bytes(), LexMode::default())
            .is_err()
        {
            return Vec::new();
        }
        let settings = self.settings(&shape.database);
        match plan(&Request {
            sql: shape.sql.as_bytes(),
            template: &template,
            settings: &settings,
            catalog: &view,
            policy: &Policy::default(),
        }) {
            Outcome::Need(names) => names,
            Outcome::Plan(_) => Vec::new(),
        }
    }

    fn settings(&self, database: &str) -> Settings {
        Settings {
            database: Some(database.to_owned()),
            default_collation: self.schema.collation.clone(),
            scratch: match self.engine {
                true => UseScratch::IfNeeded,
                false => UseScratch::Never,
            },
            ..Settings::usual(self.schema.family)
        }
    }

    fn plan(&self, sql: &str, database: &str, view: &View<'_>, policy: &Policy) -> Option<Plan> {
        let lex = LexMode::default();
        let mut template = Template::default();
        template.read(sql.as_bytes(), lex).ok()?;
        if template.multiple && !reads_program(sql.as_bytes(), lex) {
            return None;
        }
        let settings = self.settings(database);
        match plan(&Request {
            sql: sql.as_bytes(),
            template: &template,
            settings: &settings,
            catalog: view,
            policy,
        }) {
            Outcome::Plan(plan) => Some(*plan),
            Outcome::Need(_) => None,
        }
    }

    fn verdict(&self, plan: &Plan, least: u8) -> Verdict {
        let mut whole: Vec<String> = match &plan.action {
            Action::Refuse(refusal) => {
                return Verdict::Refused {
                    code: refusal.code(),
                    message: refusal.message(),
                };
            }
            Action::Finish(finish) => match narrows(&finish.text, true) {
                true => Vec::new(),
                false => self.large(plan.names.iter()),
            },
            Action::Update(update) if update.single_row.is_none() => {
                match narrows(&update.select, true) {
                    true => Vec::new(),
                    false => self.large(plan.names.iter()),
                }
            }
            Action::Delete(delete) => match narrows(&delete.select, true) {
                true => Vec::new(),
                false => self.large(plan.names.iter()),
            },
            Action::Scratch(scratch) => self.reads(scratch),
            // rows that an INSERT meets are looked for by their keys
            Action::ScratchWrite(write) => self.reads(&write.scratch),
            _ => Vec::new(),
        };
        whole.sort();
        whole.dedup();
        Verdict::Runs {
            tier: plan.tier().max(least),
            whole,
        }
    }

    fn reads(&self, scratch: &Scratch) -> Vec<String> {
        let reads = scratch.reads.iter();
        let wide = reads.filter(|read| !read.conditions.iter().any(|c| narrows(c, false)));
        let names: Vec<TableName> = wide
            .map(|read| TableName::new(&read.table.database, &read.table.name))
            .collect();
        self.large(names.iter())
    }

    /// Those of the tables that are not small.
    fn large<'n>(&self, names: impl Iterator<Item = &'n TableName>) -> Vec<String> {
        let known = names.filter_map(|name| {
            let is_here = name.database.eq_ignore_ascii_case(&self.schema.database);
            let at = self.places.get(&folded(&name.name)).filter(|_| is_here)?;
            Some(&self.schema.tables[*at])
        });
        let large = known.filter(|described: &&Described| described.rows > self.small);
        large.map(|d| d.table.name.clone()).collect()
    }

    /// The policy of a choice, with the names of tables and columns as they are.
    pub fn policy(&self, choice: &Choice) -> Policy {
        let mut sections: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for ((table, column), capabilities) in choice {
            let table = &self.schema.tables[*table].table;
            let section = sections.entry(format!("{}.{}", table.database, table.name));
            let name = table.columns[*column].name.clone();
            section.or_default().insert(name, capabilities.list());
        }
        Policy::parse(&sections).unwrap_or_default()
    }

    /// The tables as they would be.
    pub fn view(&self, choice: &Choice) -> View<'_> {
        let tables = self.schema.tables.iter().enumerate();
        View {
            schema: self.schema,
            places: &self.places,
            tables: tables.map(|(at, _)| self.table(at, choice)).collect(),
            hidden: None,
            asks: false,
        }
    }

    /// A view in which these tables are as another choice says.
    pub fn changed<'v>(
        &'v self,
        view: &View<'v>,
        tables: impl IntoIterator<Item = usize>,
        choice: &Choice,
    ) -> View<'v> {
        let mut view = view.clone();
        for table in tables {
            view.tables[table] = self.table(table, choice);
        }
        view
    }

    fn table(&self, at: usize, choice: &Choice) -> Arc<Table> {
        let plain = &self.schema.tables[at].table;
        let mut chosen = choice.range((at, 0)..(at + 1, 0)).peekable();
        if chosen.peek().is_none() {
            return Arc::clone(plain);
        }
        let mut table = Table::clone(plain);
        for ((_, column), capabilities) in chosen {
            if let Some(template) = self.templates.get(&(at, *column)) {
                table.table_id = Some((at as u64 + 1).to_be_bytes());
                let id = (*column as u16 + 1).to_be_bytes();
                self.protect(
                    &mut table.columns[*column],
                    template,
                    [id[0], id[1], 0, 0],
                    capabilities,
                );
            }
        }
        Arc::new(table)
    }

    fn protect(
        &self,
        column: &mut Column,
        template: &NewColumn,
        column_id: [u8; 4],
        capabilities: &Capabilities,
    ) {
        let names = PhysicalNames::new(&column.name, column_id, &template.sql_type, capabilities);
        column.sql_type = Some(template.sql_type);
        column.nullable = template.nullable;
        column.on_update = template.on_update;
        column.explicit_collation = template.explicit_collation;
        column.default = match &template.default {
            Some(literal) => Some(ColumnDefault::Literal(literal.clone())),
            None if template.nullable => Some(ColumnDefault::Literal(DefaultLiteral::Null)),
            None => None,
        };
        column.protection = Some(Protection {
            sql_type: template.sql_type,
            column_id,
            key_id: 1,
            suite: 1,
            cell_version: 1,
            capabilities: capabilities.clone(),
            names: match self.grams {
                true => names,
                false => names.without_grams(),
            },
            checks: template.checks.clone(),
            actions: template.actions,
            grams: GramForm::of(self.schema.family),
            whole: Whole::All(1),
        });
    }

    /// The definition that the planner made of a column.
    pub fn template(&self, at: At) -> Option<&NewColumn> {
        self.templates.get(&at)
    }

    /// Whether grams are kept.
    pub fn keeps_grams(&self) -> bool {
        self.grams
    }

    /// Whose server.
    pub fn family(&self) -> Family {
        self.schema.family
    }
}

/// Tables as they would be.
#[derive(Clone)]
pub struct View<'s> {
    schema: &'s Schema,
    places: &'s HashMap<String, usize>,
    tables: Vec<Arc<Table>>,
    /// The one that is about to be defined.
    hidden: Option<usize>,
    /// Whether it says that it does not know a table.
    asks: bool,
}

impl Catalog for View<'_> {
    fn table(&self, database: &str, name: &str) -> Known {
        if database.eq_ignore_ascii_case(&self.schema.database) {
            if name == COLLATION {
                return Known::Table(Arc::new(Table::named(database, &self.schema.collation)));
            }
            return match self.places.get(&folded(name)) {
                Some(at) if self.hidden != Some(*at) => Known::Table(Arc::clone(&self.tables[*at])),
                _ => Known::Absent,
            };
        }
        match self.schema.outside.get(&TableName::new(database, name)) {
            Some(Some(table)) => Known::Table(Arc::clone(table)),
            Some(None) => Known::Absent,
            None if self.asks => Known::Unknown,
            None => Known::Absent,
        }
    }
}
