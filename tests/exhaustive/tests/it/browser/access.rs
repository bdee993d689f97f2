//! The page for those who see little or nothing: axe finds nothing serious in any view, every text has contrast, also that
//! of disabled controls and of rows beside the picked one, and a picked worker is marked in every panel.

use radixscope_tests::browser::with_unrecorded_page;
use radixscope_tests::layout::{self, Faults, THEMES};

#[tokio::test]
async fn axe_finds_nothing_serious_and_every_text_has_contrast() {
    let (server, views) = layout::demo(&layout::DISAGGREGATED).await;
    let mut faults = Faults::default();
    with_unrecorded_page(async |page| {
        layout::bring_axe(page).await;
        // What is faded in has its contrast at the end.
        page.prefer(&[("prefers-reduced-motion", "reduce")]).await;
        for theme in THEMES {
            for view in &views {
                layout::open(page, &server, view, theme).await;
                layout::until_stable(page).await;
                faults.add(view, theme, layout::contrast_faults(page).await);
                // What axe finds beside contrast is the same in both themes.
                if theme == THEMES[0] {
                    faults.add(view, theme, layout::axe_faults(page).await);
                }
            }
        }
    })
    .await;
    faults.check();
}

/// Rows of workers: which worker, and the ground of the row and of its button.
const GROUNDS: &str =
    "[...document.querySelectorAll('main [data-worker]:has([aria-pressed])')].map(row => [row.dataset.worker,
    [row, row.querySelector('[aria-pressed]')].map(e => getComputedStyle(e).backgroundColor).join()])";

#[tokio::test]
async fn a_picked_worker_stands_out_in_every_panel_and_the_others_stay_as_they_were() {
    let (server, _) = layout::demo(&layout::DISAGGREGATED).await;
    with_unrecorded_page(async |page| {
        let rows = async || -> Vec<(String, String)> {
            serde_json::from_value(page.eval(GROUNDS).await).expect("rows of workers")
        };
        for (query, nav) in [("", "nav-workers"), ("&tree.lanes=1", "nav-tree"), ("", "nav-memory")] {
            page.open(&server.url(&format!("/?theme=light{query}"))).await;
            page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
            page.click(nav).await;
            page.until_true("rows are there", &format!("{GROUNDS}.length > 1")).await;
            // The mouse lies on no row.
            page.hover(1.0, 1.0).await;
            layout::until_stable(page).await;
            let before = rows().await;
            let (picked, plain) = before[0].clone();
            assert!(before.iter().all(|(_, ground)| *ground == plain), "none is picked: {before:?}");
            let (x, y) = page.centre("main [data-worker] [aria-pressed]").await;
            page.click_at(x, y).await;
            page.hover(1.0, 1.0).await;
            page.until_true(
                "it is picked",
                "document.querySelector('main [data-worker] [aria-pressed]').ariaPressed === 'true'",
            )
            .await;
            layout::until_stable(page).await;
            for (worker, ground) in rows().await {
                assert_eq!(
                    ground != plain,
                    worker == picked,
                    "{nav}: {worker}, {picked} is picked, has {ground}"
                );
            }
        }
    })
    .await;
}
