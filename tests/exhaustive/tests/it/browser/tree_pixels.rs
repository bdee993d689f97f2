//! A small known tree through real NATS onto the canvas: its pixels are the workers' colours, in both themes, as one
//! picture, by heat and in lanes.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::envelope::envelope;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};

const SUBJECT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";
const FIRST_WORKER: u64 = 7_668_682_361_203_420_160;

type Rgb = [u8; 3];

/// A worker stores the blocks of one prompt (reference §2.3, §2.4).
fn stored(worker: u64, event_id: u64, tokens: std::ops::RangeInclusive<u64>) -> Vec<u8> {
    let blocks: Vec<Value> =
        tokens.map(|t| json!({"block_hash": t, "tokens_hash": t, "mm_extra_info": null})).collect();
    let data = json!({"stored": {"parent_hash": null, "start_position": null, "blocks": blocks}});
    let event = json!({"event_id": event_id, "data": data, "dp_rank": 0});
    let events = json!([{
        "worker_id": FIRST_WORKER + 6 * worker,
        "storage_tier": "device",
        "residency_domain": "worker",
        "event": event,
    }]);
    envelope(1_950_000_000_000_000 + worker, event_id - 1, "kv-events", &events)
}

/// Worker 0 alone holds 60 blocks, workers 0 and 1 share 30, worker 2 alone holds 10: side by side, 100 blocks wide.
async fn three() -> (Nats, Radixscope) {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    let messages =
        [stored(0, 1, 1..=60), stored(0, 2, 101..=130), stored(1, 1, 101..=130), stored(2, 1, 201..=210)];
    for message in messages {
        client.publish(SUBJECT, message.into()).await.expect("NATS takes what it is sent");
    }
    client.flush().await.expect("NATS takes what it is sent");
    (nats, server)
}

/// Width and height of the picture in pixels.
async fn size(page: &Page) -> (f64, f64) {
    let size = page.eval("(c => [c.width, c.height])(document.querySelector('#tree canvas.picture'))").await;
    serde_json::from_value(size).expect("two numbers")
}

/// The pixels at these places of the picture.
async fn pixels(page: &Page, places: &[(f64, f64)]) -> Vec<Rgb> {
    // Read from a copy: reading the page's own canvas would change how the browser treats it.
    let read = format!(
        "((c) => {{ const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {{willReadFrequently: true}});
        copy.drawImage(c, 0, 0);
        return {}.map(([x, y]) => [...copy.getImageData(x, y, 1, 1).data].slice(0, 3)); }})
        (document.querySelector('#tree canvas.picture'))",
        json!(places.iter().map(|(x, y)| [x.floor(), y.floor()]).collect::<Vec<_>>())
    );
    serde_json::from_value(page.eval(&read).await).expect("colours")
}

/// A token of the style sheet as the theme has it.
async fn token(page: &Page, name: &str) -> Rgb {
    let read = format!(
        "((e) => {{ e.style.color = 'var({name})'; document.body.append(e);
        const rgb = getComputedStyle(e).color.match(/\\d+/g).slice(0, 3).map(Number); e.remove(); return rgb; }})
        (document.createElement('i'))"
    );
    serde_json::from_value(page.eval(&read).await).expect("a colour")
}

fn blend(under: Rgb, over: Rgb, share: f64) -> Rgb {
    std::array::from_fn(|i| {
        let (under, over) = (f64::from(under[i]), f64::from(over[i]));
        (under + (over - under) * share).round() as u8
    })
}

/// Waits until the places have these colours.
async fn until_pixels(page: &Page, what: &str, places: &[(f64, f64)], expected: &[Rgb]) {
    page.until(what, async |page| {
        let now = pixels(page, places).await;
        wait::expect(now == expected, || format!("{now:?} in place of {expected:?}"))
    })
    .await;
}

async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    let state = "Number(document.querySelector('[data-testid=nodes]')?.innerText) === 100";
    page.until_true("the hundred blocks are there", state).await;
}

