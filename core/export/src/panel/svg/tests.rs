//! Every panel of a known state, read by an XML reader: its words, its figures, its colours, and that nothing lies over the
//! edge.

use roxmltree::Document;

use radixscope_insight::time_range::TimeRange;
use radixscope_insight::view_context::{PoolQuery, ShownPools};
use radixscope_model::id::{BlockHash, DecisionId, PoolIx, Seq, TokensHash, Worker};
use radixscope_model::record::{
    Block, CheckStatus, Decision, DecisionSource, Entry, Finding, GoneBlock, GoneReason, Histogram,
    HistogramKind, PanelRef, Phase, ProcessRole, Record, Reuse, RuleStatus, Scrape, Severity,
};

use super::*;
use crate::colour::{blend, css};

const NOW: Millis = Millis(1_800_000_000_000);

#[derive(Default)]
struct State(Cluster);

impl State {
    fn fold(&mut self, record: Record<'_>) {
        let seq = Seq(self.0.seq().0 + 1);
        self.0.fold(seq, &Entry { at_ms: NOW, record });
    }

    fn worker(&mut self, ix: u16) {
        let id = Worker::new(u64::from(ix) + 7, 0);
        self.fold(Record::new_worker(WorkerIx(ix.into()), id, "dynamo", "backend"));
    }

    fn store(&mut self, worker: u16, hashes: std::ops::RangeInclusive<u64>) {
        let block = |hash| Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(hash) };
        let blocks: Vec<Block> = hashes.map(block).collect();
        self.fold(Record::Stored { worker: WorkerIx(worker.into()), parent: None, blocks: blocks.into() });
    }

    /// Worker 0 alone holds 60 blocks, workers 0 and 1 share 30, worker 2 alone holds 10.
    fn three() -> Self {
        let mut state = Self::default();
        (0..3).for_each(|ix| state.worker(ix));
        state.store(0, 1..=60);
        state.store(0, 101..=130);
        state.store(1, 101..=130);
        state.store(2, 201..=210);
        let decision = Decision::new(DecisionId(1), WorkerIx(0), DecisionSource::KvHitRate);
        let (isl_blocks, overlap_blocks) = (Some(80), Some(60));
        state.fold(Record::Decision(Box::new(Decision { isl_blocks, overlap_blocks, ..decision })));
        state
    }

    fn finding(&mut self, code: &'static str, title: &'static str) {
        self.fold(Record::Finding(Box::new(Finding {
            code: code.into(),
            severity: Severity::Critical,
            phase: Phase::Warn,
            title: title.into(),
            cause: "".into(),
            explanation: "What it means & <why>.".into(),
            evidence: Vec::new(),
            fix: Vec::new(),
            workers: vec![WorkerIx(0)],
            panel: PanelRef::Overview,
            selects_worker: false,
            first_ms: NOW,
            last_ms: NOW,
        })));
    }

    fn panel(&self, kind: PanelKind, change: impl FnOnce(&mut PanelRequest)) -> String {
        let pools = ShownPools::of(&self.0, &PoolQuery::default());
        let shown = ViewContext::new(&self.0, pools);
        let mut asked = PanelRequest {
            kind,
            is_dark: false,
            width_px: 640,
            height_px: 320,
            worker: None,
            span: TimeRange::default().span(NOW),
            targets_ms: [600.0, 60.0],
        };
        change(&mut asked);
        let picture = kind.needs_tree().then(|| Arc::new(TreeSnapshot::of(&self.0, PoolIx(0), NOW)));
        Panel::of(&shown, picture, asked, NOW).svg()
    }
}

