//! Where NATS or etcd is as this process reaches it: at its address in the cluster, from outside through a listener on this
//! machine. Follows where it is.

use std::sync::Arc;

use tokio::sync::watch;
use url::Url;

use super::places::{Place, Places};
use super::tunnel::{Listener, Target, Tunnels};

/// An address as this process reaches it, and what it is in the cluster; or in words why there is none.
pub(crate) type Reached = Result<(Url, Url), String>;

/// See the module.
pub(crate) struct Reaching {
    pub(crate) places: watch::Receiver<Places>,
    /// From outside the cluster.
    pub(crate) tunnels: Option<Arc<Tunnels>>,
    /// Which of the places.
    pub(crate) pick: fn(&Places) -> Option<&Place>,
    /// What is said while it is nowhere.
    pub(crate) none: String,
}

impl Reaching {
    /// What `make` makes of where it is now, and of each place where it is later, until nobody looks.
    pub(crate) async fn follow<T: Send + Sync + 'static>(
        mut self,
        make: impl Fn(Reached) -> T + Send + 'static,
    ) -> watch::Receiver<T> {
        let place = (self.pick)(&self.places.borrow_and_update()).cloned();
        let (reached, listener) = self.reach(place.as_ref()).await;
        let (to, made) = watch::channel(make(reached));
        // A listener ends when the next place takes over.
        let mut held = (place, listener);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = to.closed() => return,
                    changed = self.places.changed() => if changed.is_err() { return },
                }
                let now = (self.pick)(&self.places.borrow_and_update()).cloned();
                let is_same = match (&held.0, &now) {
                    (Some(place), Some(now)) => place.leads_where(now),
                    (place, now) => place.is_none() && now.is_none(),
                };
                // Whatever leads there now stays while it leads there.
                if !is_same {
                    let (reached, listener) = self.reach(now.as_ref()).await;
                    to.send_replace(make(reached));
                    held = (now, listener);
                }
            }
        });
        made
    }

    async fn reach(&self, place: Option<&Place>) -> (Reached, Option<Listener>) {
        let Some(place) = place else { return (Err(self.none.clone()), None) };
        let shown = place.shown();
        let Some(tunnels) = &self.tunnels else { return (Ok((place.url.clone(), shown)), None) };
        let Some(behind) = &place.behind else {
            let why = format!(
                "{shown} ({}) is behind no service in the namespaces that are read, so there is no port-forward to it.",
                place.why
            );
            tracing::warn!("{why}");
            return (Err(why), None);
        };
        match tunnels.listen(Target::Service(behind.clone())).await {
            Ok(listener) => {
                let (mut url, at) = (place.url.clone(), listener.at);
                match url.set_ip_host(at.ip()).is_ok() && url.set_port(Some(at.port())).is_ok() {
                    true => (Ok((url, shown)), Some(listener)),
                    false => (Err(format!("{shown} ({}) is no address of a server.", place.why)), None),
                }
            }
            Err(error) => {
                (Err(format!("There is no port on this machine that could lead to {shown}: {error}.")), None)
            }
        }
    }
}
