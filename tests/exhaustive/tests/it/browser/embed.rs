//! The page and its pictures inside the page of another site, as Grafana shows them: in frames, plain and sandboxed, over
//! HTTPS with cookies of third parties off, and as images. A site at 127.0.0.1 and a server at localhost are two sites.

use radixscope_panels::url::Panel;
use radixscope_tests::browser::{with_page, with_page_and};
use radixscope_tests::figures::without_names;
use radixscope_tests::pages::Site;
use radixscope_tests::panels::embed::{STRICT, TOKEN, abroad, demo, frame, image, until_live};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{layout, wait};

/// Frames in which scripts run and which keep the origin of the page: as Grafana shows them with `disable_sanitize_html`, as
/// careful portals do, and without the reader's cookies.
const FRAMES: [&str; 4] = [
    "",
    "sandbox=\"allow-scripts allow-same-origin\"",
    "credentialless",
    "credentialless sandbox=\"allow-scripts allow-same-origin\"",
];

/// What Grafana's text panel makes of any frame unless its sanitiser is off.
const GRAFANAS: &str = "sandbox credentialless referrerpolicy=no-referrer";

#[tokio::test]
async fn pictures_are_shown_where_no_script_runs_and_are_loaded_again_where_frames_may() {
    let server = demo(&[]).await;
    let site = Site::of_page("<!doctype html><title>A dashboard</title><body></body>").await;
    with_page(async |page| {
        page.expect_complaints();
        let wrong = abroad(&server, "http", "/panel/tree.svg?theme=blue&width=500");
        assert_eq!(image(page, &site, &wrong).await, 500, "what is wrong stands in the picture");
        let all = ["tree", "lanes", "occupancy", "rates", "latency", "decisions", "findings", "spread"];
        for name in all {
            let url = abroad(&server, "http", &format!("/panel/{name}.svg?width=640&height=300&theme=dark"));
            assert_eq!(image(page, &site, &url).await, 640, "{name}");
        }
        // Watched from outside, because the frame's document goes each time.
        page.open(&site.url()).await;
        page.requests().await;
        let url = server.url("/panel/spread.svg?refresh=1s");
        page.eval(&format!("document.body.innerHTML = '<iframe src=\"{url}\"></iframe>'")).await;
        let (mut loaded, again) = (0, 3);
        wait::until("the browser loads it again and again", async || {
            loaded += page.requests().await.iter().filter(|asked| **asked == url).count();
            wait::expect(loaded >= again, || format!("{loaded} times"))
        })
        .await;
        // Grafana's sanitiser lets no script run; a picture needs none.
        frame(page, &site, GRAFANAS, &abroad(&server, "http", "/panel/occupancy.svg")).await;
        page.until_true("the picture is there", "document.documentElement?.localName === 'svg'").await;
    })
    .await;
}

#[tokio::test]
async fn every_panel_is_live_in_a_frame_of_another_site_however_that_is_sandboxed() {
    let server = demo(&["--allow-origin", "null"]).await;
    let site = Site::of_page("<!doctype html><title>A dashboard</title><body></body>").await;
    let worker = server.cluster().await["workers"][1]["worker_id"].as_str().expect("an id").to_owned();
    with_page(async |page| {
        // Chromium warns of frames that could take their sandbox off; this one is of another site and cannot.
        page.expect_complaints();
        for panel in Panel::ALL {
            let view = panel.as_str();
            let query = format!("/?view={view}&chrome=0&theme=dark&from=now-5m&to=now&refresh=5s&orgId=1");
            frame(page, &site, "", &abroad(&server, "http", &query)).await;
            until_live(page, view).await;
            page.until_true(&format!("{view} is there"), "!!document.querySelector('main .panel')").await;
            assert_eq!(page.eval("document.documentElement.dataset.theme").await, "dark");
            assert_eq!(page.text("nav-tree").await, None, "{view} stands alone");
        }
        let path = format!("/?view=workers&chrome=0&var-worker={worker}");
        for attributes in FRAMES {
            frame(page, &site, attributes, &abroad(&server, "http", &path)).await;
            until_live(page, attributes).await;
            let picked = "[data-testid=worker].picked";
            page.until_true("Grafana's variable selects", &format!("!!document.querySelector('{picked}')"))
                .await;
            assert_eq!(page.attribute(picked, "data-worker").await, Some(format!("{worker}/0")));
        }
        // Without its origin the page may open its socket only where the operator says so.
        frame(page, &site, "sandbox=\"allow-scripts\"", &abroad(&server, "http", "/?view=tree&chrome=0"))
            .await;
        until_live(page, "the frame without origin").await;
    })
    .await;
}

