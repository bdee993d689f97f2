//! What can be wrong with a file of baselines, and where.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{MAX_BASELINES, MAX_BYTES, MAX_RESULT_BYTES, MAX_ROWS};

/// Most unknown columns or files that a notice names.
pub(super) const MAX_NAMED: usize = 20;
/// Longest piece of a file that an error or notice repeats, in characters.
const MAX_QUOTED_CHARS: usize = 40;

/// Something passed over.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Notice {
    /// Columns that mean nothing here.
    #[error("unknown columns, ignored: {}{}", names.join(", "), and_more(*more))]
    UnknownColumns {
        /// Their names, the first twenty, each cut to a readable length.
        names: Vec<String>,
        /// How many more there are.
        more: usize,
    },
    /// Files of results that could not be read among others that could.
    #[error("left out: {}{}", files.join("; "), and_more(*more))]
    FilesLeftOut {
        /// Their names with the reason, the first twenty.
        files: Vec<String>,
        /// How many more there are.
        more: usize,
    },
}

/// Why a file was not read. Nothing of it is taken then.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Too large.
    #[error("the file has {0} bytes; at most {MAX_BYTES} are read")]
    Bytes(usize),
    /// No header, or no line below it.
    #[error("the file has no lines below a header with column names such as concurrency and ttft_p50_ms")]
    Empty,
    /// The column without which a line means nothing.
    #[error("line {line}: there is no column concurrency")]
    NoConcurrency {
        /// Line of the header, from 1.
        line: usize,
    },
    /// No column of a figure.
    #[error("line {line}: there is no column of measured values, such as ttft_p50_ms or hit_rate_percent")]
    NoFigures {
        /// Line of the header, from 1.
        line: usize,
    },
    /// A column twice.
    #[error("line {line}: column {column} is there twice")]
    TwoColumns {
        /// Line of the header, from 1.
        line: usize,
        /// Its name.
        column: &'static str,
    },
    /// More fields than column names.
    #[error("line {line}: {fields} fields, but the header has {columns}")]
    Fields {
        /// Line, from 1.
        line: usize,
        /// Fields of the line.
        fields: usize,
        /// Fields of the header.
        columns: usize,
    },
    /// A field that cannot be.
    #[error("line {line}, column {column}: {value:?} is not {wanted}")]
    Value {
        /// Line, from 1.
        line: usize,
        /// Name of the column.
        column: &'static str,
        /// The field, cut to a readable length.
        value: String,
        /// What may be there.
        wanted: &'static str,
    },
    /// The same level twice.
    #[error("line {line}, column concurrency: {concurrency} is there twice for the same baseline")]
    TwoLevels {
        /// Line of the second, from 1.
        line: usize,
        /// The concurrency as written.
        concurrency: String,
    },
    /// Too many levels.
    #[error("line {line}: at most {MAX_ROWS} levels are read")]
    Rows {
        /// Line, from 1.
        line: usize,
    },
    /// Too many baselines.
    #[error("line {line}: at most {MAX_BASELINES} baselines are read")]
    Baselines {
        /// Line, from 1.
        line: usize,
    },
    /// A file of results that is too large.
    #[error("the file has {0} bytes; at most {MAX_RESULT_BYTES} of a load generator's results are read")]
    ResultBytes(usize),
    /// Too many levels in the files together.
    #[error("at most {MAX_ROWS} levels are read")]
    ResultLevels,
    /// No JSON, or not of the shape that the tool writes.
    #[error("line {line}, column {column}: {what}")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's text, cut to a readable length.
        what: String,
    },
    /// JSON of something else.
    #[error(
        "this JSON is none of aiperf's profile_export_aiperf.json, profile_export_aiperf_aggregate.json and \
         profile_export_aiperf_sweep.json, of vllm bench serve --save-result, or of guidellm"
    )]
    UnknownResults,
    /// A version whose fields may mean something else.
    #[error("{tool} wrote it with version {found}; what is read: {known}")]
    Version {
        /// The load generator.
        tool: &'static str,
        /// What the file says, cut to a readable length.
        found: String,
        /// What can be read.
        known: &'static str,
    },
    /// The load generator says that the run is not whole.
    #[error("the run was cancelled or ended early: its figures are not comparable")]
    Unfinished,
    /// A run of an unknown concurrency.
    #[error(
        "it names no concurrency: set aiperf's --concurrency, vllm bench serve's --max-concurrency or guidellm's rate type concurrent"
    )]
    NoLevel,
    /// A sweep over something else, too.
    #[error(
        "the sweep varies {names}, too; levels can only be compared if nothing but the concurrency varies"
    )]
    VariesMore {
        /// What it varies, cut to a readable length.
        names: String,
    },
    /// None of the figures is there.
    #[error("none of TTFT, ITL, request latency, throughput and cached tokens is in it")]
    NothingMeasured,
    /// The library's own complaint.
    #[error("line {line}: {what}")]
    Malformed {
        /// Line, from 1.
        line: usize,
        /// Its text.
        what: String,
    },
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}

/// A piece of the file, cut to a readable length.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
