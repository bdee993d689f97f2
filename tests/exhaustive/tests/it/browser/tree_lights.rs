//! What lies over the tree's picture: requests in flight as lights on their paths, and above it the map of the whole.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};

/// Requests of the API whose prompts are in prefill: neither a first token nor an end was reported.
fn in_prefill(decisions: &[Value]) -> Vec<&Value> {
    let is_open = |decision: &&Value| {
        let progress = &decision["progress"];
        ["first_token_ms", "ended_ms", "ttft_ms"].iter().all(|field| progress[*field].is_null())
    };
    decisions.iter().take(256).filter(is_open).collect()
}

/// Each light: request, blocks cached, pixels from the top to its end, whether something of it moves.
async fn lights(page: &Page) -> Vec<Value> {
    let read = "[...document.querySelectorAll('[data-testid=light]')].map(e => [e.dataset.decision, +e.dataset.cached,
        e.getBoundingClientRect().height, e.getAnimations({subtree: true}).length > 0])";
    page.eval(read).await.as_array().expect("a list").clone()
}

async fn open(page: &Page, server: &Radixscope) {
    page.open(&server.url("/?view=tree&theme=dark")).await;
    page.until("the tree is drawn", async |page| {
        let colours = page.colours("#tree canvas.picture").await;
        wait::expect(colours > 4, || format!("{colours} colours"))
    })
    .await;
}

#[tokio::test]
async fn each_request_in_prefill_is_a_light_that_ends_where_its_workers_cached_blocks_do() {
    // It reports first tokens as they come.
    let (server, decisions) = Radixscope::standing_demo_of("aggregated-0.9").await;
    let wanted: Vec<&Value> = in_prefill(&decisions).into_iter().filter(|d| !d["path"].is_null()).collect();
    assert!(!wanted.is_empty(), "no request is in prefill");
    with_page(async |page| {
        open(page, &server).await;
        page.until("they are lit", async |page| {
            let lit = lights(page).await.len();
            wait::expect(lit == wanted.len().min(16), || format!("{lit} of {}", wanted.len()))
        })
        .await;
        let (_, _, _, height) = page.rectangle("#tree").await;
        let region = page.attribute("#tree", "data-region").await.expect("a region");
        let depth: f64 =
            region.split(' ').nth(3).and_then(|bottom| bottom.parse().ok()).expect("four numbers");
        for light in lights(page).await {
            let decision = wanted.iter().find(|decision| decision["id"] == light[0]).expect("one in prefill");
            let known = decision["path"]["blocks"].as_f64().unwrap();
            let cached = decision["overlap_blocks"].as_f64().map_or(known, |overlap| overlap.min(known));
            assert_eq!(light[1].as_f64(), Some(cached), "{decision}");
            let (is, expected) = (light[2].as_f64().unwrap(), cached / depth * height);
            assert!((is - expected).abs() < 1.5, "{is} pixels in place of {expected}: {light}");
        }
        let legend = page.text("legend-lights").await.expect("a legend");
        assert!(legend.contains(&format!("prefill: {}", lights(page).await.len())), "{legend}");
    })
    .await;
}

#[tokio::test]
async fn lights_run_when_requests_come_and_only_stand_with_reduced_motion() {
    let server = Radixscope::start(["demo", "--warm-up", "60"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        open(page, &server).await;
        let runs = "[...document.querySelectorAll('[data-testid=light]')].some(e => e.getAnimations({subtree: true})
            .some(a => a.animationName === 'light-run' && a.playState === 'running'))";
        page.until_true("a light runs", runs).await;
        // While the reader looks at the tree nothing of it moves.
        let (x, y) = page.centre("#tree").await;
        page.hover(x, y).await;
        page.until_true("the lights are paused", "document.querySelector('.lights.paused') !== null").await;

        page.prefer(&[("prefers-reduced-motion", "reduce")]).await;
        page.hover(2.0, 2.0).await;
        open(page, &server).await;
        page.until("a light stands without moving", async |page| {
            let lights = lights(page).await;
            wait::expect(!lights.is_empty(), || "none".to_owned())?;
            wait::expect(lights.iter().all(|light| light[3] == false), || format!("{lights:?}"))
        })
        .await;
        let beam = "getComputedStyle(document.querySelector('[data-testid=light]') ?? document.body, '::before').display";
        page.until("it is a mark alone", async |page| {
            let shown = page.eval(beam).await;
            wait::expect(shown == json!("none"), || shown.to_string())
        })
        .await;
    })
    .await;
}

