//! The table of decisions and the details of one: every figure is worked out again from the retained decisions.

use radixscope_captures::Recording;
use radixscope_insight::view_context::{ShownPools, ViewContext};
use radixscope_model::id::{DecisionId, Millis, Worker, WorkerIx};
use radixscope_model::record::{
    Arithmetic, Candidate, Completeness, Decision, DecisionSource, GoneReason, Record, ScoredCandidate,
    Scores,
};
use radixscope_panels::decisions::details::{
    CachedPrompt, Costs, DecisionDetails, GONE, ON_PARTIAL_TREE, OpenDecision, OtherPart, TreePath,
};
use radixscope_panels::decisions::filters::{self, kind_name, kind_status, kind_title};
use radixscope_panels::decisions::list::{
    DecisionList, DecisionQuery, Listed, PausedDecisions, SincePause, above_text, held_back_text, order_of,
};
use radixscope_panels::decisions::recent::{RecentDecisions, held_text, latest_why, row_title};
use radixscope_panels::decisions::row::{COLUMNS, DecisionRow, IGNORED};
use radixscope_panels::decisions::{NoDecisions, OtherRouter, Search, csv, json, saved_text};
use radixscope_panels::format;
use radixscope_panels::time_zone::TimeZone;
use radixscope_panels::url::Address;
use radixscope_sim::{Config, Topology};
use radixscope_state::cluster::{Column, DecisionEntry, DecisionKind};

use crate::folded::Folded;
use crate::states::{ZONE, address, nothing, numbers, of_records, recorded};

/// A table of decisions as the page keeps it.
struct Table<'a> {
    shown: ViewContext<'a>,
    list: DecisionList,
}

impl<'a> Table<'a> {
    fn of(folded: &'a Folded, query: &str) -> Self {
        let shown = folded.shown();
        let address = address(query);
        let worker = address.worker.and_then(|id| shown.worker_ix(id));
        let pools = ShownPools::of(&folded.cluster, &address.pools);
        let shown = ViewContext::new(&folded.cluster, pools);
        let query = DecisionQuery::of(&address, worker, pools.only, 500.0);
        let list = DecisionList::of(&shown, None, &query, &mut Search::default());
        Self { shown, list }
    }

    fn listed(&self) -> Listed<'a> {
        self.list.live(self.shown.cluster)
    }

    fn rows(&self) -> Vec<DecisionRow> {
        let rows = DecisionRow::of_lines(&self.list, self.listed(), 0..self.list.len(), ZONE);
        rows.into_iter().map(|row| row.expect("no line beyond the last")).collect()
    }

    fn ids(&self) -> Vec<DecisionId> {
        self.rows().iter().map(|row| row.id).collect()
    }
}

/// Retained decisions, newest first.
fn retained(folded: &Folded) -> Vec<&DecisionEntry> {
    folded.cluster.decisions().newest_first().collect()
}

fn ids<'a>(entries: impl IntoIterator<Item = &'a DecisionEntry>) -> Vec<DecisionId> {
    entries.into_iter().map(|entry| entry.decision.id).collect()
}

/// Cached blocks of the prompt as the router counted them, else those of the chosen candidate.
fn held(entry: &DecisionEntry) -> Option<u64> {
    let candidates = &entry.decision.candidates;
    let chosen = || candidates.iter().find(|candidate| candidate.worker == entry.decision.worker);
    entry.decision.overlap_blocks.or_else(|| Some(chosen()?.overlap_blocks.into()))
}

/// The kinds of a decision, worked out from its raw numbers alone.
fn kinds(entry: &DecisionEntry) -> Vec<DecisionKind> {
    let decision = &entry.decision;
    let full = match (decision.isl_tokens, decision.block_size_tokens) {
        (Some(tokens), Some(size)) => Some((tokens / u64::from(size)) as f64),
        _ => decision.isl_blocks.map(|blocks| blocks as f64),
    };
    let held = held(entry).map(|blocks| blocks as f64);
    let mut kinds = vec![match (held, full) {
        (Some(0.0), _) => DecisionKind::Miss,
        (Some(held), Some(full)) if held >= 0.9 * full => DecisionKind::Hit,
        (Some(_), Some(_)) => DecisionKind::Partial,
        _ => DecisionKind::Unknown,
    }];
    let least = decision.candidates.iter().map(|c| c.cost).fold(f64::INFINITY, f64::min);
    if decision.tied || decision.candidates.iter().filter(|c| c.cost == least).count() > 1 {
        kinds.push(DecisionKind::Tie);
    }
    let most = decision.candidates.iter().map(|c| c.overlap_blocks).max();
    let chosen = decision.candidates.iter().find(|c| c.worker == decision.worker);
    if chosen.is_some_and(|chosen| most > Some(chosen.overlap_blocks)) {
        kinds.push(DecisionKind::LostAffinity);
    }
    kinds
}

fn demo() -> Folded {
    Folded::demo(Topology::Aggregated, 120)
}

fn details(folded: &Folded, entry: &DecisionEntry) -> DecisionDetails {
    let open = OpenDecision { decided: entry.clone(), is_dropped: false };
    DecisionDetails::of(&folded.shown(), &open, ZONE, "2026-01-01T00:00:00.000Z", None)
}

