//! Baselines as CSV: a line each level, a header with units, unknown figures empty. What a file may hold is bounded, and
//! every error has its position.

use std::collections::HashSet;

use csv::StringRecord;

use super::lines::Lines;
use super::problem::{ImportError, MAX_NAMED, Notice, quoted};
use super::{Baseline, Bounds, Figure, Router, SpreadKind, SweepLevel, is_concurrency};
use crate::csv_text::{guard, to_text, unguard};
use serde::{Deserialize, Serialize};

/// Largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Most levels of a file.
pub const MAX_ROWS: usize = 10_000;
/// Most baselines of a file: more than anybody compares.
pub const MAX_BASELINES: usize = 64;

const REFERENCE_CSV: &str = include_str!("reference.csv");

/// The reference sweeps, KV-aware and round-robin, as attributed in them.
pub fn reference() -> Vec<Baseline> {
    // Part of the program; a test reads it.
    import(REFERENCE_CSV, "").map(|import| import.baselines).unwrap_or_default()
}

/// What a file held.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Import {
    /// In the order in which they began.
    pub baselines: Vec<Baseline>,
    /// What was passed over.
    pub notices: Vec<Notice>,
}

#[derive(Clone, Copy, PartialEq)]
enum Column {
    Baseline,
    Router,
    Attribution,
    Concurrency,
    Duration,
    Samples,
    Runs,
    RunsBegun,
    RunsPlanned,
    Spread,
    Figure(Figure),
    Low(Figure),
    High(Figure),
}

impl Column {
    const FIRST: [Self; 6] =
        [Self::Baseline, Self::Router, Self::Attribution, Self::Concurrency, Self::Duration, Self::Samples];
    /// Of the runs behind a level, whose spread has two columns more for each figure.
    const OF_RUNS: [Self; 4] = [Self::Runs, Self::RunsBegun, Self::RunsPlanned, Self::Spread];

    fn plain() -> impl Iterator<Item = Self> {
        Self::FIRST.into_iter().chain(Figure::ALL.map(Self::Figure))
    }

    fn of_runs() -> impl Iterator<Item = Self> {
        let ends = Figure::ALL.into_iter().flat_map(|figure| [Self::Low(figure), Self::High(figure)]);
        Self::OF_RUNS.into_iter().chain(ends)
    }

    fn all() -> impl Iterator<Item = Self> {
        Self::plain().chain(Self::of_runs())
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Router => "router",
            Self::Attribution => "attribution",
            Self::Concurrency => "concurrency",
            Self::Duration => "duration_s",
            Self::Samples => "samples",
            Self::Runs => "runs",
            Self::RunsBegun => "runs_begun",
            Self::RunsPlanned => "runs_planned",
            Self::Spread => "spread",
            Self::Figure(figure) => figure.column(),
            Self::Low(figure) => figure.spread_columns()[0],
            Self::High(figure) => figure.spread_columns()[1],
        }
    }
}

/// `baselines` as CSV, to be read by [`import`] to the same. The attribution stands in the first line of each; one without
/// levels has no line. Columns of runs are left out where no level knows any.
pub fn export<'a>(baselines: impl IntoIterator<Item = &'a Baseline>) -> String {
    let baselines: Vec<&Baseline> = baselines.into_iter().collect();
    let has_runs = |row: &SweepLevel| {
        let SweepLevel { concurrency, duration_s, samples, figures, .. } = *row;
        *row != SweepLevel { duration_s, samples, figures, ..SweepLevel::new(concurrency) }
    };
    let has_runs = baselines.iter().any(|baseline| baseline.rows().iter().any(has_runs));
    let columns: Vec<Column> = if has_runs { Column::all().collect() } else { Column::plain().collect() };
    let header: Vec<String> = columns.iter().map(|column| column.name().to_owned()).collect();
    let records = baselines.into_iter().flat_map(|baseline| records(baseline, &columns));
    to_text(std::iter::once(header).chain(records))
}

