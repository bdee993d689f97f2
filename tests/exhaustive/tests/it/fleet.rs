//! `radixscope fleet` with real members and with what is none: what it shows of each equals what the member itself reports, and what
//! does not answer is shown in words.

use std::sync::Arc;

use radixscope_tests::browser::with_page;
use radixscope_tests::fleet::{TOKEN, at, cells, fleet, member, refused_port, until_state};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{layout, metrics, wait};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Each real member has so many names.
const NAMES: [&str; 3] = ["", " again", " once more"];
/// Memory of a process that refuses bodies of a gibibyte.
const MAX_RSS_BYTES: u64 = 200 << 20;

/// What listens and is no member.
#[derive(Clone)]
enum Answer {
    /// Nothing ever.
    Nothing,
    /// Head and body.
    Text(Arc<str>),
    /// A gibibyte.
    Huge,
    /// The health of a Radixscope without a summary.
    Old,
}

struct Impostor {
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Impostor {
    async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(respond(socket, answer.clone()));
            }
        });
        Self { port, task }
    }

    async fn with_body(body: &str) -> Self {
        Self::start(Answer::Text(ok(body).into())).await
    }
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One request on a connection.
async fn respond(mut socket: TcpStream, answer: Answer) {
    let mut head = [0; 2_048];
    let Ok(length) = socket.read(&mut head).await else { return };
    // The other side may have closed the connection: it takes no more than it wants.
    match answer {
        Answer::Nothing => std::future::pending().await,
        Answer::Text(text) => drop(socket.write_all(text.as_bytes()).await),
        Answer::Huge => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1_u64 << 30);
            let _ = socket.write_all(head.as_bytes()).await;
            while socket.write_all(&[b' '; 65_536]).await.is_ok() {}
        }
        Answer::Old => {
            let is_health = head[..length].starts_with(b"GET /healthz ");
            let text = match is_health {
                true => ok(r#"{"alive":true,"version":"0.1.0","uptime_s":9}"#),
                false => {
                    "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned()
                }
            };
            let _ = socket.write_all(text.as_bytes()).await;
        }
    }
}

/// Simulated clusters in which hardly any time passes, of several kinds; the last one needs a token.
async fn clusters() -> Vec<(&'static str, Radixscope)> {
    let kinds: [(&str, &[&str]); 5] = [
        ("usual", &[]),
        ("mismatch", &["--fault", "block-size"]),
        ("lossy", &["--fault", "gap"]),
        ("two", &["--topology", "two-models"]),
        ("closed", &["--access-token", TOKEN]),
    ];
    let mut all = Vec::new();
    for (name, flags) in kinds {
        let fixed = ["demo", "--warm-up", "30", "--speed", "0.000001"];
        all.push((name, Radixscope::start(fixed.iter().chain(flags)).await));
    }
    for (name, server) in &all {
        if *name != "closed" {
            server.until_source_is("live").await;
        }
    }
    all
}

