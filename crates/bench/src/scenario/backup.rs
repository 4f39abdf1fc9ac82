//! A stream is sealed and opened by different pipelines, from file to file.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use super::{Setting, parameters};
use crate::{
    catalogue::{Extent, Spec, VariantSpec},
    driver::Table,
    error::BenchError,
    experiment::{Experiment, GroupPlan, Measured, VariantPlan},
    process,
    relay::{home, missing},
    report::{Proof, ServerInfo},
    server::Address,
};

/// See the module.
pub struct Backup<'a> {
    setting: &'a Setting<'a>,
    spec: &'a Spec,
    folder: PathBuf,
    home: PathBuf,
    bytes: u64,
    unavailable: Vec<Option<String>>,
}

/// The two directions, as groups.
const DIRECTIONS: [&str; 2] = ["backup", "restore"];

impl<'a> Backup<'a> {
    /// Makes the input, and seals it once with each variant, which warms everything up.
    pub fn prepare(
        setting: &'a Setting<'a>,
        spec: &'a Spec,
        extent: &Extent,
    ) -> Result<Self, BenchError> {
        let workshop = setting.workshop;
        let folder = workshop.new_folder("b")?;
        let nowhere = Address {
            host: "127.0.0.1".into(),
            port: 3306,
            user: String::new(),
            password: String::new(),
        };
        let bytes = extent.mib << 20;
        let input = folder.join("input");
        write_rows(&input, bytes, setting)
            .map_err(BenchError::system(input.display().to_string()))?;
        let mut backup = Self {
            setting,
            spec,
            home: home(workshop, &nowhere, None)?,
            folder,
            bytes,
            unavailable: Vec::new(),
        };
        for variant in &spec.variants {
            let mut reason = missing(&variant.needs, workshop);
            if reason.is_none() {
                let sealed = backup.run(variant, 0)?;
                if !sealed.success {
                    reason = Some(sealed.last_words());
                }
            }
            backup.unavailable.push(reason);
        }
        Ok(backup)
    }

    fn sealed(&self, variant: &VariantSpec) -> PathBuf {
        self.folder.join(format!("{}.sealed", variant.name))
    }

    fn script(&self, variant: &VariantSpec, direction: usize) -> String {
        let (script, from, to) = match direction {
            0 => (
                &variant.seal,
                self.folder.join("input"),
                self.sealed(variant),
            ),
            _ => (
                &variant.open,
                self.sealed(variant),
                self.folder.join("output"),
            ),
        };
        let quoted = |path: &Path| format!("'{}'", path.display());
        script
            .clone()
            .unwrap_or_default()
            .replace("{in}", &quoted(&from))
            .replace("{out}", &quoted(&to))
            .replace("{onionskin}", &quoted(&self.setting.workshop.onionskin))
            .replace("{home}", &quoted(&self.home))
    }

    fn run(&self, variant: &VariantSpec, direction: usize) -> Result<process::Ended, BenchError> {
        let mut command = Command::new("bash");
        command
            .args(["-o", "pipefail", "-c", &self.script(variant, direction)])
            .env("BENCH_PASS", "of no importance");
        process::run(
            &mut command,
            &self.setting.workshop.stop,
            Duration::from_secs(7200),
        )
    }
}

