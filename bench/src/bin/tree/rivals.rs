//! The same boxes drawn by Canvas2D's `fillRect` and by a treemap of ECharts, in the same browser, on as many pixels.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use radixscope_bench::synthetic_tree::Drawn;
use radixscope_tests::browser::Page;
use radixscope_tests::devtools::Devtools;
use radixscope_tests::paths;
use serde_json::{Value, json};

/// How long a rival may take for all its times of one kind, in milliseconds.
const PATIENCE_MS: u64 = 60_000;

/// A rival's figure.
pub(crate) struct Figure {
    pub(crate) what: String,
    /// p50 and p95 in milliseconds, or why there is none.
    pub(crate) took: Result<(f64, f64), String>,
}

/// Draws them all. Leaves the page on an empty one.
pub(crate) async fn measure(
    page: &Page,
    devtools: &Devtools,
    boxes: &[Drawn],
    (width, height): (f64, f64),
) -> Vec<Figure> {
    page.open("about:blank").await;
    let run = async |expression: &str| devtools.eval(expression, PATIENCE_MS).await;
    run(include_str!("rivals.js")).await.expect("the rivals' page");
    let across: u64 = boxes.iter().filter(|b| b.parent.is_none()).map(|b| b.width).sum();
    let down = boxes.iter().map(|b| b.depth + b.len).max().unwrap_or(1);
    let (packed, whole, size) = (json!(packed(boxes)), json!([across, down]), json!([width, height]));
    run(&format!("void rivals.setUp({packed}, {size}, {whole})")).await.expect("the boxes");
    let mut figures = Vec::new();
    for (zoom, is_culled, what) in [
        (1, false, "whole picture, every box"),
        (1, true, "whole picture, boxes of half a pixel and more"),
        (8, false, "pan step at 8 times, every box"),
        (8, true, "pan step at 8 times, what is in the window"),
    ] {
        let response = run(&format!("rivals.rectangles({zoom}, {is_culled})")).await;
        figures.push(figure("fillRect", what, response));
    }
    run(&echarts()).await.expect("ECharts");
    for (is_culled, which) in [(false, "every box"), (true, "boxes of half a pixel and more")] {
        let response = run(&format!("rivals.treemap({is_culled})")).await;
        let part = |part: &str| response.clone().map(|response| response[part].clone());
        figures.push(figure("ECharts treemap", &format!("whole picture, {which}"), part("whole")));
        figures.push(figure("ECharts treemap", &format!("pan step at 4 times, {which}"), part("pan")));
    }
    page.open("about:blank").await;
    figures
}

fn figure(who: &str, what: &str, response: Result<Value, String>) -> Figure {
    let boxes = response.as_ref().ok().and_then(|response| response["boxes"].as_u64());
    let drawn = boxes.map_or(String::new(), |boxes| format!(" ({boxes} drawn)"));
    let took = response.and_then(|response| {
        let ms = |name: &str| response[name].as_f64().ok_or_else(|| format!("no {name} in {response}"));
        Ok((ms("p50")?, ms("p95")?))
    });
    Figure { what: format!("{who}, {what}{drawn}"), took }
}

/// The fields of all boxes, one after the other, as 32-bit floats: whole numbers up to 2²⁴ are exact in them.
fn packed(boxes: &[Drawn]) -> String {
    let fields = |b: &Drawn| {
        let parent = b.parent.map_or(-1.0, |parent| parent as f32);
        [parent, b.x as f32, b.width as f32, b.depth as f32, b.len as f32, b.owners as f32]
    };
    let bytes: Vec<u8> = boxes.iter().flat_map(fields).flat_map(f32::to_le_bytes).collect();
    STANDARD.encode(bytes)
}

/// The edition that the page has.
fn echarts() -> String {
    let folder = paths::checkout().join("public/vendor");
    let mut files = std::fs::read_dir(&folder).expect("vendored scripts").filter_map(Result::ok);
    let file = files.find(|file| file.file_name().to_string_lossy().starts_with("echarts-"));
    std::fs::read_to_string(file.expect("ECharts is vendored").path()).expect("a script")
}
