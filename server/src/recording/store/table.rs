//! The decisions of a file as Parquet. Rows are appended to a file as decisions end, because a Parquet file cannot be read before its end
//! is written; it is made of them once the file is finished.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::path::Path;

use radixscope_export::rows::DECISION_COLUMNS;

use crate::recording::decision_values::DecisionValues;
use crate::recording::decisions_parquet::Decisions;

/// Largest row: beyond it the file of rows is damaged.
const MAX_ROW_BYTES: usize = 1 << 20;

/// Makes a Parquet file of a file of rows. Whether there are any.
///
/// # Errors
/// One of the files cannot be read or written.
pub(super) fn parquet_of_rows(rows: &Path, parquet: &Path) -> anyhow::Result<bool> {
    let mut rows = BufReader::new(File::open(rows)?);
    let Some(first) = next_row(&mut rows) else { return Ok(false) };
    let mut file = Decisions::begin(BufWriter::new(File::create(parquet)?))?;
    let mut next = Some(first);
    while let Some(row) = next {
        file.push_values(row)?;
        next = next_row(&mut rows);
    }
    file.end()?.into_inner()?.sync_all()?;
    Ok(true)
}

/// The next row of a file of rows; `None` at its end, or where what follows was not wholly written.
fn next_row(from: &mut impl Read) -> Option<DecisionValues> {
    let mut len = [0; 4];
    from.read_exact(&mut len).ok()?;
    let len = usize::try_from(u32::from_le_bytes(len)).ok().filter(|&len| len <= MAX_ROW_BYTES)?;
    let mut row = vec![0; len];
    from.read_exact(&mut row).ok()?;
    postcard::from_bytes(&row).ok().filter(|row: &DecisionValues| row.0.len() == DECISION_COLUMNS.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::decisions_parquet::tests::decided;

    #[test]
    fn rows_that_were_written_make_the_same_file_and_a_torn_one_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let (rows, parquet) = (folder.path().join("a.rows"), folder.path().join("a.parquet"));
        let cluster = decided();
        let mut file = Decisions::begin(Vec::new()).unwrap();
        let mut written = Vec::new();
        for decided in cluster.decisions().newest_first() {
            file.push(&cluster, decided).unwrap();
            written.extend(DecisionValues::of(&cluster, decided).unwrap().encode());
        }
        let torn = DecisionValues::of(&cluster, cluster.decisions().newest_first().next().unwrap()).unwrap();
        written.extend(&torn.encode()[..20]);
        std::fs::write(&rows, &written).unwrap();
        assert!(parquet_of_rows(&rows, &parquet).unwrap());
        assert_eq!(std::fs::read(&parquet).unwrap(), file.end().unwrap());
        std::fs::write(&rows, [0xff; 64]).unwrap();
        assert!(!parquet_of_rows(&rows, &parquet).unwrap(), "no row is readable");
    }
}
