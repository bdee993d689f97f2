//! The memory panel and its capacity calculator: figures of simulated clusters, recounted from the state and from the simulator's set-up.

use radixscope_insight::capacity::{
    CapacityForm, Convention, Engine, Input, Inputs, PRESETS, reference_blocks_per_worker,
};
use radixscope_insight::memory::{Facts, live_facts};
use radixscope_insight::recent_window;
use radixscope_model::id::WorkerIx;
use radixscope_panels::format::{UNKNOWN, count, percent, short};
use radixscope_panels::memory::{
    COLUMNS, Calculator, FieldGroup, FieldLabels, MemoryFigures, MemoryRow, Remedies, Results,
    against_live_note, empty, fill_from_live, legend, missing, settings, units_note,
};
use radixscope_panels::url::Address;
use radixscope_sim::{Config, Fault, Topology};
use radixscope_state::cluster::Cluster;

use crate::folded::{Folded, START};

fn figures(folded: &Folded) -> MemoryFigures {
    let shown = folded.shown();
    MemoryFigures::of(&shown, &shown.pool_labels(), folded.now)
}

fn row(folded: &Folded, worker: WorkerIx, bytes: Option<u64>) -> MemoryRow {
    MemoryRow::of(&folded.cluster, worker, bytes, folded.now).expect("a worker")
}

fn facts(folded: &Folded) -> Facts {
    live_facts(&folded.cluster, folded.shown().pool)
}

fn untouched(folded: &Folded) -> Calculator {
    Calculator::of(&Address::default(), &facts(folded))
}

/// The calculator after something was typed, as a link to it shows it.
fn changed(calculator: &Calculator, facts: &Facts, change: impl FnOnce(&mut CapacityForm)) -> Calculator {
    let mut form = calculator.form.clone();
    change(&mut form);
    let mut address = Address::default();
    Calculator::write(&form, &mut address);
    let (linked, notices) = Address::parse(&address.query());
    assert_eq!((&linked, notices), (&address, Vec::new()));
    Calculator::of(&linked, facts)
}

fn typed(calculator: &Calculator, facts: &Facts, fields: &[(Input, &str)]) -> Calculator {
    changed(calculator, facts, |form| {
        fields.iter().for_each(|(input, text)| form.set(*input, (*text).to_owned()));
    })
}

/// A figure of the calculator by its name in the document; the sentences below the figures.
fn results(calculator: &Calculator, id: &str) -> (String, String) {
    match Results::of(calculator) {
        Results::Refused(why) => panic!("{why}"),
        Results::Fits { figures, lines } => {
            let figure = figures.iter().find(|figure| figure.id == id).expect("a figure");
            let lines = lines.iter().map(|line| format!("{} {}", line.word, line.text));
            (figure.value.clone(), lines.collect::<Vec<_>>().join(" "))
        }
    }
}

