//! Two moments are compared by a person's means, on recorded traffic: every count is that of plain sets, made of the recorded
//! messages by other means than ours; the present, a link in another tab and a selected worker show the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use radixscope_captures::recorded::{Recorded, meta, record};
use radixscope_panels::format::UNKNOWN;
use radixscope_recording::Meta;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::{Capture, Message};
use radixscope_tests::envelope::payload;
use radixscope_tests::figures::number;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay::publish;
use radixscope_tests::wait;
use serde_json::Value;

/// What workers hold, by the messages alone: each block's name, and the place that it has.
#[derive(Clone, Default)]
struct HeldBlocks {
    /// By worker: names with their places; 0: the parent was never seen.
    workers: BTreeMap<u64, BTreeMap<u64, usize>>,
    /// Places by the place above and the hash of the tokens, numbered from 1.
    places: BTreeMap<(usize, u64), usize>,
    /// Decisions by worker.
    decisions: BTreeMap<u64, u64>,
}

/// Counts of a worker, or of all.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Counts {
    before: u64,
    stored: u64,
    evicted: u64,
    moved_in: u64,
    moved_out: u64,
    retained: u64,
    after: u64,
    /// `None`: said to be unknown.
    decisions: Option<u64>,
}

impl HeldBlocks {
    fn take(&mut self, messages: &[Message]) {
        for message in messages.iter().filter(|message| !message.is_delivery_copy()) {
            if message.subject.ends_with("kv-hit-rate") {
                let announced = payload(&message.payload);
                *self.decisions.entry(announced["worker_id"].as_u64().expect("a worker")).or_default() += 1;
            } else if message.subject.ends_with("kv-events") {
                // JetStream carries these as plain JSON.
                self.event(&serde_json::from_slice(&message.payload).expect("JSON"));
            }
        }
    }

    /// Blocks that workers hold, each worker's counted.
    fn blocks(&self) -> u64 {
        self.workers.values().map(|held| held.len() as u64).sum()
    }

    fn event(&mut self, announced: &Value) {
        let held = self.workers.entry(announced["worker_id"].as_u64().expect("a worker")).or_default();
        let data = &announced["event"]["data"];
        if let Some(stored) = data.get("stored") {
            let mut above = stored["parent_hash"].as_u64().map_or(Some(0), |hash| held.get(&hash).copied());
            for block in stored["blocks"].as_array().expect("blocks") {
                let hash = |name: &str| block[name].as_u64().expect("a hash");
                let at = above.expect("recorded from the beginning");
                let next = self.places.len() + 1;
                let place = *self.places.entry((at, hash("tokens_hash"))).or_insert(next);
                held.insert(hash("block_hash"), place);
                above = Some(place);
            }
        } else if let Some(removed) = data.get("removed") {
            for hash in removed["block_hashes"].as_array().expect("hashes") {
                held.remove(&hash.as_u64().expect("a hash"));
            }
        } else {
            assert_eq!(*data, "cleared");
            held.clear();
        }
    }

    fn names(&self, worker: u64) -> BTreeSet<u64> {
        self.workers.get(&worker).map(|held| held.keys().copied().collect()).unwrap_or_default()
    }

    /// Workers that hold each place.
    fn holders(&self) -> BTreeMap<usize, BTreeSet<u64>> {
        let mut holders: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for (worker, held) in &self.workers {
            for place in held.values() {
                holders.entry(*place).or_default().insert(*worker);
            }
        }
        holders
    }
}

