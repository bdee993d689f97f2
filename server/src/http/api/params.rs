//! Query parameters. Errors name the parameter, its value and what was expected.

use axum::http::Uri;
use url::form_urlencoded;

use radixscope_insight::view_context::is_all;
use radixscope_model::id::{BlockHash, PoolIx, TokensHash, Worker, WorkerIx};
use radixscope_state::cluster::{Cluster, PoolState};
use radixscope_state::tree::Tree;

use crate::http::error::{ApiError, code};

/// Maximum parameters of a request.
const MAX_PARAMETERS: usize = 32;

/// The query of a request. Unknown keys are errors: a misspelt filter must not return everything.
pub(in crate::http) struct Params(Vec<(String, String)>);

impl Params {
    pub(in crate::http) fn of(uri: &Uri, known: &[&str]) -> Result<Self, ApiError> {
        let query = uri.query().unwrap_or_default();
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .take(MAX_PARAMETERS)
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .collect();
        for (i, (key, _)) in pairs.iter().enumerate() {
            let shown: String = key.chars().take(80).collect();
            if !known.contains(&key.as_str()) {
                let message = format!("unknown parameter {shown:?}; known are {}", known.join(", "));
                return Err(ApiError::new(code::BAD_PARAMETER, message));
            }
            if pairs[..i].iter().any(|(before, _)| before == key) {
                return Err(ApiError::new(code::BAD_PARAMETER, format!("{shown:?} is given twice")));
            }
        }
        Ok(Self(pairs))
    }

    /// The value of `name`; `None` if it is missing or empty.
    pub(in crate::http) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|v| !v.is_empty())
    }

    pub(in crate::http) fn u64(&self, name: &str) -> Result<Option<u64>, ApiError> {
        self.get(name)
            .map(|text| {
                text.parse()
                    .map_err(|_| ApiError::bad_parameter(name, text, "a decimal number of at most 64 bits"))
            })
            .transpose()
    }

    /// A number from `least` to `most`.
    pub(in crate::http) fn within(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, ApiError> {
        match self.u64(name)? {
            Some(number) if !(least..=most).contains(&number) => {
                let expected = format!("a number from {least} to {most}");
                Err(ApiError::bad_parameter(name, &number.to_string(), &expected))
            }
            number => Ok(number),
        }
    }

    /// One of a few words.
    pub(in crate::http) fn one_of<T: Copy>(
        &self,
        name: &str,
        values: &[(&str, T)],
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match values.iter().find(|(word, _)| *word == text) {
            Some(&(_, meaning)) => Ok(Some(meaning)),
            None => {
                let known: Vec<&str> = values.iter().map(|&(word, _)| word).collect();
                Err(ApiError::bad_parameter(name, text, &format!("one of {}", known.join(", "))))
            }
        }
    }

    /// The pool filter: `pool=NAMESPACE/COMPONENT`, `model=NAME`.
    pub(in crate::http) fn pools(&self) -> PoolFilter {
        let owned = |name| self.filter(name).map(str::to_owned);
        // Invalid values are reported where they are used.
        let number = |name| self.u64(name).ok().flatten();
        PoolFilter {
            worker: self.worker().ok().flatten(),
            block: number("root").or_else(|| number("hash")).map(BlockHash),
            tokens: number("tokens").map(TokensHash),
            ..PoolFilter::new(owned("pool"), owned("model"))
        }
    }

    /// The worker filter.
    pub(in crate::http) fn worker(&self) -> Result<Option<WorkerFilter>, ApiError> {
        self.filter("worker").map(WorkerFilter::parse).transpose()
    }

    /// The value of a filter; `None`: it selects everything.
    fn filter(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !is_all(value))
    }
}

/// Selects pools; without a name, all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::http) struct PoolFilter {
    pool: Option<String>,
    model: Option<String>,
    /// Other parameters, which select a pool if none is named.
    worker: Option<WorkerFilter>,
    block: Option<BlockHash>,
    tokens: Option<TokensHash>,
}

impl PoolFilter {
    /// Whether a pool or a model is named.
    pub(in crate::http) const fn is_named(&self) -> bool {
        self.pool.is_some() || self.model.is_some()
    }

    /// Pools by name, by model, or by both.
    pub(super) fn new(pool: Option<String>, model: Option<String>) -> Self {
        Self { pool, model, ..Self::default() }
    }

    /// The selected pools; `None`: all.
    ///
    /// # Errors
    /// There is no such pool, or no pool of that model.
    pub(in crate::http) fn among(&self, cluster: &Cluster) -> Result<Option<Vec<PoolIx>>, ApiError> {
        if self.pool.is_none() && self.model.is_none() {
            return Ok(None);
        }
        let is_meant = |at: PoolIx, pool: &PoolState| {
            self.pool.as_ref().is_none_or(|name| pool.name() == *name)
                && self.model.as_ref().is_none_or(|name| cluster.models_in(at).contains(&name.as_str()))
        };
        let pools = (0..).map(PoolIx).zip(cluster.pools());
        let meant: Vec<PoolIx> = pools.filter(|(at, pool)| is_meant(*at, pool)).map(|(at, _)| at).collect();
        if meant.is_empty() {
            let names: Vec<String> =
                cluster.pools_in_use().iter().filter_map(|&at| Some(cluster.pool(at)?.name())).collect();
            let message = format!("no such pool; there are {}", names.join(", "));
            return Err(ApiError::new(code::NOT_FOUND, message));
        }
        Ok(Some(meant))
    }

