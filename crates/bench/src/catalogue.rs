//! The scenarios as data: `scenarios.toml`, read and checked.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    driver::{Statements, WORKLOADS},
    error::BenchError,
    server::Family,
};

/// The description that comes with the program.
pub const BUILT_IN: &str = include_str!("../scenarios.toml");

/// Around the world.
const MAX_ROUND_TRIP_MS: f64 = 1000.0;

/// All scenarios, in the order in which they run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// `[[scenario]]`
    #[serde(rename = "scenario")]
    pub scenarios: Vec<Spec>,
}

/// How large a measurement is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For the project's own tests: proves that it works, says nothing about speed.
    Tiny,
    /// All scenarios within ten minutes.
    Quick,
    /// As long as it takes.
    Full,
}

impl Size {
    /// In reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A stream is sealed and opened.
    Backup,
    /// Workloads on tables.
    Load,
    /// A table is changed under a load.
    TableChange,
    /// Encryption functions in statements.
    Functions,
}

/// One scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// On the command line.
    pub name: String,
    /// Headline.
    pub title: String,
    /// What it answers.
    pub question: String,
    /// How it is done.
    pub method: String,
    /// What is done.
    pub kind: Kind,
    /// The variant that others are compared with.
    pub baseline: String,
    /// Whether it runs when no scenario is named.
    #[serde(default = "yes")]
    pub by_default: bool,
    /// Attach a replica to every server.
    #[serde(default)]
    pub replica: bool,
    /// The tables grow from round to round, and all rounds of a comparison come before the next
    /// comparison. Each variant has a server of its own, and every run begins when all servers have
    /// purged what earlier runs changed: no variant pays for another.
    #[serde(default)]
    pub grows: bool,
    /// Where a canary is planted and searched before and after each run.
    #[serde(default)]
    pub canary: Option<Canary>,
    /// For all variants.
    #[serde(default)]
    pub mariadb: Setting,
    /// For all variants.
    #[serde(default)]
    pub mysql: Setting,
    /// `--tiny`
    pub tiny: Extent,
    /// `--quick`
    pub quick: Extent,
    /// `--full`
    pub full: Extent,
    /// What is compared.
    #[serde(rename = "variant")]
    pub variants: Vec<VariantSpec>,
}

/// Files in which a planted text shows whether encryption is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Canary {
    /// The binary log.
    Binlog,
    /// A table's own file.
    Tablespace,
}

fn yes() -> bool {
    true
}

/// Numbers of a scenario for one [`Size`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// How often everything is measured.
    pub rounds: usize,
    /// Of one measurement.
    #[serde(default)]
    pub seconds: f64,
    /// Before the first measurement of each variant in each group.
    #[serde(default)]
    pub warmup: f64,
    /// Tables.
    #[serde(default = "one")]
    pub tables: u32,
    /// Rows in each in the beginning.
    #[serde(default)]
    pub rows: u32,
    /// Sessions at once.
    #[serde(default)]
    pub threads: Vec<u32>,
    /// By sysbench's names, or ours.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Sizes of the buffer pool.
    #[serde(default)]
    pub pool_mib: Vec<u32>,
    /// How far the server is, in milliseconds of round trip; 0 is without a link. None: the same,
    /// and nothing is said about it.
    #[serde(default)]
    pub round_trips_ms: Vec<f64>,
    /// How statements travel. None: prepared, and nothing is said about it.
    #[serde(default)]
    pub statements: Vec<Statements>,
    /// Changes a second during a table change.
    #[serde(default)]
    pub rates: Vec<u32>,
    /// Size of a backup's input.
    #[serde(default)]
    pub mib: u64,
    /// Transactions of `oltp_insert` instead of a time.
    #[serde(default)]
    pub insert_events: u64,
    /// Free space that is needed, in MiB.
    pub disk_mib: u64,
}

fn one() -> u32 {
    1
}

/// Settings of one family of servers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Of the server's command line.
    #[serde(default)]
    pub options: Vec<String>,
    /// Statements after its start.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Statements with the first cell that they must answer with, asked before and after each run.
    #[serde(default)]
    pub status: Vec<(String, String)>,
    /// Why this family has no such variant.
    #[serde(default)]
    pub unavailable: Option<String>,
}

/// Which way a load takes to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// Straight.
    #[default]
    Direct,
    /// Through HAProxy in TCP mode.
    Haproxy,
    /// Through `onionskin serve`.
    Onionskin,
    /// Through somebody else's proxy, named with `--peer`.
    Peer,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantSpec {
    /// Unique in the scenario.
    pub name: String,
    /// For people.
    pub label: String,
    /// See [`Path`].
    #[serde(default)]
    pub path: Path,
    /// What `onionskin.toml` protects: lines of a `[protect."DATABASE.*"]` table.
    #[serde(default)]
    pub protect: Option<String>,
    /// Give the proxy a scratch engine.
    #[serde(default)]
    pub scratch: bool,
    /// Columns that the server must have then, and those that it must not have.
    #[serde(default)]
    pub has_columns: Vec<String>,
    /// See `has_columns`.
    #[serde(default)]
    pub lacks_columns: Vec<String>,
    /// Set up keys for encryption at rest.
    #[serde(default)]
    pub keys: bool,
    /// Whether the canary must be found in the files.
    #[serde(default)]
    pub canary_found: Option<bool>,
    /// Programs without which there is no such variant; `onionskin NAME` asks for a command of
    /// ours.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Arguments of a command of ours that runs beside the server and writes into `{folder}`; the
    /// server is then the variant's own.
    #[serde(default)]
    pub beside: Option<String>,
    /// Backup: a shell command from `{in}` to `{out}`.
    #[serde(default)]
    pub seal: Option<String>,
    /// Backup: the way back.
    #[serde(default)]
    pub open: Option<String>,
    /// Table change: a statement or a command.
    #[serde(default)]
    pub change: Option<String>,
    /// Functions: `block_encryption_mode`, or `plain`, or `onionskin`.
    #[serde(default)]
    pub mode: Option<String>,
    /// MariaDB's own.
    #[serde(default)]
    pub mariadb: Setting,
    /// MySQL's own.
    #[serde(default)]
    pub mysql: Setting,
}