#[test]
fn rows_and_counts_of_filters_are_those_counted_from_the_decisions() {
    let folded = demo();
    let all = retained(&folded);
    let table = Table::of(&folded, "view=decisions");
    assert_eq!(table.ids(), ids(all.iter().copied()), "newest first, none left out");
    assert!(all.len() > 60, "{}", all.len());
    let rows = table.rows();
    for (at, (row, entry)) in rows.iter().zip(&all).enumerate() {
        let decision = &entry.decision;
        let overlap = held(entry).map_or("–".to_owned(), format::count);
        assert_eq!((row.line, row.overlap.as_str(), row.worker), (at, overlap.as_str(), decision.worker));
        let share = held(entry).map(|held| held as f64 / decision.isl_blocks.unwrap() as f64);
        assert_eq!(row.share, share);
        assert_eq!(row.prompt_blocks, decision.isl_blocks);
        let full = decision.request_id.as_deref().unwrap();
        let shortened = if full.len() > 10 { format!("{}…", &full[..10]) } else { full.to_owned() };
        assert_eq!((row.request.as_str(), row.request_full.as_str()), (shortened.as_str(), full));
        let of_day = (entry.decided_ms().0 + 5_400_000) % 86_400_000;
        let (h, m, s, ms) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60, of_day % 1_000);
        assert_eq!(row.time, format!("{h:02}:{m:02}:{s:02}.{ms:03}"));
    }
    let longest = rows.iter().filter_map(|row| row.prompt_blocks).max().unwrap().next_power_of_two();
    let bar = rows[0].prompt_blocks.map(|blocks| blocks as f64 / longest as f64);
    assert_eq!(rows[0].prompt_bar, bar, "beside the longest in sight, rounded up");
    let known = |row: &&DecisionRow| row.cost_gap != "–";
    assert!(rows.iter().filter(known).count() > rows.len() / 2);

    for kind in DecisionKind::ALL {
        let of_kind: Vec<_> = all.iter().copied().filter(|entry| kinds(entry).contains(&kind)).collect();
        assert_eq!(table.list.count_of(Some(kind)) as usize, of_kind.len(), "{kind:?}");
        let only = Table::of(&folded, &format!("outcome={}", kind.as_str()));
        assert_eq!(only.ids(), ids(of_kind), "{kind:?}");
        assert_eq!(only.list.count_of(None) as usize, all.len(), "all are counted beside it");
    }
    assert!(table.list.count_of(Some(DecisionKind::Miss)) > 0);

    let misses = Table::of(&folded, "outcome=miss");
    let (count, ever) = (misses.list.len(), folded.cluster.decisions().totals().count);
    let summary = misses.list.summary(&misses.shown);
    assert_eq!(numbers(&summary)[..3], [count as u64, all.len() as u64, ever], "{summary}");
    assert!(
        summary.ends_with("prompt blocks of those shown") && summary.contains("KV hit rate 0 % of"),
        "{summary}"
    );

    let (prompts, held) = all.iter().fold((0, 0), |(prompts, held), entry| {
        (prompts + entry.decision.isl_blocks.unwrap(), held + self::held(entry).unwrap_or(0))
    });
    let summary = table.list.summary(&table.shown);
    let rate = format!("{:.0} %", 100.0 * held as f64 / prompts as f64);
    let expected = format!("KV hit rate {rate} of the {} prompt blocks", format::count(prompts));
    assert!(summary.contains(&expected), "{summary}: {expected}");
}

#[test]
fn a_text_a_worker_and_a_session_are_looked_for() {
    let config =
        Config { topology: Topology::Aggregated, session_affinity: true, traces: true, ..Config::default() };
    let folded = Folded::of(config, 100);
    let all = retained(&folded);
    let worker = all[0].decision.worker;
    let id: Worker = folded.cluster.worker(worker).unwrap().id;
    let of_worker = all.iter().copied().filter(|entry| entry.decision.worker == worker);
    assert_eq!(Table::of(&folded, &format!("worker={id}")).ids(), ids(of_worker.clone()));

    let request = &all[3].decision.request_id.as_deref().unwrap()[2..9];
    let has_it = |entry: &&DecisionEntry| entry.decision.request_id.as_deref().unwrap().contains(request);
    let found = Table::of(&folded, &format!("find={}", request.to_uppercase()));
    assert_eq!(found.ids(), ids(all.iter().copied().filter(has_it)), "whatever the case of its letters");

    let label = format!("W{}", worker.0 + 1);
    let of_label = Table::of(&folded, &format!("find={label}")).ids();
    assert!(ids(of_worker).iter().all(|id| of_label.contains(id)), "the label of a worker is found");
    assert!(Table::of(&folded, "find=no%20such%20word").list.is_empty());

    let session = all.iter().find_map(|entry| entry.decision.session.as_deref()).expect("a session");
    let of_session = |entry: &&DecisionEntry| entry.decision.session.as_deref() == Some(session);
    let table = Table::of(&folded, &format!("session={session}"));
    assert_eq!(table.ids(), ids(all.iter().copied().filter(of_session)));
    assert_eq!(filters::session_text(session), Some(format!("Session {session} ×")));
    assert_eq!(filters::session_text(""), None);

    // Most requests have colours: the eight sessions with most of them.
    let rows = Table::of(&folded, "").rows();
    let coloured = |row: &&DecisionRow| row.session.as_ref().is_some_and(|(_, colour)| colour.is_some());
    let mut names: Vec<&str> =
        rows.iter().filter(coloured).map(|row| row.session.as_ref().unwrap().0.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 8, "{names:?}");
    let count =
        |name: &str| all.iter().filter(|entry| entry.decision.session.as_deref() == Some(name)).count();
    let least = names.iter().map(|name| count(name)).min().unwrap();
    let others = all.iter().filter_map(|entry| entry.decision.session.as_deref());
    assert!(others.filter(|name| !names.contains(name)).all(|name| count(name) <= least));

    let choices = filters::by_choices(&Table::of(&folded, "").list, None);
    let bound = choices.iter().find(|choice| choice.value == "session_affinity").expect("turns are bound");
    assert!(bound.count > 0 && choices.iter().all(|choice| choice.count > 0), "{choices:?}");
    let only = Table::of(&folded, "by=session_affinity");
    assert_eq!(only.list.len(), bound.count as usize);
    assert!(only.rows().iter().all(|row| row.by == "session" && row.by_title.contains("; session ")));
}