#[tokio::test]
async fn twenty_members_show_what_each_reports_and_five_why_they_do_not() {
    let clusters = clusters().await;
    let token = tempfile::NamedTempFile::new().expect("a writable folder");
    std::fs::write(token.path(), TOKEN).expect("a writable folder");
    let login = format!(",token-file={}", token.path().display());
    let mut members = Vec::new();
    for (name, server) in &clusters {
        let login = if *name == "closed" { login.as_str() } else { "" };
        members.extend(NAMES.map(|more| (format!("{name}{more}"), format!("{}{login}", server.origin()))));
    }
    let silent = Impostor::start(Answer::Nothing).await;
    let broken = "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let broken = Impostor::start(Answer::Text(broken.into())).await;
    let garbage = Impostor::with_body(r#"{"version": "<script>window.pwned = 1</script>"}"#).await;
    let huge = Impostor::start(Answer::Huge).await;
    let refused = refused_port().await;
    let dead = [
        ("silent", silent.port, "did not respond within"),
        ("broken", broken.port, "responds 500 Internal Server Error"),
        ("garbage", garbage.port, "is no summary of a cluster"),
        ("huge", huge.port, "is larger than 256 KiB"),
        ("refused", refused, "refused"),
    ];
    members.extend(dead.iter().map(|(name, port, _)| ((*name).to_owned(), at(*port))));
    assert_eq!(members.len(), 20);
    let fleet = fleet(&members, &[]).await;
    let report = wait::until("15 of 20 answer, and all were asked", async || {
        let report = fleet.json("/api/v1/fleet").await;
        let members = report["members"].as_array().expect("members");
        let is_waiting = members.iter().any(|member| member["state"] == "waiting");
        wait::expect(report["answering"] == 15 && !is_waiting, || report.to_string()).map(|()| report)
    })
    .await;
    assert!(!report.to_string().contains(TOKEN), "no secret is served");
    for (name, _, why) in dead {
        let member = member(&fleet, name).await;
        assert_eq!(member["state"], "not_answering", "{member}");
        assert!(member["detail"].as_str().is_some_and(|detail| detail.contains(why)), "{member}");
        assert!(member["summary"].is_null() && member["answered_ms"].is_null(), "{member}");
    }
    let ready = fleet.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["message"]), (200, &"15 of 20 members answer".into()));
    for (name, server) in &clusters {
        let headers = [("authorization", &*format!("Bearer {TOKEN}"))];
        wait::until("the summary is the member's own", async || {
            let mut own = server.get_with("/api/v1/summary", &headers).await.json();
            let mut shown = member(&fleet, name).await["summary"].take();
            // The clock goes on, if only a little.
            (own["at_ms"], shown["at_ms"]) = (Value::Null, Value::Null);
            wait::expect(own == shown, || format!("{own}\n{shown}"))
        })
        .await;
    }
    with_page(async |page| {
        layout::bring_axe(page).await;
        page.size(1_920, 1_080).await;
        page.open(&fleet.url("/?theme=dark")).await;
        page.until_true("all rows", "document.querySelectorAll('[data-testid=fleet-row]').length === 20")
            .await;
        page.until_true(
            "those that answer",
            "document.querySelectorAll('[data-state=answering]').length === 15",
        )
        .await;
        assert_eq!(page.eval("document.title").await, "Radixscope fleet");
        assert_eq!(page.text("fleet-answering").await.as_deref(), Some("15 of 20"));
        let listed = page.texts("[data-testid=fleet-row] th b").await;
        assert_eq!(listed[..5], ["broken", "garbage", "huge", "refused", "silent"], "the worst come first");
        let mut ranks = Vec::new();
        for name in &listed {
            ranks.push(rank(&member(&fleet, name).await));
        }
        assert!(ranks.is_sorted() && ranks.last() > ranks.first(), "{listed:?} {ranks:?}");
        for (name, _, why) in dead {
            let shown = cells(page, name).await;
            assert!(shown[0].contains("not answering for") && shown[1].contains(why), "{shown:?}");
            assert!(shown[2..7].iter().all(|cell| cell == "–"), "unknown, not 0: {shown:?}");
            assert_eq!(shown[7], "never");
        }
        assert_eq!(page.eval("typeof window.pwned").await, "undefined");
        for (name, _) in &clusters {
            // What is asked for last may be newer than what is shown.
            page.until("the row says what the summary says", async |page| {
                let summary = member(&fleet, name).await["summary"].take();
                agrees(&cells(page, name).await, &summary)
            })
            .await;
        }
        page.click("fleet-sort-hit_rate").await;
        page.until_true("sorted by hit rate, what is unknown last", "(() => {
            const rates = [...document.querySelectorAll('.f-hit b')].map(b => parseFloat(b.textContent));
            const known = rates.slice(0, 15);
            return rates.slice(15).every(isNaN) && known.every((rate, at) => at === 0 || known[at - 1] <= rate);
        })()").await;
        assert_eq!(page.address().await.query(), Some("theme=dark&fleet.sort=hit_rate"));
        for (width, height, theme) in [(1_920, 1_080, "dark"), (1_280, 720, "light"), (390, 844, "dark")] {
            page.size(width, height).await;
            page.open(&fleet.url(&format!("/?theme={theme}"))).await;
            page.until_true("rows", "document.querySelectorAll('[data-state=answering]').length === 15")
                .await;
            layout::until_stable(page).await;
            page.screenshot(&format!("fleet-{width}-{theme}")).await;
            assert_eq!(layout::axe_faults(page).await, [], "{width} {theme}");
            assert_eq!(layout::contrast_faults(page).await, [], "{width} {theme}");
        }
    })
    .await;
    let rss = fleet.process().rss_bytes();
    assert!(rss < MAX_RSS_BYTES, "{rss} bytes");
    let samples = metrics::parse(fleet.get("/metrics").await.text()).expect("our own figures");
    let up = samples.iter().filter(|sample| sample.name == "radixscope_fleet_member_up").map(|one| one.value);
    assert_eq!(up.sum::<f64>(), 15.0);
}

/// How urgent a member is: the less the more.
fn rank(member: &Value) -> u8 {
    let count = |severity: &str| member["summary"]["findings"][severity].as_u64().unwrap_or_default();
    match member["state"].as_str() {
        Some("not_answering") => 0,
        _ if count("critical") > 0 => 1,
        _ if member["summary"]["ttft"]["standing"] == "above" => 2,
        _ if count("warning") > 0 => 3,
        _ => 4,
    }
}