/// By worker, and in all as worker 0. Then distinct blocks: kept, stored, evicted, moved.
fn counts(a: &HeldBlocks, b: &HeldBlocks) -> (BTreeMap<u64, Counts>, [u64; 4]) {
    let (mut all, mut sum, mut distinct) = (BTreeMap::new(), Counts::default(), [0; 4]);
    let (holders_a, holders_b, none) = (a.holders(), b.holders(), BTreeSet::new());
    for worker in a.workers.keys().chain(b.workers.keys()) {
        let (before, after) = (a.names(*worker), b.names(*worker));
        let decided = |held: &HeldBlocks| held.decisions.get(worker).copied().unwrap_or(0);
        all.insert(
            *worker,
            Counts {
                before: before.len() as u64,
                stored: after.difference(&before).count() as u64,
                evicted: before.difference(&after).count() as u64,
                retained: before.intersection(&after).count() as u64,
                after: after.len() as u64,
                decisions: Some(decided(b).abs_diff(decided(a))),
                ..Counts::default()
            },
        );
    }
    let places: BTreeSet<usize> = holders_a.keys().chain(holders_b.keys()).copied().collect();
    for place in places {
        let (before, after) =
            (holders_a.get(&place).unwrap_or(&none), holders_b.get(&place).unwrap_or(&none));
        let lost: Vec<_> = before.difference(after).collect();
        let gained: Vec<_> = after.difference(before).collect();
        let kind = match (lost.is_empty(), gained.is_empty()) {
            (true, true) => 0,
            (true, false) => 1,
            (false, true) => 2,
            (false, false) => 3,
        };
        distinct[kind] += 1;
        if kind == 3 {
            lost.into_iter().for_each(|worker| all.get_mut(worker).expect("known").moved_out += 1);
            gained.into_iter().for_each(|worker| all.get_mut(worker).expect("known").moved_in += 1);
        }
    }
    for of in all.values() {
        sum.before += of.before;
        sum.stored += of.stored;
        sum.evicted += of.evicted;
        sum.retained += of.retained;
        sum.after += of.after;
        sum.decisions = sum.decisions.or(Some(0)).zip(of.decisions).map(|(sum, of)| sum + of);
    }
    (sum.moved_in, sum.moved_out) = (distinct[3], distinct[3]);
    all.insert(0, sum);
    (all, distinct)
}

/// The counts that the table shows.
async fn shown(page: &Page) -> Result<BTreeMap<u64, Counts>, String> {
    let rows = page
        .eval(
            "[...document.querySelectorAll('[data-testid=changes-worker], [data-testid=changes-sum]')].map(row =>
              [row.dataset.worker ?? '0', ...['before', 'stored', 'evicted', 'moved-in', 'moved-out', 'kept', 'after', 'decisions']
                .map(name => row.querySelector(`[data-testid=changes-${name}]`).innerText.replaceAll(',', ''))])",
        )
        .await;
    let mut all = BTreeMap::new();
    for row in rows.as_array().ok_or("no table")? {
        let text = |at: usize| row[at].as_str().unwrap_or_default();
        let count = |at: usize| text(at).parse::<u64>().map_err(|_| format!("{row}"));
        let worker = text(0).split('/').next().unwrap_or_default().parse().map_err(|_| row.to_string())?;
        all.insert(
            worker,
            Counts {
                before: count(1)?,
                stored: count(2)?,
                evicted: count(3)?,
                moved_in: count(4)?,
                moved_out: count(5)?,
                retained: count(6)?,
                after: count(7)?,
                decisions: if text(8) == UNKNOWN { None } else { Some(count(8)?) },
            },
        );
    }
    Ok(all)
}

async fn until_shown(page: &Page, what: &str, expected: &(BTreeMap<u64, Counts>, [u64; 4])) {
    page.until(what, async |page| {
        let now = shown(page).await?;
        wait::expect(now == expected.0, || format!("{now:#?}, not {:#?}", expected.0))
    })
    .await;
    page.until(&format!("{what}: the legend"), async |page| {
        let mut now = [0; 4];
        for (count, name) in now.iter_mut().zip(["kept", "stored", "evicted", "moved"]) {
            let text = page.text(&format!("changes-blocks-{name}")).await.unwrap_or_default();
            *count = text.replace(',', "").parse::<u64>().map_err(|_| text)?;
        }
        wait::expect(now == expected.1, || format!("{now:?}, not {:?}", expected.1))
    })
    .await;
}

/// Publishes, waits until the server has all of it, and gives the server's time at which nothing more was to come.
async fn say(
    server: &Radixscope,
    client: &async_nats::Client,
    messages: &[Message],
    held: &mut HeldBlocks,
) -> u64 {
    publish(client, messages).await;
    held.take(messages);
    let blocks = held.blocks();
    let decisions: u64 = held.decisions.values().sum();
    let cluster = server
        .until_cluster("the server has all of it", |cluster| {
            let now = (number(&cluster["tree"], "resident"), number(&cluster["pools"][0], "decisions_total"));
            wait::expect(now == (blocks, decisions), || format!("{now:?} of {:?}", (blocks, decisions)))
        })
        .await;
    let at = number(&cluster, "at_ms");
    wait::until("the second is over", async || {
        let rows = server.json(&format!("/history?after_ms={at}")).await;
        rows["rows"].get(1).map(|row| number(row, "at_ms")).ok_or_else(|| "not yet".to_owned())
    })
    .await
}