#[tokio::test]
async fn with_a_token_frames_need_https_and_keep_their_cookie_apart_for_each_site() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.to_str().expect("a plain path").to_owned()
    };
    let (cert, key) = (file("cert.pem", made.cert.pem()), file("key.pem", made.signing_key.serialize_pem()));
    let flags = ["--access-token", TOKEN, "--tls-cert", &cert, "--tls-key", &key];
    let args = ["demo", "--warm-up", "60", "--speed", "0.000001", "--frame-ancestors", "*"];
    let server = Radixscope::start(args.iter().chain(&flags).copied()).await;
    let site = Site::of_page("<!doctype html><title>A dashboard</title><body></body>").await;
    let with_token = abroad(&server, "https", &format!("/?view=workers&chrome=0&token={TOKEN}"));
    let without = abroad(&server, "https", "/?view=workers&chrome=0");
    with_page_and(&STRICT, async |page| {
        page.expect_complaints();
        for attributes in FRAMES {
            frame(page, &site, attributes, &with_token).await;
            until_live(page, attributes).await;
        }
        // The cookie of this site's frames is there for the next one.
        frame(page, &site, "", &without).await;
        until_live(page, "the frame without a token").await;
        // And nowhere else.
        page.open(&without).await;
        let expected = page.eval("document.body.innerText").await;
        assert!(expected.as_str().is_some_and(|text| text.contains("A token is needed")), "{expected}");
        let picture = abroad(&server, "https", &format!("/panel/rates.svg?width=300&token={TOKEN}"));
        assert_eq!(image(page, &site, &picture).await, 300);
    })
    .await;
}

/// Whether its figures move, a panel of the page, the picture of it, and where the page has figures that are in both.
const SAME: [(bool, &str, &str, &[&str]); 6] = [
    (false, "workers", "occupancy", &["[data-testid=held]", "[data-testid=in-flight]"]),
    (false, "findings", "findings", &["[data-testid=finding-list] h3"]),
    (
        true,
        "latency",
        "latency",
        &["[data-testid=ttft-p95] b", "[data-testid=tpot-p95] b", "[data-testid=ttft-p50] b"],
    ),
    (true, "latency", "spread", &["[data-testid=gap-max]", "[data-testid=gap-p95]"]),
    (true, "overview", "decisions", &["[data-testid=overlap-60s]", "[data-testid=overlap-all]"]),
    (true, "rates", "rates", &["[data-testid=stored-rate-all]", "[data-testid=removed-rate-all]"]),
];

#[tokio::test]
async fn a_picture_has_the_figures_of_the_page() {
    let (still, _) = layout::demo(&layout::DISAGGREGATED).await;
    let moving = Radixscope::start(["demo", "--warm-up", "90"]).await;
    moving.until_source_is("live").await;
    with_page(async |page| {
        for (moves, view, name, figures) in SAME {
            let server = if moves { &moving } else { &still };
            page.open(&server.url(&format!("/?view={view}"))).await;
            until_live(page, view).await;
            for selector in figures {
                // What moves is of the same moment at some time.
                page.until(&format!("{name}.svg says what {selector} does"), async |page| {
                    let mut shown = page.texts(selector).await;
                    let svg = server.get(&format!("/panel/{name}.svg?width=2400&height=1600")).await;
                    let mut drawn = drawn_words(svg.text());
                    // A picture of findings has no legend of labels: it has the workers' ids.
                    if name == "findings" {
                        shown = shown.iter().map(|text| without_names(text)).collect();
                        drawn = drawn.lines().map(without_names).collect::<Vec<_>>().join("\n");
                    }
                    let missing: Vec<&String> = shown.iter().filter(|text| !drawn.contains(*text)).collect();
                    wait::expect(!shown.is_empty() && missing.is_empty(), || {
                        format!("{missing:?} of {shown:?} is not in {drawn}")
                    })
                })
                .await;
            }
        }
    })
    .await;
}

/// Every text of a picture.
fn drawn_words(svg: &str) -> String {
    let document = roxmltree::Document::parse(svg).expect("XML");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.filter_map(|node| node.text()).collect::<Vec<_>>().join("\n")
}
