//! The shared profile files, `~/.aws/config` and `~/.aws/credentials`, as the AWS tools have them.

use std::{collections::BTreeMap, env, fs, io, path::PathBuf};

use zeroize::Zeroizing;

use crate::Fault;

/// What both files say of one profile.
#[derive(Debug, Default)]
pub struct Profile {
    values: BTreeMap<String, Zeroizing<String>>,
}

impl Profile {
    /// The profile that `AWS_PROFILE` names, or `default`. Files that are not there say nothing;
    /// that a profile is missing which was named is an error.
    pub fn read() -> Result<Self, Fault> {
        let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let name = named.clone().unwrap_or_else(|| "default".into());
        let mut profile = Self::default();
        let mut is_there = false;
        // What the file of credentials says counts.
        for (setting, file, is_config) in [
            ("AWS_CONFIG_FILE", "config", true),
            ("AWS_SHARED_CREDENTIALS_FILE", "credentials", false),
        ] {
            let own = || Some(env::home_dir()?.join(".aws").join(file));
            let Some(path) = variable(setting).map(PathBuf::from).or_else(own) else {
                continue;
            };
            let text = match fs::read_to_string(&path) {
                Ok(text) => Zeroizing::new(text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(Fault::Setting(format!("{}: {error}", path.display())));
                }
            };
            is_there |= profile.add(&text, &name, is_config);
        }
        match named {
            Some(name) if !is_there => Err(Fault::Setting(format!(
                "AWS_PROFILE names the profile {name:?}, and no profile file has it"
            ))),
            _ => Ok(profile),
        }
    }

    /// Takes what a file says of the profile; whether it says anything.
    fn add(&mut self, text: &str, name: &str, is_config: bool) -> bool {
        let (mut is_it, mut found) = (false, false);
        // The setting whose own settings follow, farther right.
        let mut above = String::new();
        for line in text.lines() {
            let is_inner = line.starts_with([' ', '\t']);
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(section) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                let section = section.trim();
                is_it = match section.strip_prefix("profile ") {
                    Some(section) if is_config => section.trim() == name,
                    _ => section == name && (!is_config || name == "default"),
                };
                found |= is_it;
                continue;
            }
            let Some((key, value)) = line.split_once('=').filter(|_| is_it) else {
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            let key = match is_inner {
                true => format!("{above}.{key}"),
                false => {
                    above = key.to_owned();
                    key.to_owned()
                }
            };
            self.values.insert(key, Zeroizing::new(value.to_owned()));
        }
        found
    }

    /// A setting that says something.
    pub fn get(&self, key: &str) -> Option<&str> {
        let value = self.values.get(key).map(|value| value.as_str());
        value.filter(|value| !value.is_empty())
    }
}

/// An environment variable that says something.
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read_as_the_tools_write_them() {
        let config = "[default]\nregion = eu-west-1\n# x\n[profile other]\nregion=cn-north-1\n\
            s3 =\n  addressing_style = virtual\nendpoint_url = https://there\n[other]\nregion = no\n";
        let credentials = "[other]\naws_access_key_id = K\naws_secret_access_key = a=b\n[third]\n";
        let mut other = Profile::default();
        assert!(other.add(config, "other", true) && other.add(credentials, "other", false));
        assert_eq!(other.get("region"), Some("cn-north-1"));
        assert_eq!(other.get("s3.addressing_style"), Some("virtual"));
        assert_eq!(other.get("endpoint_url"), Some("https://there"));
        assert_eq!(other.get("aws_secret_access_key"), Some("a=b"));
        let mut default = Profile::default();
        assert!(default.add(config, "default", true));
        assert_eq!(default.get("region"), Some("eu-west-1"));
        assert!(!default.add(credentials, "default", false));
        assert!(!Profile::default().add(config, "third", true));
    }
}