/// Ids by a figure, unknown ones last and equal ones newest first.
fn by(all: &[&DecisionEntry], figure: impl Fn(&DecisionEntry) -> Option<f64>, sign: f64) -> Vec<DecisionId> {
    let mut keys: Vec<(f64, DecisionId)> = all
        .iter()
        .map(|entry| (figure(entry).map_or(f64::INFINITY, |n| n * sign), entry.decision.id))
        .collect();
    keys.sort_by(|a, b| a.0.total_cmp(&b.0));
    keys.into_iter().map(|(_, id)| id).collect()
}

#[test]
fn a_column_orders_the_lines_and_what_is_saved() {
    let folded = demo();
    let all = retained(&folded);
    let ttft = |entry: &DecisionEntry| {
        let at = entry.decision.decided_ms.unwrap_or(entry.at_ms).0 as f64;
        let measured = entry.progress.ttft_us.map(|us| us as f64 / 1e3);
        measured.or_else(|| Some(entry.progress.first_token_ms?.0 as f64 - at))
    };
    let hit_rate = |entry: &DecisionEntry| Some(held(entry)? as f64 / entry.decision.isl_blocks? as f64);
    let slowest = by(&all, ttft, -1.0);
    assert_eq!(Table::of(&folded, "sort=-ttft").ids(), slowest);
    assert_eq!(Table::of(&folded, "sort=hit-rate").ids(), by(&all, hit_rate, 1.0));
    let gap = |entry: &DecisionEntry| {
        let costs = |chosen: bool| {
            let of = entry.decision.candidates.iter();
            of.filter(move |c| (c.worker == entry.decision.worker) == chosen).map(|c| c.cost)
        };
        let next = costs(false).fold(f64::INFINITY, f64::min);
        (entry.decision.candidates.len() > 1).then(|| next - costs(true).next().unwrap())
    };
    assert_eq!(Table::of(&folded, "sort=-cost-gap").ids(), by(&all, gap, -1.0));
    assert_eq!(Table::of(&folded, "sort=cost-gap").ids(), by(&all, gap, 1.0));

    let table = Table::of(&folded, "sort=-ttft");
    let (list, listed) = (&table.list, table.listed());
    for line in [0, 1, slowest.len() - 1] {
        assert_eq!(list.id_at(listed, line), Some(slowest[line]));
        assert_eq!(list.line_of(listed, slowest[line]), Some(line));
    }
    assert_eq!(list.id_at(listed, slowest.len()), None);
    let sort = address("sort=-ttft").sort;
    assert_eq!([Column::Ttft, Column::Time].map(|column| order_of(column, sort)), ["descending", "none"]);
    assert_eq!(order_of(Column::Ttft, sort.clicked(Column::Ttft)), "ascending");
    assert_eq!(order_of(Column::Time, Address::default().sort), "descending");
    assert_eq!(COLUMNS.len(), Column::ALL.len());

    let text = csv(&table.shown, list, listed);
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert!(lines[0].starts_with("decision_id,seq,at_ms,"));
    let saved: Vec<&str> = lines[1..].iter().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(saved, slowest.iter().map(ToString::to_string).collect::<Vec<_>>());
    let count = format::plural(slowest.len() as u64, "decision", "decisions");
    assert_eq!(saved_text("decisions.csv", true, list), format!("decisions.csv saved with {count}"));
    assert!(saved_text("decisions.csv", false, list).contains("could not be saved"));

    let partial = Table::of(&folded, "outcome=partial");
    let text = csv(&partial.shown, &partial.list, partial.listed());
    assert_eq!(text.split_terminator("\r\n").count(), partial.list.len() + 1);
    assert!(text.split_terminator("\r\n").skip(1).all(|line| line.contains(",partial,")));
    let whole = format!("{:?}", json(&table.shown, list, listed, None, None));
    assert_eq!(whole.matches("DecisionRow {").count(), slowest.len(), "the API's rows of all of them");
}

