//! Backups in a folder.

use crate::server::check::Check;
use crate::{
    finding::{Layer, Severity, Verdict},
    server::facts::{BackupFile, BackupKind, Facts},
    text::count,
};

pub(super) const CHECKS: &[Check] = &[Check {
    code: "backups",
    layer: Layer::Backups,
    title: "backups that are not sealed",
    judge: backups,
}];

fn line(file: &BackupFile) -> Option<(Severity, String)> {
    let name = &file.name;
    match &file.kind {
        BackupKind::Sealed => None,
        BackupKind::Plain(what) => Some((Severity::High, format!("{name}: {what}"))),
        BackupKind::Foreign(what) => Some((Severity::Low, format!("{name}: {what}"))),
        BackupKind::Unknown => Some((
            Severity::Medium,
            format!("{name}: of an unknown kind, and so taken as plain"),
        )),
        BackupKind::Unreadable(_) => None,
    }
}

fn backups(facts: &Facts) -> Verdict {
    let Some(files) = &facts.backups else {
        return Verdict::NotHere("no folder was named with --backups".into());
    };
    let unreadable: Vec<String> = files
        .iter()
        .filter_map(|file| match &file.kind {
            BackupKind::Unreadable(why) => Some(format!("{}: {why}", file.name)),
            _ => None,
        })
        .collect();
    let hidden =
        (!unreadable.is_empty()).then(|| format!("permission to read {}", unreadable.join("; ")));
    let open: Vec<(Severity, String)> = files.iter().filter_map(line).collect();
    let verdict = match open.iter().map(|(severity, _)| *severity).max() {
        None => Verdict::closed(format!(
            "{} sealed by onionskin",
            count(files.len() - unreadable.len(), "file")
        )),
        Some(severity) => Verdict::open(
            severity,
            "Whoever has a plain backup has the data, also what was plain before a migration. Other programs' \
             encryption is not verified here.",
            open.into_iter().map(|(_, line)| line).collect(),
            "onionskin seal -o FILE.sealed FILE && shred -u FILE",
        ),
    };
    verdict.seen_in_part(hidden)
}

#[cfg(test)]
mod tests {
    use onionskin_rowstream::client::Family;

    use super::*;
    use crate::server::facts::samples::facts;

    #[test]
    fn what_is_not_known_is_not_sealed() {
        let mut facts = facts(Family::MySql, &[]);
        let file = |name: &str, kind| BackupFile {
            name: name.into(),
            kind,
        };
        facts.backups = Some(vec![file("a", BackupKind::Sealed)]);
        assert!(matches!(backups(&facts), Verdict::Closed(_)));
        facts.backups = Some(vec![
            file("a", BackupKind::Sealed),
            file("b", BackupKind::Unknown),
        ]);
        assert!(matches!(backups(&facts), Verdict::Open { .. }));
        facts.backups = Some(vec![file("a", BackupKind::Unreadable("denied".into()))]);
        assert!(matches!(backups(&facts), Verdict::NotVisible { .. }));
    }
}
