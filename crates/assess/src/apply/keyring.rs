//! MySQL's component keyring_file: which manifest loads it, and where its file lies.
//!
//! The manifest beside the program and the settings beside the component count for every server
//! that runs from this installation. So they only say that each server has its own, in its data
//! directory; a server without one stays as it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::step::Step;
use crate::AssessError;

const COMPONENT: &str = "component_keyring_file";

/// Where everything lies.
pub(super) struct Places<'a> {
    /// The server's program.
    pub program: &'a Path,
    /// The folder of plugins and components.
    pub plugins: &'a Path,
    /// The data directory.
    pub data: &'a Path,
    /// The folder of the keys.
    pub folder: &'a Path,
}

impl Places<'_> {
    fn manifest(&self) -> PathBuf {
        let name = self.program.file_stem().unwrap_or_default();
        let name = format!("{}.my", name.to_string_lossy());
        self.program.with_file_name(name)
    }

    /// Each file with what it has to say.
    fn wanted(&self) -> [(PathBuf, Value, bool); 4] {
        let manifest = self.manifest();
        let own = self.data.join(manifest.file_name().unwrap_or_default());
        let settings = format!("{COMPONENT}.cnf");
        let keys = self.folder.join("onionskin-keyring");
        [
            (
                self.data.join(&settings),
                json!({ "path": keys.to_string_lossy(), "read_only": false }),
                true,
            ),
            (
                own,
                json!({ "components": format!("file://{COMPONENT}") }),
                true,
            ),
            (
                self.plugins.join(&settings),
                json!({ "read_local_config": true }),
                false,
            ),
            (manifest, json!({ "read_local_manifest": true }), false),
        ]
    }

    /// What is missing. A file that says something else is not ours to change.
    pub(super) fn steps(&self) -> Result<Vec<Step>, AssessError> {
        let component = self.plugins.join(format!("{COMPONENT}.so"));
        if !component.is_file() {
            return Err(AssessError::State(format!(
                "{} is missing: install MySQL completely",
                component.display()
            )));
        }
        let mut steps = Vec::new();
        if !self.folder.exists() {
            steps.push(Step::MakeKeyringFolder {
                folder: self.folder.to_owned(),
            });
        }
        for (path, wanted, for_server) in self.wanted() {
            match there(&path)? {
                None => steps.push(Step::WriteManifest {
                    path,
                    text: format!("{wanted}\n"),
                    for_server,
                }),
                Some(found) if found == wanted => {}
                Some(_) => {
                    return Err(AssessError::State(format!(
                        "{} is there, and the keyring is not active: it is not known what somebody has begun there",
                        path.display()
                    )));
                }
            }
        }
        Ok(steps)
    }

    /// The file that was written last.
    pub(super) fn last(&self) -> PathBuf {
        self.manifest()
    }
}

fn there(path: &Path) -> Result<Option<Value>, AssessError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).unwrap_or_default())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(AssessError::file(path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_taken_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["bin", "plugin", "data"] {
            fs::create_dir(at(name)).expect("a folder");
        }
        let (program, plugins, data, keys) =
            (at("bin/mysqld"), at("plugin"), at("data"), at("keys"));
        let places = Places {
            program: &program,
            plugins: &plugins,
            data: &data,
            folder: &keys,
        };
        assert!(places.steps().is_err(), "no component");
        fs::write(at("plugin/component_keyring_file.so"), "").expect("written");
        let steps = places.steps().expect("steps");
        assert_eq!(steps.len(), 5);
        for step in &steps {
            match step {
                Step::WriteManifest { path, text, .. } => fs::write(path, text).expect("written"),
                Step::MakeKeyringFolder { folder } => fs::create_dir(folder).expect("a folder"),
                other => panic!("{other}"),
            }
        }
        assert!(places.steps().expect("steps").is_empty());
        assert!(at("bin/mysqld.my").exists() && at("data/mysqld.my").exists());
        fs::write(
            at("data/mysqld.my"),
            r#"{ "components": "file://component_keyring_kmip" }"#,
        )
        .expect("written");
        assert!(places.steps().is_err(), "another keyring");
    }
}