#[tokio::test]
async fn every_count_is_that_of_plain_sets() {
    let capture = Capture::load("0.9.1-healthy");
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    let (first, second) = capture.messages.split_at(capture.messages.len() / 2);
    let mut held = HeldBlocks::default();
    let a_ms = say(&server, &client, first, &mut held).await;
    let a = held.clone();
    say(&server, &client, second, &mut held).await;
    let b = held;
    let (forth, back) = (counts(&a, &b), counts(&b, &a));
    let all = &forth.0[&0];
    assert!(all.stored > 1_000 && all.evicted > 1_000 && all.moved_in > 100, "{all:?}: enough changes");
    with_page(async |page| {
        page.open(&server.url(&format!("/?view=changes&theme=dark#t={a_ms}"))).await;
        page.until_true("the moment stands", "document.body.dataset.moment === 'paused'").await;
        page.until("it says how to begin", async |page| {
            page.text("changes-empty").await.ok_or_else(|| "nothing".to_owned())
        })
        .await;
        page.press("a").await;
        page.press("l").await;
        until_shown(page, "A and the present", &forth).await;
        page.press("b").await;
        let fixed = page
            .until("both are in the address", async |page| {
                let url = page.address().await;
                let has = |key: &str| url.query_pairs().any(|(name, _)| name == key);
                if has("a") && has("b") { Ok(url.to_string()) } else { Err(url.to_string()) }
            })
            .await;
        until_shown(page, "A and B", &forth).await;
        let announced = page.text("changes-sentence").await.unwrap_or_default().replace(',', "");
        let expected = format!("{} blocks stored {} evicted {} moved", all.stored, all.evicted, all.moved_in);
        assert!(announced.contains(&expected), "{announced}: {expected}");
        for name in ["flag-A", "flag-B"] {
            assert!(page.text(name).await.is_some(), "{name}");
        }
        page.screenshot("changes-dark").await;
        page.click("mark-swap").await;
        until_shown(page, "B and A", &back).await;

        // Another tab: another page, opened by the link.
        page.open(&fixed.replace("theme=dark", "theme=light")).await;
        until_shown(page, "the link", &forth).await;
        page.screenshot("changes-light").await;

        let worker = *a.workers.keys().next().expect("a worker");
        let (x, y) = page.centre(&format!("[data-worker^='{worker}'] th button")).await;
        page.click_at(x, y).await;
        page.until("the worker is selected", async |page| {
            let url = page.address().await;
            let is_it = url
                .query_pairs()
                .any(|(name, value)| name == "worker" && value.starts_with(&worker.to_string()));
            wait::expect(is_it, || url.to_string())
        })
        .await;
        page.until("the tree is its own", async |page| {
            let count = async |name: &str| {
                let text = page.text(&format!("changes-blocks-{name}")).await.unwrap_or_default();
                text.replace(',', "").parse::<u64>().unwrap_or(0)
            };
            let now =
                [count("stored").await + count("moved").await + count("evicted").await, count("kept").await];
            let of = &forth.0[&worker];
            let expected = [of.stored + of.evicted, of.retained];
            wait::expect(now == expected, || format!("{now:?}, not {expected:?}"))
        })
        .await;
        page.click("mark-clear").await;
        page.until("nothing is compared", async |page| {
            page.text("changes-empty").await.ok_or_else(|| "still".to_owned())
        })
        .await;
    })
    .await;
}

/// A recording of these messages, of a run of its own.
fn recorded(folder: &Path, name: &str, epoch: u64, messages: &[Message]) -> (PathBuf, Vec<Recorded>) {
    let (file, states) = record(messages.iter().cloned(), &Meta { epoch, recording: epoch, ..meta() });
    let path = folder.join(name);
    fs::write(&path, file).expect("written");
    (path, states)
}

/// The folded state is that of all of these messages, decisions left out: those of two runs do not compare.
fn held_after(messages: &[Message]) -> HeldBlocks {
    let mut held = HeldBlocks::default();
    held.take(messages);
    held
}