#[test]
fn every_workers_figures_are_those_of_its_engine_and_its_events() {
    let folded = Folded::demo(Topology::Aggregated, 90);
    let shown = folded.shown();
    let capacity = u64::from(reference_blocks_per_worker(32));
    let bytes = PRESETS[0].inputs.capacity().unwrap().kv_bytes_per_token;
    let (mut all_used, mut all_held) = (0, 0);
    for worker in shown.worker_list() {
        let state = shown.worker(worker).unwrap();
        let (used, held) = (state.engine_used_blocks.expect("reported"), shown.holdings(worker).resident);
        (all_used, all_held) = (all_used + used, all_held + held);
        let row = row(&folded, worker, Some(bytes));
        assert_eq!(row.used.main, count(used));
        assert_eq!(row.retained.main, count(held - used));
        assert_eq!(row.free.main, count(capacity - held));
        assert_eq!(row.capacity.main, count(capacity));
        let (share, tokens) = (percent(used as f64 / capacity as f64), used * 32);
        let gib = (tokens * bytes) as f64 / f64::from(1 << 30);
        assert_eq!(row.used.sub, format!("{share} · {} tok · {gib:.1} GiB", short(tokens)));
        assert!(!row.capacity.sub.contains('%'), "its share of itself says nothing: {}", row.capacity.sub);
        let texts: Vec<&str> = row.parts.iter().map(|(.., text)| text.as_str()).collect();
        let [in_use, evictable, free] = [used, held - used, capacity - held].map(count);
        assert!(texts[0].starts_with(&in_use) && texts[1].starts_with(&evictable), "{texts:?}");
        assert!(texts[2].starts_with(&free) && texts.len() == 3, "{texts:?}");
        let width = |part: &(&str, String, String)| part.1.trim_end_matches('%').parse::<f64>().unwrap();
        assert!((row.parts.iter().map(width).sum::<f64>() - 100.0).abs() < 0.2, "{:?}", row.parts);
        assert!(row.spoken().starts_with(&texts.join(", ")) && row.spoken().ends_with(&row.estimate));
        assert_eq!(row.status(), None, "no sentence that every worker has");
        assert!(row.id.ends_with("/0") && row.id.contains(row.tail.trim_start_matches('…')), "{row:?}");
    }
    let figures = figures(&folded);
    let share = |blocks: u64| percent(blocks as f64 / (3 * capacity) as f64);
    assert_eq!([figures.used, figures.retained], [share(all_used), share(all_held - all_used)]);
    assert_eq!(figures.title, format!("Of the {} blocks of all workers", count(3 * capacity)));
    // Without the model there are no GiB.
    let first = shown.worker_list().next().unwrap();
    assert!(!row(&folded, first, None).used.sub.contains("GiB"));
    assert!(units_note(Some(bytes)).starts_with(&format!("GiB by the calculator's {} bytes", count(bytes))));
    assert!(units_note(None).starts_with("GiB appear once the calculator below is given the model."));
    let names = legend().map(|(_, name)| name);
    assert!(names.iter().all(|name| !name.is_empty()) && COLUMNS[3].0 == "Cached, evictable", "{names:?}");
}

#[test]
fn what_no_source_reports_is_unknown_and_names_what_would_report_it() {
    // Nothing is scraped: what engines use is not reported.
    let folded = Folded::of(Config { metrics: false, ..Config::default() }, 40);
    let all = missing(&folded.shown(), folded.now);
    assert!(
        !all.is_empty() && all.iter().all(|text| text.starts_with("Unknown for W1, W2, W3: ")),
        "{all:?}"
    );
    // A recording of NATS messages alone: no capacity, no engine.
    let recorded = Folded::recorded("0.9.1-healthy");
    let shown = recorded.shown();
    let first = shown.worker_list().next().unwrap();
    let row = row(&recorded, first, None);
    assert_eq!((row.capacity.main.as_str(), row.free.main.as_str()), (UNKNOWN, UNKNOWN));
    assert!(row.parts.is_empty() && row.spoken() == row.estimate, "an empty bar says why it is empty");
    assert_eq!(row.capacity.title, "Capacity: not reported by any source");
    let figures = figures(&recorded);
    assert_eq!((figures.used.as_str(), figures.retained.as_str()), (UNKNOWN, UNKNOWN));
    assert_eq!(figures.title, "The capacity of at least one worker is unknown");
    let all = missing(&shown, recorded.now);
    let names: Vec<String> = shown.worker_list().map(|worker| worker.to_string()).collect();
    assert!(
        all.iter().any(|text| text.starts_with(&format!("Unknown for {}: ", names.join(", ")))),
        "{all:?}"
    );
    // Nothing at all.
    let nothing = Folded { cluster: Cluster::default(), now: START };
    assert!(missing(&nothing.shown(), START).is_empty());
    assert!(empty().to_text().starts_with("No worker known yet. Workers appear with their first KV event"));
}

#[test]
fn pools_with_blocks_of_different_size_have_figures_of_their_own() {
    let folded = Folded::demo(Topology::TwoModels, 40);
    let labels = folded.shown().pool_labels();
    let figures = figures(&folded);
    let parts: Vec<&str> = figures.used.split(" · ").collect();
    assert_eq!(parts.len(), 2, "{figures:?}");
    for (part, label) in parts.iter().zip(&labels) {
        let used: u64 = folded
            .cluster
            .workers_in(label.pool)
            .map(|worker| folded.cluster.worker(worker).unwrap().engine_used_blocks.unwrap())
            .sum();
        let all: u64 = folded
            .cluster
            .workers_in(label.pool)
            .map(|worker| folded.cluster.capacity(worker).unwrap().value)
            .sum();
        assert_eq!(**part, format!("{} {}", label.short, percent(used as f64 / all as f64)));
    }
}