#[test]
fn pause_keeps_what_is_shown_and_counts_what_comes() {
    let (then, now) = (Folded::demo(Topology::Aggregated, 40), Folded::demo(Topology::Aggregated, 60));
    let paused = PausedDecisions::of(&then.cluster);
    let query = DecisionQuery::of(&Address::default(), None, None, 500.0);
    let of = |paused: Option<&PausedDecisions>, folded: &Folded| {
        DecisionList::of(&folded.shown(), paused, &query, &mut Search::default())
    };
    let list = of(Some(&paused), &now);
    let count = |folded: &Folded| folded.cluster.decisions().totals().count;
    let newer = count(&now) - count(&then);
    assert!(newer > 20, "{newer}");
    let listed: Vec<_> = list.entries(paused.listed()).map(|entry| entry.decision.id).collect();
    assert_eq!(listed, ids(retained(&then)), "nothing moved");
    assert_eq!(paused.since(&now.cluster), SincePause { newer, dropped: 0 });
    assert_eq!(paused.since(&now.cluster).to_text(), format!("Paused, {} newer", format::count(newer)));
    let dropped = SincePause { newer: 1_200, dropped: 3 };
    assert_eq!(dropped.to_text(), "Paused, 1,200 newer, 3 of those shown dropped by the server since");
    assert!(!list.is_live_for(&query), "a list of a pause is made anew when it goes on");

    // Held under the pointer, without a copy: the same lines, counted from behind what came.
    let held = of(None, &then);
    assert!(held.is_live_for(&query) && !held.is_live_for(&DecisionQuery::default()));
    assert_eq!(held.newer(&now.cluster), Some(newer));
    let lines: Vec<_> = held.entries(held.live(&now.cluster)).map(|entry| entry.decision.id).collect();
    assert_eq!(lines, ids(retained(&then)));
    assert_eq!(of(None, &now).newer(&then.cluster), None, "another server, or the same one begun anew");
    assert_eq!(held_back_text(0), " · held while you are in the list");
    assert_eq!(held_back_text(newer), format!(" · held while you are in the list, {newer} newer"));
    assert_eq!(above_text(1_234), "↑ 1,234 newer");

    let open = |decided: DecisionEntry| OpenDecision { decided, is_dropped: false };
    let entry = retained(&then)[0].clone();
    let id = entry.decision.id;
    assert_eq!(OpenDecision::follow(id, Some(entry.clone()), None), Some(open(entry.clone())));
    let dropped = OpenDecision::follow(id, None, Some(open(entry.clone()))).expect("as last received");
    assert!(dropped.is_dropped);
    let shown = DecisionDetails::of(&now.shown(), &dropped, ZONE, "", None);
    assert_eq!(shown.dropped, Some("The server no longer retains it; shown as last received."));
    assert_eq!(OpenDecision::follow(DecisionId(u64::MAX), None, Some(open(entry))), None);
    assert!(GONE.contains("no longer retained"));
}

#[test]
fn details_are_the_candidates_of_the_decision_and_lead_to_the_tree() {
    let folded = demo();
    let all = retained(&folded);
    let has_path = |entry: &&&DecisionEntry| {
        entry.decision.path.is_some()
            && entry.decision.candidates.len() == 3
            && entry.reuse.is_none_or(|reuse| reuse.gone.is_none())
    };
    let entry = *all.iter().find(has_path).expect("a decision whose prompt was held");
    let shown = details(&folded, entry);
    let Costs::Candidates(candidates, None) = &shown.costs else { panic!("{:?}", shown.costs) };
    let mut wanted: Vec<(f64, u64)> =
        entry.decision.candidates.iter().map(|c| (c.cost, c.overlap_blocks.into())).collect();
    wanted.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let mut rows: Vec<(f64, u64)> =
        candidates.rows.iter().map(|row| (row.cost, row.overlap_blocks)).collect();
    assert!(rows.is_sorted_by(|a, b| a.0 <= b.0), "cheapest first: {rows:?}");
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(rows, wanted);
    assert!(shown.why.contains("was chosen"), "{}", shown.why);
    let request = entry.decision.request_id.as_deref().unwrap();
    assert_eq!(shown.request.as_deref(), Some(request));
    assert!(shown.ticket.contains(request) && shown.ticket.contains("2026-01-01T00:00:00.000Z"));
    assert_eq!((shown.costs_title, shown.router), ("Cost, lower wins", "Dynamo"));
    assert_eq!(shown.worker_id, folded.cluster.worker(entry.decision.worker).map(|of| of.id.to_string()));
    assert_eq!((candidates.show_all.as_ref(), shown.dropped), (None, None));
    let blocks = entry.decision.path.unwrap().blocks;
    let Some(TreePath::Shown { text, title, .. }) = &shown.path else { panic!("{:?}", shown.path) };
    assert_eq!(*text, "Show in the tree");
    assert_eq!(*title, format!("The path of its first {}", format::plural(blocks.into(), "block", "blocks")));
    let CachedPrompt::Strip(strip) = &shown.cached else { panic!("{:?}", shown.cached) };
    let isl = entry.decision.isl_blocks.unwrap() as f64;
    assert_eq!(strip.cached, held(entry).unwrap() as f64 / isl);
    let marked: usize = strip.marks.iter().map(|mark| mark.workers.len() + mark.more).sum();
    assert_eq!(marked, 3, "each candidate is at one depth");
    assert!(strip.marks.is_sorted_by_key(|mark| mark.blocks));
    let chosen = strip.marks.iter().find(|mark| mark.is_chosen).unwrap();
    assert_eq!((chosen.workers[0], chosen.at), (entry.decision.worker, f64::from(chosen.blocks) / isl));
    assert!(strip.caption.starts_with(&format!("The prompt's {}", format::count(isl as u64))));

    let gap = |entry: &&&DecisionEntry| entry.cost_gap_blocks().is_ok_and(|gap| gap != 0.0);
    for entry in all.iter().filter(gap).take(40) {
        let shown = details(&folded, entry);
        let Costs::Candidates(candidates, _) = &shown.costs else { panic!("{:?}", shown.costs) };
        let (chosen, others): (Vec<&Candidate>, Vec<&Candidate>) =
            entry.decision.candidates.iter().partition(|c| c.worker == entry.decision.worker);
        let next = others.iter().map(|c| c.cost).fold(f64::INFINITY, f64::min);
        let with_gap: Vec<_> = candidates.rows.iter().filter_map(|row| row.gap.as_ref()).collect();
        let [gap] = with_gap[..] else { panic!("{with_gap:?}") };
        let number: f64 = gap.text.split(' ').nth(2).unwrap().replace(',', "").parse().unwrap();
        assert!((number - (next - chosen[0].cost).abs()).abs() < 0.001, "{}", gap.text);
        let is_lowest = chosen[0].cost <= next;
        assert_eq!(gap.text.ends_with("to the next best"), is_lowest, "{}", gap.text);
    }
}

