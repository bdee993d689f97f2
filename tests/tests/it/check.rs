//! `radixscope check` where nothing is received: what it prints and how it ends.

use std::ffi::OsString;

use radixscope_tests::check::{check, text};
use radixscope_tests::nats::Nats;
use radixscope_tests::process::Process;
use radixscope_tests::radixscope::Radixscope;

#[test]
fn nothing_that_listens_ends_with_3_and_names_the_address() {
    let output = Radixscope::run(&["check", "--nats", "nats://127.0.0.1:1", "--for", "1s"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert!(
        printed.contains("No data. No source could be reached") && printed.contains("127.0.0.1:1"),
        "{printed}"
    );
}

#[tokio::test]
async fn a_silent_broker_ends_with_3() {
    let nats = Nats::start().await;
    let output = check(["--nats", &nats.url(), "--for", "1s"].map(OsString::from).to_vec()).await;
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert!(printed.contains("Nothing was received") && printed.contains("--namespace"), "{printed}");
}

#[test]
fn options_that_cannot_be_meant_do_not_look_like_findings() {
    for wrong in
        [&["--for", "soon"][..], &["--for", "0s"], &["--unknown"], &["--nats-creds", "no/such.creds"]]
    {
        let output = Radixscope::run(&[&["check", "--nats", "nats://127.0.0.1:1"], wrong].concat());
        assert_eq!(output.status.code(), Some(3), "{wrong:?}");
        assert!(text(&output.stderr).contains(wrong[wrong.len() - 1]), "{wrong:?}: {}", text(&output.stderr));
    }
    assert_eq!(Radixscope::run(&["check", "--help"]).status.code(), Some(0));
}

#[tokio::test]
async fn a_check_that_is_stopped_reports_what_it_knows() {
    let nats = Nats::start().await;
    let mut command = Radixscope::command();
    command.args(["check", "--nats", &nats.url(), "--for", "1h", "--log", "info"]);
    let mut process = Process::start("radixscope check", &mut command);
    process
        .line("that it listens", |line| {
            (line.contains("state=\"live\"") && line.contains("nats://")).then_some(())
        })
        .await;
    process.terminate();
    assert_eq!(process.ended().await.code(), Some(3));
    process.line("what it knows", |line| line.contains("Nothing was received").then_some(())).await;
}
