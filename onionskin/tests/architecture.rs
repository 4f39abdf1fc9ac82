//! The direction of dependencies between our crates, and what none of them may depend on.
//!
//! The table below is the layout in ARCHITECTURE.md as data. A new crate, or a new edge between
//! crates, has to be entered here, which is the moment to ask whether it belongs there.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Every crate of ours with those of ours that it names in its Cargo.toml. The program wires them
/// all together.
const LAYOUT: &[(&str, &[&str])] = &[
    ("sm4", &[]),
    ("wire", &[]),
    ("functions", &[]),
    ("value", &[]),
    ("crypt", &["sm4"]),
    ("keys", &["crypt"]),
    ("aws", &[]),
    ("providers", &["aws", "keys", "crypt"]),
    ("audit", &["crypt"]),
    ("schema", &["value"]),
    ("plan", &["schema", "value"]),
    ("physical", &["plan", "schema", "keys", "crypt", "value"]),
    ("rowstream", &["wire", "schema", "keys"]),
    (
        "proxy",
        &[
            "physical",
            "plan",
            "wire",
            "schema",
            "keys",
            "crypt",
            "value",
            "functions",
            "audit",
        ],
    ),
    (
        "migrate",
        &["rowstream", "physical", "schema", "keys", "crypt", "value"],
    ),
    ("backup", &["rowstream", "keys", "crypt"]),
    ("objects", &["aws", "backup"]),
    (
        "assess",
        &[
            "backup",
            "plan",
            "rowstream",
            "physical",
            "schema",
            "crypt",
            "value",
        ],
    ),
    ("dump", &["rowstream", "schema", "value"]),
    ("bench", &[]),
    ("testkit", &["rowstream", "keys"]),
];

fn metadata() -> Metadata {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    // The graph is known from Cargo.lock; no test needs the network. Crates for other systems have
    // never been downloaded.
    let platform = format!(
        "--filter-platform={}-unknown-linux-gnu",
        std::env::consts::ARCH
    );
    MetadataCommand::new()
        .manifest_path(manifest)
        .other_options(vec!["--offline".into(), "--locked".into(), platform])
        .exec()
        .expect("cargo metadata runs")
}

fn short(name: &str) -> &str {
    name.strip_prefix("onionskin-").unwrap_or(name)
}

fn ours(metadata: &Metadata) -> Vec<&Package> {
    metadata.workspace_packages()
}

/// Our crates that `package` names as a dependency of its code (not of its tests).
fn direct<'a>(package: &'a Package, members: &BTreeSet<&str>) -> BTreeSet<&'a str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != DependencyKind::Development)
        .map(|dependency| dependency.name.as_str())
        .filter(|name| members.contains(name))
        .map(short)
        .collect()
}

fn edges(metadata: &Metadata) -> BTreeMap<&str, BTreeSet<&str>> {
    let members: BTreeSet<&str> = ours(metadata)
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    ours(metadata)
        .iter()
        .map(|package| (short(package.name.as_str()), direct(package, &members)))
        .collect()
}

fn reachable<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(next) = open.pop() {
        if let Some((name, below)) = edges.get_key_value(next)
            && found.insert(*name)
        {
            open.extend(below);
        }
    }
    found
}

