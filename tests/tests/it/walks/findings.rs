//! The findings panel: it says what the API says of a fault, and its fix can be copied.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::findings::{CARD, faulty, found, open};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// Each worker's name in the API, with the page's label for it: the simulator's are known in the order of their ids.
async fn names(server: &Radixscope) -> Vec<(String, String)> {
    let cluster = server.cluster().await;
    let workers = cluster["workers"].as_array().unwrap().iter().zip(1..);
    let name =
        |worker: &Value| format!("worker {}/{}", worker["worker_id"].as_str().unwrap(), worker["dp_rank"]);
    workers.map(|(worker, at)| (name(worker), format!("W{at}"))).collect()
}

/// Gives pages a clipboard that the test can read.
const CLIPBOARD: &str = "(Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.copied = text; }}}), true)";

#[tokio::test]
async fn a_finding_says_what_the_api_says_and_its_fix_can_be_copied() {
    let (server, finding) = faulty().await;
    with_page(async |page| {
        open(page, &server, "&theme=dark").await;
        let texts = async |what: &str| page.texts(&format!("{CARD} {what}")).await;
        let names = names(&server).await;
        let labelled = |text: &Value| {
            let text = text.as_str().unwrap().to_owned();
            names.iter().fold(text, |text, (name, label)| text.replace(name, label))
        };
        assert_eq!(texts("h3").await, [labelled(&finding["title"])]);
        let severity = finding["severity"].as_str().unwrap();
        let word = texts(".severity").await.concat();
        assert!(word.to_lowercase().contains(severity), "{word} is {severity}");
        // The evidence is renewed every few seconds, for the page and for the API.
        page.until("the evidence is that of the API", async |_| {
            let now = found(&server).await.expect("the fault holds");
            let evidence = now["evidence"].as_array().unwrap();
            let labels: Vec<String> = evidence.iter().map(|e| labelled(&e["label"])).collect();
            let shown = texts("[data-testid=evidence] tbody th").await;
            wait::expect(shown == labels, || format!("{shown:?}, not {labels:?}"))
        })
        .await;
        let fixes = finding["fix"].as_array().unwrap();
        assert_eq!(texts("[data-testid=fixes] > li").await.len(), fixes.len());
        assert_eq!(
            texts("[data-testid=finding-worker]").await.len(),
            finding["workers"].as_array().unwrap().len()
        );

        page.eval(CLIPBOARD).await;
        // By the keyboard alone.
        page.eval(&format!("document.querySelector('{CARD} [data-testid=copy-setting]').focus()")).await;
        page.press("Enter").await;
        page.until_true(
            "the button says so",
            &format!("document.querySelector('{CARD} .copied').innerText === 'Copied'"),
        )
        .await;
        let setting = texts("[data-testid=setting]").await[0].clone();
        assert_eq!(page.eval("window.copied").await, setting.as_str());
        page.eval(
            "(document.querySelector('[data-testid=copy-finding]').scrollIntoView({block: 'center'}), true)",
        )
        .await;
        page.click("copy-finding").await;
        let ticket = page.eval("window.copied").await.as_str().unwrap().to_owned();
        assert!(
            ticket.starts_with("### ") && ticket.contains(finding["title"].as_str().unwrap()),
            "{ticket}"
        );
        page.screenshot("findings-faulty").await;
    })
    .await;
}
