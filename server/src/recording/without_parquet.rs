//! Decisions as Parquet, in a binary that was built without it.

use std::convert::Infallible;
use std::io::Write;
use std::marker::PhantomData;

use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::config::InvalidOption;

/// There is none.
pub(crate) struct Decisions<W>(Infallible, PhantomData<W>);

impl<W: Write + Send> Decisions<W> {
    /// Refuses to.
    pub(crate) fn begin(_: W) -> anyhow::Result<Self> {
        Err(InvalidOption::needs_feature("--decisions parquet", "parquet").into())
    }

    pub(crate) fn push(&mut self, _: &Cluster, _: &DecisionEntry) -> std::io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn end(self) -> anyhow::Result<W> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::Decisions;

    #[test]
    fn decisions_as_parquet_are_refused_and_the_missing_feature_named() {
        let error = Decisions::begin(Vec::new()).err().unwrap().to_string();
        assert!(error.contains("cargo feature parquet, which the released one has"), "{error}");
    }
}