/// A record for each level.
fn records(baseline: &Baseline, columns: &[Column]) -> impl Iterator<Item = Vec<String>> {
    baseline.rows().iter().enumerate().map(|(at, row)| {
        let field = |column| match column {
            Column::Baseline => guard(baseline.name()),
            Column::Router => baseline.router().as_str().to_owned(),
            Column::Attribution if at == 0 => guard(baseline.attribution()),
            Column::Attribution => String::new(),
            Column::Concurrency => row.concurrency.to_string(),
            Column::Duration => known(row.duration_s),
            Column::Samples => known(row.samples),
            Column::Runs => known(row.runs.finished),
            Column::RunsBegun => known(row.runs.begun),
            Column::RunsPlanned => known(row.runs.planned),
            Column::Spread => known(row.spread),
            Column::Figure(figure) => known(row.figures.get(figure)),
            Column::Low(figure) => known(row.bounds.get(figure).map(|bounds| bounds.low)),
            Column::High(figure) => known(row.bounds.get(figure).map(|bounds| bounds.high)),
        };
        columns.iter().copied().map(field).collect()
    })
}

fn known(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Reads baselines. Columns are found by name and may stand in any order, with `,`, `;` or tabs between; lines that begin
/// with `#` are passed over. Lines with the same `baseline` and `router` are one baseline, whose first attribution
/// counts; where these columns are missing or empty it is called `name`, of [`Router::Other`].
///
/// # Errors
/// The first thing that cannot be, with its line and column.
pub fn import(text: &str, name: &str) -> Result<Import, ImportError> {
    if text.len() > MAX_BYTES {
        return Err(ImportError::Bytes(text.len()));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = Lines::new(text);
    let Some(header) = lines.next()? else { return Err(ImportError::Empty) };
    let header = Header::read(&header, lines.line)?;
    let mut sheet = CsvImport::default();
    while let Some(fields) = lines.next()? {
        header.check(&fields, lines.line)?;
        sheet.add_row(&Fields { header: &header, fields: &fields, line: lines.line }, name)?;
    }
    if sheet.baselines.is_empty() {
        return Err(ImportError::Empty);
    }
    Ok(Import { baselines: sheet.finish(), notices: header.notices })
}

/// Where each column is.
struct Header {
    places: Vec<(Column, usize)>,
    columns: usize,
    notices: Vec<Notice>,
}

impl Header {
    fn read(names: &StringRecord, line: usize) -> Result<Self, ImportError> {
        let (mut places, mut unknown, mut more) = (Vec::new(), Vec::new(), 0);
        for (at, name) in names.iter().enumerate() {
            match Column::all().find(|column| column.name().eq_ignore_ascii_case(name.trim())) {
                Some(column) if places.iter().any(|&(other, _)| other == column) => {
                    return Err(ImportError::TwoColumns { line, column: column.name() });
                }
                Some(column) => places.push((column, at)),
                None if unknown.len() < MAX_NAMED => unknown.push(quoted(name.trim())),
                None => more += 1,
            }
        }
        if !places.iter().any(|&(column, _)| column == Column::Concurrency) {
            return Err(ImportError::NoConcurrency { line });
        }
        if !places.iter().any(|&(column, _)| matches!(column, Column::Figure(_))) {
            return Err(ImportError::NoFigures { line });
        }
        let notices =
            if unknown.is_empty() { vec![] } else { vec![Notice::UnknownColumns { names: unknown, more }] };
        Ok(Self { places, columns: names.len(), notices })
    }

    /// Spreadsheets leave out empty fields at a line's end, or add some.
    fn check(&self, fields: &StringRecord, line: usize) -> Result<(), ImportError> {
        if fields.iter().skip(self.columns).all(|field| field.trim().is_empty()) {
            return Ok(());
        }
        Err(ImportError::Fields { line, fields: fields.len(), columns: self.columns })
    }
}

/// One line below the header.
struct Fields<'a> {
    header: &'a Header,
    fields: &'a StringRecord,
    line: usize,
}

impl Fields<'_> {
    /// The field as it stands; empty if there is none.
    fn raw(&self, column: Column) -> &str {
        let place = self.header.places.iter().find(|(other, _)| *other == column);
        place.and_then(|&(_, at)| self.fields.get(at)).unwrap_or_default()
    }

    fn wrong(&self, column: Column, wanted: &'static str) -> ImportError {
        let value = quoted(self.raw(column).trim());
        ImportError::Value { line: self.line, column: column.name(), value, wanted }
    }

    /// A number that `allows`; `None` if the field is empty.
    fn number(
        &self,
        column: Column,
        wanted: &'static str,
        allows: impl Fn(f64) -> bool,
    ) -> Result<Option<f64>, ImportError> {
        let field = self.raw(column).trim();
        if field.is_empty() {
            return Ok(None);
        }
        let number = field.parse::<f64>().ok().filter(|&value| allows(value));
        // Adding 0 makes -0 plain.
        number.map(|value| Some(value + 0.0)).ok_or_else(|| self.wrong(column, wanted))
    }

    /// A count; `None` if the field is empty.
    fn whole(&self, column: Column) -> Result<Option<u64>, ImportError> {
        match self.raw(column).trim() {
            "" => Ok(None),
            field => field.parse().map(Some).map_err(|_| self.wrong(column, "a whole number of at least 0")),
        }
    }

    fn router(&self) -> Result<Router, ImportError> {
        let field = self.raw(Column::Router).trim();
        if field.is_empty() {
            return Ok(Router::Other);
        }
        let router = Router::ALL.into_iter().find(|router| router.as_str().eq_ignore_ascii_case(field));
        router.ok_or_else(|| self.wrong(Column::Router, "kv-aware, round-robin or other"))
    }

    fn row(&self) -> Result<SweepLevel, ImportError> {
        const WANTED: &str = "a number above 0 and at most 1,000,000";
        const POSITIVE: &str = "a number of at least 0, with a decimal point";
        const PERCENT: &str = "a number from 0 to 100, with a decimal point";
        let concurrency = self.number(Column::Concurrency, WANTED, is_concurrency)?;
        let mut row = SweepLevel::new(concurrency.ok_or_else(|| self.wrong(Column::Concurrency, WANTED))?);
        row.duration_s =
            self.number(Column::Duration, POSITIVE, |value| value.is_finite() && value >= 0.0)?;
        row.samples = self.whole(Column::Samples)?;
        row.runs.finished = self.whole(Column::Runs)?;
        row.runs.begun = self.whole(Column::RunsBegun)?;
        row.runs.planned = self.whole(Column::RunsPlanned)?;
        row.spread = match self.raw(Column::Spread).trim() {
            "" => None,
            field => {
                let kind = SpreadKind::parse(field);
                Some(kind.ok_or_else(|| self.wrong(Column::Spread, "min-max or 95% confidence"))?)
            }
        };
        for figure in Figure::ALL {
            let wanted = if figure == Figure::HitRate { PERCENT } else { POSITIVE };
            let number = |column| self.number(column, wanted, |value| figure.allows(value));
            let value = number(Column::Figure(figure))?;
            row.figures.set(figure, value);
            let ends = number(Column::Low(figure))?.zip(number(Column::High(figure))?);
            let Some((low, high)) = ends.filter(|_| value.is_some()) else { continue };
            if low > high {
                return Err(self.wrong(Column::High(figure), "at least the low end"));
            }
            row.bounds.set(figure, Some(Bounds { low, high }));
        }
        Ok(row)
    }
}

