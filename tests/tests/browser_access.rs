//! The page for those who see little or nothing: axe finds nothing serious in any view, every text has contrast, also that
//! of disabled controls and of rows beside the picked one, and a picked worker is marked in every panel.

use radixscope_tests::browser::with_unrecorded_page;
use radixscope_tests::look::{self, Faults, THEMES};

#[tokio::test]
async fn axe_finds_nothing_serious_and_every_text_has_contrast() {
    let (server, views) = look::demo().await;
    let mut faults = Faults::default();
    with_unrecorded_page(async |page| {
        look::bring_axe(page).await;
        // What is faded in has its contrast at the end.
        page.prefer(&[("prefers-reduced-motion", "reduce")]).await;
        for theme in THEMES {
            for view in &views {
                look::open(page, &server, view, theme).await;
                look::settled(page).await;
                faults.add(view, theme, look::contrast_faults(page).await);
                faults.add(view, theme, look::axe_faults(page).await);
            }
        }
    })
    .await;
    faults.check();
}
