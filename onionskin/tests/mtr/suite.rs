//! The two servers' test files: where they are, and which of them are run.

use onionskin_testkit::{Kind, checkout};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The test files of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Suite {
    #[default]
    MariaDb,
    MySql,
}

/// Names that both servers have, or at least one; `*` stands for whatever follows.
const FILES: &str = "select join join_outer group_by order_by distinct union subselect insert insert_select insert_update update \
    delete replace multi_update func_* null case having limit type_* ctype_utf8 key range derived view cte_* win";

/// Files under which MySQL has the matter of `select`, `range`, `subselect`, `cte_*` and `win`.
const OF_MYSQL: &str =
    "select_none range_none subquery_none with_recursive with_non_recursive window_functions";

impl Suite {
    pub fn kind(self) -> Kind {
        match self {
            Suite::MariaDb => Kind::MariaDb,
            Suite::MySql => Kind::MySql,
        }
    }

    /// The script that fetches the files, which is also the name of the Makefile's target and of
    /// the folder of the results.
    pub fn name(self) -> &'static str {
        match self {
            Suite::MariaDb => "mariadb-tests",
            Suite::MySql => "mysql-tests",
        }
    }

    /// The folder that holds `include` and the files.
    pub fn home(self) -> PathBuf {
        let target = checkout().join("target");
        let places = match self {
            Suite::MariaDb => vec![
                target.join("mariadb-test/usr/share/mysql/mysql-test"),
                PathBuf::from("/usr/share/mysql/mysql-test"),
            ],
            Suite::MySql => vec![target.join("mysql-test/usr/lib/mysql-test")],
        };
        let found = places.into_iter().find(|p| p.join(self.files()).exists());
        found.unwrap_or_else(|| {
            let name = self.name();
            panic!("the test files are not there; run scripts/{name}.sh")
        })
    }

    /// The folder of the files, within the home.
    pub fn files(self) -> &'static str {
        match self {
            Suite::MariaDb => "main",
            Suite::MySql => "t",
        }
    }

    /// Where the results go.
    pub fn results(self) -> PathBuf {
        checkout().join("target").join(self.name())
    }

    /// All files that are run.
    pub fn all(self) -> Vec<String> {
        match self {
            Suite::MariaDb => self.matching(FILES),
            Suite::MySql => self.matching(&format!("{FILES} {OF_MYSQL}")),
        }
    }

    /// The files that the environment asks for, or all.
    pub fn wanted(self) -> Vec<String> {
        let Ok(wanted) = std::env::var("ONIONSKIN_MTR") else {
            return self.all();
        };
        let names = self.matching(&wanted);
        assert!(!names.is_empty(), "no file is called {wanted}");
        names
    }

    /// The files that patterns name, in order.
    fn matching(self, wanted: &str) -> Vec<String> {
        let patterns: Vec<&str> = wanted.split([' ', ',']).filter(|p| !p.is_empty()).collect();
        let folder = self.home().join(self.files());
        let entries = std::fs::read_dir(folder).expect("the folder of the files");
        let paths = entries.map(|e| e.expect("an entry").path());
        let mut names: Vec<String> = paths
            .filter(|path| path.extension().is_some_and(|e| e == "test"))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|name| patterns.iter().any(|pattern| matches(pattern, name)))
            .collect();
        names.sort();
        names
    }

    /// The comment in docs/sql.md before the counts.
    pub fn mark(self) -> String {
        format!(
            "<!-- made of {} by onionskin/tests/mtr.rs -->\n",
            self.name()
        )
    }

    /// Path of a file of the suite.
    pub fn path(self, home: &Path, name: &str) -> PathBuf {
        home.join(self.files()).join(format!("{name}.test"))
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}