#[test]
fn bars_begin_at_the_cheapest_and_a_small_gap_shows() {
    let folded = demo();
    let least = |entry: &DecisionEntry| {
        entry.decision.candidates.iter().map(|c| c.cost).fold(f64::INFINITY, f64::min)
    };
    let share = |entry: &&DecisionEntry| {
        let gap = entry.cost_gap_blocks().ok().filter(|gap| *gap > 0.0);
        gap.map_or(1.0, |gap| gap / least(entry))
    };
    let all = retained(&folded);
    let entry = all.iter().copied().min_by(|a, b| share(a).total_cmp(&share(b))).unwrap();
    assert!(share(&entry) < 0.02, "a gap that a bar from 0 would not show: {}", share(&entry));
    let shown = details(&folded, entry);
    let Costs::Candidates(candidates, None) = &shown.costs else { panic!("{:?}", shown.costs) };
    let (base, end) = (least(entry), candidates.rows.iter().map(|row| row.cost).fold(0.0, f64::max));
    for row in &candidates.rows {
        let widths = row.bar.iter().flatten();
        let width: f64 = widths.map(|width| width.trim_end_matches('%').parse::<f64>().unwrap()).sum();
        let wanted = 100.0 * (row.cost - base) / (end - base);
        assert!((width - wanted).abs() < 0.3, "{} is {width} wide, not {wanted}", row.cost);
        assert!(width > 0.0 || wanted < 0.2, "{} of {base} to {end}", row.cost);
        assert!(width == 0.0 || row.cost > base, "{}", row.cost);
    }
    let shared: f64 = candidates.shared.split(' ').nth(4).unwrap().replace(',', "").parse().unwrap();
    assert!((shared - base).abs() < 0.01, "{}: {base}", candidates.shared);
    let parsed = candidates.scale.each_ref().map(|cost| cost.replace(',', "").parse::<f64>().unwrap());
    assert!((parsed[0] - base).abs() < 0.06 && (parsed[1] - end).abs() < 0.06, "{parsed:?}");
}

#[test]
fn the_time_to_first_token_has_its_parts_with_their_sources() {
    let folded = demo();
    let is_reported = |entry: &&&DecisionEntry| {
        entry.progress.ttft_us.is_none()
            && entry.progress.first_token_ms.is_some_and(|at| at.since(entry.decided_ms()) < 999)
    };
    let all = retained(&folded);
    let entry = *all.iter().find(is_reported).expect("a reported first token");
    let ms = entry.progress.first_token_ms.unwrap().since(entry.decided_ms());
    let shown = details(&folded, entry);
    let [queue, prefill, first_token] = &shown.ttft;
    assert_eq!((queue.name, queue.time.as_str(), queue.width.as_ref()), ("Queue", "not reported", None));
    assert!(queue.source.contains("DYN_REQUEST_TRACE=1"), "{}", queue.source);
    assert_eq!((prefill.name, prefill.time.clone()), ("Prefill", format!("{ms} ms")));
    assert_eq!(prefill.width.as_deref(), Some("100.0%"), "all that is known");
    assert!(prefill.source.starts_with("from the decision to the first token"), "{}", prefill.source);
    assert_eq!((first_token.name, first_token.time.as_str()), ("First token", "not reported"));
    assert_eq!(shown.timeline.ttft, (format!("after {ms} ms"), true));
    assert!(
        shown.timeline.decided.ends_with(", by the router's clock")
            || shown.timeline.decided.ends_with(", when it was received")
    );

    let running = *all
        .iter()
        .find(|entry| entry.progress.ended_ms.is_none() && entry.progress.outcome.is_none())
        .expect("one in flight");
    assert_eq!(details(&folded, running).timeline.end, ("in flight, or not reported".to_owned(), false));
    let ended = *all.iter().find(|entry| entry.progress.ended_ms.is_some()).expect("one that ended");
    assert!(details(&folded, ended).timeline.end.0.starts_with("after "));
}

/// Milliseconds a block, between the medians of the third with the fewest uncached blocks and of that with the most.
fn pace(all: &[&DecisionEntry]) -> f64 {
    let known = |entry: &&DecisionEntry| {
        let uncached = entry.decision.isl_blocks? as f64 - held(entry)? as f64;
        let measured = entry.progress.ttft_us.map(|us| us as f64 / 1e3);
        let reported = || Some(entry.progress.first_token_ms?.since(entry.decided_ms()) as f64);
        Some((uncached, measured.or_else(reported)?))
    };
    let mut points: Vec<(f64, f64)> = all.iter().filter_map(known).collect();
    points.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let third = points.len() / 3;
    let median = |part: &[(f64, f64)]| {
        let mut times: Vec<f64> = part.iter().map(|(_, ms)| *ms).collect();
        times.sort_by(f64::total_cmp);
        (part[part.len() / 2].0, times[times.len() / 2])
    };
    let (few, many) = (median(&points[..third]), median(&points[points.len() - third..]));
    (many.1 - few.1) / (many.0 - few.0)
}

/// `≈ +1.24 s TTFT` in milliseconds.
fn stated_ms(sentence: &str) -> Option<f64> {
    let (_, rest) = sentence.split_once("≈ ")?;
    let mut text = rest.split(' ');
    let number: f64 = text.next()?.replace('−', "-").replace([',', '+'], "").parse().ok()?;
    Some(if text.next()? == "s" { number * 1_000.0 } else { number })
}