#[tokio::test]
async fn two_files_are_compared_as_two_moments_are() {
    let capture = Capture::load("0.9.1-healthy");
    let half = &capture.messages[..capture.messages.len() / 2];
    let folder = tempfile::tempdir().expect("a writable folder");
    let (first, states) = recorded(folder.path(), "first.mcap", 1, half);
    let (second, _) = recorded(folder.path(), "second.mcap", 2, &capture.messages);
    let foreign = Capture::load("1.6.1-healthy");
    let (other, _) = recorded(folder.path(), "other.mcap", 3, &foreign.messages);
    let mut a = held_after(half);
    let mut b = a.clone();
    b.take(&capture.messages[half.len()..]);
    (a.decisions, b.decisions) = Default::default();
    let mut expected = counts(&a, &b);
    expected.0.values_mut().for_each(|counts| counts.decisions = None);
    let all = &expected.0[&0];
    assert!(all.stored > 1_000 && all.evicted > 1_000, "{all:?}: enough changes");
    let server = Radixscope::standing("aggregated").await;
    with_page(async |page| {
        page.open(&server.url("/?view=changes")).await;
        page.until_true("files can be opened", "!!document.querySelector('[data-testid=second-file]')").await;
        page.choose_files("[data-testid=recording-file]", &[&first]).await;
        let end = states.last().expect("batches").digest;
        page.until_true("the first is shown", &format!("document.body.dataset.digest === '{end}'")).await;
        page.drop_file(&second, "#panels").await;
        until_shown(page, "the end of one and the end of the other", &expected).await;
        let announced = page.text("changes-sentence").await.unwrap_or_default();
        assert!(announced.contains("of the second recording"), "{announced}");
        assert_eq!(page.text("second-close").await.as_deref(), Some("Close second.mcap"));
        let url = page.address().await;
        let has = |key: &str| url.query_pairs().any(|(name, _)| name == key);
        assert!(has("a") && has("b"), "{url}");
        page.screenshot("changes-two-files").await;
        // Another moment of the second one: its first, at which no worker holds anything.
        let go = "(() => { const at = document.querySelector('[data-testid=second-at]'); at.value = at.min; \
                  at.dispatchEvent(new Event('change')); return at.min; })()";
        let begin = page.eval(go).await;
        page.until("all that A has is evicted", async |page| {
            let url = page.address().await;
            let b = url.query_pairs().find(|(name, _)| name == "b").map(|(_, at)| at.into_owned());
            let id = |id: &str| format!("changes-all-{id}");
            let [stored, evicted] = [page.text(&id("stored")).await, page.text(&id("evicted")).await];
            let evicted = evicted.unwrap_or_default().replace(',', "").parse::<u64>().ok();
            let is_it = b.as_deref() == begin.as_str()
                && stored.as_deref() == Some("0")
                && evicted == Some(a.blocks());
            wait::expect(is_it, || {
                format!("b={b:?}, stored {stored:?}, evicted {evicted:?} of {}", a.blocks())
            })
        })
        .await;
        page.click("second-close").await;
        page.until_true("B is nothing of it any more", "!new URL(location).searchParams.has('b')").await;
        page.choose_files("[data-testid=second-file]", &[&other]).await;
        page.until("they have no worker in common", async |page| {
            let announced = page.texts("[data-testid=changes-sentence]").await.join(" ");
            wait::expect(announced.contains("A and B have no worker in common"), || announced)
        })
        .await;
        let names = page.texts("[data-testid=changes-presence]").await;
        assert!(
            names.iter().any(|name| name == "only in A") && names.iter().any(|name| name == "only in B"),
            "{names:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_time_that_cannot_be_compared_is_refused_with_a_reason() {
    let server = Radixscope::standing("aggregated").await;
    with_page(async |page| {
        for (query, id, expected) in [
            ("a=1000", "changes-fault", "is no longer retained: the first retained moment is"),
            // What was not understood is as if nothing had been marked.
            ("a=soon", "changes-sentence", "Between "),
        ] {
            page.open(&server.url(&format!("/?view=changes&{query}"))).await;
            page.until("it is shown", async |page| {
                let announced = page.text(id).await.unwrap_or_default();
                wait::expect(announced.contains(expected), || announced)
            })
            .await;
        }
    })
    .await;
}
