//! Latency and spread as a person reads them: figures are the API's, targets live in the address, what nobody tells is
//! absent.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

/// A demo in which hardly any time passes any more.
async fn standing() -> Radixscope {
    let server = Radixscope::start(["demo", "--warm-up", "180", "--speed", "0.000001"]).await;
    server.until_source_is("live").await;
    server
}

async fn open(page: &Page, server: &Radixscope, more: &str) {
    page.open(&server.url(&format!("/?view=latency{more}"))).await;
    page.until_true("figures are there", "!!document.querySelector('[data-testid=ttft-p95] dd')").await;
}

/// `612 ms`, `1.24 s` in milliseconds.
fn ms(text: &str) -> f64 {
    let text = text.trim().trim_start_matches('≈').trim();
    let (number, unit) = text.split_once(' ').unwrap_or((text, "ms"));
    let number: f64 = number.replace(',', "").parse().unwrap_or_else(|_| panic!("{text} is no time"));
    if unit.starts_with("ms") { number } else { number * 1_000.0 }
}

#[tokio::test]
async fn percentiles_are_the_apis_and_stand_against_their_targets() {
    let server = standing().await;
    with_page(async |page| {
        open(page, &server, "&theme=dark").await;
        page.until("both say the same", async |page| {
            let told = server.json("/api/v1/latency").await;
            let figure = &told["ttft"];
            let histogram = figure["histogram"]["window"]["p95"]["estimate"].as_f64().map(|s| s * 1_000.0);
            let requests = figure["requests"]["p95"].as_f64();
            let shown = ms(&page.texts("[data-testid=ttft-p95] dd b").await.concat());
            let near = |wanted: f64| (wanted - shown).abs() <= 0.006 * wanted.max(1.0);
            // In seconds or milliseconds: the API says its unit, exact ones are in it too.
            let is_one = [histogram, requests, requests.map(|s| s * 1_000.0)].into_iter().flatten().any(near);
            wait::expect(is_one, || format!("{shown} is none of {figure}"))
        })
        .await;
        let p95 = ms(&page.texts("[data-testid=ttft-p95] dd b").await.concat());
        let standing = async || page.texts("[data-testid=ttft-p95] .standing").await.concat();
        for (target, word) in [(p95 * 2.0, "inside"), (p95 * 1.05, "close"), (p95 / 2.0, "over")] {
            open(page, &server, &format!("&ttft_slo={target}")).await;
            page.until("it stands so", async |_| {
                let said = standing().await;
                wait::expect(said.contains(word), || format!("{said}, not {word}"))
            })
            .await;
        }
        page.until_true(
            "the chart is drawn",
            "document.querySelector('[data-testid=ttft-trend]').dataset.ready === 'true'",
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_target_set_in_its_field_is_in_the_address_and_a_bad_one_is_named() {
    let server = standing().await;
    with_page(async |page| {
        open(page, &server, "&ttft_slo=soon").await;
        page.until_true(
            "it is named",
            "document.querySelector('[data-testid=ttft] .field-fault').innerText.includes('ttft_slo=soon')",
        )
        .await;
        let set =
            "(() => { const field = document.querySelector('[data-testid=tpot-target]'); field.value = '45';
            field.dispatchEvent(new Event('change', {bubbles: true})); })()";
        page.eval(set).await;
        page.until("the address has it", async |page| {
            let query = page.address().await.query().unwrap_or_default().to_owned();
            wait::expect(query.contains("tpot_slo=45"), || query)
        })
        .await;
        page.until_true(
            "the session is counted against it",
            "document.querySelector('[data-testid=tpot-burn]').innerText.includes('over 45 ms')",
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn every_worker_has_a_strip_and_the_gap_fits_them() {
    let server = standing().await;
    with_page(async |page| {
        open(page, &server, "").await;
        page.until("strips and gap agree", async |page| {
            let now: Vec<u32> =
                page.texts("[data-testid=spread-now]").await.iter().filter_map(|n| n.parse().ok()).collect();
            let gap = page.text("gap-now").await.and_then(|gap| gap.parse::<u32>().ok());
            let wanted = now.iter().max().zip(now.iter().min()).map(|(most, least)| most - least);
            wait::expect(now.len() == 3 && gap == wanted, || format!("{gap:?} of {now:?}"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn what_nobody_tells_is_absent_with_what_would_tell_it() {
    let server = standing().await;
    with_page(async |page| {
        for (theme, width, height) in [("dark", 1280, 720), ("light", 1920, 1080)] {
            page.size(width, height).await;
            open(page, &server, &format!("&theme={theme}")).await;
            // The simulated cluster is a 0.9: its router counts no events where a frontend's metrics show them.
            let text = page.text("events-absent").await.unwrap_or_default();
            assert!(text.contains("--prometheus frontend="), "{text}");
            assert!(page.text("count-overhead").await.unwrap().contains("absent"));
            page.screenshot(&format!("latency-{theme}-{width}x{height}")).await;
        }
    })
    .await;
}