#[test]
fn the_calculator_begins_with_what_the_deployment_reports_and_names_bad_values_in_place() {
    let folded = Folded::demo(Topology::Aggregated, 60);
    let facts = facts(&folded);
    let begin = untouched(&folded);
    let reported = reference_blocks_per_worker(32);
    let (blocks, lines) = results(&begin, "cap-blocks-each");
    assert_eq!(blocks, count(u64::from(reported)));
    assert!(lines.contains("25 of 64 sequences of 13,530 tokens (p95) fit at once"), "{lines}");
    assert!(!lines.contains("Does not fit"), "{lines}");
    assert!(
        begin.faults().is_empty() && begin.bytes_per_token().is_none(),
        "the preset is not the reader's model"
    );
    assert!(against_live_note(&begin, facts.blocks_per_worker).contains("as the deployment reports them"));
    assert!(results(&typed(&begin, &facts, &[(Input::MaxNumSeqs, "16")]), "cap-gib").1.contains("Fits."));
    let long = typed(&begin, &facts, &[(Input::MaxNumSeqs, "16"), (Input::P95, "400000")]);
    assert!(results(&long, "cap-gib").1.contains("Does not fit. 0 of 16"));
    let computed =
        [(Input::MaxNumSeqs, "16"), (Input::P95, "13530"), (Input::Blocks, ""), (Input::BlockSize, "32")];
    let much = typed(&begin, &facts, &[&computed[..], &[(Input::Fraction, "much")]].concat());
    let fault = "Memory fraction: \"much\" is not a number";
    assert_eq!(much.fault(Input::Fraction).as_deref(), Some(fault));
    assert_eq!(much.fault(Input::Weights), None);
    let refused = format!("Nothing can be computed until this is changed: {fault}.");
    assert_eq!(Results::of(&much), Results::Refused(refused));
    assert_eq!(against_live_note(&much, None), "");
    // TensorRT-LLM takes its fraction of what the weights leave free.
    let heavy = [&computed[..], &[(Input::Fraction, "0.80"), (Input::Weights, "200")]].concat();
    let heavy = typed(&begin, &facts, &heavy);
    assert!(heavy.fault(Input::Weights).unwrap().contains("none is left for KV"), "{:?}", heavy.faults());
    let good = typed(&begin, &facts, &[&computed[..], &[(Input::Fraction, "0.80")]].concat());
    let inputs = Inputs { fraction: 0.8, max_num_seqs: Some(16), ..PRESETS[0].inputs };
    let expected = inputs.capacity().unwrap();
    assert_eq!(results(&good, "cap-blocks-each").0, count(expected.blocks_per_worker));
    assert_eq!(good.bytes_per_token(), Some(expected.kv_bytes_per_token));
    assert_eq!(good.form.text(Input::MaxNumSeqs), "16");
}

#[test]
fn it_compares_with_the_live_blocks_where_it_computes_its_own() {
    let folded = Folded::of(Config { blocks_per_worker: 5_000, ..Config::default() }, 40);
    let facts = facts(&folded);
    let begin = untouched(&folded);
    let text = |input| begin.form.text(input);
    assert_eq!([text(Input::Blocks), text(Input::BlockSize), text(Input::Workers)], ["5000", "32", "3"]);
    assert_eq!(results(&begin, "cap-blocks-all").0, "15,000");
    // Another preset is computed from its own memory.
    let other = changed(&begin, &facts, |form| *form = CapacityForm::of_preset(1));
    assert_eq!(other.form.text(Input::Blocks), "");
    let note = |live| against_live_note(&other, live);
    assert!(note(facts.blocks_per_worker).contains("Live workers have 5,000 blocks each"));
    assert!(note(Some((4_000, 5_000))).ends_with(" Workers differ: 4,000 to 5,000 blocks."));
    assert!(note(None).starts_with("No live capacity to compare with: "));
}

