//! A baseline as the command line names it: `PATH`, or `ROUTER=PATH` for results of a load generator, which do not say how
//! their requests were routed.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use radixscope_insight::baseline::Router;

/// A file or folder to read a baseline from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BaselineAt {
    /// How its requests were routed; `None`: the file says so.
    pub router: Option<Router>,
    /// A CSV file, a file of results, or a folder of them.
    pub path: PathBuf,
}

impl BaselineAt {
    /// What it is called, where the file does not say: as the file or folder. A folder that is called as its router is named by
    /// the folder around it, so that both sweeps of one experiment have one name.
    pub fn name(&self) -> String {
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let of = |name: Option<&std::ffi::OsStr>| name.unwrap_or_default().to_string_lossy().into_owned();
        if !path.is_dir() {
            return of(path.file_stem());
        }
        let own = of(path.file_name());
        match router(&own) {
            Some(_) => Some(of(path.parent().and_then(std::path::Path::file_name)))
                .filter(|name| !name.is_empty())
                .unwrap_or(own),
            None => own,
        }
    }
}

/// Also by the name that frontends give it (`--router-mode kv`).
fn router(name: &str) -> Option<Router> {
    if name.eq_ignore_ascii_case("kv") {
        return Some(Router::KvAware);
    }
    Router::ALL.into_iter().find(|router| router.as_str().eq_ignore_ascii_case(name))
}

impl FromStr for BaselineAt {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let named = text.split_once('=').and_then(|(name, path)| Some((router(name)?, path)));
        let (router, path) = match named {
            Some((router, path)) => (Some(router), path),
            None => (None, text),
        };
        Ok(Self { router, path: PathBuf::from(path) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_router_stands_before_the_path_if_it_is_one() {
        for (text, router, path) in [
            ("sweep.csv", None, "sweep.csv"),
            ("kv=results/kv", Some(Router::KvAware), "results/kv"),
            ("kv-aware=a=b", Some(Router::KvAware), "a=b"),
            ("Round-Robin=rr", Some(Router::RoundRobin), "rr"),
            ("other=x.json", Some(Router::Other), "x.json"),
            ("a=b.csv", None, "a=b.csv"),
        ] {
            let Ok(at) = text.parse::<BaselineAt>();
            assert_eq!((at.router, at.path), (router, PathBuf::from(path)), "{text}");
        }
    }

    #[test]
    fn both_sweeps_of_an_experiment_are_called_as_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let name = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            BaselineAt { router: None, path }.name()
        };
        assert_eq!(name("lab/kv-aware"), "lab");
        assert_eq!(name("lab/round-robin"), "lab");
        assert_eq!(name("lab/tuesday"), "tuesday");
        std::fs::write(folder.path().join("mine.csv"), "").unwrap();
        assert_eq!(BaselineAt { router: None, path: folder.path().join("mine.csv") }.name(), "mine");
    }
}
