//! Published figures for the same questions, measured by others on other machines, to stand next to
//! ours.

/// A table of figures.
pub struct Reference {
    /// The scenario that asks the same.
    pub scenario: &'static str,
    /// What was measured, and on what.
    pub title: &'static str,
    /// Heads of columns.
    pub head: &'static [&'static str],
    /// Rows.
    pub rows: &'static [&'static [&'static str]],
}

/// All of them.
pub const REFERENCES: &[Reference] = &[
    Reference {
        scenario: "backup",
        title: "56 GB data directory, physical backup | zstd -T4 | openssl enc",
        head: &["", "none", "aes-128-cbc", "sm4-cbc"],
        rows: &[
            &["backup, s", "172", "181 (+5.2 %)", "273 (+58.7 %)"],
            &["restore, s", "269", "270 (+0.4 %)", "370 (+37.6 %)"],
            &["CPU of the backup, s", "428", "455", "556"],
        ],
    },
    Reference {
        scenario: "backup",
        title: "Two-core Xeon, 813 MB stream, mariadb-backup | zstd -T2 | openssl 3.0",
        head: &["", "none", "aes-128-cbc", "sm4-cbc"],
        rows: &[&["backup, s", "3.7", "3.9", "6.2 (+69 %)"]],
    },
    Reference {
        scenario: "proxy",
        title: "CryptDB and a plain proxy, sysbench inserts, 5 tables, 10 cores",
        head: &["system", "rows a table", "threads", "result"],
        rows: &[
            &[
                "plain Lua mysql-proxy",
                "10,000",
                "24",
                "1,859 TPS, 95 % 33 ms",
            ],
            &["CryptDB, 8 GB", "10,000", "20", "14.2 TPS, memory 93 %"],
            &[
                "CryptDB, logging off",
                "10,000",
                "40",
                "19.7 TPS, once hung",
            ],
            &["CryptDB, 16 GB", "10,000", "40", "112.5 TPS"],
            &[
                "CryptDB",
                "100,000",
                "40",
                "error after 32,417 rows a table",
            ],
            &["CryptDB, mixed load", "10,000", "any", "error"],
        ],
    },
    Reference {
        scenario: "proxy",
        title: "Practical-CryptDB, sysbench inserts",
        head: &[
            "change",
            "hardware",
            "rows a table",
            "threads",
            "TPS",
            "memory",
        ],
        rows: &[
            &[
                "first run",
                "10 cores 16 GB",
                "10,000",
                "20",
                "16.7",
                "to 24 %",
            ],
            &[
                "memory reclaimed",
                "16 cores 32 GB",
                "100,000",
                "20",
                "54.3",
                "3.1 %",
            ],
            &[
                "thread pool",
                "24 cores 64 GB",
                "1,000,000",
                "24",
                "71.2",
                "21.7 %",
            ],
            &[
                "faster order keys",
                "24 cores 64 GB",
                "10,000",
                "24",
                "111.7",
                "0.2 %",
            ],
            &[
                "",
                "24 cores 64 GB",
                "10,000,000",
                "24",
                "3.9 M rows in 6 days",
                "94 %",
            ],
        ],
    },
    Reference {
        scenario: "proxy",
        title: "ShardingSphere-Proxy 5.1.0, two of four columns with AES, two cores, of direct throughput",
        head: &["inserts", "point selects", "mixed load"],
        rows: &[&["0.27", "0.15", "0.17"]],
    },
    Reference {
        scenario: "large",
        title: "Practical-CryptDB, 1,000,000 rows a table, 24 threads, 24 cores 64 GB",
        head: &["change", "TPS", "duration"],
        rows: &[
            &["first", "59.9", "23.2 h"],
            &["thread pool", "71.2", "19.5 h"],
        ],
    },
    Reference {
        scenario: "binlog",
        title: "MySQL 8.0, source and replica, oltp_read_write, 10 × 100,000 rows, 4 threads",
        head: &["", "off", "on", "change"],
        rows: &[
            &["TPS", "431.65", "335.84", "−22.2 %"],
            &["QPS", "8,632.97", "6,716.74", "−22.2 %"],
            &["mean latency, ms", "9.26", "11.89", "+28.4 %"],
            &["latency 95 %, ms", "15.27", "19.29", "+26.3 %"],
        ],
    },
    Reference {
        scenario: "binlog",
        title: "MySQL 9.7 with AES instructions, two cores, three interleaved pairs",
        head: &["on / off"],
        rows: &[&["0.97, 1.01, 0.97"]],
    },
    Reference {
        scenario: "tde",
        title: "Managed MySQL 8.0.28, 128 tables, 41 GB",
        head: &["threads", "throughput", "CPU"],
        rows: &[
            &["few", "up to −20 %", "+0.06 to +4.22 %"],
            &["many", "less than −5 %", ""],
        ],
    },
    Reference {
        scenario: "table-change",
        title: "Two cores, MariaDB 10.11, rebuild of 500,000 rows, 8 writers",
        head: &["row changes/s", "native, s", "pt-osc, s", "gh-ost, s"],
        rows: &[
            &["0", "0.9", "2.5", "5.6"],
            &["3,000", "0.9", "2.8", "7.3"],
            &["6,000", "2.3", "3.2", "29.2"],
        ],
    },
    Reference {
        scenario: "table-change",
        title: "gh-ost under load",
        head: &["write QPS", "seconds"],
        rows: &[
            &["2,400", "73"],
            &["2,700", "128"],
            &["3,000", "does not end"],
        ],
    },
];

/// Those of a scenario.
pub fn references(scenario: &str) -> impl Iterator<Item = &'static Reference> {
    REFERENCES
        .iter()
        .filter(move |reference| reference.scenario == scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_rectangular_and_belong_to_scenarios() {
        let catalogue =
            crate::catalogue::Catalogue::parse(crate::catalogue::BUILT_IN).expect("sound");
        for reference in REFERENCES {
            assert!(
                catalogue
                    .scenarios
                    .iter()
                    .any(|s| s.name == reference.scenario),
                "{}",
                reference.scenario
            );
            for row in reference.rows {
                assert_eq!(row.len(), reference.head.len(), "{}", reference.title);
            }
        }
    }
}
