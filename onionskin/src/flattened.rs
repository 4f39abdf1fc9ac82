//! All settings of a configuration by their names, with their sections before them.

use std::collections::BTreeMap;

/// All settings of a file that was found sound, without its structure.
pub fn flattened(text: &str) -> BTreeMap<String, String> {
    fn flatten(table: toml::Table, before: &str, into: &mut BTreeMap<String, String>) {
        for (name, value) in table {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let name = match name.chars().all(is_plain) {
                true => format!("{before}{name}"),
                false => format!("{before}{}", toml::Value::String(name)),
            };
            match value {
                toml::Value::Table(table) => flatten(table, &format!("{name}."), into),
                value => {
                    into.insert(name, value.to_string());
                }
            }
        }
    }
    let mut found = BTreeMap::new();
    flatten(text.parse().unwrap_or_default(), "", &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_stand_before_names() {
        let text = "a = 1\n[b]\nc = \"x\"\n[protect.\"d.*\"]\n\"*_id\" = [\"eq\", \"range\"]\n";
        let found: Vec<String> = flattened(text)
            .iter()
            .map(|(n, v)| format!("{n} = {v}"))
            .collect();
        let wanted = [
            "a = 1",
            "b.c = \"x\"",
            "protect.\"d.*\".\"*_id\" = [\"eq\", \"range\"]",
        ];
        assert_eq!(found, wanted);
    }
}