/// What was read so far.
#[derive(Default)]
struct CsvImport {
    baselines: Vec<Baseline>,
    /// Which levels there are: baseline, bits of the concurrency.
    levels: HashSet<(usize, u64)>,
}

impl CsvImport {
    fn add_row(&mut self, fields: &Fields<'_>, default_name: &str) -> Result<(), ImportError> {
        let line = fields.line;
        if self.levels.len() == MAX_ROWS {
            return Err(ImportError::Rows { line });
        }
        let name = match fields.raw(Column::Baseline) {
            "" => default_name,
            name => unguard(name),
        };
        let new = Baseline::new(name, unguard(fields.raw(Column::Attribution)), fields.router()?);
        let row = fields.row()?;
        let same = |other: &Baseline| other.name == new.name && other.router == new.router;
        let at = match self.baselines.iter().position(same) {
            Some(at) => {
                if self.baselines[at].attribution.is_empty() {
                    self.baselines[at].attribution = new.attribution;
                }
                at
            }
            None if self.baselines.len() == MAX_BASELINES => return Err(ImportError::Baselines { line }),
            None => {
                self.baselines.push(new);
                self.baselines.len() - 1
            }
        };
        if !self.levels.insert((at, row.concurrency.to_bits())) {
            let concurrency = quoted(fields.raw(Column::Concurrency).trim());
            return Err(ImportError::TwoLevels { line, concurrency });
        }
        // Put in order at the end.
        self.baselines[at].rows.push(row);
        Ok(())
    }

    fn finish(mut self) -> Vec<Baseline> {
        for baseline in &mut self.baselines {
            baseline.rows.sort_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
        }
        self.baselines
    }
}