#[test]
fn what_round_robin_would_have_done_follows_from_the_candidates() {
    // Whose router writes what every candidate had cached.
    let folded = Folded::demo(Topology::AggregatedV0_9, 120);
    let all = retained(&folded);
    let pace = pace(&all);
    let mut with_time = 0;
    for entry in all.iter().take(40) {
        let candidates = &entry.decision.candidates;
        assert_eq!(candidates.len(), 3);
        let shown = details(&folded, entry);
        let instead = shown.instead.expect("Dynamo's router");
        // Ids count from 1 in a cluster of one pool.
        let place = (entry.decision.id.0 as usize - 1) % 3;
        let worker = WorkerIx(place as u32);
        let held = |of: WorkerIx| {
            candidates.iter().find(|c| c.worker == of).map(|c| i64::from(c.overlap_blocks)).unwrap()
        };
        let more = held(worker) - held(entry.decision.worker);
        let wanted = match more {
            _ if worker == entry.decision.worker => "as well".to_owned(),
            0 => "as many cached blocks".to_owned(),
            more if more < 0 => format!("{} fewer cached block", -more),
            more => format!("{more} more cached block"),
        };
        let sentence = instead.sentence;
        assert!(
            sentence.starts_with(&format!("Round-robin would have sent it to W{}", place + 1)),
            "{sentence}"
        );
        assert!(sentence.contains(&wanted), "{sentence}: {wanted}");
        if let Some(ms) = stated_ms(&sentence) {
            let wanted = -more as f64 * pace;
            assert!(
                (ms - wanted).abs() <= 0.06 + wanted.abs() * 0.01,
                "{sentence}: {wanted} by {pace} ms a block"
            );
            with_time += 1;
            let derivation = instead.derivation.as_deref().expect("how it was derived");
            assert!(
                derivation.contains("per uncached block") && derivation.contains("Queues are not followed"),
                "{derivation}"
            );
            assert!(shown.ticket.contains(derivation));
        }
        assert!(shown.ticket.contains(&sentence));
    }
    assert!(with_time > 0, "some have an estimate; {pace} ms a block");
}

#[test]
fn where_only_the_chosen_worker_is_known_the_settings_that_report_more_are_named() {
    let folded = Folded::recorded("0.9.1-worker-restart");
    let all = retained(&folded);
    // Counted from the recording by other means.
    assert_eq!(all.len(), 282);
    let table = Table::of(&folded, "");
    let summary = table.list.summary(&table.shown);
    assert_eq!(
        summary,
        "282 shown of 282 retained of 282 received; KV hit rate 81 % of the 72,730 prompt blocks of those shown"
    );
    let row = &table.rows()[0];
    assert_eq!(
        (row.cost_gap.as_str(), row.cost_gap_title.as_str()),
        ("–", "Unknown: only the chosen worker's part is known")
    );
    assert_eq!((row.known, row.cost.as_str(), row.ttft.as_str()), ("chosen", "–", "–"));
    assert_eq!(row.ttft_title, "No first token was reported");
    let shown = details(&folded, all[0]);
    let Costs::ChosenOnly(hint) = shown.costs else { panic!("{:?}", shown.costs) };
    for name in ["--logs", "[ROUTING_INPUT]", "--router-replica-sync", "DYN_REQUEST_TRACE=1"] {
        assert!(hint.to_string().contains(name), "{name} in {hint}");
    }
    assert_eq!((shown.request, shown.session, shown.trace), (None, None, None));
    assert_eq!(shown.timeline.ttft, ("not reported".to_owned(), false));
    let CachedPrompt::Strip(strip) = shown.cached else { panic!("its prompt's length is known") };
    assert_eq!(strip.marks.len(), 1, "how far the chosen worker had it");
}

#[test]
fn what_was_computed_on_a_tree_that_lacks_blocks_is_marked_and_withheld() {
    let folded = recorded(&Recording::late("1.6.1-nats-late-replica-sync"));
    let all = retained(&folded);
    let is_computed = |entry: &&&DecisionEntry| entry.decision.completeness == Completeness::Reconstructed;
    let computed: Vec<_> = all.iter().filter(is_computed).collect();
    assert_eq!((all.len(), computed.is_empty()), (268, false));
    let rows = Table::of(&folded, "").rows();
    for entry in computed.iter().take(20) {
        let row = rows.iter().find(|row| row.id == entry.decision.id).unwrap();
        assert_eq!((row.is_partial, row.known, row.cost_gap.as_str()), (true, "partial tree", "–"));
        let shown = details(&folded, entry);
        assert!(matches!(shown.costs, Costs::Candidates(_, Some(ON_PARTIAL_TREE))));

        assert_eq!(shown.lost_affinity, None);
    }
    let newest = details(&folded, computed[0]);
    assert!(newest.why.contains("no reason is given"), "{}", newest.why);
}

#[test]
fn the_decisions_of_two_models_are_listed_apart() {
    let folded = recorded(&Recording::topology("1.6.1-two-models"));
    let all = Table::of(&folded, "");
    let one = Table::of(&folded, "pool=dynamo/backend2");
    // Counted from the recording by other means.
    let summary = one.list.summary(&one.shown);
    assert!(summary.starts_with("48 shown of 102 retained of 102 received"), "{summary}");
    assert_eq!(all.list.len(), 102);
    let pool = folded.cluster.pools().iter().position(|pool| pool.name() == "dynamo/backend2").unwrap();
    assert!(one.rows().iter().all(|row| usize::from(row.pool.0) == pool));
    let workers = filters::workers(&one.shown);
    assert_eq!((workers.len(), filters::workers(&all.shown).len()), (2, 4));
    for choice in workers {
        let label = format!("W{} ({})", choice.worker.0 + 1, choice.id);
        assert_eq!(choice.text, label);
    }
}

