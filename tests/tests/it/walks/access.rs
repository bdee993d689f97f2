//! The page for those who see little or nothing: axe finds nothing serious in any panel, in the window of a laptop and in that of a
//! telephone.

use radixscope_panels::url::Panel;
use radixscope_tests::browser::with_unrecorded_page;
use radixscope_tests::layout::{self, Faults, THEMES};

/// Half of the panels: all of them take longer than a test may.
#[derive(Clone, Copy)]
enum Half {
    First,
    Second,
}

/// Goes from panel to panel by its key in a window of this size.
async fn axe_finds_nothing_serious((width, height): (u32, u32), half: Half) {
    let (server, views) = layout::demo(&layout::DISAGGREGATED).await;
    let (first, second) = views[..Panel::ALL.len()].split_at(Panel::ALL.len() / 2);
    let panels = match half {
        Half::First => first,
        Half::Second => second,
    };
    let mut faults = Faults::default();
    with_unrecorded_page(async |page| {
        layout::bring_axe(page).await;
        page.prefer(&[("prefers-reduced-motion", "reduce")]).await;
        page.size(width, height).await;
        layout::open(page, &server, &panels[0], THEMES[0]).await;
        for (at, view) in panels.iter().enumerate() {
            layout::until_stable(page).await;
            faults.add(view, &format!("{width}×{height}"), layout::axe_faults(page).await);
            let Some(next) = panels.get(at + 1) else { break };
            page.press("v").await;
            let is_open = format!("new URL(location).searchParams.get('view') === '{}'", next.name);
            page.until_true(&format!("{} is open", next.name), &is_open).await;
            layout::until_there(page).await;
        }
    })
    .await;
    faults.check();
}

const LAPTOP: (u32, u32) = (1280, 720);
const TELEPHONE: (u32, u32) = (400, 800);

#[tokio::test]
async fn axe_finds_nothing_serious_in_the_first_panels_on_a_laptop() {
    axe_finds_nothing_serious(LAPTOP, Half::First).await;
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_the_last_panels_on_a_laptop() {
    axe_finds_nothing_serious(LAPTOP, Half::Second).await;
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_the_first_panels_on_a_telephone() {
    axe_finds_nothing_serious(TELEPHONE, Half::First).await;
}

#[tokio::test]
async fn axe_finds_nothing_serious_in_the_last_panels_on_a_telephone() {
    axe_finds_nothing_serious(TELEPHONE, Half::Second).await;
}
