//! Real names of namespaces behind the slugs that streams bear: `my_ns` reads `my-ns` there. Workers of one namespace must
//! not be two pools because some are first received through a stream.

use hashbrown::{HashMap, HashSet};

use radixscope_dynamo::subject::slug;

/// Namespaces remembered; what comes beyond them goes by its slug.
const MAX_NAMES: usize = 1 << 10;

#[derive(Default)]
pub(super) struct RealNames {
    known: HashSet<Box<str>>,
    /// The one named last: a deployment has one, mostly.
    last: Box<str>,
    /// Of those that are other than their slugs.
    by_slug: HashMap<Box<str>, Box<str>>,
}

impl RealNames {
    /// A namespace as it is really called.
    pub(super) fn learn(&mut self, namespace: &str) {
        if *self.last == *namespace {
            return;
        }
        self.last = namespace.into();
        if namespace.is_empty() || self.known.contains(namespace) || self.known.len() == MAX_NAMES {
            return;
        }
        self.known.insert(namespace.into());
        let slug = slug(namespace);
        if slug != namespace {
            self.by_slug.insert(slug.into(), namespace.into());
        }
    }

    /// What a namespace of this slug is really called; `None`: so, as far as is known.
    pub(super) fn of(&self, slug: &str) -> Option<&str> {
        if self.by_slug.is_empty() { None } else { self.by_slug.get(slug).map(|name| &**name) }
    }
}
