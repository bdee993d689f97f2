//! Lines as every version of Dynamo writes them, one of each kind, as text, coloured and as JSONL: what kind they are,
//! and by which ids they name their request.

use std::collections::BTreeSet;

use radixscope_dynamo::log_line::{LogEvent, RequestIds, decode};
use radixscope_model::record::{MAX_SESSION_BYTES, Role, RoutingMode};
use regex::Regex;

/// Version, kind, the router's id, the HTTP span's id, and the line; `-` for an id that the line does not bear. Lists of
/// hashes are cut to two.
const LINES: &str = include_str!("../../fixtures/log_lines.tsv");

struct Line<'t> {
    version: &'t str,
    kind: &'t str,
    ids: [Option<&'t str>; 2],
    text: &'t str,
}

fn lines() -> Vec<Line<'static>> {
    let id = |text: &'static str| (text != "-").then_some(text);
    LINES
        .lines()
        .map(|line| {
            let [version, kind, router, http, text] =
                line.splitn(5, '\t').collect::<Vec<_>>().try_into().expect("five columns");
            Line { version, kind, ids: [id(router), id(http)], text }
        })
        .collect()
}

/// As a terminal gets it: every part in a colour of its own.
fn coloured(text: &str) -> String {
    let head = Regex::new(r"^(\S+)( +)(\w+) ((?:\S+: )+)").expect("a pattern");
    let head = head.replace(text, "\x1b[2m$1\x1b[0m \x1b[32m$2$3\x1b[0m \x1b[2m$4\x1b[0m");
    let fields = Regex::new(r" ([a-z_.]+)=").expect("a pattern");
    // The numbers of the older lines stand in their message and have no colour.
    let (message, behind) = head.split_at(head.find(" method=").unwrap_or(head.len()));
    format!("{message}{}", fields.replace_all(behind, " \x1b[3m$1\x1b[0m\x1b[2m=\x1b[0m"))
}

fn kind_and_ids(event: &LogEvent<'_>) -> (&'static str, [Option<String>; 2]) {
    let own = |id: Option<&str>| id.map(str::to_owned);
    let both = |ids: &RequestIds<'_>| [own(ids.router.as_deref()), own(ids.http.as_deref())];
    match event {
        LogEvent::Formula(event) => ("formula", both(&event.ids)),
        LogEvent::Tie(event) => ("tie", both(&event.ids)),
        LogEvent::Selected(event) => ("selected", both(&event.ids)),
        LogEvent::SessionLookup(event) => ("session lookup", both(&event.ids)),
        LogEvent::Dispatched(event) => ("dispatched", both(&event.ids)),
        LogEvent::RoutingBest(event) => ("best", both(&event.ids)),
        LogEvent::RoutingInput(event) => {
            ("input", [own(Some(&event.request_id)), own(event.http_id.as_deref())])
        }
        LogEvent::RouteDone(event) => {
            ("route done", [own(Some(&event.request_id)), own(event.http_id.as_deref())])
        }
        LogEvent::RequestReceived(event) => {
            ("received", [own(Some(&event.request_id)), own(event.http_id.as_deref())])
        }
        LogEvent::RequestDone(event) => {
            ("request done", [own(Some(&event.request_id)), own(event.http_id.as_deref())])
        }
        _ => ("other", [None, None]),
    }
}

