//! What shows that each variant measured what it says, for a report that has the figures alone.

use super::{Report, Scenario};

/// Lines for people: of each variant how many runs count, and each proof once, with what was found.
pub fn proofs(report: &Report) -> Vec<String> {
    report.scenarios.iter().flat_map(of_scenario).collect()
}

fn of_scenario(scenario: &Scenario) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: what was in force, by the server's word and by its files",
        scenario.full_title()
    )];
    let mut labels: Vec<&str> = Vec::new();
    let variants = || scenario.groups.iter().flat_map(|group| &group.variants);
    for variant in variants() {
        if variant.unavailable.is_some() || labels.contains(&variant.label.as_str()) {
            continue;
        }
        labels.push(&variant.label);
        let same = || variants().filter(|other| other.label == variant.label);
        let runs = || same().flat_map(|variant| variant.valid());
        let void: usize = same().map(|variant| variant.void().count()).sum();
        lines.push(format!(
            "  {}: {} runs count, {void} do not",
            variant.label,
            runs().count()
        ));
        let mut seen: Vec<(String, &str, usize)> = Vec::new();
        for proof in runs().flat_map(|run| &run.proofs) {
            let what = without_run(&proof.what);
            let found = proof.found.as_str();
            match seen.iter_mut().find(|(w, f, _)| *w == what && *f == found) {
                Some((.., times)) => *times += 1,
                None => seen.push((what, found, 1)),
            }
        }
        for (what, found, times) in seen {
            lines.push(format!("      {what}: {found} ({times} times)"));
        }
    }
    lines
}

/// Without what differs from run to run: when it was asked, and the number of a log.
fn without_run(what: &str) -> String {
    let what = what
        .strip_prefix("before: ")
        .or_else(|| what.strip_prefix("after: "))
        .unwrap_or(what);
    match what.rsplit_once('.') {
        Some((name, number))
            if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            name.to_owned()
        }
        _ => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_and_numbers_are_left_out() {
        assert_eq!(without_run("before: SELECT @@a.b"), "SELECT @@a.b");
        assert_eq!(
            without_run("after: a planted text in binlog.000012"),
            "a planted text in binlog"
        );
        assert_eq!(
            without_run("after: a planted text in t.ibd"),
            "a planted text in t.ibd"
        );
    }
}
