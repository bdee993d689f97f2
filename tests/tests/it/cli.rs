//! The command line: invalid options end with code 2, a port in use with code 1, each in plain words.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{paths, wait};
use serde_json::Value;

/// Runs to the end, on a free port if nothing else is said: somebody else's demo may be at the usual one; gives exit code and standard
/// error.
fn run(args: &[&str]) -> (Option<i32>, String) {
    let mut command = Radixscope::command();
    let output = command.args(args).env("RADIXSCOPE_LISTEN", "127.0.0.1:0").output().unwrap();
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
        (&["demo", "--speed", "1001"], "--speed"),
        (&["demo", "--log", "=verbose="], "--log"),
        (&["demo", "--log-format", "xml"], "--log-format"),
        (&["demo", "--max-nodes", "0"], "--max-nodes"),
        (&["demo", "--record", "/dev/null/x"], "/dev/null/x"),
        (&["demo", "--record-max-size", "1MiB"], "16MiB at least"),
        (&["replay"], "FILE"),
        (&["replay", "no/such.mcap"], "no/such.mcap"),
        (&["replay", "Cargo.toml"], "not a recording"),
        (&["open"], "PATH"),
        (&["open", "no/such/folder"], "no/such/folder"),
        (&["open", "Cargo.toml"], "no evidence"),
        (&["export", "Cargo.toml"], "--perfetto"),
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

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    let printed = |command: &mut Command| {
        let output = command.arg("serve").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let unset = printed(&mut Radixscope::command());
    assert_eq!(printed(Radixscope::command().env("RADIXSCOPE_NATS", "").env("RADIXSCOPE_LISTEN", "")), unset);
    assert_ne!(printed(Radixscope::command().env("RADIXSCOPE_NATS", "nats://")), unset);
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
async fn the_log_can_be_read_by_machines_by_the_documented_fields() {
    // Nothing listens at port 9.
    let args = ["serve", "--nats", "nats://127.0.0.1:9", "--log-format", "json"];
    let server = Radixscope::start(args).await;
    let lines = wait::until("the connection was tried twice", async || {
        let lines = server.process().lines();
        let tries = lines.iter().filter(|line| line.contains("wait_s")).count();
        wait::expect(tries >= 2, || format!("{tries} tries")).map(|()| lines)
    })
    .await;
    let documented = fs::read_to_string(paths::checkout().join("docs/logs.md")).unwrap();
    let mut sources = 0;
    for line in lines {
        let entry: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
        for field in ["timestamp", "level", "message", "target"] {
            assert!(entry[field].is_string(), "{field} of {line}");
        }
        let at = entry["timestamp"].as_str().unwrap();
        assert!(humantime::parse_rfc3339(at).is_ok() && at.ends_with('Z'), "{line}");
        for field in entry.as_object().unwrap().keys() {
            assert!(documented.contains(&format!("`{field}`")), "{field} of {line} is not documented");
        }
        assert_eq!(entry["source"].is_string(), entry["state"].is_string(), "{line}");
        sources += usize::from(entry["source"] == "nats://127.0.0.1:9" && entry["state"] == "connecting");
        assert_eq!(entry["wait_s"].is_number(), entry["nats"].is_string(), "{line}");
    }
    assert!(sources > 0, "the state of the source is logged");
}

#[test]
fn completions_and_manual_pages_are_those_of_the_options() {
    let printed = |args: &[&str]| {
        let output = Radixscope::run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish"] {
        let text = printed(&["completions", shell]);
        assert!(text.contains("tree-dumps") && text.contains("disaggregated"), "{shell}");
    }
    let all = printed(&["man"]);
    assert!(all.starts_with(".ie") && all.contains("radixscope") && all.contains("demo"), "{all}");
    let serve = printed(&["man", "serve"]);
    assert!(serve.contains("frame\\-ancestors") && serve.contains("RADIXSCOPE_LISTEN"), "{serve}");
    let (code, stderr) = run(&["man", "dance"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("dance"), "{stderr}");
}

#[test]
fn a_template_that_is_no_link_is_refused_at_the_start() {
    for (template, why) in [
        ("javascript:alert('{request_id}')", "is written percent-encoded"),
        ("ftp://host/{request_id}", "begins with https:// or http://"),
        ("https://{session}.example.org/", "a host without a placeholder"),
        ("https://host/{span_id}", "{span_id} is not known"),
    ] {
        let (code, said) = run(&["demo", "--trace-url", template]);
        assert_ne!(code, Some(0), "{template}");
        assert!(said.contains("--trace-url") && said.contains(why), "{template}: {said}");
    }
}
