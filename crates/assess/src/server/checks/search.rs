//! What was found in the server's files.

use crate::server::check::Check;
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{Facts, Searched},
    text::count,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "planted-text",
        layer: Layer::Search,
        title: "a text that was written to a new table",
        judge: planted,
    },
    Check {
        code: "given-values",
        layer: Layer::Search,
        title: "values that were given",
        judge: given,
    },
];

fn judged(searched: &Searched, reason: &str) -> Verdict {
    let all = format!(
        "{} looked for in {}, {} MiB",
        count(searched.texts, "text"),
        count(searched.files, "file"),
        searched.bytes >> 20
    );
    let hidden = (!searched.left_out.is_empty()).then(|| {
        format!(
            "a look at what was left out: {}",
            searched.left_out.join("; ")
        )
    });
    let verdict = match searched.hits.is_empty() {
        true => Verdict::closed(format!("none found; {all}")),
        false => {
            let mut evidence = searched.hits.clone();
            evidence.push(all);
            Verdict::open(
                Severity::High,
                reason,
                evidence,
                "encrypt what the file belongs to: see the findings above",
            )
        }
    };
    verdict.seen_in_part(hidden)
}

fn planted(facts: &Facts) -> Verdict {
    match &facts.planted {
        None => Verdict::NotHere("not asked for: --plant".into()),
        Some(searched) => judged(
            searched,
            "What is written to a plain column of a new table can be read in these files.",
        ),
    }
}

fn given(facts: &Facts) -> Verdict {
    match &facts.searched {
        None => Verdict::NotHere("not asked for: --search".into()),
        Some(searched) => judged(searched, "These values can be read in the server's files."),
    }
}
