//! Recordings that older programs wrote, read as those programs showed them. Beside each file lie tables that its own program
//! exported.

use std::io::Cursor;

use radixscope_model::id::{Seq, Worker};
use radixscope_recording::{Channel, FoldStep, Recording, SeekTo, Series, SeriesPosition};
use radixscope_state::cluster::Cluster;

/// A file and its tables: decisions, and workers at the end.
struct Fixture {
    file: &'static [u8],
    decisions: &'static str,
    workers: &'static str,
}

/// A demo of the release before worker indices, of which a worker was killed.
const V11: Fixture = Fixture {
    file: include_bytes!("../fixtures/v11.mcap"),
    decisions: include_str!("../fixtures/v11-decisions.csv"),
    workers: include_str!("../fixtures/v11-workers.csv"),
};

/// 1.6.1 with host memory, by the last program that wrote decisions as patches: messages and, 0.3 s later, the router's log.
const V12: Fixture = Fixture {
    file: include_bytes!("../fixtures/v12.mcap"),
    decisions: include_str!("../fixtures/v12-decisions.csv"),
    workers: include_str!("../fixtures/v12-workers.csv"),
};

/// 1.6.1 with session affinity, replica sync, traces and the router's log, by the last program whose decisions had no session.
const V13: Fixture = Fixture {
    file: include_bytes!("../fixtures/v13.mcap"),
    decisions: include_str!("../fixtures/v13-decisions.csv"),
    workers: include_str!("../fixtures/v13-workers.csv"),
};

const ALL: [Fixture; 3] = [V11, V12, V13];

fn open(fixture: &Fixture) -> Recording<Cursor<&'static [u8]>> {
    Recording::open(Cursor::new(fixture.file)).unwrap()
}

fn series(fixture: &Fixture) -> Series<Cursor<&'static [u8]>> {
    Series::of(vec![open(fixture)]).unwrap()
}

/// Rows of a table without quotes, each by the names of its columns.
fn rows(table: &str) -> impl Iterator<Item = impl Fn(&str) -> String> {
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(move |line| {
        let cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        let names = names.clone();
        move |name: &str| cells[names.iter().position(|of| *of == name).unwrap()].clone()
    })
}