impl Experiment for Backup<'_> {
    fn server(&self) -> Option<ServerInfo> {
        None
    }

    fn groups(&self) -> Vec<GroupPlan> {
        DIRECTIONS
            .iter()
            .map(|direction| GroupPlan {
                label: format!("{direction}, {} MiB", self.bytes >> 20),
                parameters: parameters(&[
                    ("direction", (*direction).to_owned()),
                    ("size", format!("{} MiB", self.bytes >> 20)),
                ]),
                baseline: self.spec.baseline.clone(),
                variants: self
                    .spec
                    .variants
                    .iter()
                    .zip(&self.unavailable)
                    .map(|(variant, unavailable)| VariantPlan {
                        name: variant.name.clone(),
                        label: variant.label.clone(),
                        driver: "shell".into(),
                        unavailable: unavailable.clone(),
                        settings: Vec::new(),
                    })
                    .collect(),
            })
            .collect()
    }

    fn measure(
        &mut self,
        group: usize,
        variant: usize,
        _round: usize,
    ) -> Result<Measured, BenchError> {
        let variant = &self.spec.variants[variant];
        let ended = self.run(variant, group)?;
        if !ended.success {
            return Err(BenchError::Program {
                program: variant.label.clone(),
                said: ended.last_words(),
            });
        }
        let sealed = self.sealed(variant);
        let at = |path: &Path| BenchError::system(path.display().to_string());
        let size = sealed.metadata().map_err(at(&sealed))?.len();
        let proof = match group {
            0 => {
                let readable = is_zstd(&sealed).map_err(at(&sealed))?;
                let must = variant.name == self.spec.baseline;
                let say = |yes| {
                    if yes {
                        "a zstd stream"
                    } else {
                        "no zstd stream"
                    }
                };
                Proof {
                    what: "after: what was written".into(),
                    expected: say(must).into(),
                    found: say(readable).into(),
                    holds: readable == must,
                }
            }
            _ => {
                let output = self.folder.join("output");
                let same = same_bytes(&self.folder.join("input"), &output).map_err(at(&output))?;
                fs::remove_file(&output).map_err(at(&output))?;
                Proof {
                    what: "after: what came back".into(),
                    expected: "the input".into(),
                    found: if same { "the input" } else { "something else" }.into(),
                    holds: same,
                }
            }
        };
        let metrics = [
            ("seconds", ended.seconds),
            ("mb_per_s", self.bytes as f64 / 1e6 / ended.seconds),
            ("cpu_s", ended.cpu_seconds),
            ("bytes", size as f64),
        ];
        Ok(Measured {
            metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
            series: Vec::new(),
            proofs: vec![proof],
            command: self
                .script(variant, group)
                .replace(&self.folder.display().to_string(), "…")
                .replace(&self.home.display().to_string(), "…"),
        })
    }
}

impl Drop for Backup<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Rows as sysbench fills its tables, which compress by about half; the same in every call.
fn write_rows(path: &Path, bytes: u64, setting: &Setting<'_>) -> io::Result<()> {
    let mut rng = SmallRng::seed_from_u64(1);
    let table = Table::new("bench", 1, 1_000_000);
    let mut file = BufWriter::new(File::create(path)?);
    // One block of rows, its digits exchanged again and again: no window of a compressor sees the
    // same twice.
    let block = table.fill(2000, &mut rng).into_bytes();
    let mut left = bytes;
    while left > 0 {
        if setting
            .workshop
            .stop
            .load(std::sync::atomic::Ordering::Relaxed)
        {
            break;
        }
        let mut digits: Vec<u8> = (b'0'..=b'9').collect();
        for n in (1..digits.len()).rev() {
            digits.swap(n, rng.random_range(0..=n));
        }
        let part: Vec<u8> = block
            .iter()
            .map(|byte| match byte {
                b'0'..=b'9' => digits[usize::from(byte - b'0')],
                other => *other,
            })
            .collect();
        let length = left.min(part.len() as u64);
        file.write_all(&part[..length as usize])?;
        left -= length;
    }
    file.flush()
}

/// Whether a file begins with zstd's magic number.
fn is_zstd(path: &Path) -> io::Result<bool> {
    let mut head = [0; 4];
    File::open(path)?.read_exact(&mut head)?;
    Ok(head == [0x28, 0xb5, 0x2f, 0xfd])
}

fn same_bytes(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut piece_a, mut piece_b) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let length = a.read(&mut piece_a)?;
        if length == 0 {
            return Ok(true);
        }
        b.read_exact(&mut piece_b[..length])?;
        if piece_a[..length] != piece_b[..length] {
            return Ok(false);
        }
    }
}