#[test]
fn both_choices_of_a_disaggregated_request_lead_to_each_other() {
    let folded = recorded(&Recording::topology("1.6.1-disagg"));
    let all = retained(&folded);
    let table = Table::of(&folded, "");
    assert_eq!((table.list.count_of(None), table.list.count_of(Some(DecisionKind::Unknown))), (162, 0));
    let of =
        |id: DecisionId| *all.iter().find(|entry| entry.decision.id == id).expect("both parts are retained");
    let is_whole = |entry: &&&DecisionEntry| !entry.ignores_cache && entry.decision.other_part.is_some();
    let prefill = *all.iter().find(is_whole).expect("a request with two choices");
    let decode = of(prefill.decision.other_part.unwrap());
    assert!(decode.ignores_cache);
    let gap = decode.progress.first_token_ms.unwrap().0 as i64 - prefill.progress.ended_ms.unwrap().0 as i64;
    let shown = folded.shown();
    for (entry, other, name, does) in [
        (prefill, decode, "decode", "generates the response"),
        (decode, prefill, "prefill", "computes the prompt"),
    ] {
        let part = OtherPart::of(&shown, entry).expect("the other part is retained");
        assert_eq!(part.head, format!("The {name} worker of this request, which {does}: "));
        assert_eq!(part.worker, other.decision.worker);
        let is_known = other.chosen_cost().is_some();
        assert_eq!(
            part.cost.starts_with(", cost ") && part.cost.ends_with(" blocks"),
            is_known,
            "{}",
            part.cost
        );
        assert!(is_known || name == "prefill");
        assert!(part.why.contains("was chosen"), "{}", part.why);
        assert_eq!(part.open, format!("Open the {name} decision, {}", other.decision.id));
        let expected = match gap {
            0.. => format!("Transfer gap {}: from prefill freed to the first token", format::lag(gap)),
            _ => format!(
                "No transfer gap: the first token came {} before prefill was freed",
                format::lag(-gap)
            ),
        };
        assert_eq!(part.gap, expected, "the same from both sides");
    }
    let rows = table.rows();
    let row = rows.iter().find(|row| row.id == decode.decision.id).unwrap();
    assert_eq!((row.outcome_text(), row.outcome_title(), row.share), ("–", Some(IGNORED), None));
    assert_eq!((row.overlap.as_str(), row.share_text().as_str()), ("–", "–"));
    let shown = details(&folded, decode);
    assert!(
        matches!(shown.cached, CachedPrompt::Ignored(text) if text.starts_with("Decode decisions ignore"))
    );
    assert_eq!(shown.path, None);
    let mut alone = prefill.clone();
    alone.decision.other_part = Some(DecisionId(u64::MAX));
    assert_eq!(OtherPart::of(&folded.shown(), &alone), None);
    assert!(OtherPart::gone_text(DecisionId(7)).contains("request, 7, is no longer retained"));
}

#[test]
fn scores_of_another_router_are_bars_and_leave_costs_out() {
    let worker =
        |ix: u32| Record::new_worker(WorkerIx(ix), Worker::new(u64::from(ix) + 40, 0), "ns", "backend");
    let scored = |ix: u32, score: Option<f64>, by: [Option<f64>; 2]| ScoredCandidate {
        worker: WorkerIx(ix),
        score,
        by_scorer: by.to_vec(),
        running: Some(3),
        waiting: None,
        kv_usage: Some(0.256),
    };
    let mut decision = Decision::new(DecisionId(1), WorkerIx(1), DecisionSource::Log);
    decision.arithmetic = Arithmetic::EndpointPicker;
    decision.scores = Some(Box::new(Scores {
        scorers: vec!["prefix".into(), "load".into()],
        candidates: vec![
            scored(1, Some(1.5), [Some(1.0), Some(0.5)]),
            scored(0, Some(0.75), [None, Some(0.75)]),
        ],
        ..Scores::default()
    }));
    let folded = of_records(Millis(5_000), [worker(0), worker(1), Record::Decision(Box::new(decision))]);
    let shown = details(&folded, retained(&folded)[0]);
    let Costs::Scores(Some(scores)) = &shown.costs else { panic!("{:?}", shown.costs) };
    assert_eq!((shown.costs_title, shown.instead.as_ref()), ("Score, higher wins", None));
    assert!(scores.note.starts_with("Each scorer gives 0 to 1"), "{}", scores.note);
    let rows: Vec<_> = scores
        .rows
        .iter()
        .map(|row| (row.worker.0, row.is_chosen, row.bar.as_deref(), row.score_text.as_deref()))
        .collect();
    assert_eq!(
        rows,
        [(1, true, Some("100.0%"), Some("score 1.5")), (0, false, Some("50.0%"), Some("score 0.75"))]
    );
    assert_eq!(scores.rows[1].by_scorer, "prefix – · load 0.75");
    assert_eq!(scores.rows[0].load, "3 running, KV cache 26 % in use");
    assert_eq!(scores.show_all, None);
}