#[tokio::test]
async fn a_box_has_its_workers_colour_and_a_shared_one_a_tick_for_each_in_both_themes() {
    let (_nats, server) = three().await;
    with_page(async |page| {
        for theme in ["dark", "light"] {
            open(page, &server, &format!("/?view=tree&theme={theme}")).await;
            let few = [1, 2, 3].map(|n| format!("--series-few-{n}"));
            let (w0, w1, w2) =
                (token(page, &few[0]).await, token(page, &few[1]).await, token(page, &few[2]).await);
            // The faintest of the shades: two of three workers.
            let (shared, ground) = (token(page, "--tree-replicas-1").await, token(page, "--panel").await);
            let (width, height) = size(page).await;
            let at = |x: f64, y: f64| (width * x / 100.0, height * y / 60.0);
            let begin = (width * 0.6).round();
            let places = [
                at(30.0, 30.0),
                at(75.0, 15.0),
                at(95.0, 5.0),
                at(95.0, 30.0),
                (begin + 3.0, 1.0),
                (begin + 20.0, 1.0),
                (begin + 24.0, 1.0),
            ];
            let expected = [w0, shared, w2, ground, w0, ground, w1];
            until_pixels(page, "boxes and ticks have their colours", &places, &expected).await;
            let steps = page.texts("[data-testid=legend-replicas] b").await;
            assert_eq!(steps, ["2", "3: all"], "the legend numbers the shades");
            let shades = page
                .eval(
                    "[...document.querySelectorAll('[data-testid=legend-replicas] .key')]
                        .map(key => getComputedStyle(key).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number))",
                )
                .await;
            assert_eq!(shades, json!([shared, token(page, "--tree-replicas-4").await]));
        }
    })
    .await;
}

#[tokio::test]
async fn in_lanes_a_shared_prefix_stands_above_itself_and_a_unique_one_alone() {
    let (_nats, server) = three().await;
    with_page(async |page| {
        for theme in ["dark", "light"] {
            open(page, &server, &format!("/?view=tree&tree.lanes=1&theme={theme}")).await;
            page.until("every worker has its lane", async |page| {
                let held = page.texts("[data-testid=lane-held]").await;
                wait::expect(held == ["90 blocks", "30 blocks", "10 blocks"], || format!("{held:?}"))
            })
            .await;
            let (w0, w1) = (token(page, "--series-few-1").await, token(page, "--series-few-2").await);
            let (shared, ground) = (token(page, "--tree-shared").await, token(page, "--panel").await);
            let faint = blend(ground, shared, 0.10);
            let (width, height) = size(page).await;
            let lane = (height / 3.0).floor().clamp(56.0, 200.0);
            let in_lane = |i: f64, x: f64, y: f64| (width * x / 100.0, i * lane + (lane - 3.0) * y / 60.0);
            let shared_in = [0.0, 1.0, 2.0].map(|i| in_lane(i, 75.0, 15.0));
            let expected = [blend(ground, w0, 0.5), blend(ground, w1, 0.5), faint];
            until_pixels(page, "the shared prefix is in two lanes", &shared_in, &expected).await;
            let alone = [0.0, 1.0, 2.0].map(|i| in_lane(i, 30.0, 30.0));
            assert_eq!(pixels(page, &alone).await, [w0, faint, faint], "the unique one is in one");
        }
    })
    .await;
}

#[tokio::test]
async fn by_owners_the_scale_begins_with_one_and_unknown_hits_are_reported() {
    let (_nats, server) = three().await;
    with_page(async |page| {
        open(page, &server, "/?view=tree&tree.heat=owners").await;
        let (width, height) = size(page).await;
        let dark_end = token(page, "--heat-0").await;
        let place = (width * 0.3, height * 0.5);
        until_pixels(page, "one owner is the dark end", &[place], &[dark_end]).await;
        let legend = page.text("tree-legend").await.expect("a legend");
        assert!(legend.contains("3 workers"), "{legend}");
        open(page, &server, "/?view=tree&tree.heat=hits").await;
        let announced = page.text("legend-hits-unknown").await.unwrap_or_default();
        assert!(announced.contains("unknown"), "{announced:?}");
        let none = token(page, "--tree-no-worker").await;
        until_pixels(page, "what is not known has no heat", &[place], &[none]).await;
    })
    .await;
}

