//! The machine that is measured, as far as it decides speed.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde::{Deserialize, Serialize};

/// Where a report was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many processors this process may use.
    pub processors: usize,
    /// Those instructions for ciphers that it has: `aes`, `vaes`, `gfni`, …
    pub cipher_instructions: Vec<String>,
    /// Main memory in MiB.
    pub memory_mib: u64,
    /// Name and version of the kernel.
    pub kernel: String,
    /// Name and version of the distribution.
    pub system: String,
    /// The file system on which the temporary servers lie.
    pub file_system: String,
    /// The load average of the last minute when the measurements began: others were at work if it
    /// is not about 0.
    pub load_before: String,
    /// Versions of the programs that took part, by name.
    pub programs: BTreeMap<String, String>,
}

impl Machine {
    /// Looks around. `work` is where the temporary servers will lie.
    pub fn look(work: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let flags = field(&cpuinfo, "flags")
            .or_else(|| field(&cpuinfo, "Features"))
            .unwrap_or_default();
        Self {
            processor: field(&cpuinfo, "model name").unwrap_or_else(|| "unknown".into()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            cipher_instructions: flags
                .split_whitespace()
                .filter(|flag| {
                    [
                        "aes",
                        "vaes",
                        "pclmulqdq",
                        "vpclmulqdq",
                        "gfni",
                        "avx2",
                        "avx512f",
                        "sha_ni",
                        "pmull",
                        "sm4",
                    ]
                    .contains(flag)
                })
                .map(String::from)
                .collect(),
            memory_mib: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
                .unwrap_or(0)
                / 1024,
            kernel: format!(
                "Linux {}",
                read("/proc/sys/kernel/osrelease").trim_end().to_owned()
            ),
            system: read("/etc/os-release")
                .lines()
                .find_map(|line| line.strip_prefix("PRETTY_NAME="))
                .unwrap_or("unknown")
                .trim_matches('"')
                .to_owned(),
            file_system: file_system(&read("/proc/mounts"), work),
            load_before: read("/proc/loadavg")
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned(),
            programs: BTreeMap::new(),
        }
    }

    /// Whether figures of both may stand in one table.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.processor, self.processors, &self.kernel)
            == (&other.processor, other.processors, &other.kernel)
            && self.memory_mib == other.memory_mib
    }

    /// In one line.
    pub fn line(&self) -> String {
        format!(
            "{} × {}, {} MiB, {}, {}, files on {}",
            self.processors,
            self.processor,
            self.memory_mib,
            self.system,
            self.kernel,
            self.file_system
        )
    }
}

/// The value of `name : value` in a file of /proc.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| found.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

/// The type of the mount with the longest path above `path`.
fn file_system(mounts: &str, path: &Path) -> String {
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(mount, _)| path.starts_with(mount))
        .max_by_key(|(mount, _)| mount.len())
        .map_or_else(|| "unknown".into(), |(_, kind)| kind.to_owned())
}

/// The first line that a program prints with `argument`, if it can be run.
pub fn version_of(program: &Path, argument: &str) -> Option<String> {
    let output = Command::new(program)
        .arg(argument)
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .map(without_address)
}

/// Some programs say where they come from, and the report names no address.
fn without_address(line: &str) -> String {
    let kept = line.split("http").next().unwrap_or_default();
    kept.trim_end_matches([' ', '-', '<', '(']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_with_the_longest_path_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nproc /proc proc rw 0 0\nx /t xfs rw 0 0";
        assert_eq!(file_system(mounts, Path::new("/tmp/x")), "tmpfs");
        assert_eq!(file_system(mounts, Path::new("/home")), "ext4");
        assert_eq!(
            without_address("HAProxy version 2.6 2026/01/01 - https://haproxy.org/"),
            "HAProxy version 2.6 2026/01/01"
        );
    }

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::look(Path::new("/tmp"));
        assert!(machine.processors > 0 && machine.memory_mib > 0);
        assert!(machine.kernel.len() > 7 && machine.is_same(&machine.clone()));
        assert_eq!(
            field("a\t: b c\nd: e", "a").as_deref(),
            Some("b c"),
            "a field of /proc"
        );
    }
}