#[test]
fn every_crate_uses_what_the_layout_says() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    for (name, uses) in edges(&metadata) {
        if name == "onionskin" {
            continue;
        }
        let Some((_, said)) = LAYOUT.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("{name} is not in the layout"));
            continue;
        };
        let said: BTreeSet<&str> = said.iter().copied().collect();
        if uses != said {
            wrong.push(format!("{name} uses {uses:?}; the layout says {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "not as the layout says: {wrong:#?}");
}

#[test]
fn the_crates_of_the_layout_exist() {
    let metadata = metadata();
    let edges = edges(&metadata);
    let missing: Vec<_> = LAYOUT
        .iter()
        .filter(|(name, _)| !edges.contains_key(name))
        .collect();
    assert!(
        missing.is_empty(),
        "in the layout, but not in the workspace: {missing:?}"
    );
}

#[test]
fn plan_never_reaches_keys_ciphers_or_the_network() {
    let metadata = metadata();
    let reached = reachable(&edges(&metadata), "plan");
    for forbidden in ["crypt", "keys", "wire", "sm4", "proxy"] {
        assert!(!reached.contains(forbidden), "plan reaches {forbidden}");
    }
}

#[test]
fn only_plan_imports_the_sql_parser() {
    let metadata = metadata();
    for package in ours(&metadata) {
        let imports = package
            .dependencies
            .iter()
            .any(|dependency| dependency.name == "sqlparser");
        assert_eq!(
            imports,
            package.name.as_str() == "onionskin-plan",
            "{}",
            package.name
        );
    }
}

#[test]
fn no_async_runtime_is_in_the_program() {
    let metadata = metadata();
    for package in ours(&metadata) {
        for dependency in &package.dependencies {
            let runtime = ["tokio", "async-std", "smol", "mio", "futures"]
                .contains(&dependency.name.as_str());
            assert!(!runtime, "{} uses {}", package.name, dependency.name);
        }
    }
}

#[test]
fn every_crate_inherits_the_lints() {
    // `unsafe_code = "deny"` and `missing_docs` stand in the workspace's table and count only where
    // it is inherited.
    for package in ours(&metadata()) {
        let manifest = std::fs::read_to_string(&package.manifest_path).expect("its Cargo.toml");
        let inherits = manifest
            .replace(' ', "")
            .contains("[lints]\nworkspace=true");
        assert!(
            inherits,
            "{} does not inherit the workspace's lints",
            package.name
        );
    }
}

/// Every package that the program is built from: reached from `onionskin` without dependencies of
/// tests.
fn built_from(metadata: &Metadata) -> Vec<&Package> {
    let resolve = metadata.resolve.as_ref().expect("a resolved graph");
    let program = ours(metadata)
        .into_iter()
        .find(|package| package.name.as_str() == "onionskin")
        .expect("the program");
    let mut found = BTreeSet::new();
    let mut open = vec![&program.id];
    while let Some(id) = open.pop() {
        if !found.insert(id) {
            continue;
        }
        let node = resolve.nodes.iter().find(|node| node.id == *id);
        for dependency in &node.expect("a node for each package").deps {
            let is_built = dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind != DependencyKind::Development);
            if is_built {
                open.push(&dependency.pkg);
            }
        }
    }
    found.into_iter().map(|id| &metadata[id]).collect()
}

// What `cargo deny check licenses sources` would say, without its download of advisories.
#[test]
fn the_program_is_built_from_permissive_crates_of_the_registry() {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join("deny.toml"),
    )
    .expect("deny.toml");
    let rules: toml::Table = text.parse().expect("deny.toml is TOML");
    let allowed: Vec<spdx::Licensee> = rules["licenses"]["allow"]
        .as_array()
        .expect("a list of licences")
        .iter()
        .map(|name| {
            spdx::Licensee::parse(name.as_str().expect("a string")).expect("an SPDX identifier")
        })
        .collect();
    let metadata = metadata();
    let members = ours(&metadata);
    let mut wrong = Vec::new();
    for package in built_from(&metadata) {
        let licence = package.license.as_deref().unwrap_or_default();
        let permissive = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX)
            .is_ok_and(|e| e.evaluate(|needed| allowed.iter().any(|l| l.satisfies(needed))));
        if !permissive {
            wrong.push(format!("{} is under {licence:?}", package.name));
        }
        let from_registry = package
            .source
            .as_ref()
            .is_some_and(|source| source.repr.starts_with("registry+"));
        if !from_registry && !members.iter().any(|member| member.id == package.id) {
            wrong.push(format!("{} is not from the registry", package.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
