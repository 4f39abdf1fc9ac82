//! The speed of every kernel on one core, next to that of OpenSSL's SM4 where the `openssl` program
//! is installed.
//!
//! ```text
//! taskset -c 1 cargo run --release -p onionskin-sm4 --example speed            # all kernels, OpenSSL
//! taskset -c 1 cargo run --release -p onionskin-sm4 --example speed -- --own   # without OpenSSL
//! taskset -c 1 cargo run --release -p onionskin-sm4 --example speed -- avx512  # cases with this in their names
//! ```
//!
//! Everything is measured in rounds, one case after the other in each, and the median of the rounds
//! is shown: so all cases see the same neighbours and clock frequencies.

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use onionskin_sm4::{Kernel, Sm4, Sm4Gcm};

/// Bytes of a bulk operation, for our kernels and for OpenSSL.
const BULK: usize = 16 * 1024;
const ROUNDS: usize = 5;
/// Our cases run this long in each round; OpenSSL counts in whole seconds.
const SLICE: Duration = Duration::from_millis(60);

/// Something to measure: runs a given number of times.
struct Case {
    name: String,
    /// Bytes of one run for a result in GB/s; otherwise the result is in ns a run.
    bytes: Option<usize>,
    run: Box<dyn FnMut(u32)>,
    results: Vec<f64>,
}

impl Case {
    fn bulk(name: String, mut run: impl FnMut(&mut [u8]) + 'static) -> Case {
        // Sixteen bytes behind the start of a cache line, as allocators often place things.
        let mut memory = vec![0x5a; BULK + 128];
        let from = memory.as_ptr().align_offset(64) + 16;
        Case {
            name,
            bytes: Some(BULK),
            run: Box::new(move |times| {
                let data = &mut memory[from..from + BULK];
                (0..times).for_each(|_| run(black_box(data)));
            }),
            results: Vec::new(),
        }
    }

    fn call(name: String, mut run: impl FnMut() + 'static) -> Case {
        Case {
            name,
            bytes: None,
            run: Box::new(move |times| (0..times).for_each(|_| run())),
            results: Vec::new(),
        }
    }

    fn measure(&mut self) {
        let mut times = 1;
        loop {
            let start = Instant::now();
            (self.run)(times);
            let took = start.elapsed();
            if took > SLICE {
                let ns = took.as_nanos() as f64 / f64::from(times);
                self.results
                    .push(self.bytes.map_or(ns, |bytes| bytes as f64 / ns));
                return;
            }
            times = if took < SLICE / 16 {
                times * 8
            } else {
                times * 2
            };
        }
    }
}