impl Catalogue {
    /// Reads and checks.
    pub fn parse(text: &str) -> Result<Self, BenchError> {
        let catalogue: Self =
            toml::from_str(text).map_err(|error| BenchError::Catalogue(error.to_string()))?;
        catalogue.check().map_err(BenchError::Catalogue)?;
        Ok(catalogue)
    }

    fn check(&self) -> Result<(), String> {
        let mut names = BTreeMap::new();
        for spec in &self.scenarios {
            if names.insert(&spec.name, ()).is_some() {
                return Err(format!("{} is there twice", spec.name));
            }
            let variants: Vec<&str> = spec.variants.iter().map(|v| v.name.as_str()).collect();
            if !variants.contains(&spec.baseline.as_str()) {
                return Err(format!("{}: no variant {}", spec.name, spec.baseline));
            }
            for (n, name) in variants.iter().enumerate() {
                if variants[..n].contains(name) {
                    return Err(format!("{}: {name} is there twice", spec.name));
                }
            }
            for extent in [&spec.tiny, &spec.quick, &spec.full] {
                if extent.rounds == 0 {
                    return Err(format!("{}: no rounds", spec.name));
                }
                if let Some(unknown) = extent
                    .workloads
                    .iter()
                    .find(|name| !WORKLOADS.contains(&name.as_str()))
                {
                    return Err(format!("{}: unknown workload {unknown}", spec.name));
                }
                if let Some(wrong) = extent
                    .round_trips_ms
                    .iter()
                    .find(|ms| !(0.0..=MAX_ROUND_TRIP_MS).contains(*ms))
                {
                    return Err(format!(
                        "{}: a round trip of {wrong} ms is not between 0 and {MAX_ROUND_TRIP_MS}",
                        spec.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// Those that were asked for, in the catalogue's order; all by default.
    pub fn choose(&self, names: &[String]) -> Result<Vec<&Spec>, BenchError> {
        if let Some(name) = names
            .iter()
            .find(|name| self.scenarios.iter().all(|spec| spec.name != **name))
        {
            let known: Vec<&str> = self
                .scenarios
                .iter()
                .map(|spec| spec.name.as_str())
                .collect();
            return Err(BenchError::UnknownScenario {
                name: name.clone(),
                known: known.join(", "),
            });
        }
        Ok(self
            .scenarios
            .iter()
            .filter(|spec| match names.is_empty() {
                true => spec.by_default,
                false => names.contains(&spec.name),
            })
            .collect())
    }
}

impl Spec {
    /// The numbers for a size.
    pub fn extent(&self, size: Size) -> &Extent {
        match size {
            Size::Tiny => &self.tiny,
            Size::Quick => &self.quick,
            Size::Full => &self.full,
        }
    }

    /// The settings of a family.
    pub fn setting(&self, family: Family) -> &Setting {
        match family {
            Family::MariaDb => &self.mariadb,
            Family::MySql => &self.mysql,
        }
    }
}

impl VariantSpec {
    /// The settings of a family.
    pub fn setting(&self, family: Family) -> &Setting {
        match family {
            Family::MariaDb => &self.mariadb,
            Family::MySql => &self.mysql,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_description_is_sound() {
        let catalogue = Catalogue::parse(BUILT_IN).expect("sound");
        let names: Vec<_> = catalogue
            .scenarios
            .iter()
            .map(|s| s.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "backup",
                "proxy",
                "network",
                "capabilities",
                "binlog",
                "tde",
                "table-change",
                "functions",
                "large"
            ]
        );
        assert_eq!(catalogue.choose(&[]).expect("all").len(), 8);
        let chosen = catalogue
            .choose(&["tde".into(), "backup".into()])
            .expect("known");
        assert_eq!(chosen[0].name, "backup");
        let error = catalogue.choose(&["tee".into()]).expect_err("unknown");
        assert!(error.to_string().contains("tee") && error.to_string().contains("tde"));
        // What compares settings of the server proves them, by status and by effect.
        for spec in &catalogue.scenarios {
            for variant in &spec.variants {
                if spec.canary.is_some() && variant.needs.is_empty() {
                    assert!(variant.canary_found.is_some(), "{}", variant.name);
                    for family in [Family::MariaDb, Family::MySql] {
                        assert!(
                            !variant.setting(family).status.is_empty(),
                            "{}",
                            variant.name
                        );
                    }
                }
                assert_eq!(
                    variant.protect.is_some(),
                    !variant.has_columns.is_empty(),
                    "{}: {}",
                    spec.name,
                    variant.name
                );
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let change = |from: &str, to: &str| {
            assert!(BUILT_IN.contains(from), "{from}");
            Catalogue::parse(&BUILT_IN.replacen(from, to, 1))
                .expect_err(to)
                .to_string()
        };
        assert!(change("name = \"backup\"", "name = \"tde\"").contains("tde is there twice"));
        assert!(change("oltp_insert", "oltp_inset").contains("oltp_inset"));
        assert!(change("baseline = ", "baselyne = ").contains("baselyne"));
        let far = change("round_trips_ms = [0.5", "round_trips_ms = [-0.5");
        assert!(far.contains("-0.5 ms is not between 0 and"), "{far}");
        assert!(change("\"text\"", "\"texts\"").contains("texts"));
    }
}
