//! Where reuse is lost: the page's figures are the API's, and a cause leads to the decision that lost most for it.

use std::collections::BTreeMap;

use radixscope_captures::Recording;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{paths, replay, wait};
use serde_json::Value;

/// Clicks, and counts how often.
async fn click(page: &Page, selector: &str, clicks: &mut u32) {
    let there = format!("!!document.querySelector({selector:?})");
    page.until_true(&format!("there is {selector}"), &there).await;
    page.eval(&format!("(document.querySelector({selector:?}).click(), true)")).await;
    *clicks += 1;
}

#[tokio::test]
async fn what_would_avoid_half_of_the_losses_is_one_click_from_the_overview() {
    let server = Radixscope::standing("aggregated").await;
    server.until_source_is("live").await;
    with_page(async |page| {
        page.open(&server.url("/?from=now-1h&to=now")).await;
        let mut clicks = 0;
        click(page, "[data-testid=nav-reuse]", &mut clicks).await;
        page.until("what would avoid half of the losses", async |page| {
            let text = page.text("reuse-half").await.unwrap_or_default();
            wait::expect(text.starts_with("Avoidable losses: "), || text.clone())
        })
        .await;
        assert!(clicks <= 2, "{clicks}");
        let bars = page.eval("document.querySelectorAll('[data-testid=reuse-trend] g').length").await;
        assert!(bars.as_u64().is_some_and(|bars| bars > 0), "{bars}");
    })
    .await;
}

#[tokio::test]
async fn why_a_conversation_got_slow_is_three_clicks_from_the_overview() {
    let recording = Recording::at(paths::fixture("routing").join("1.6.1-session-affinity"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("frontend.log");
    let log: String = recording.log("frontend").map(|line| line + "\n").collect();
    std::fs::write(&path, log).expect("written");
    let nats = Nats::start().await;
    let server = Radixscope::serve_with(&nats.url(), &["--logs", path.to_str().expect("a plain path")]).await;
    server.until_ready().await;
    let messages: Vec<_> = recording.subscribed().collect();
    replay::publish(&nats.client().await, &messages).await;
    let of_session = wait::until("decisions with a session and what they reused", async || {
        let all = server.json("/api/v1/decisions?limit=10000").await;
        let rows = all["decisions"].as_array().expect("decisions");
        let is_whole = |row: &&Value| row["session"].is_string() && row["reuse"].is_object();
        let count = rows.iter().filter(is_whole).count();
        let session = rows.iter().find(is_whole).map(|row| row["session"].clone());
        // All at once behind the log: what workers held before the first prompt is not known.
        wait::expect(count >= 18, || format!("{count} of 24"))?;
        session.ok_or_else(|| "no session".to_owned())
    })
    .await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        let mut clicks = 0;
        click(page, "[data-testid=nav-decisions]", &mut clicks).await;
        let all = server.json("/api/v1/decisions?limit=10000").await;
        let id =
            all["decisions"].as_array().and_then(|rows| rows.iter().find(|row| row["session"] == of_session));
        let id = id.expect("a decision")["id"].clone();
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        click(page, &format!("[data-testid=ledger-row][data-decision='{id}']"), &mut clicks).await;
        click(page, "[data-testid=details-session]", &mut clicks).await;
        page.until("each request says where it ran and why it was slow", async |page| {
            let turns = page.texts("[data-testid=session-turn]").await;
            let is_said = |turn: &&String| {
                let why = ["Computed anew: ", "All full blocks"];
                turn.contains("TTFT") && why.iter().any(|why| turn.contains(why))
            };
            let said = turns.iter().filter(is_said).count();
            wait::expect(turns.len() == 4 && said >= 3, || format!("{turns:?}"))
        })
        .await;
        assert!(clicks <= 3, "{clicks}");
    })
    .await;
}

