//! Notices: which there are, in which order, and what each says.

use radixscope_captures::Recording;
use radixscope_model::id::{Millis, Seq, SourceIx};
use radixscope_model::record::{Entry, LinkState, Record};
use radixscope_panels::link::{Check, Link, Resyncs};
use radixscope_panels::notices::{Act, Notice, NoticeInputs, ShownFile, incompatible_text};
use radixscope_panels::url::Panel;
use radixscope_sim::Topology;

use crate::folded::Folded;
use crate::states::{ZONE, nothing, recorded};

fn inputs() -> NoticeInputs {
    NoticeInputs {
        past: None,
        file: None,
        file_note: String::new(),
        link: Link::Live,
        as_of: None,
        is_ready: true,
        is_stale: false,
        check: Check::default(),
        resyncs: Resyncs::default(),
        unknown_pool: None,
        misread: Vec::new(),
        of_server: None,
        panel: Panel::Overview,
        zone: ZONE,
    }
}

fn of(folded: &Folded, inputs: &NoticeInputs) -> Vec<Notice> {
    Notice::all(&folded.shown(), inputs)
}

/// The only notice.
fn one(inputs: &NoticeInputs) -> Notice {
    let mut all = of(&nothing(), inputs);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

const AT: Millis = Millis(10 * 3_600_000);

#[test]
fn a_healthy_page_has_none() {
    let folded = Folded::demo(Topology::Aggregated, 30);
    for panel in Panel::ALL {
        let inputs = NoticeInputs { panel: *panel, ..inputs() };
        assert_eq!(of(&folded, &inputs), [], "{panel:?}");
    }
}

#[test]
fn a_lost_link_says_since_when_and_as_of_when() {
    let waiting = Link::Waiting { attempts: 3, seconds: 8 };
    let notice = one(&NoticeInputs { link: waiting, as_of: Some(AT), ..inputs() });
    assert_eq!(
        notice.text,
        "No connection to the server since 11:30:00 after 3 attempts. Next attempt in 8 s. Showing the last known state, as of 11:30:00."
    );
    assert_eq!((notice.id, notice.level), ("notice-reconnecting", "bad of-link"));
    assert_eq!(notice.act.map(Act::to_text), Some(("Try now", "retry")));
    let first = one(&NoticeInputs { link: Link::Waiting { attempts: 1, seconds: 1 }, ..inputs() });
    assert_eq!(first.text, "No connection to the server. Next attempt in 1 s.");
    let again = one(&NoticeInputs { link: Link::Connecting, as_of: Some(AT), ..inputs() });
    assert_eq!(again.text, "Connecting again. Showing the last known state, as of 11:30:00.");
    let never = NoticeInputs { link: Link::Connecting, is_ready: false, ..inputs() };
    assert_eq!(of(&nothing(), &never), [], "the first connection is no trouble");
    let stale = one(&NoticeInputs { is_stale: true, as_of: Some(AT), ..inputs() });
    assert_eq!(
        stale.text,
        "Stale: nothing came from the server since 11:30:00. Waiting for it to respond. Showing the last known state, as of 11:30:00."
    );
    assert_eq!((stale.id, stale.act), ("notice-stale", None));
}

/// A state whose source is in a state.
fn with_source(state: LinkState, detail: &'static str) -> Folded {
    let mut folded = Folded::demo(Topology::Aggregated, 5);
    let seq = Seq(folded.cluster.seq().0 + 1);
    let record = Record::SourceState { source: SourceIx(0), state, detail: detail.into() };
    folded.cluster.fold(seq, &Entry { at_ms: folded.now, record });
    folded
}

#[test]
fn a_source_in_trouble_is_named() {
    for (state, level, word) in [
        (LinkState::Refused, "bad", "refused"),
        (LinkState::Partial, "bad", "partly denied"),
        (LinkState::CatchingUp, "info", "catching up"),
        (LinkState::Ended, "info", "ended"),
        (LinkState::Connecting, "warn", "not connected"),
    ] {
        let all = of(&with_source(state, "no route to host"), &inputs());
        let [notice] = &all[..] else { panic!("{all:?}") };
        assert_eq!((notice.id, notice.level), ("notice-source", level));
        let expected = format!("Source simulated {word}: no route to host");
        assert!(notice.text.starts_with(&expected), "{}", notice.text);
    }
    let text = of(&with_source(LinkState::Connecting, ""), &inputs()).remove(0).text;
    assert!(text.starts_with("Source simulated not connected. Figures from it are as of "), "{text}");
    assert_eq!(of(&with_source(LinkState::Live, ""), &inputs()), []);
}

#[test]
fn a_tree_that_lacks_blocks_is_named_on_panels_that_rest_on_it() {
    let folded = recorded(&Recording::late("1.6.1-nats-late-replica-sync"));
    let rests = [
        Panel::Tree,
        Panel::Workers,
        Panel::Decisions,
        Panel::Reuse,
        Panel::WhatIf,
        Panel::Counterfactual,
        Panel::Memory,
    ];
    for panel in Panel::ALL {
        let all = of(&folded, &NoticeInputs { panel: *panel, ..inputs() });
        let partial: Vec<_> = all.iter().filter(|notice| notice.id == "notice-partial").collect();
        assert_eq!(partial.len(), usize::from(rests.contains(panel)), "{panel:?}");
        for notice in partial {
            assert!(notice.text.starts_with("The tree is incomplete: unknown share"), "{}", notice.text);
            assert_eq!(notice.act.map(Act::to_text), Some(("Show", "show-findings")));
        }
    }
    let unready = NoticeInputs { panel: Panel::Tree, is_ready: false, ..inputs() };
    assert!(of(&folded, &unready).iter().all(|notice| notice.id != "notice-partial"));
}

#[test]
fn the_most_pressing_come_first() {
    let file = ShownFile { name: "monday.rdx".to_owned(), from: Millis(0), until: AT, can_close: true };
    let resyncs = Resyncs { behind: 1, skipped: 1_200, unreadable: 2, why: "ends too early".to_owned() };
    let all = NoticeInputs {
        past: Some((AT, "No segment is there.".to_owned())),
        file: Some(file),
        file_note: "not a recording".to_owned(),
        link: Link::Waiting { attempts: 1, seconds: 2 },
        check: Check { different: 1, ..Check::default() },
        resyncs,
        unknown_pool: Some("pool=a in the address is invalid".to_owned()),
        misread: vec!["theme=pink in the address is invalid".to_owned()],
        of_server: Some("No password is set".to_owned()),
        ..inputs()
    };
    let shown = of(&with_source(LinkState::Refused, "denied"), &all);
    let ids: Vec<_> = shown.iter().map(|notice| notice.id).collect();
    let expected = [
        "notice-past",
        "notice-file-words",
        "notice-file",
        "notice-reconnecting",
        "notice-source",
        "notice-digest",
        "notice-behind",
        "notice-unreadable",
        "notice-pool",
        "notice-address",
        "notice-server",
    ];
    assert_eq!(ids, expected);
    let text = |id: &str| shown.iter().find(|notice| notice.id == id).unwrap().text.clone();
    assert_eq!(text("notice-past"), "Showing 11:30:00, not the present. No segment is there.");
    assert_eq!(
        text("notice-file"),
        "Showing the recording monday.rdx, 01:30:00 to 11:30:00; no request goes to a server"
    );
    assert_eq!(
        text("notice-behind"),
        "This viewer fell behind and was resynchronised 1 time (1,200 records replaced by a snapshot)."
    );
    assert!(
        text("notice-unreadable")
            .ends_with("invalid 2 times; the state was fetched again. The last error: ends too early.")
    );
    assert!(text("notice-digest").starts_with("This page's state differed from the server's 1 time;"));
    let acts: Vec<_> = shown.iter().filter_map(|notice| notice.act.map(Act::to_text)).collect();
    assert_eq!(
        acts.iter().map(|(text, _)| *text).collect::<Vec<_>>(),
        ["Back to live", "Dismiss", "Close file", "Try now"]
    );
}

#[test]
fn a_page_that_does_not_understand_the_server_names_both_versions() {
    let ours = radixscope_model::frame::PROTOCOL_VERSION;
    let text = incompatible_text("radixscope 9", 99);
    assert_eq!(
        text,
        format!("The server (radixscope 9) speaks protocol version 99, this page version {ours}.")
    );
    assert!(incompatible_text("", 1).starts_with("The server speaks protocol version 1,"));
}
