//! Pictures of panels, of the states that frames leave: whatever workers, models, processes and requests are called, a picture is
//! XML, and nothing in it runs or leads anywhere. Input as for `frame`, after a byte that chooses theme and size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_export::panel::svg::{Panel, PanelKind, PanelRequest};
use radixscope_fuzz::folded;
use radixscope_insight::time_range::TimeRange;
use radixscope_insight::view_context::{PoolQuery, ShownPools, ViewContext};
use roxmltree::Document;

fuzz_target!(|input: &[u8]| {
    let Some((&look, body)) = input.split_first() else { return };
    let (state, _) = folded(body);
    let now = state.now_ms();
    let shown = ViewContext::new(&state, ShownPools::of(&state, &PoolQuery::default()));
    for kind in PanelKind::ALL {
        let asked = PanelRequest {
            kind,
            is_dark: look & 1 == 0,
            width_px: 200 + 10 * u32::from(look),
            height_px: 150 + 5 * u32::from(look),
            worker: None,
            span: TimeRange::default().span(now),
            targets_ms: [600.0, 60.0],
        };
        check_picture(&Panel::of(&shown, None, asked, now).svg());
    }
});

/// It is XML, without scripts, pages of others, handlers and links.
fn check_picture(svg: &str) {
    let document = Document::parse(svg).expect("a picture is XML");
    for element in document.descendants().filter(roxmltree::Node::is_element) {
        let name = element.tag_name().name();
        assert!(!matches!(name, "script" | "foreignObject" | "iframe" | "image" | "a"), "{name}");
        for attribute in element.attributes() {
            let name = attribute.name();
            assert!(!name.starts_with("on") && name != "href", "{name}");
        }
    }
}