/// Left, top, width and height of the window in the map, as shares of it.
async fn marked(page: &Page) -> [f64; 4] {
    let text = page.attribute("[data-testid=minimap]", "data-window").await.unwrap_or_default();
    let shares: Vec<f64> = text.split(' ').filter_map(|share| share.parse().ok()).collect();
    let [left, right, top, bottom] = shares.try_into().unwrap_or([f64::NAN; 4]);
    [left, top, right - left, bottom - top]
}

/// What is drawn of the mark, as shares of the map's width: from where to where nothing is veiled, and how wide the funnel is below the map
/// and above the picture. `middle`: of the window, share of the map's height.
async fn drawn_mark(page: &Page, middle: f64) -> [f64; 4] {
    let read = format!(
        "(canvas => {{
            const {{ width, height }} = canvas, map = Math.round(height * 0.75);
            const copy = new OffscreenCanvas(width, height).getContext('2d', {{ willReadFrequently: true }});
            copy.drawImage(canvas, 0, 0);
            const alphas = row => {{
                const pixels = copy.getImageData(0, row, width, 1).data;
                return [...Array(width).keys()].map(x => pixels[4 * x + 3]);
            }};
            const clear = alphas(Math.floor(map * {middle}));
            const drawn = row => alphas(row).filter(alpha => alpha > 20).length / width;
            return [clear.indexOf(0) / width, (clear.lastIndexOf(0) + 1) / width, drawn(map), drawn(height - 1)];
        }})(document.querySelector('.minimap-mark'))"
    );
    serde_json::from_value(page.eval(&read).await).expect("four shares")
}

async fn region(page: &Page) -> [f64; 4] {
    let text = page.attribute("#tree", "data-region").await.expect("a region");
    let numbers: Vec<f64> = text.split(' ').filter_map(|number| number.parse().ok()).collect();
    numbers.try_into().expect("four numbers")
}

/// Waits until the map marks what the picture shows of a whole that is so wide and so deep.
async fn until_marked(
    page: &Page,
    what: &str,
    (width, depth): (f64, f64),
    is_there: impl Fn([f64; 4]) -> bool,
) {
    page.until(what, async |page| {
        let (mark, [x0, x1, top, bottom]) = (marked(page).await, region(page).await);
        let clip = |share: f64| share.clamp(0.0, 1.0);
        let (left, right) = (clip(x0 / width), clip(x1 / width));
        let (above, below) = (clip(top / depth), clip(bottom / depth));
        let expected = [left, above, right - left, below - above];
        let is_same = mark.iter().zip(expected).all(|(is, expected)| (is - expected).abs() < 0.002);
        wait::expect(is_same && is_there(mark), || format!("{mark:?} in place of {expected:?}"))
    })
    .await;
}

#[tokio::test]
async fn the_map_shows_the_whole_and_marks_the_window_which_can_be_moved_there() {
    let (server, _) = Radixscope::standing_demo().await;
    with_page(async |page| {
        open(page, &server).await;
        let [_, width, _, depth] = region(page).await;
        let whole = (width, depth);
        assert!(page.colours("[data-testid=minimap] canvas").await > 4, "it shows the tree");
        until_marked(page, "everything is marked", whole, |mark| mark == [0.0, 0.0, 1.0, 1.0]).await;
        page.click("zoom-in").await;
        page.click("zoom-in").await;
        until_marked(page, "a part is marked", whole, |[.., width, _]| width < 0.4).await;
        let (x, y, map_width, map_height) = page.rectangle("[data-testid=minimap]").await;
        page.click_at(x + map_width * 0.8, y + map_height * 0.3).await;
        until_marked(page, "the window moves to where the map is clicked", whole, |[left, _, width, _]| {
            (left + width / 2.0 - 0.8).abs() < 0.02
        })
        .await;
        let [left, top, width, height] = marked(page).await;
        let [from, to, below_map, above_picture] = drawn_mark(page, top + height / 2.0).await;
        let is_near = (from - left).abs() < 0.01 && (to - left - width).abs() < 0.01;
        assert!(is_near, "clear from {from} to {to} in place of {left} to {}", left + width);
        let is_funnel = width < below_map && below_map < above_picture && above_picture > 0.9;
        assert!(is_funnel, "from the mark, {width}, to the picture: {below_map}, then {above_picture}");
        page.screenshot("tree-map").await;
        page.click("zoom-fit").await;
        until_marked(page, "everything is marked again", whole, |mark| mark == [0.0, 0.0, 1.0, 1.0]).await;
    })
    .await;
}