#[test]
fn without_decisions_it_is_said_what_would_be_listed() {
    let none = nothing();
    let text = NoDecisions::of(&none.shown());
    assert_eq!((text.head, text.hint), ("No decision received yet", None));
    assert!(text.text.starts_with("Every request that the KV router places"), "{}", text.text);
    assert!(OtherRouter::all(&none.shown(), none.now).is_empty());
    let table = Table::of(&none, "");
    assert!(table.list.is_empty() && table.rows().is_empty());
    assert!(
        table.list.summary(&table.shown).starts_with("0 shown of 0 retained of 0 received; KV hit rate – of")
    );
    assert!(filters::by_choices(&table.list, None).is_empty());
    let chosen = address("by=session_affinity").by;
    assert_eq!(filters::by_choices(&table.list, chosen).len(), 1, "what is chosen stays in the list");
    assert!(filters::client_choices(&table.list, None).is_empty());
    assert_eq!(filters::client_choices(&table.list, address("client=failed").client).len(), 4);

    // Dynamo 1.6 without replica sync: no source reports decisions.
    let silent = recorded(&Recording::fixture("1.6.1-mismatch"));
    let text = NoDecisions::of(&silent.shown());
    assert!(text.hint.expect("a hint").to_string().contains("--router-replica-sync"));
}

#[test]
fn every_kind_has_a_name_and_an_explanation() {
    let kinds: Vec<_> = std::iter::once(None).chain(DecisionKind::ALL.map(Some)).collect();
    let names: Vec<_> = kinds.iter().map(|kind| kind_name(*kind)).collect();
    assert_eq!(names, ["All", "Hit", "Partial", "Miss", "Tie", "Better-cached worker skipped", "Unknown"]);
    assert!(kind_title(Some(DecisionKind::Hit)).starts_with("At least 90 % of the prompt's full blocks"));
    let mut titles: Vec<_> = kinds.iter().map(|kind| kind_title(*kind)).collect();
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), 7);
    assert_eq!(kind_status(Some(DecisionKind::Miss), 1), "Miss: 1 decision");
    assert_eq!(kind_status(None, 1_200), "All: 1,200 decisions");
    assert_eq!(filters::Choice::to_text("pinned", 1_200), "pinned 1,200");
}

#[test]
fn the_overview_lists_the_latest_and_holds_still_while_it_is_read() {
    let (then, now) = (Folded::demo(Topology::Aggregated, 37), Folded::demo(Topology::Aggregated, 40));
    let moving = RecentDecisions::of(&then.shown(), None, false, 12, None);
    let seqs = |recent: &RecentDecisions| recent.rows.iter().map(|row| row.seq).collect::<Vec<_>>();
    let newest: Vec<_> = retained(&then).iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs(&moving), newest[..12]);
    let held = RecentDecisions::of(&now.shown(), None, true, 12, Some(&moving));
    assert_eq!(seqs(&held)[..2], newest[..2], "those in sight stay where they are");
    let newer = now.cluster.decisions().totals().count - then.cluster.decisions().totals().count;
    assert_eq!(held.newer(&now.shown(), None) as u64, newer);
    assert!(held.is_held && held.rows.len() <= 60);
    assert_eq!(held_text(true, 0), "Paused while the pointer is here");
    assert_eq!(held_text(false, 1_234), "Paused while the focus is here, 1,234 newer");

    let latest = retained(&now)[0];
    let why = latest_why(&now.shown(), None).unwrap();
    assert!(why.starts_with(&format!("W{} was chosen", latest.decision.worker.0 + 1)), "{why}");
    let request = latest.decision.request_id.as_deref().unwrap();
    let row = &RecentDecisions::of(&now.shown(), None, false, 1, None).rows[0];
    assert_eq!(row_title(row), format!("Request {request}. Click for the candidates and the reason"));
    let worker = WorkerIx(1);
    let of_worker = RecentDecisions::of(&now.shown(), Some(worker), false, 60, None);
    assert!(!of_worker.rows.is_empty() && of_worker.rows.iter().all(|row| row.worker == worker));
    assert_eq!(latest_why(&nothing().shown(), None), None);
}

#[test]
fn blocks_that_were_gone_are_named_in_the_details() {
    let config = Config {
        topology: Topology::Aggregated,
        workers: 4,
        blocks_per_worker: 1_200,
        concurrency: 60,
        ..Config::default()
    };
    let folded = Folded::of(config, 120);
    let all = retained(&folded);
    let gone = |entry: &&&DecisionEntry| {
        entry.reuse.is_some_and(|reuse| {
            reuse.gone.is_some_and(|gone| matches!(gone.why, GoneReason::Evicted))
                && reuse.seen_blocks > reuse.held_blocks
        })
    };
    let entry = *all.iter().find(gone).expect("evictions");
    let shown = details(&folded, entry);
    let Some(TreePath::Shown { text, title, .. }) = &shown.path else { panic!("{:?}", shown.path) };
    let blocks = entry.reuse.map(|reuse| reuse.seen_blocks - reuse.held_blocks).unwrap();
    assert_eq!(*text, "Show in the tree what was gone");
    let count = format::plural(blocks.into(), "block", "blocks");
    assert!(title.contains(&format!(", then {count} evicted on W")), "{title}");
    let sentence = shown.not_reused.expect("why its prompt was not reused whole");
    assert!(sentence.starts_with("Computed anew: ") && sentence.contains(" evicted on W"), "{sentence}");
    assert!(shown.ticket.contains(&sentence));
}

#[test]
fn times_are_the_readers() {
    let folded = Folded::demo(Topology::Aggregated, 30);
    let table = Table::of(&folded, "");
    let hour = |zone: TimeZone| {
        let rows = DecisionRow::of_lines(&table.list, table.listed(), 0..1, zone);
        rows[0].as_ref().unwrap().time[..2].parse::<u64>().unwrap()
    };
    assert_eq!((hour(TimeZone(0)) + 3) % 24, hour(TimeZone(3 * 3_600_000)));
}