#[test]
fn engines_count_their_fraction_differently_and_fields_are_grouped() {
    let begin = Calculator::of(&Address::default(), &Facts::default());
    assert_eq!(begin.form, CapacityForm::default(), "without a deployment the first preset");
    assert_eq!(begin.other_convention(), None);
    let other =
        Engine::ALL.into_iter().find(|engine| Convention::of(*engine) != begin.form.convention).unwrap();
    let turned = changed(&begin, &Facts::default(), |form| form.engine = other);
    let text = turned.other_convention().unwrap();
    assert!(text.starts_with(&format!("{} itself counts the other way: ", other.label())), "{text}");
    let keys = |group: FieldGroup| group.fields().map(|field| field.key).collect::<Vec<_>>();
    assert_eq!(
        keys(FieldGroup::Memory),
        ["hbm", "gpus", "weights", "fraction", "block", "blocks", "workers"]
    );
    assert_eq!(keys(FieldGroup::Shape), ["layers", "heads", "dim", "element"]);
    assert_eq!(keys(FieldGroup::BytesPerToken), ["kv"]);
    assert_eq!(keys(FieldGroup::Traffic), ["seqs", "p50", "p95", "prefix"]);
    let labels: Vec<FieldLabels> = FieldGroup::Memory.fields().map(FieldLabels::of).collect();
    let of = |id: &str| labels.iter().find(|labels| labels.id == id).unwrap();
    assert_eq!(of("cap-blocks").placeholder, "computed from memory");
    assert_eq!(of("cap-hbm").placeholder, "");
    assert!(of("cap-hbm").label.contains(", GB"), "{:?}", of("cap-hbm"));
}

#[test]
fn what_the_deployment_reports_is_taken_and_the_rest_is_named() {
    let folded = Folded::demo(Topology::Aggregated, 90);
    let lengths = recent_window::lengths(&folded.cluster, folded.now).expect("requests ended");
    let mut form = CapacityForm::default();
    let text = fill_from_live(&mut form, &facts(&folded), Some(lengths));
    for part in ["Taken: block size 32", "workers 3", "kv blocks per worker 10,738"] {
        assert!(text.contains(part), "{text}: {part}");
    }
    assert!(text.contains(&format!(" (lengths of {} sequences by ", count(lengths.samples))), "{text}");
    assert_eq!(form.text(Input::P95), lengths.p95.to_string());
    assert_eq!(form.text(Input::Blocks), "10738");
    let before = CapacityForm::default();
    let mut form = before.clone();
    let text = fill_from_live(&mut form, &Facts::default(), None);
    assert!(text.starts_with("Not reported. Unchanged: block size, "), "{text}");
    assert_eq!(form, before);
}

#[test]
fn remedies_are_suggested_by_a_finding_alone() {
    let healthy = Folded::demo(Topology::Aggregated, 60);
    let none = Remedies::of(&healthy.shown(), healthy.now);
    assert!(!none.is_suggested && none.rows.len() == 4);
    assert!(none.rows.iter().all(|row| row.class != "suggested"), "{none:?}");
    assert_eq!(none.note(), Some("No active finding says that memory is short."));
    let full = Folded::fault(Fault::MemoryFull, 150);
    let codes: Vec<String> = full.cluster.findings().iter().map(|finding| finding.code.to_string()).collect();
    assert!(codes.iter().any(|code| code == "memory_full"), "{codes:?}");
    let some = Remedies::of(&full.shown(), full.now);
    let suggested = some.rows.iter().filter(|row| row.class == "suggested").count();
    assert!(some.is_suggested && suggested > 0 && some.note().is_none(), "{some:?}");
    assert!(some.rows.iter().all(|row| !row.why.is_empty()));
    for row in &some.rows {
        for engine in Engine::ALL {
            assert!(settings(row.kind, engine).all(|setting| setting.engine == engine));
        }
    }
    let labels = Folded::demo(Topology::TwoModels, 10).shown().pool_labels();
    assert_eq!(
        Remedies::heading(Engine::Vllm, None),
        format!("If memory is short, with {}", Engine::Vllm.label())
    );
    let heading = Remedies::heading(Engine::Vllm, labels.first());
    assert!(heading.ends_with(&format!(", pool {}", labels[0].short)), "{heading}");
}

#[test]
fn a_worker_that_left_has_no_memory_and_nothing_is_looked_for() {
    let folded = Folded::fault(Fault::KillWorker, 90);
    let shown = folded.shown();
    let gone = shown.worker_list().find(|ix| shown.worker(*ix).unwrap().departure.is_some()).expect("killed");
    let row = row(&folded, gone, None);
    assert_eq!([row.free.main.as_str(), row.retained.main.as_str()], [UNKNOWN, UNKNOWN]);
    assert!(row.parts.is_empty(), "{:?}", row.parts);
    let label = radixscope_icicle::palette::label(gone);
    assert!(missing(&shown, folded.now).iter().all(|text| !text.contains(&label)));
}