fn optional(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The state is the one that the file's own program showed at the end.
fn is_as_shown(cluster: &Cluster, fixture: &Fixture) {
    let mut count = 0;
    for row in rows(fixture.decisions) {
        let id = row("decision_id");
        let decided = cluster
            .decisions()
            .newest_first()
            .find(|decided| decided.decision.id.to_string() == id)
            .unwrap_or_else(|| panic!("decision {id} is missing"));
        let decision = &decided.decision;
        let worker = cluster.worker(decision.worker).unwrap().id;
        assert_eq!(
            (worker.id.to_string(), worker.dp_rank.to_string()),
            (row("worker_id"), row("dp_rank")),
            "{id}"
        );
        assert_eq!(decision.request_id.clone().unwrap_or_default(), row("request_id"), "{id}");
        assert_eq!(optional(decision.isl_tokens), row("isl_tokens"), "{id}");
        assert_eq!(optional(decision.isl_blocks), row("isl_blocks"), "{id}");
        if !decided.ignores_cache {
            assert_eq!(optional(decided.overlap_blocks()), row("overlap_blocks"), "{id}");
        }
        assert_eq!(decision.completeness.as_str(), row("completeness"), "{id}");
        assert_eq!(optional(decided.progress.output_tokens), row("output_tokens"), "{id}");
        count += 1;
    }
    assert_eq!(cluster.decisions().totals().count, count);
    let mut workers = 0;
    for row in rows(fixture.workers) {
        let id = Worker::new(row("worker_id").parse().unwrap(), row("dp_rank").parse().unwrap());
        let ix = cluster.worker_ix(id).unwrap_or_else(|| panic!("{id} is missing"));
        let state = cluster.worker(ix).unwrap();
        let shown = [state.stored_total, state.removed_total, cluster.decisions().totals_of(ix).count];
        assert_eq!(
            (
                state.departure.is_some().to_string(),
                optional(cluster.blocks(ix)),
                shown.map(|n| n.to_string())
            ),
            (
                row("state_gone"),
                row("blocks"),
                [row("stored_total"), row("removed_total"), row("decisions_total")]
            ),
            "{id}"
        );
        workers += 1;
    }
    assert_eq!(cluster.workers().len(), workers);
}

#[test]
fn a_recording_of_an_older_version_shows_what_its_own_program_showed() {
    for fixture in ALL {
        let folded = series(&fixture).play(&mut |_| {}).unwrap();
        assert!(folded.damaged.is_none(), "{:?}", folded.damaged);
        assert_eq!(folded.missing, 0);
        is_as_shown(&folded.cluster, &fixture);
    }
}

#[test]
fn decisions_of_which_each_source_wrote_a_part_are_shown_whole() {
    let cluster = series(&V12).play(&mut |_| {}).unwrap().cluster;
    let mut of_two_sources = 0;
    for row in rows(V12.decisions) {
        let id = row("decision_id");
        let mut all = cluster.decisions().newest_first();
        let decided = all.find(|decided| decided.decision.id.to_string() == id).unwrap();
        let sources: Vec<&str> = decided.sources().map(|source| source.as_str()).collect();
        assert_eq!(sources.join(" "), row("sources"), "{id}");
        assert_eq!(decided.decision.candidates.len().to_string(), row("candidates"), "{id}");
        assert_eq!(decided.decision.logit.map(|of| of.to_string()).unwrap_or_default(), row("logit"), "{id}");
        assert_eq!(optional(decided.progress.ended_ms.map(|at| at.0)), row("ended_ms"), "{id}");
        of_two_sources += usize::from(sources.len() == 2);
    }
    assert!(of_two_sources > 40, "{of_two_sources}");
}

#[test]
fn of_a_decision_without_a_session_nothing_else_is_lost() {
    let cluster = series(&V13).play(&mut |_| {}).unwrap().cluster;
    for row in rows(V13.decisions) {
        let id = row("decision_id");
        let mut all = cluster.decisions().newest_first();
        let decided = all.find(|decided| decided.decision.id.to_string() == id).unwrap();
        // The table was written while decisions came in: a trace comes behind the end of its request.
        let sources: Vec<&str> = decided.sources().map(|source| source.as_str()).collect();
        assert!(row("sources").split(' ').all(|source| sources.contains(&source)), "{id}");
        let candidates = Some(decided.decision.candidates.len() as u64).filter(|&count| count > 0);
        assert_eq!(optional(candidates), row("candidates"), "{id}");
        assert_eq!(optional(decided.progress.ended_ms.map(|at| at.0)), row("ended_ms"), "{id}");
        assert_eq!((decided.decision.session.as_deref(), decided.decision.decided_by), (None, None), "{id}");
    }
}

#[test]
fn whatever_keyframe_a_reader_begins_from_leads_to_the_same_state() {
    ALL.iter().for_each(begins_from_any_keyframe);
}

fn begins_from_any_keyframe(fixture: &Fixture) {
    let mut digests = Vec::new();
    let mut all = series(fixture);
    let end = all.play(&mut |_| {}).unwrap().cluster;
    let mut recording = open(fixture);
    let keyframes = recording.keyframes().to_vec();
    assert!(keyframes.len() > 1);
    for keyframe in keyframes {
        let mut at = Vec::new();
        all.play_from(keyframe.at_ms, &mut |step| {
            if let FoldStep::Batch { after, .. } = step {
                at.push((after.seq(), after.digest()));
            }
        })
        .unwrap();
        digests.push(at);
    }
    // Each pass is the end of the longest one.
    let longest = &digests[0];
    for shorter in &digests[1..] {
        assert_eq!(shorter[..], longest[longest.len() - shorter.len()..]);
    }
    assert_eq!(longest.last(), Some(&(end.seq(), end.digest())));
    let folded = recording.state_at(SeekTo::After(Seq(end.seq().0))).unwrap();
    assert_eq!(folded.cluster.digest(), end.digest());
}

#[test]
fn a_pass_in_pieces_and_jumps_in_between_agree_with_a_pass_at_once() {
    ALL.iter().for_each(passes_in_pieces);
}

fn passes_in_pieces(fixture: &Fixture) {
    let mut all = series(fixture);
    let (end, range) = (all.play(&mut |_| {}).unwrap().cluster, all.range());
    let mut position = SeriesPosition::default();
    let mut last = 0;
    while all.play_on(&mut position, &mut |step| {
        if let FoldStep::Batch { after, .. } = step {
            last = after.digest();
        }
    }) {
        all.state_at(range.0).unwrap();
    }
    assert_eq!(last, end.digest());
}

#[test]
fn a_copy_is_of_the_present_version() {
    let mut recording = open(&V11);
    let mut messages = recording.messages(None, &Channel::ALL);
    let (mut frames, mut others) = (0, 0);
    while let Some(message) = messages.next() {
        let message = message.unwrap();
        match message.channel {
            Channel::Keyframes | Channel::Batches => {
                assert!(radixscope_model::frame::Frame::decode(message.data).is_ok());
                frames += 1;
            }
            Channel::Decisions | Channel::Findings | Channel::Timeline => others += 1,
        }
    }
    assert!(frames > 10 && others > 10, "{frames} {others}");
}
