//! The command line: invalid options end with code 2, a port in use with code 1, each in plain words.

use std::net::TcpListener;

use radixscope_tests::radixscope::Radixscope;

/// Runs to the end; gives exit code and standard error.
fn run(args: &[&str]) -> (Option<i32>, String) {
    let output = Radixscope::run(args);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_cannot_be_meant_is_named_and_ends_with_2() {
    let wrong: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["dance"], "dance"),
        (&["serve"], "--nats"),
        (&["serve", "--nats", "http://localhost:4222"], "nats://"),
        (&["serve", "--nats", "nats://"], "--nats"),
        (&["serve", "--nats", "nats://h", "--nats-user", "u"], "--nats-password"),
        (&["serve", "--nats", "nats://h", "--namespace", "a.>"], "--namespace"),
        (&["serve", "--nats", "nats://h", "--unknown"], "--unknown"),
        (&["demo", "--listen", "here"], "--listen"),
        (&["demo", "--base-path", "x"], "--base-path"),
        (&["demo", "--frame-ancestors", "'self'; script-src *"], "--frame-ancestors"),
        (&["demo", "--allow-origin", "example.org/x"], "--allow-origin"),
        (&["demo", "--workers", "0"], "workers"),
        (&["demo", "--block-size", "1"], "block"),
        (&["demo", "--blocks", "3"], "blocks"),
        (&["demo", "--speed", "0"], "--speed"),
        (&["demo", "--log", "=verbose="], "--log"),
        (&["demo", "--log-format", "xml"], "--log-format"),
        (&["demo", "--max-nodes", "0"], "--max-nodes"),
    ];
    for (args, named) in wrong {
        let (code, stderr) = run(args);
        assert_eq!(code, Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(named), "{args:?} should name {named}: {stderr}");
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    }
}

#[test]
fn a_credentials_file_that_is_not_there_is_named() {
    let args =
        ["serve", "--nats", "nats://127.0.0.1:9", "--listen", "127.0.0.1:0", "--nats-creds", "no/such.creds"];
    let (code, stderr) = run(&args);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("no/such.creds"), "{stderr}");
}

#[test]
fn a_port_in_use_ends_with_1_and_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, stderr) = run(&["demo", "--listen", &address]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(&address) && stderr.contains("--listen"), "{stderr}");
}

#[test]
fn help_names_default_unit_and_variable() {
    for command in ["serve", "demo"] {
        let output = Radixscope::run(&[command, "--help"]);
        assert!(output.status.success());
        let help = String::from_utf8(output.stdout).unwrap();
        for text in ["[env: RADIXSCOPE_LISTEN=]", "[default: 127.0.0.1:8321]", "MiB"] {
            assert!(help.contains(text), "{command} --help lacks {text}:\n{help}");
        }
    }
}

#[test]
fn options_may_come_from_the_environment() {
    let output = Radixscope::command().arg("demo").env("RADIXSCOPE_LISTEN", "nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere"));
}

#[tokio::test]
async fn a_request_to_end_ends_it_in_order() {
    let mut server = Radixscope::start(["demo", "--warm-up", "0"]).await;
    let viewer = server.viewer().await;
    viewer.until("it is served", |seen| seen.state.as_ref().map(|_| ()).ok_or_else(String::new)).await;
    server.process().terminate();
    let status = server.process_mut().ended().await;
    assert_eq!(status.code(), Some(0), "{}", server.process().output());
}

#[tokio::test]
async fn the_log_can_be_read_by_machines() {
    let server = Radixscope::start(["demo", "--warm-up", "0", "--log-format", "json"]).await;
    for line in server.process().lines() {
        let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(entry["level"].is_string(), "{line}");
    }
}
