//! The prefix tree.

use std::sync::Arc;

use radixscope_insight::view_context::ViewContext;

use super::super::tree::{TITLE, empty};
use super::chart_area::{Area, ChartArea, TextBody};
use super::{Body, Content, PanelRequest, as_of, notes, of_what};
use crate::tree::{self, TreeSnapshot};

struct Tree {
    picture: Arc<TreeSnapshot>,
    shown: tree::DrawOptions,
}

pub(super) fn content(
    shown: &ViewContext<'_>,
    picture: Option<Arc<TreeSnapshot>>,
    request: &PanelRequest,
) -> Content {
    let Some(picture) = picture else { return Content::empty(TITLE, &empty(shown)) };
    let of = of_what(shown, request);
    let notes = notes(shown, request.kind);
    let drawing = tree::DrawOptions {
        workers: request.worker.map(|worker| vec![worker]),
        width_px: request.width_px,
        height_px: request.height_px,
        is_dark: request.is_dark,
        at: format!("{}{}", as_of(picture.at_ms()), of.replace(" · ", ", ")),
        note: (!notes.is_empty()).then(|| notes.join(". ")),
        empty: empty(shown).to_text(),
        ..tree::DrawOptions::default()
    };
    Content::new(TITLE, String::new(), Tree { picture, shown: drawing })
}

impl Body for Tree {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        match self.picture.svg(&self.shown) {
            Ok(svg) => paper.whole = Some(svg),
            // Only a root can be missing, and none is requested.
            Err(error) => TextBody { head: error.to_string(), text: String::new() }.draw(paper, area),
        }
    }
}