#[tokio::test]
async fn sessions_have_the_same_colours_in_the_tree_and_in_decisions() {
    let frozen =
        ["demo", "--topology", "tiers", "--session-affinity", "--warm-up", "120", "--speed", "0.000001"];
    let server = Radixscope::start(frozen).await;
    server.until_source_is("live").await;
    let all = server.json("/api/v1/decisions?limit=10000").await;
    let rows = all["decisions"].as_array().expect("decisions");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for session in rows.iter().filter_map(|row| row["session"].as_str()) {
        *counts.entry(session).or_default() += 1;
    }
    with_page(async |page| {
        for theme in ["dark", "light"] {
            page.open(&server.url(&format!("/?view=tree&tree.heat=sessions&theme={theme}"))).await;
            let legend = "[data-testid=legend-sessions] button";
            let named = page
                .until("eight sessions are named", async |page| {
                    let named = page.texts(legend).await;
                    wait::expect(named.len() == 8, || format!("{named:?}"))?;
                    Ok(named)
                })
                .await;
            let least = named.iter().map(|name| counts[name.as_str()]).min().expect("eight");
            let more = counts.iter().filter(|(name, count)| **count > least && !named.iter().any(|of| of == **name));
            assert_eq!(more.count(), 0, "no other session has more requests: {named:?} of {counts:?}");
            let colours = page
                .eval(&format!(
                    "Object.fromEntries([...document.querySelectorAll({legend:?})].map(b =>
                        [b.innerText.trim(), getComputedStyle(b.querySelector('i')).backgroundColor]))"
                ))
                .await;
            // Each has boxes of its own in the picture.
            let painted = format!(
                "((c) => {{ const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {{willReadFrequently: true}});
                copy.drawImage(c, 0, 0);
                const pixels = new Uint32Array(copy.getImageData(0, 0, c.width, c.height).data.buffer);
                const seen = new Set(pixels);
                return Object.values({colours}).filter(rgb => {{
                    const [r, g, b] = rgb.match(/\\d+/g).map(Number);
                    return seen.has((255 << 24 | b << 16 | g << 8 | r) >>> 0); }}).length; }})
                (document.querySelector('#tree canvas.picture'))"
            );
            page.until("boxes have the sessions' colours", async |page| {
                let seen = page.eval(&painted).await.as_u64().unwrap_or(0);
                wait::expect(seen >= 4, || format!("{seen} of 8 colours"))
            })
            .await;
            page.eval(&format!("(document.querySelector({legend:?}).click(), true)")).await;
            page.until("its requests are outlined", async |page| {
                let text = page.text("painted-session").await.unwrap_or_default();
                wait::expect(text.starts_with(&format!("Session {}:", named[0])), || text.clone())
            })
            .await;
            let marks = "Object.fromEntries([...document.querySelectorAll('[data-testid=ledger-session].coloured')].map(mark =>
                [mark.title.replace('Session ', ''), getComputedStyle(mark).backgroundColor]))";
            for name in &named[..2] {
                page.open(&server.url(&format!("/?view=decisions&session={name}&theme={theme}"))).await;
                let expected = serde_json::json!({ name: colours[name] });
                page.until("decisions have the colour of the tree", async |page| {
                    let marks = page.eval(marks).await;
                    wait::expect(marks == expected, || format!("{marks} and {expected}"))
                })
                .await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn blocks_that_were_gone_are_dashed_behind_the_path_of_their_prompt() {
    let small = ["--workers", "4", "--blocks", "1200", "--concurrency", "60"];
    let standing = ["demo", "--warm-up", "240", "--speed", "0.000001"];
    let server = Radixscope::start(standing.into_iter().chain(small)).await;
    server.until_source_is("live").await;
    let all = server.json("/api/v1/decisions?limit=10000").await;
    let is_gone = |row: &&Value| !row["path"].is_null() && row["reuse"]["gone"]["why"] == "evicted";
    let gone: Vec<&Value> = all["decisions"].as_array().expect("decisions").iter().filter(is_gone).collect();
    assert!(gone.len() > 3, "{}", gone.len());
    for row in &gone {
        let (stored, of_one) = (&row["reuse"]["gone"]["displaced_by"], "decision_blocks");
        assert!(stored.is_null() || stored[of_one].as_u64() <= stored["stored_blocks"].as_u64(), "{row}");
        let text = row["reuse"]["text"].as_str().unwrap_or_default();
        assert!(text.contains(" evicted on W") && text.contains(" of its blocks"), "{text}");
    }
    with_page(async |page| {
        let mut described = Vec::new();
        for row in gone {
            let id = row["id"].as_str().expect("an id");
            page.open(&server.url(&format!("/?view=tree&decision={id}"))).await;
            let text = page
                .until("the path is described", async |page| {
                    let text = page.text("painted").await.unwrap_or_default();
                    let is_there = text.contains(id) && !text.contains("not received");
                    wait::expect(is_there, || text.clone()).map(|()| text)
                })
                .await;
            if text.contains("Dashed below: ") {
                assert!(text.contains(" evicted on W"), "{text}");
                return;
            }
            // The last block of its path may have left the tree since.
            described.push(text);
        }
        panic!("no path is followed by what was gone: {described:?}");
    })
    .await;
}