/// The pixels of a picture of the server at these shares of its box for drawing, which begins at `left`, `top`.
async fn drawn(page: &Page, path: &str, places: &[(f64, f64)]) -> Vec<Rgb> {
    let read = format!(
        "(async () => {{ const text = await (await fetch({})).text();
        const image = new Image();
        image.src = 'data:image/svg+xml,' + encodeURIComponent(text);
        await image.decode();
        const copy = new OffscreenCanvas(image.width, image.height).getContext('2d', {{willReadFrequently: true}});
        copy.drawImage(image, 0, 0);
        return {}.map(([x, y]) => [...copy.getImageData(x, y, 1, 1).data].slice(0, 3)); }})()",
        json!(path),
        json!(places.iter().map(|(x, y)| [x.floor(), y.floor()]).collect::<Vec<_>>())
    );
    serde_json::from_value(page.eval(&read).await).expect("colours")
}

#[tokio::test]
async fn a_picture_of_the_server_has_the_pixels_of_the_page_in_both_themes() {
    let (_nats, server) = three().await;
    with_page(async |page| {
        for theme in ["dark", "light"] {
            open(page, &server, &format!("/?view=tree&theme={theme}")).await;
            let shares = [(30.0, 30.0), (95.0, 5.0), (95.0, 33.0), (10.0, 50.0)];
            // 60 pixels for an axis at the left, 12 at the right, 58 above and 30 below; a block is at most 40 pixels high.
            let in_picture = shares.map(|(x, y)| (60.0 + 1_000.0 * x / 100.0, 58.0 + 600.0 * y / 60.0));
            let path = format!("panel/tree.svg?width=1072&height=688&theme={theme}");
            let w0 = token(page, "--series-few-1").await;
            page.until("the picture is the page's tree", async |page| {
                let (width, height) = size(page).await;
                let on_page = shares.map(|(x, y)| (width * x / 100.0, height * y / 60.0));
                let page_has = pixels(page, &on_page).await;
                wait::expect(page_has[0] == w0, || format!("not drawn: {page_has:?}"))?;
                let picture_has = drawn(page, &path, &in_picture).await;
                wait::expect(picture_has == page_has, || format!("{picture_has:?}, on the page {page_has:?}"))
            })
            .await;

            open(page, &server, &format!("/?view=tree&tree.lanes=1&theme={theme}")).await;
            let shares = [
                (0.0, 30.0, 30.0),
                (1.0, 30.0, 30.0),
                (0.0, 75.0, 15.0),
                (1.0, 75.0, 15.0),
                (2.0, 75.0, 15.0),
            ];
            let half = blend(token(page, "--panel").await, w0, 0.5);
            let path = format!("panel/lanes.svg?width=1200&height=600&theme={theme}");
            page.until("the picture is the page's lanes", async |page| {
                let (width, height) = size(page).await;
                let lane = (height / 3.0).floor().clamp(56.0, 200.0);
                let on_page = shares.map(|(i, x, y)| (width * x / 100.0, i * lane + (lane - 3.0) * y / 60.0));
                let page_has = pixels(page, &on_page).await;
                wait::expect(page_has[2] == half, || format!("not drawn: {page_has:?}"))?;
                // Where lanes stand in the picture is read from it: each is moved to its place.
                let svg = server.get(&format!("/{path}")).await;
                let (lefts, tops) = lanes_of(svg.text());
                let high = tops[1] - tops[0] - 4.0;
                let wide = 1_200.0 - 12.0 - lefts;
                let in_picture =
                    shares.map(|(i, x, y)| (lefts + wide * x / 100.0, tops[i as usize] + high * y / 60.0));
                let picture_has = drawn(page, &path, &in_picture).await;
                wait::expect(picture_has == page_has, || format!("{picture_has:?}, on the page {page_has:?}"))
            })
            .await;
        }
    })
    .await;
}

/// Left edge of the lanes of a picture, and the upper edge of each.
fn lanes_of(svg: &str) -> (f64, Vec<f64>) {
    let places = svg.split("<g transform=\"translate(").skip(1).map(|rest| {
        let (place, _) = rest.split_once(')').expect("a place");
        let (x, y) = place.split_once(' ').expect("two numbers");
        (x.parse::<f64>().expect("a number"), y.parse::<f64>().expect("a number"))
    });
    let places: Vec<(f64, f64)> = places.collect();
    (places[0].0, places.iter().map(|place| place.1).collect())
}