fn median(results: &[f64]) -> f64 {
    let mut sorted = results.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn cases(kernel: Kernel) -> Vec<Case> {
    let key = b"sixteen byte key";
    let sm4 = || Sm4::with_kernel(key, kernel);
    let gcm = || Sm4Gcm::with_kernel(key, kernel);
    let named = |case: &str| format!("{kernel:<12} {case}");
    let mut cases = Vec::new();

    let cipher = sm4();
    cases.push(Case::bulk(named("CTR"), move |data| {
        cipher.apply_ctr(&[7; 16], data)
    }));
    let cipher = sm4();
    cases.push(Case::bulk(named("CBC decrypt"), move |data| {
        cipher.decrypt_cbc(&mut [7; 16], data.as_chunks_mut().0);
    }));
    let cipher = sm4();
    cases.push(Case::bulk(named("CBC encrypt"), move |data| {
        cipher.encrypt_cbc(&mut [7; 16], data.as_chunks_mut().0);
    }));
    let cipher = gcm();
    cases.push(Case::bulk(named("GCM seal"), move |data| {
        black_box(cipher.seal_in_place(&[7; 12], b"header", data));
    }));
    // Opening what was opened: the tag must be right every time, so sealing is part of the run and
    // its time too.
    let cipher = gcm();
    cases.push(Case::bulk(named("GCM seal + open"), move |data| {
        let tag = cipher.seal_in_place(&[7; 12], b"header", data);
        let opened = cipher.open_in_place(&[7; 12], b"header", data, &tag);
        assert!(opened.is_ok());
    }));

    let cipher = gcm();
    let mut message = [0x5a; 128];
    cases.push(Case::call(named("GCM seal, 128 bytes"), move || {
        black_box(cipher.seal_in_place(&[7; 12], b"header", black_box(&mut message)));
    }));
    let cipher = gcm();
    let sealed = {
        let mut message = [0x5a; 128];
        let tag = cipher.seal_in_place(&[7; 12], b"header", &mut message);
        (message, tag)
    };
    cases.push(Case::call(named("GCM open, 128 bytes"), move || {
        let (mut message, tag) = black_box(sealed);
        let opened = cipher.open_in_place(&[7; 12], b"header", &mut message, &tag);
        assert!(opened.is_ok());
        black_box(&message);
    }));
    for count in [1, 8, 16] {
        let cipher = sm4();
        let mut blocks = [[0x5a; 16]; 16];
        cases.push(Case::call(
            named(&format!("ECB, blocks: {count}")),
            move || {
                cipher.encrypt_blocks(black_box(&mut blocks[..count]));
            },
        ));
    }
    cases.push(Case::call(named("key schedule"), move || {
        black_box(Sm4::with_kernel(black_box(key), kernel));
    }));
    cases.push(Case::call(named("GCM key"), move || {
        black_box(Sm4Gcm::with_kernel(black_box(key), kernel));
    }));
    cases
}

/// GB/s of `openssl speed` in one second, if it can be run.
fn openssl(arguments: &[&str]) -> Option<f64> {
    let output = Command::new("openssl")
        .args(["speed", "-seconds", "1", "-bytes", &BULK.to_string()])
        .args(arguments)
        .output()
        .ok()?;
    // The last line ends with thousands of bytes a second, and the letter k.
    let text = String::from_utf8(output.stdout).ok()?;
    let number = text.split_whitespace().last()?.strip_suffix('k')?;
    Some(number.parse::<f64>().ok()? / 1e6)
}

fn main() {
    let (options, wanted): (Vec<_>, Vec<_>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let with_openssl = !options.iter().any(|option| option == "--own");
    for name in Kernel::names().filter(|name| Kernel::named(name).is_none()) {
        println!("{name}: this processor lacks its instructions");
    }
    let mut all: Vec<Case> = Kernel::available().flat_map(cases).collect();
    all.retain(|case| wanted.iter().all(|part| case.name.contains(part)));
    let (mut ctr, mut cbc) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        if with_openssl {
            ctr.extend(openssl(&["-evp", "sm4-ctr"]));
            cbc.extend(openssl(&["-decrypt", "-evp", "sm4-cbc"]));
        }
        all.iter_mut().for_each(Case::measure);
    }
    let baseline = (!ctr.is_empty() && !cbc.is_empty()).then(|| (median(&ctr), median(&cbc)));
    match baseline {
        Some((ctr, cbc)) => {
            println!("{:<34}{ctr:8.3} GB/s", "OpenSSL      CTR");
            println!("{:<34}{cbc:8.3} GB/s", "OpenSSL      CBC decrypt");
        }
        None => println!("OpenSSL was not measured"),
    }
    for case in &all {
        let result = median(&case.results);
        let unit = if case.bytes.is_some() { "GB/s" } else { "ns" };
        print!("{:<34}{result:8.3} {unit}", case.name);
        if let (Some((ctr, cbc)), Some(_)) = (baseline, case.bytes) {
            let (name, speed) = match case.name.contains("CBC") {
                true => ("CBC decryption", cbc),
                false => ("CTR", ctr),
            };
            print!("  {:6.1} x OpenSSL's {name}", result / speed);
        }
        println!();
    }
}
