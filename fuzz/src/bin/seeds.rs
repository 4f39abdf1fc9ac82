//! Writes the seeds of every target to `corpus/TARGET/`, where cargo-fuzz looks for them.

use std::{fs, io};

fn main() -> io::Result<()> {
    for target in onionskin_fuzz::TARGETS {
        let folder = format!("corpus/{}", target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(format!("{folder}/seed-{number}"), seed)?;
        }
    }
    Ok(())
}