    /// The selected pool for comparing decisions; `None`: none is named and there is only one.
    ///
    /// # Errors
    /// As [`Self::among`].
    pub(super) fn one_of_many(&self, cluster: &Cluster) -> Result<Option<PoolIx>, ApiError> {
        let pool = self.one_of(cluster)?;
        Ok((self.is_named() || cluster.pools_in_use().len() > 1).then_some(pool))
    }

    /// The selected pool for showing a tree: of several, the first with blocks. Without a name, the pool of the worker or
    /// block, else the first with blocks.
    ///
    /// # Errors
    /// As [`Self::among`].
    pub(in crate::http) fn one_of(&self, cluster: &Cluster) -> Result<PoolIx, ApiError> {
        let Some(meant) = self.among(cluster)? else {
            let of_worker = || cluster.pool_of(*self.worker?.among(cluster).ok()?.first()?);
            let has_block = |tree: &Tree| self.block.is_some_and(|hash| tree.find_any(hash).is_some());
            let has_tokens =
                |tree: &Tree| self.tokens.is_some_and(|hash| !tree.find_tokens(hash, 1).is_empty());
            let of_block = || cluster.trees().find(|(_, tree)| has_block(tree) || has_tokens(tree));
            let shown = of_worker().or_else(|| of_block().map(|(pool, _)| pool));
            return Ok(shown.unwrap_or_else(|| cluster.default_pool()));
        };
        let holds_blocks = |pool: &&PoolIx| cluster.tree(**pool).totals().resident > 0;
        Ok(meant.iter().find(holds_blocks).or(meant.first()).copied().unwrap_or_default())
    }
}

/// A worker process, or one data-parallel rank of it: `ID` or `ID/RANK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::http) struct WorkerFilter {
    id: u64,
    dp_rank: Option<u32>,
}

impl WorkerFilter {
    pub(in crate::http) fn parse(text: &str) -> Result<Self, ApiError> {
        let bad = || ApiError::bad_parameter("worker", text, "a worker id in decimal, or ID/RANK");
        let (id, rank) = match text.split_once('/') {
            Some((id, rank)) => (id, Some(rank.parse().map_err(|_| bad())?)),
            None => (text, None),
        };
        Ok(Self { id: id.parse().map_err(|_| bad())?, dp_rank: rank })
    }

    fn is(self, worker: Worker) -> bool {
        worker.id.0 == self.id && self.dp_rank.is_none_or(|rank| rank == worker.dp_rank)
    }

    /// The selected workers.
    ///
    /// # Errors
    /// No such worker is known.
    pub(in crate::http) fn among(self, cluster: &Cluster) -> Result<Vec<WorkerIx>, ApiError> {
        let known = cluster.workers().indexed().chain(cluster.departed());
        let meant: Vec<WorkerIx> =
            known.filter_map(|(ix, worker)| self.is(worker.id).then_some(ix)).collect();
        if meant.is_empty() {
            let rank = self.dp_rank.map(|rank| format!("/{rank}")).unwrap_or_default();
            let message = format!("no message of worker {}{rank} was received", self.id);
            return Err(ApiError::new(code::NOT_FOUND, message));
        }
        Ok(meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Result<Params, ApiError> {
        Params::of(&format!("/x?{query}").parse().unwrap(), &["limit", "worker"])
    }

    #[test]
    fn a_missing_or_empty_value_is_the_default() {
        assert_eq!(params("limit=").unwrap().u64("limit"), Ok(None));
        assert_eq!(params("").unwrap().u64("limit"), Ok(None));
    }

    #[test]
    fn a_bad_value_is_named() {
        let error = format!("{:?}", params("limit=ten").unwrap().u64("limit").unwrap_err());
        assert!(error.contains("limit=") && error.contains("ten"), "{error}");
        assert!(params("limit=11").unwrap().within("limit", 1, 10).is_err());
    }

    #[test]
    fn a_word_that_is_none_of_those_known_is_an_error_that_names_them() {
        let values = [("ten", 10), ("two", 2)];
        assert_eq!(params("limit=two").unwrap().one_of("limit", &values), Ok(Some(2)));
        assert_eq!(params("").unwrap().one_of("limit", &values), Ok(None));
        let error = format!("{:?}", params("limit=three").unwrap().one_of("limit", &values).unwrap_err());
        assert!(error.contains("ten, two"), "{error}");
    }

    #[test]
    fn an_unknown_or_repeated_parameter_is_an_error() {
        assert!(params("workr=1").is_err());
        assert!(params("limit=1&limit=2").is_err());
    }

    #[test]
    fn a_worker_is_an_id_with_or_without_a_rank() {
        let all_ranks = params("worker=18446744073709551615").unwrap().worker().unwrap().unwrap();
        assert!(all_ranks.is(Worker::new(u64::MAX, 3)));
        let one = params("worker=7/1").unwrap().worker().unwrap().unwrap();
        assert!(one.is(Worker::new(7, 1)) && !one.is(Worker::new(7, 0)));
        assert!(params("worker=7/x").unwrap().worker().is_err());
    }
}