fn texts(svg: &str) -> String {
    let document = Document::parse(svg).expect("XML");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.filter_map(|node| node.text()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_panel_has_title_time_and_its_figures() {
    let mut state = State::three();
    state.finding("block_size", "Block sizes differ");
    let expected = [
        (PanelKind::Tree, "Prefix tree"),
        (PanelKind::Lanes, "90 blocks"),
        (PanelKind::Occupancy, "130 cached blocks"),
        (PanelKind::Rates, "stored/s"),
        (PanelKind::Latency, "--prometheus frontend="),
        (PanelKind::Decisions, "75 %"),
        (PanelKind::Findings, "Nothing was checked yet"),
        (PanelKind::Spread, "--logs"),
        (PanelKind::Reuse, "--router-replica-sync"),
    ];
    for (kind, text) in expected {
        for is_dark in [false, true] {
            let svg = state.panel(kind, |asked| asked.is_dark = is_dark);
            let drawn_text = texts(&svg);
            assert!(drawn_text.contains(text), "{kind:?}: {text:?} is not in {drawn_text}");
            assert!(drawn_text.contains("as of 08:00:00 UTC"), "{kind:?}: {drawn_text}");
            let ground = css(if is_dark { Theme::DARK } else { Theme::LIGHT }.ground);
            assert!(svg.contains(&ground), "{kind:?}");
        }
    }
}

#[test]
fn a_state_of_which_nothing_is_known_says_what_is_missing() {
    let state = State::default();
    for kind in PanelKind::ALL {
        let drawn_text = texts(&state.panel(kind, |_| ()));
        let names_a_setting =
            drawn_text.contains("--") || matches!(kind, PanelKind::Findings | PanelKind::Decisions);
        assert!(names_a_setting, "{kind:?}: {drawn_text}");
        assert!(!drawn_text.contains("NaN") && !drawn_text.contains("inf"), "{kind:?}: {drawn_text}");
    }
}

#[test]
fn what_cannot_be_known_is_no_zero() {
    let mut state = State::default();
    state.worker(0);
    let drawn_text = texts(&state.panel(PanelKind::Occupancy, |_| ()));
    assert!(drawn_text.contains("–") && !drawn_text.contains("0 %"), "{drawn_text}");
}

#[test]
fn a_worker_picked_is_named_and_shown_alone() {
    let state = State::three();
    let drawn_text = texts(&state.panel(PanelKind::Occupancy, |asked| asked.worker = Some(WorkerIx(2))));
    assert!(drawn_text.contains("W3 (9/0)") && !drawn_text.contains("W1"), "{drawn_text}");
}

#[test]
fn lanes_have_their_workers_colours_and_half_of_them_where_others_hold_the_same() {
    let svg = State::three().panel(PanelKind::Lanes, |_| ());
    let document = Document::parse(&svg).expect("XML");
    let ground = Theme::LIGHT.ground;
    let hue = |at: usize| css(Theme::LIGHT.few[at]);
    let half = |at: usize| css(blend(ground, Theme::LIGHT.few[at], 0.5));
    let shapes = |fill: &str| {
        let is_it = |node: &roxmltree::Node<'_, '_>| {
            node.has_tag_name("path") && node.attribute("fill") == Some(fill)
        };
        document.descendants().filter(is_it).count()
    };
    assert_eq!([shapes(&hue(0)), shapes(&half(0))], [1, 1], "alone, and shared with worker 1");
    assert_eq!([shapes(&hue(1)), shapes(&half(1))], [0, 1], "only shared");
    assert_eq!([shapes(&hue(2)), shapes(&half(2))], [1, 0], "only alone");
}

#[test]
fn a_latency_panel_too_low_for_its_charts_says_so() {
    let mut state = State::default();
    for (before_ms, counts) in [(20_000, vec![0, 0, 0]), (1_000, vec![9, 1, 0])] {
        let histogram = Histogram { kind: HistogramKind::Ttft, bounds: vec![0.1, 0.5], counts, sum: 1.0 };
        let scrape = Scrape { histograms: vec![histogram], ..Scrape::new("frontend", ProcessRole::Frontend) };
        let (seq, at_ms) = (Seq(state.0.seq().0 + 1), Millis(NOW.0 - before_ms));
        state.0.fold(seq, &Entry { at_ms, record: Record::Scrape(Box::new(scrape)) });
    }
    for (size, has_chart) in
        [((800, 300), true), ((700, 240), true), ((620, 400), true), ((400, 240), false), ((240, 240), false)]
    {
        let svg = state.panel(PanelKind::Latency, |asked| (asked.width_px, asked.height_px) = size);
        assert!(texts(&svg).contains("TTFT p95"), "{size:?}: {}", texts(&svg));
        assert_eq!(svg.contains("stroke-dasharray"), has_chart, "{size:?}: the target's line");
        assert_eq!(texts(&svg).contains("Chart not shown"), !has_chart, "{size:?}: {}", texts(&svg));
    }
}

#[test]
fn sizes_are_bounded_and_nothing_of_the_smallest_is_negative() {
    let state = State::three();
    for kind in PanelKind::ALL {
        for size in [(0, 0), (240, 240), (8_192, 240), (u32::MAX, 240)] {
            let svg = state.panel(kind, |asked| (asked.width_px, asked.height_px) = size);
            let document = Document::parse(&svg).expect("XML");
            for node in document.descendants() {
                for name in ["width", "height"] {
                    let size: f64 = node.attribute(name).unwrap_or("0").parse().expect("a number");
                    assert!((0.0..=8_192.0).contains(&size), "{kind:?} {name} {size}");
                }
            }
        }
    }
}

/// The lines of text in a picture: where each stands, begins and ends, in pixels.
fn lines(svg: &str) -> Vec<(f64, [f64; 2], String)> {
    let document = Document::parse(svg).expect("XML");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    let line = |node: roxmltree::Node<'_, '_>| {
        let number = |name: &str| node.attribute(name).map(|text| text.parse::<f64>().expect("a number"));
        let (x, y, content) = (number("x")?, number("y")?, node.text()?);
        let size = number("font-size").unwrap_or(11.0) / 11.0;
        let width = crate::tree::svg::text::width_px(content) * size;
        let from = if node.attribute("text-anchor") == Some("end") { x - width } else { x };
        Some((y, [from, from + width], content.to_owned()))
    };
    texts.filter_map(line).collect()
}

#[test]
fn no_text_lies_over_another_or_beyond_the_edge_however_narrow() {
    let mut state = State::three();
    state.finding("block_size", "Block sizes differ between the engine and the frontend of this deployment");
    let rule = RuleStatus {
        code: "block_size".into(),
        subject: "".into(),
        status: CheckStatus::Critical,
        missing: "".into(),
        explained_by: "".into(),
        pending: None,
    };
    state.fold(Record::Checked(vec![rule]));
    for kind in PanelKind::ALL.into_iter().filter(|kind| *kind != PanelKind::Tree) {
        for width in [240, 300, 420, 640, 1_200] {
            let svg = state.panel(kind, |asked| (asked.width_px, asked.height_px) = (width, 400));
            let lines = lines(&svg);
            for (at, (y, [from, until], text)) in lines.iter().enumerate() {
                assert!(*from >= 0.0 && *until <= f64::from(width), "{kind:?} {width}: {text}");
                for (other_y, [other_from, other_until], other) in &lines[..at] {
                    let overlap = until.min(*other_until) - from.max(*other_from);
                    assert!(
                        (y - other_y).abs() > 8.0 || overlap <= 0.0,
                        "{kind:?} {width}: {text} | {other}"
                    );
                }
            }
        }
    }
}

#[test]
fn many_workers_are_drawn_as_far_as_there_is_room_and_counted_beyond() {
    let mut state = State::default();
    for ix in 0..200 {
        state.worker(ix);
        let first = u64::from(ix) * 100 + 1;
        state.store(ix, first..=first + 20);
    }
    for kind in [PanelKind::Lanes, PanelKind::Occupancy] {
        let drawn_text = texts(&state.panel(kind, |_| ()));
        assert!(drawn_text.contains("more workers not shown"), "{kind:?}: {drawn_text}");
    }
    let rates = state.panel(PanelKind::Rates, |_| ());
    assert!(texts(&rates).contains('+'), "{rates}");
}

#[test]
fn text_from_outside_stays_text() {
    let mut state = State::three();
    state.finding("<x>", "<script>alert(1)</script> & more");
    for kind in PanelKind::ALL {
        let svg = state.panel(kind, |_| ());
        assert!(!svg.contains("<script"), "{kind:?}");
        assert!(Document::parse(&svg).is_ok(), "{kind:?}");
    }
    let svg = refusal(true, (300, 200), "theme=\"<svg>\" cannot be read");
    assert!(texts(&svg).contains("theme=\"<svg>\""), "{svg}");
}

#[test]
fn a_picture_of_reuse_has_steps_and_causes() {
    let mut state = State::three();
    let decision = Decision::new(DecisionId(2), WorkerIx(0), DecisionSource::Log);
    let (isl_tokens, block_size_tokens, decided_ms) = (Some(1_000), Some(10), Some(NOW));
    let decision = Decision { isl_tokens, block_size_tokens, decided_ms, ..decision };
    state.fold(Record::Decision(Box::new(decision)));
    state.fold(Record::Reuse(Box::new(Reuse {
        decision: DecisionId(2),
        prompt_blocks: 100,
        seen_blocks: 80,
        held_blocks: 60,
        eligible_blocks: 60,
        chosen_blocks: 60,
        holder: Some(WorkerIx(0)),
        gone: Some(GoneBlock { worker: WorkerIx(1), at_ms: NOW, why: GoneReason::Evicted, held_blocks: 9 }),
        known_since_ms: NOW,
        lacked_blocks: false,
        displaced_by: None,
    })));
    for width_px in [240, 640] {
        let drawn_text = texts(&state.panel(PanelKind::Reuse, |asked| asked.width_px = width_px));
        for text in
            ["ever cached", "80 %", "60 %", "not reported", "first time seen", "evicted", "200", "20 %"]
        {
            let is_left_out = width_px == 240 && ["not reported", "first time seen"].contains(&text);
            assert!(is_left_out || drawn_text.contains(text), "{width_px}: {text:?} is not in {drawn_text}");
        }
    }
    let of_another = state.panel(PanelKind::Reuse, |asked| asked.worker = Some(WorkerIx(2)));
    assert!(texts(&of_another).contains("No decision shows the blocks"), "{of_another}");
}
