//! `recount NAME FOLDER` holds the responses in the folder `rx` of a recording against the recording, and prints one JSON object:
//! `heading` and `row` of a table, `sum`, `text` for the reader, and how many figures are `differing`. `cargo xtask live` runs it.
#![forbid(unsafe_code)]

use std::{io::Write as _, path::Path};

use anyhow::{Result, bail};
use radixscope_recount::compare::live::Compared;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [name, folder] = arguments.as_slice() else { bail!("usage: recount NAME FOLDER") };
    let compared = Compared::of(&name.to_string_lossy(), Path::new(folder))?;
    writeln!(std::io::stdout(), "{}", compared.json())?;
    Ok(())
}
