//! Findings as a person reads them: a cluster with a fault, a healthy one, and what the API says of both.

use radixscope_tests::browser::with_page;
use radixscope_tests::figures::without_names;
use radixscope_tests::panels::findings::{CARD, faulty, open};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

#[tokio::test]
async fn filters_are_in_the_address_and_links_lead_to_the_panel() {
    let (server, finding) = faulty().await;
    with_page(async |page| {
        let severity = finding["severity"].as_str().unwrap();
        let other = if severity == "critical" { "info" } else { "critical" };
        open(page, &server, &format!("&severity={severity}")).await;
        assert_eq!(page.texts(CARD).await.len(), 1);
        page.click(&format!("severity-{other}")).await;
        page.until_true("it is filtered out", &format!("!document.querySelector('{CARD}')")).await;
        assert!(page.address().await.query().unwrap().contains(&format!("severity={other}")));
        page.click("severity-all").await;
        page.until_true("it is there again", &format!("!!document.querySelector('{CARD}')")).await;
        let panel = finding["panel"].as_str().unwrap();
        page.eval(&format!("document.querySelector('{CARD} [data-testid=show-it]').click()")).await;
        page.until("its panel is open", async |page| {
            let query = page.address().await.query().unwrap_or_default().to_owned();
            let shown =
                panel == "overview" && !query.contains("view=") || query.contains(&format!("view={panel}"));
            wait::expect(shown, || format!("{query} is not of {panel}"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_overview_names_the_findings_and_leads_to_them() {
    let (server, finding) = faulty().await;
    with_page(async |page| {
        page.open(&server.url("/?theme=light")).await;
        let title = without_names(finding["title"].as_str().unwrap());
        page.until("it is named", async |page| {
            let text = without_names(&page.text("notice-findings").await.unwrap_or_default());
            wait::expect(text.contains(&title), || text)
        })
        .await;
        page.until_true(
            "it is counted",
            "/[1-9]/.test(document.querySelector('[data-testid=nav-findings]').dataset.found)",
        )
        .await;
        page.screenshot("overview-faulty").await;
        page.click("show-findings").await;
        page.until_true("the panel opens", &format!("!!document.querySelector('{CARD}')")).await;
        page.until_true("the heading has the focus", "document.activeElement.id === 'findings-title'").await;
    })
    .await;
}

#[tokio::test]
async fn a_healthy_cluster_says_what_was_checked() {
    let server = Radixscope::start(["demo", "--warm-up", "60"]).await;
    server.until_source_is("live").await;
    let checked = wait::until("rules have run", async || {
        let all = server.json("/api/v1/findings").await;
        let rules = all["checked"].as_array().unwrap().len();
        wait::expect(rules > 0, || all.to_string()).map(|()| rules)
    })
    .await;
    with_page(async |page| {
        page.open(&server.url("/?theme=dark")).await;
        // Some rules have no data in the demo: nothing is green then.
        let expected = format!(" of {checked} checks ran");
        let says_so = |text: &str| text.contains("No findings · ") && text.contains(&expected);
        page.until("the overview says so", async |page| {
            let text = page.text("notice-findings").await.unwrap_or_default();
            wait::expect(says_so(&text) && !text.contains('✓') && text.contains("What is missing"), || text)
        })
        .await;
        open(page, &server, "&theme=dark").await;
        page.until("the panel says so", async |page| {
            let text = page.text("findings-none").await.unwrap_or_default();
            wait::expect(says_so(&text) && !text.contains('✓'), || text)
        })
        .await;
        assert_eq!(page.texts("[data-testid=rule]").await.len(), checked);
        page.screenshot("findings-healthy").await;
    })
    .await;
}

#[tokio::test]
async fn the_way_to_every_panel_is_on_one_line_and_stays_reachable() {
    let server = Radixscope::start(["demo", "--warm-up", "10"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        for (width, height) in [(1280, 720), (1024, 768), (800, 600), (1280, 560)] {
            page.size(width, height).await;
            page.open(&server.url("/?theme=dark")).await;
            page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
            if width > 900 {
                let bar = page.eval("document.querySelector('.bar').offsetHeight").await.as_f64().unwrap();
                assert!(bar < 60.0, "the bar is one line at {width}: {bar}");
                let cut = "[...document.querySelectorAll('.nav a')].filter(a => a.getBoundingClientRect().right > document.querySelector('.nav').getBoundingClientRect().right + 1).length";
                assert_eq!(page.eval(cut).await, 0);
                let over = "document.querySelector('.facts').scrollWidth - document.querySelector('.facts').clientWidth";
                assert!(page.eval(over).await.as_f64().unwrap() <= 1.0, "every fact is in sight at {width}");
            }
            let across = "document.documentElement.scrollWidth - window.innerWidth";
            assert!(page.eval(across).await.as_f64().unwrap() <= 0.0, "nothing is wider than the window of {width}");
            page.screenshot(&format!("nav-{width}x{height}")).await;
        }
    })
    .await;
}
