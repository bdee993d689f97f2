//! In which order members are listed. What is unknown comes last, whichever way.

use std::cmp::Ordering;

use radixscope_export::fleet::MemberReport;

/// Its key in the address: a column, with `-` before it for the largest first.
pub const KEY: &str = "fleet.sort";

/// A column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Its name.
    Name,
    /// How urgent it is.
    Worst,
    /// KV hit rate.
    HitRate,
    /// TTFT p95.
    Ttft,
    /// Where most of the reuse is lost.
    Reuse,
    /// Workers.
    Workers,
    /// Requests that ended.
    Requests,
    /// Its last answer.
    Age,
}

impl Column {
    const ALL: [Self; 8] = [
        Self::Name,
        Self::Worst,
        Self::HitRate,
        Self::Ttft,
        Self::Reuse,
        Self::Workers,
        Self::Requests,
        Self::Age,
    ];

    /// Its name in the address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Worst => "worst",
            Self::HitRate => "hit_rate",
            Self::Ttft => "ttft",
            Self::Reuse => "reuse",
            Self::Workers => "workers",
            Self::Requests => "requests",
            Self::Age => "age",
        }
    }

    /// Class of its cells.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Name => "f-name",
            Self::Worst => "f-findings",
            Self::HitRate => "f-hit",
            Self::Ttft => "f-ttft",
            Self::Reuse => "f-reuse",
            Self::Workers => "f-workers n",
            Self::Requests => "f-requests n",
            Self::Age => "f-age n",
        }
    }

    /// Whether the largest is what is looked for.
    const fn begins_descending(self) -> bool {
        matches!(self, Self::Ttft | Self::Reuse | Self::Workers | Self::Requests | Self::Age)
    }

    fn value(self, member: &MemberReport) -> Option<f64> {
        let now = member.current();
        match self {
            Self::Name | Self::Worst => None,
            Self::HitRate => now?.hit_rate.share,
            Self::Ttft => now?.ttft.p95_ms.map(|p95| p95.high().unwrap_or(f64::MAX)),
            Self::Reuse => now?.reuse.worst.as_ref().map(|worst| worst.share),
            Self::Workers => Some(now?.workers.present.into()),
            Self::Requests => now?.requests.per_s,
            Self::Age => member.answered_ms.map(|at| -(at.0 as f64)),
        }
    }
}

/// A column and a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    column: Column,
    is_descending: bool,
}

impl Order {
    /// As the address says; the worst first where it says nothing.
    pub fn of(text: Option<&str>) -> Self {
        let text = text.unwrap_or_default();
        let (is_descending, name) = text.strip_prefix('-').map_or((false, text), |name| (true, name));
        let column = Column::ALL.into_iter().find(|column| column.as_str() == name);
        column.map_or(Self { column: Column::Worst, is_descending: false }, |column| Self {
            column,
            is_descending,
        })
    }

    /// As the address has it; `None`: the default.
    pub fn to_text(self) -> Option<String> {
        let Self { column, is_descending } = self;
        let is_default = column == Column::Worst && !is_descending;
        (!is_default).then(|| format!("{}{}", if is_descending { "-" } else { "" }, column.as_str()))
    }

    /// After a press on the head of `column`.
    pub fn toggled(self, column: Column) -> Self {
        let is_descending =
            if self.column == column { !self.is_descending } else { column.begins_descending() };
        Self { column, is_descending }
    }

    /// For the head of `column`: in which direction it is sorted.
    pub fn aria(self, column: Column) -> Option<&'static str> {
        (self.column == column).then_some(if self.is_descending { "descending" } else { "ascending" })
    }

    /// Which of two comes first.
    pub fn compare(self, a: &MemberReport, b: &MemberReport) -> Ordering {
        let directed = |order: Ordering| if self.is_descending { order.reverse() } else { order };
        let by = match self.column {
            Column::Name => directed(a.name.cmp(&b.name)),
            Column::Worst => directed(a.worst_first().cmp(&b.worst_first())),
            column => match (column.value(a), column.value(b)) {
                (Some(a), Some(b)) => directed(a.total_cmp(&b)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => Ordering::Equal,
            },
        };
        by.then_with(|| a.name.cmp(&b.name))
    }
}
