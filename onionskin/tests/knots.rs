//! Files of a crate that import each other, directly or by way of others: a knot. Whoever wants to
//! understand one of them has to read them all. Here is how large the largest knot of each crate
//! is; it may shrink.
//!
//! Counted are paths that begin with `crate`, `super`, `self` or a submodule's name, in code that
//! is no test. A name that a file re-exports belongs to the file that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// Files in the largest knot of each crate. 1: there is none.
const LARGEST: &[(&str, usize)] = &[
    ("sm4", 6),
    ("wire", 3),
    ("value", 8),
    ("crypt", 3),
    ("functions", 1),
    ("keys", 1),
    ("audit", 1),
    ("providers", 1),
    ("aws", 1),
    ("schema", 12),
    ("plan", 9),
    ("physical", 1),
    ("rowstream", 4),
    ("proxy", 7),
    ("migrate", 2),
    ("backup", 2),
    ("objects", 1),
    ("assess", 1),
    ("dump", 1),
    ("bench", 2),
    ("testkit", 2),
];

/// A module, by the names on its path from the crate's root.
type Module = Vec<String>;

/// What a file says of others.
#[derive(Default)]
struct Said {
    /// Paths as they stand in the code.
    paths: Vec<Vec<String>>,
    /// Names that it exports for others: the name, and the path behind it.
    exports: BTreeMap<String, Vec<String>>,
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        let inner = attribute.meta.require_list().map(|l| l.tokens.to_string());
        is_cfg && inner.is_ok_and(|text| text == "test")
    })
}

fn leaves(tree: &UseTree, before: &[String], found: &mut Vec<(String, Vec<String>)>) {
    let with = |name: String| [before, &[name]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(path.ident.to_string()), found),
        UseTree::Group(group) => group.items.iter().for_each(|t| leaves(t, before, found)),
        UseTree::Name(name) if name.ident == "self" => {
            let own = before.last().cloned().unwrap_or_default();
            found.push((own, before.to_vec()));
        }
        UseTree::Name(name) => found.push((name.ident.to_string(), with(name.ident.to_string()))),
        UseTree::Rename(name) => {
            found.push((name.rename.to_string(), with(name.ident.to_string())));
        }
        UseTree::Glob(_) => found.push((String::new(), before.to_vec())),
    }
}

impl<'ast> Visit<'ast> for Said {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if is_test(attributes) {
            return;
        }
        if let Item::Use(item) = item {
            let mut found = Vec::new();
            leaves(&item.tree, &[], &mut found);
            let is_export = !matches!(item.vis, Visibility::Inherited);
            for (name, path) in found {
                match is_export {
                    true => drop(self.exports.insert(name, path)),
                    false => self.paths.push(path),
                }
            }
        }
        visit::visit_item(self, item);
    }

    /// `pub(crate)` says who may use the file's own, and uses nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|s| s.ident.to_string());
        self.paths.push(names.collect());
        visit::visit_path(self, path);
    }
}

/// The files of a crate, by module.
fn files(root: &Path, folder: &Path, found: &mut BTreeMap<Module, PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the crate") {
        let path = entry.expect("a file of the crate").path();
        if path.is_dir() {
            files(root, &path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let inside = path
                .strip_prefix(root)
                .expect("below the root")
                .with_extension("");
            let mut module: Module = inside.iter().map(|n| n.to_string_lossy().into()).collect();
            let last = module.last().map(String::as_str);
            if matches!(last, Some("mod" | "lib" | "main")) {
                module.pop();
            }
            found.insert(module, path);
        }
    }
}

/// A path from the crate's root; `None` if it leads out of the crate.
fn absolute(path: &[String], here: &Module, said: &BTreeMap<Module, Said>) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([here, rest].concat()),
        "super" => {
            let mut above = here.clone();
            above.pop();
            let mut rest = rest;
            while let Some((next, behind)) = rest.split_first().filter(|(n, _)| *n == "super") {
                let _ = next;
                above.pop();
                rest = behind;
            }
            Some([&above, rest].concat())
        }
        name => {
            let below = [here.as_slice(), &[name.to_owned()]].concat();
            said.contains_key(&below).then(|| [here, path].concat())
        }
    }
}

/// The module that has what a path leads to.
fn owner(path: &[String], said: &BTreeMap<Module, Said>, depth: usize) -> Option<Module> {
    let length = (0..=path.len())
        .rev()
        .find(|n| said.contains_key(&path[..*n]))?;
    let module = path[..length].to_vec();
    let export = path
        .get(length)
        .and_then(|name| said[&module].exports.get(name));
    if let Some(export) = export
        && let Some(target) = absolute(export, &module, said)
        && target != path
        && depth < 8
    {
        return owner(&[&target, &path[length + 1..]].concat(), said, depth + 1);
    }
    Some(module)
}

/// The modules of the largest knot.
fn largest(root: &Path) -> Vec<String> {
    let mut paths = BTreeMap::new();
    files(root, root, &mut paths);
    let mut said = BTreeMap::new();
    for (module, path) in &paths {
        let text = fs::read_to_string(path).expect("a file of the crate");
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut here = Said::default();
        here.visit_file(&file);
        said.insert(module.clone(), here);
    }
    let uses = |module: &Module| -> BTreeSet<Module> {
        let paths = said[module].paths.iter();
        let targets = paths.filter_map(|path| absolute(path, module, &said));
        let owners = targets.filter_map(|path| owner(&path, &said, 0));
        owners.filter(|owner| owner != module).collect()
    };
    let edges: BTreeMap<&Module, BTreeSet<Module>> = said.keys().map(|m| (m, uses(m))).collect();
    let reach = |from: &Module| -> BTreeSet<Module> {
        let mut found = BTreeSet::new();
        let mut open: Vec<Module> = edges[from].iter().cloned().collect();
        while let Some(next) = open.pop() {
            if found.insert(next.clone()) {
                open.extend(edges[&next].iter().cloned());
            }
        }
        found
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = said.keys().map(|m| (m, reach(m))).collect();
    let knot = |module: &Module| -> Vec<String> {
        let others = reached[module]
            .iter()
            .filter(|other| reached[other].contains(module));
        others.map(|other| other.join("/")).collect()
    };
    let knots = said.keys().map(knot);
    knots.max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn knots_do_not_grow() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(&crates).expect("the crates") {
        let entry = entry.expect("a crate");
        let name = entry.file_name().to_string_lossy().into_owned();
        let knot = largest(&entry.path().join("src"));
        let allowed = LARGEST.iter().find(|(known, _)| *known == name);
        let size = knot.len().max(1);
        match allowed {
            Some((_, allowed)) if *allowed == size => {}
            Some((_, allowed)) if *allowed > size => {
                wrong.push(format!(
                    "{name}: {size} files, fewer than {allowed}: write that down"
                ));
            }
            _ => wrong.push(format!("(\"{name}\", {size}): {knot:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
