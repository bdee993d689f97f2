//! What is missing where a rule has no data: never a source that is given already. Knows no rule.

use super::View;
use crate::latency::ENABLE_FRONTEND;
use radixscope_model::record::{LinkState, ProcessRole, SourceKind};
use radixscope_state::cluster::SourceState;

/// Why no frontend's metrics have `what` (`how many requests it served`), which they have in `versions` (`from 1.0 on`;
/// empty: in all).
pub(super) fn of_frontends(view: &View<'_>, what: &str, versions: &str) -> String {
    if is_without_router(view) {
        return format!("{WITHOUT_ROUTER} A frontend's metrics would report {what}.");
    }
    let among = if versions.is_empty() { String::new() } else { format!(" (Dynamo {versions})") };
    match scraped(view, ProcessRole::Frontend) {
        Scraped::Role => format!("The scraped frontend's metrics do not report {what}{among}."),
        Scraped::Other => {
            format!(
                "None of the scraped processes is a frontend, whose metrics report {what}{among}: {ENABLE_FRONTEND}"
            )
        }
        Scraped::Unreachable(name) => {
            format!("{name} cannot be read now, which may report {what}{among}.")
        }
        Scraped::Nothing => format!("A frontend's metrics report {what}{among}: {ENABLE_FRONTEND}"),
    }
}

/// Why there is no data from the event plane.
pub(super) fn of_event_plane(view: &View<'_>) -> String {
    let planes = [SourceKind::Nats, SourceKind::Zmq, SourceKind::Engines];
    match planes.into_iter().find_map(|kind| sources(view, kind).next()) {
        None => {
            "Dynamo's event plane is not read; set its NATS server with --nats, or --discovery, which finds its \
                 ZeroMQ publishers."
                .to_owned()
        }
        Some(plane) => format!("{} is not connected now.", plane.name),
    }
}

/// What is said where engines are listened to without a router.
const WITHOUT_ROUTER: &str = "No router: engines report what they cache, and no decisions or requests.";

/// Whether all that is known are engines by their own KV events.
fn is_without_router(view: &View<'_>) -> bool {
    view.cluster.has_no_router()
        && view.cluster.processes().iter().all(|process| process.role != ProcessRole::Frontend)
}

/// Whether a log is read.
pub(super) fn has_logs(view: &View<'_>) -> bool {
    sources(view, SourceKind::Logs).chain(sources(view, SourceKind::Simulator)).next().is_some()
}

/// What is scraped.
enum Scraped<'v> {
    /// A process of the role.
    Role,
    /// Other processes.
    Other,
    /// A process is given, and none was ever read.
    Unreachable(&'v str),
    /// No process is given.
    Nothing,
}

fn scraped<'v>(view: &View<'v>, role: ProcessRole) -> Scraped<'v> {
    let processes = view.cluster.processes();
    if processes.iter().any(|process| process.role == role) {
        return Scraped::Role;
    }
    let mut given = sources(view, SourceKind::Prometheus);
    match given.clone().find(|source| source.state != LinkState::Live).or_else(|| given.next()) {
        None if processes.is_empty() => Scraped::Nothing,
        Some(source) if source.state != LinkState::Live => Scraped::Unreachable(&source.name),
        _ => Scraped::Other,
    }
}

fn sources<'v>(view: &View<'v>, kind: SourceKind) -> impl Iterator<Item = &'v SourceState> + Clone + use<'v> {
    view.cluster.sources().iter().filter(move |source| source.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::id::SourceIx;
    use radixscope_model::record::Record;

    fn missing(stage: &Stage) -> String {
        stage.view(|view| of_frontends(view, "the number of requests", "from 1.0 on"))
    }

    #[test]
    fn what_is_given_is_not_requested() {
        let mut stage = Stage::new(1);
        assert!(missing(&stage).contains(ENABLE_FRONTEND), "{}", missing(&stage));
        let source = SourceIx(1);
        stage.record(Record::Source { source, name: "metrics/f".into(), kind: SourceKind::Prometheus });
        stage.record(Record::SourceState { source, state: LinkState::Connecting, detail: "".into() });
        assert!(missing(&stage).starts_with("metrics/f cannot be read"), "{}", missing(&stage));
        stage.record(Record::SourceState { source, state: LinkState::Live, detail: "".into() });
        stage.scrape(&Process::of_worker(0));
        assert!(missing(&stage).starts_with("None of the scraped"), "{}", missing(&stage));
        stage.scrape(&Process::frontend());
        assert_eq!(
            missing(&stage),
            "The scraped frontend's metrics do not report the number of requests (Dynamo from 1.0 on)."
        );
    }
}
