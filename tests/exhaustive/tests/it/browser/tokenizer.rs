//! A prompt as text in the what-if panel: the reader's tokenizer.json makes of it the token ids, and so the hashes, that a
//! real Dynamo published for the same prompt.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Capture;
use radixscope_tests::nats::Nats;
use radixscope_tests::panels::says;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{paths, replay, wait};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Messages after which every worker has stored a few prompts, the tested one among them.
const BEGINNING: usize = 200;

/// The tokenizer of the recorded deployment, as a file of its own.
fn tokenizer(folder: &TempDir) -> PathBuf {
    let packed = fs::File::open(paths::fixture("tokenizer/dynamo.json.gz")).expect("a fixture");
    let mut json = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut json).expect("a whole file");
    let path = folder.path().join("tokenizer.json");
    fs::write(&path, json).expect("a writable folder");
    path
}

/// Chooses a file as a person does.
async fn choose(page: &Page, path: &std::path::Path) {
    let found = json!({"expression": "document.getElementById('tokenizer-file')"});
    let found = page.devtools("Runtime.evaluate", found).await;
    let input = json!({"objectId": found["result"]["objectId"], "files": [path]});
    page.devtools("DOM.setFileInputFiles", input).await;
}

/// Puts a text into a field at once.
async fn fill(page: &Page, id: &str, text: &str, event: &str) {
    let text = Value::from(text);
    let fill = format!(
        "(() => {{ const field = document.getElementById('{id}'); field.value = {text};
            field.dispatchEvent(new Event('{event}', {{bubbles: true}})); }})()"
    );
    page.eval(&fill).await;
}

#[tokio::test]
async fn a_prompt_as_text_finds_the_blocks_that_workers_hold_of_it() {
    // Only its beginning: by its end the workers have dropped most of that prompt again.
    let mut capture = Capture::load("0.9.1-healthy");
    capture.messages.truncate(BEGINNING);
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    replay::publish(&nats.client().await, &capture.messages).await;
    let cluster = server.until_quiet(capture.publications() as u64).await;
    let folder = tempfile::tempdir().expect("a writable folder");
    let file = tokenizer(&folder);
    let prompt = fs::read_to_string(paths::fixture("tokenizer/prompt.txt")).expect("a fixture");
    with_page(async |page| {
        page.open_at(&server, "/?view=whatif", &cluster).await;
        page.until_true("the form is there", "!!document.querySelector('[data-testid=mode-text]')").await;
        page.eval("document.querySelector('[data-testid=mode-text]').click()").await;
        says(page, "tokenizer-state", "no token ids").await;

        let not_one = folder.path().join("config.json");
        fs::write(&not_one, "{}").expect("a writable folder");
        choose(page, &not_one).await;
        says(page, "tokenizer-state", "it has no \"model\"").await;

        choose(page, &file).await;
        says(page, "tokenizer-state", "BPE, 4,096 tokens").await;
        says(page, "prompt-text-count", "No text yet").await;
        // The recorded deployment's model cards are not in what was replayed.
        fill(page, "whatif-block-size", "16", "change").await;
        fill(page, "prompt-text", &prompt, "input").await;
        says(page, "prompt-text-count", "3,795 tokens of a text of 14,797 bytes").await;
        let most = "Math.max(...[...document.querySelectorAll('[data-testid=cost-row]')].map(r => Number(r.dataset.overlap)))";
        page.until("a worker holds all full blocks of the prompt", async |page| {
            let overlap = page.eval(most).await;
            wait::expect(overlap == 237, || overlap.to_string())
        })
        .await;

        fill(page, "prompt-text", &format!("x{prompt}"), "input").await;
        page.until("no worker holds a block of another prompt", async |page| {
            let overlap = page.eval(most).await;
            wait::expect(overlap == 0, || overlap.to_string())
        })
        .await;

        // As the document of a page that was built without the tokenizer.
        let left_out = "document.head.insertAdjacentHTML('beforeend', '<meta name=\"radixscope-without\" content=\"tokenizer\">')";
        page.eval(left_out).await;
        choose(page, &file).await;
        says(page, "tokenizer-state", "This build has no tokenizer").await;
    })
    .await;
}
