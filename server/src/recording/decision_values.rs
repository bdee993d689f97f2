//! The values of a decision's columns. Beside a recording that goes to a store they are appended to a file of rows as decisions end, of
//! which a Parquet file is made.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use radixscope_export::rows::{DECISION_COLUMNS, DecisionFields, ReadColumn};
use radixscope_state::cluster::{Cluster, DecisionEntry};

/// A value of a column.
#[derive(Serialize, Deserialize)]
pub(super) enum Value {
    Whole(Option<u64>),
    Real(Option<f64>),
    Text(Option<String>),
    Flag(bool),
}

/// The values of a decision's columns, in their order.
#[derive(Serialize, Deserialize)]
pub(crate) struct DecisionValues(pub(super) Vec<Value>);

impl DecisionValues {
    /// `None` if the state does not know its worker, as in the API.
    pub(crate) fn of(cluster: &Cluster, decided: &DecisionEntry) -> Option<Self> {
        let fields = DecisionFields::of(cluster, decided)?;
        let value = |&(_, column): &(&str, ReadColumn)| match column {
            ReadColumn::Whole(read) => Value::Whole(read(fields)),
            ReadColumn::Real(read) => Value::Real(read(fields).filter(|value| value.is_finite())),
            ReadColumn::Text(read) => Value::Text(read(fields).map(Cow::into_owned)),
            ReadColumn::Flag(read) => Value::Flag(read(fields)),
        };
        Some(Self(DECISION_COLUMNS.iter().map(value).collect()))
    }

    /// As it stands in a file of rows: after its length in four bytes, the least first.
    pub(super) fn encode(&self) -> Vec<u8> {
        let row = postcard::to_allocvec(self).unwrap_or_default();
        let len = u32::try_from(row.len()).unwrap_or(u32::MAX);
        [&len.to_le_bytes()[..], &row].concat()
    }
}
