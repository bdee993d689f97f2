//! The page of a fleet: a member that dies keeps its last values and comes back.

use radixscope_tests::browser::with_page;
use radixscope_tests::fleet::{cells, fleet, until_state};
use radixscope_tests::radixscope::Radixscope;

#[tokio::test]
async fn a_member_that_dies_keeps_its_last_values_and_comes_back() {
    let mut cluster = Radixscope::start(["demo", "--warm-up", "60", "--history", "5m"]).await;
    cluster.until_source_is("live").await;
    let link = ",link=https://radix.example/eu/";
    let fleet =
        fleet(&[("eu".to_owned(), format!("{}{link}", cluster.origin()))], &["--base-path", "/fleet/"]).await;
    until_state(&fleet, "eu", "answering").await;
    with_page(async |page| {
        page.open(&fleet.url("/?theme=light")).await;
        page.until_true("it answers", "!!document.querySelector('[data-state=answering] .f-hit b')").await;
        let href = page.attribute(".f-findings a", "href").await.expect("a link");
        let (address, moment) = href.split_once("#t=").expect("a moment, as history is kept");
        assert_eq!(address, "https://radix.example/eu/?view=findings");
        assert!(moment.parse::<u64>().is_ok_and(|at| at > 1_600_000_000_000), "{href}");
        cluster.kill();
        let dead = until_state(&fleet, "eu", "not_answering").await;
        assert!(dead["summary"]["hit_rate"]["share"].is_number(), "the last values stay: {dead}");
        page.until_true("it is shown", "!!document.querySelector('.fleet-row.dead')").await;
        let shown = cells(page, "eu").await;
        assert!(shown[0].contains("not answering for") && shown[2].contains('%'), "{shown:?}");
        assert_eq!(
            page.attribute(".f-findings a", "href").await.as_deref(),
            Some("https://radix.example/eu/?view=findings")
        );
        let grey =
            page.eval("getComputedStyle(document.querySelector('.fleet-row.dead .f-hit')).filter").await;
        assert_eq!(grey, "grayscale(1)");
        cluster.start_again().await;
        page.until_true("it answers again", "!!document.querySelector('[data-state=answering]:not(.dead)')")
            .await;
    })
    .await;
}