/// Whether the cells of a row say what a summary says.
fn agrees(shown: &[String], summary: &Value) -> Result<(), String> {
    let number = |at: &str| summary.pointer(at).and_then(Value::as_f64);
    let hit_rate =
        number("/hit_rate/share").map_or("unknown".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let mut expected = vec![(2, hit_rate), (5, summary["workers"]["present"].to_string())];
    expected.extend(summary["findings"]["worst"]["title"].as_str().map(|title| (1, title.to_owned())));
    expected.extend(summary["reuse"]["worst"]["text"].as_str().map(|text| (4, text.to_owned())));
    for (why, at) in [("/hit_rate/why", 2), ("/reuse/why", 4), ("/requests/why", 6)] {
        expected.extend(summary.pointer(why).and_then(Value::as_str).map(|why| (at, why.to_owned())));
    }
    if let (Some(low), Some(high)) = (number("/ttft/p95_ms/low"), number("/ttft/p95_ms/high"))
        && low == high
        && low < 1_000.0
    {
        expected.push((3, format!("{low:.0} ms")));
    }
    for (column, text) in expected {
        let has_it = shown.get(column).is_some_and(|cell| cell.contains(&text));
        wait::expect(has_it, || format!("column {column} has no {text:?}: {shown:?}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn what_a_member_says_is_text_and_a_redirect_leads_nowhere() {
    let cluster = Radixscope::start(["demo", "--warm-up", "10", "--speed", "0.000001"]).await;
    cluster.until_source_is("live").await;
    let mut hostile = cluster.json("/api/v1/summary").await;
    hostile["version"] = json!("9.9\u{202e}<b>");
    hostile["findings"]["worst"] = json!({
        "code": "x", "severity": "critical", "since_ms": 1,
        "title": format!("<img src=x onerror=\"window.pwned = 1\">\u{202e}{}", "y".repeat(10_000)),
    });
    let hostile = Impostor::with_body(&hostile.to_string()).await;
    let secret = Impostor::with_body("{}").await;
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nLocation: {}/api/v1/summary\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        cluster.origin()
    );
    let redirect = Impostor::start(Answer::Text(redirect.into())).await;
    let old = Impostor::start(Answer::Old).await;
    let members =
        [("hostile", hostile.port), ("empty", secret.port), ("moved", redirect.port), ("old", old.port)];
    let members = members.map(|(name, port)| (name.to_owned(), at(port)));
    let fleet = fleet(&members, &[]).await;
    let shown = until_state(&fleet, "hostile", "answering").await;
    let title = shown["summary"]["findings"]["worst"]["title"].as_str().expect("a title");
    assert!(title.chars().count() < 400 && !title.contains('\u{202e}'), "{title}");
    let moved = until_state(&fleet, "moved", "not_answering").await;
    assert!(
        moved["detail"].as_str().is_some_and(|why| why.contains("redirects are not followed")),
        "{moved}"
    );
    let old = until_state(&fleet, "old", "no_summary").await;
    assert_eq!(old["detail"], "Radixscope 0.1.0 does not report /api/v1/summary; its page works");
    with_page(async |page| {
        page.open(&fleet.url("/")).await;
        page.until_true("a row", "!!document.querySelector('[data-name=hostile] .f-findings b')").await;
        let shown = cells(page, "hostile").await;
        assert!(shown[0].contains("version 9.9") && shown[1].contains("<img src=x"), "{shown:?}");
        assert_eq!(page.eval("typeof window.pwned").await, "undefined");
        assert_eq!(page.eval("document.querySelectorAll('.fleet-row img, .fleet-row script').length").await, 0);
        // By keyboard: the filter, then from cell to cell.
        page.press("/").await;
        page.until_true("the filter has the focus", "document.activeElement.id === 'fleet-filter'").await;
        page.eval("(() => { const f = document.activeElement; f.value = 'OLD'; f.dispatchEvent(new Event('input', {bubbles: true})); })()").await;
        page.until_true("one row", "document.querySelectorAll('[data-testid=fleet-row]').length === 1").await;
        assert!(page.address().await.query().is_some_and(|query| query.contains("find=OLD")));
        page.eval("document.querySelector('.fleet-row a[tabindex=\"0\"]').focus()").await;
        page.press("ArrowRight").await;
        page.until_true("the next cell", "document.activeElement.id === 'fleet-0-1'").await;
    })
    .await;
    let unknown = fleet.get("/api/v1/cluster").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.text().contains("this is radixscope fleet"), "{}", unknown.text());
    assert_eq!(fleet.get("/ws").await.status, 404, "there is no cluster here");
}
