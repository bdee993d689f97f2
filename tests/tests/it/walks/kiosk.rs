//! The kiosk is read from afar: large, with the figures of the API and nothing to click.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::figures::without_names;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

/// Least size of text on a screen of 1080 lines, CSS pixels.
const LEAST_PX: f64 = 23.5;

/// What can take the focus, as far as it is seen.
async fn focusable(page: &Page) -> Vec<String> {
    page.texts(
        ":is(a[href], button, input, select, textarea, summary, [tabindex]):not([tabindex='-1'], [inert] *, [popover] *, dialog *)",
    )
    .await
}

#[tokio::test]
async fn the_kiosk_is_large_says_why_and_has_nothing_to_click() {
    let server = Radixscope::standing("aggregated").await;
    with_page(async |page| {
        page.size(1920, 1080).await;
        let cluster = server.cluster().await;
        // As Grafana passes it.
        for switch in ["kiosk", "kiosk=tv"] {
            page.open_at(&server, &format!("/?{switch}&theme=dark"), &cluster).await;
            page.until_true("the kiosk is there", "!!document.querySelector('[data-testid=kiosk]')").await;
        }
        page.until("it is live, in a word and not by colour alone", async |page| {
            let word = page.text("connection").await;
            wait::expect(word.as_deref() == Some("Live"), || format!("{word:?}"))
        })
        .await;
        let name = page.text("kiosk-name").await.unwrap();
        assert!(name.starts_with("dynamo/backend"), "{name}");
        page.until("the figures are there", async |page| {
            let [ttft, hit_rate] = [page.text("kiosk-ttft").await, page.text("kiosk-hit-rate").await];
            let are_known = ttft.as_ref().is_some_and(|text| text.ends_with('s'))
                && hit_rate.as_ref().is_some_and(|text| text.ends_with('%'));
            wait::expect(are_known, || format!("{ttft:?} {hit_rate:?}"))
        })
        .await;
        // Decisions go on: the latest of both sides, asked for until they are of the same moment.
        page.until("it says why the latest decision went there", async |page| {
            let why = page.text("kiosk-why").await.ok_or("nothing is shown")?;
            let latest = server.json("/api/v1/decisions?limit=1").await;
            let chosen = &latest["decisions"][0]["worker_id"];
            let mut workers = cluster["workers"].as_array().ok_or("no workers")?.iter();
            let at =
                workers.position(|worker| worker["worker_id"] == *chosen).ok_or("an unknown worker")? + 1;
            wait::expect(why.starts_with(&format!("W{at} was chosen")), || format!("W{at}: {why}"))
        })
        .await;
        page.until("the tree is drawn", async |page| {
            let colours = page.colours("#tree canvas.picture").await;
            wait::expect(colours > 4, || format!("{colours} colours"))
        })
        .await;
        let (.., width, height) = page.rectangle("#tree").await;
        assert!(width >= 900.0 && height >= 500.0, "a tree of {width}×{height}");
        assert_eq!(focusable(page).await, Vec::<String>::new());
        page.press("Tab").await;
        assert_eq!(page.eval("document.activeElement.tagName").await, "BODY");
        let sizes = "Math.min(...[...document.querySelectorAll('.kiosk *')].filter((e) => [...e.childNodes]\
            .some((n) => n.nodeType === 3 && n.data.trim()) && !e.closest('[inert]') && e.checkVisibility())\
            .map((e) => parseFloat(getComputedStyle(e).fontSize)))";
        let least = page.eval(sizes).await.as_f64().unwrap();
        assert!(least >= LEAST_PX, "text of {least} px");
        let findings = server.json("/api/v1/findings").await;
        let titles: Vec<String> = findings["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|found| found["title"].as_str().map(without_names))
            .collect();
        page.until("the worst finding is large", async |page| {
            let worst = without_names(&page.text("kiosk-worst").await.unwrap_or_default());
            let is_it = match &titles[..] {
                // What shows and is no finding yet is named, with how long it has been so.
                [] => {
                    let is_to_come = [", a finding from ", "above target for "];
                    worst.contains("No findings")
                        || worst.contains("No finding yet")
                            && is_to_come.iter().any(|text| worst.contains(text))
                }
                all => all.iter().any(|title| worst.contains(title)),
            };
            wait::expect(is_it, || format!("{worst}, not of {titles:?}"))
        })
        .await;
        for id in ["kiosk-fullest", "kiosk-throughput", "kiosk-shared"] {
            let figure = page.text(id).await.unwrap_or_default();
            assert!(figure.starts_with(|first: char| first.is_ascii_digit()), "{id}: {figure}");
        }
        page.screenshot("kiosk").await;
    })
    .await;
}