#[test]
fn every_kind_of_every_version_names_its_request_by_the_ids_that_it_bears() {
    let mut versions = BTreeSet::new();
    for line in lines() {
        versions.insert(line.version);
        let expected = (line.kind, line.ids.map(|id| id.map(str::to_owned)));
        let read = |text: &str| {
            let decoded = decode(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
            decoded.unwrap_or_else(|| panic!("says nothing: {text}")).into_owned()
        };
        let plain = read(line.text);
        assert_eq!(kind_and_ids(&plain.event), expected, "{}: {}", line.version, line.text);
        if !line.text.starts_with('{') {
            assert_eq!(read(&coloured(line.text)), plain, "{}", coloured(line.text));
        }
    }
    assert_eq!(versions.len(), 10, "{versions:?}");
}

#[test]
fn what_a_router_found_of_a_session_and_what_it_chose_by_is_read() {
    let (mut bound, mut unbound) = (0, 0);
    for line in lines().into_iter().filter(|line| line.kind == "session lookup") {
        let LogEvent::SessionLookup(found) = decode(line.text.as_bytes()).unwrap().unwrap().event else {
            panic!("{}", line.text)
        };
        assert!(found.session_id.starts_with("session-"), "{}", line.text);
        *(if found.bound_to.is_some() { &mut bound } else { &mut unbound }) += 1;
    }
    assert_eq!((bound, unbound), (3, 3));
    let selected = |line: &str| match decode(line.as_bytes()).unwrap().unwrap().event {
        LogEvent::Selected(selected) => (selected.pinned, selected.worker_type),
        other => panic!("{other:?}"),
    };
    let of = |text: &str| {
        lines().into_iter().filter(|line| line.text.contains(text)).map(|line| selected(line.text)).collect()
    };
    let pinned: Vec<_> = of("Selected pinned worker");
    assert_eq!(pinned, [(true, Some(Role::Decode)); 2]);
    let by_policy: Vec<_> = of("worker_type=aggregated");
    assert_eq!(by_policy, [(false, Some(Role::Aggregated))]);
}

#[test]
fn a_session_without_a_name_or_with_an_endless_one_is_refused() {
    let line = |id: &str| {
        format!(
            "2026-11-26T11:28:06.822417Z DEBUG http-request: a::affinity: Session affinity hit: reusing pinned worker \
             session_id={id} worker_id=7 dp_rank=Some(1) active_leases=1 method=POST uri=/ version=HTTP/1.1 request_id=h"
        )
    };
    let long = "s".repeat(MAX_SESSION_BYTES);
    assert!(decode(line(&long).as_bytes()).is_ok());
    for id in [String::new(), long + "s"] {
        assert!(decode(line(&id).as_bytes()).is_err(), "{id}");
    }
}

#[test]
fn a_direct_choice_of_another_mode_claims_no_overlap() {
    let dispatched = lines().into_iter().filter(|line| line.kind == "dispatched").map(|line| line.text);
    let (mut text, mut json) = (0, 0);
    for line in dispatched {
        let other = line.replace("kv_router.route_request", "router.route_request");
        assert_eq!(decode(other.as_bytes()), Ok(None), "{other}");
        let without = line.replace("overlap_blocks", "other_blocks");
        assert_eq!(decode(without.as_bytes()), Ok(None), "{without}");
        let other = without.replace("kv_router.route_request", "router.route_request");
        let direct = decode(other.as_bytes()).expect("a line").expect("of ours").event;
        let LogEvent::SelectedWithoutKv(direct) = direct else { panic!("{direct:?}") };
        assert_eq!(direct.mode, RoutingMode::Direct, "{other}");
        *(if line.starts_with('{') { &mut json } else { &mut text }) += 1;
    }
    assert_eq!((text, json), (2, 2), "1.3 and 1.4");
}

#[test]
fn a_model_or_an_address_named_like_a_field_changes_no_id() {
    let line = "2026-11-20T18:06:54.428894Z  INFO http-request:kv_router.route_request: a::push_router: Selected worker \
                router_mode=\"direct\" worker_id=7 method=POST uri=/v1?request_id=3 version=HTTP/1.1 request_id=http \
                model=\"x request_id=4 \\\" request_id=5\" request_id=router worker_id=7 dp_rank=1 overlap_blocks=2";
    let Ok(Some(decoded)) = decode(line.as_bytes()) else { panic!("not understood") };
    assert_eq!(
        kind_and_ids(&decoded.event),
        ("dispatched", [Some("router".to_owned()), Some("http".to_owned())])
    );
}
