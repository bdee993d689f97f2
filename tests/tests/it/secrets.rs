//! A secret that is planted wherever one can be given shows in nothing that comes out: help, errors, log, API, figures,
//! page. The token for Kubernetes' API: `kubernetes.rs`.

use std::process::Output;

use radixscope_tests::radixscope::Radixscope;

/// What must not show.
const PLANTED: &str = "HUNTER2planted";

/// Variables that may hold a secret, each with a value that does.
fn variables() -> Vec<(&'static str, String)> {
    let url = format!("nats://bob:{PLANTED}@127.0.0.1:9");
    vec![
        ("RADIXSCOPE_NATS", url.clone()),
        ("RADIXSCOPE_DEMO_NATS", url),
        ("RADIXSCOPE_NATS_PASSWORD", PLANTED.to_owned()),
        ("RADIXSCOPE_NATS_TOKEN", PLANTED.to_owned()),
        ("RADIXSCOPE_PROMETHEUS", format!("fe=http://127.0.0.1:9/metrics?token={PLANTED}")),
        ("RADIXSCOPE_PROMETHEUS_TOKEN", PLANTED.to_owned()),
        ("RADIXSCOPE_ACCESS_TOKEN", PLANTED.to_owned()),
        ("RADIXSCOPE_DISCOVERY", format!("etcd://bob:{PLANTED}@127.0.0.1:9")),
        ("RADIXSCOPE_DISCOVERY_PASSWORD", PLANTED.to_owned()),
    ]
}

fn run(args: &[&str], variables: &[(&str, String)]) -> Output {
    let mut command = Radixscope::command();
    command.args(args);
    for (name, value) in variables {
        command.env(name, value);
    }
    command.output().expect("it runs")
}

/// Both outputs together.
fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn assert_hidden(expected: &str, what: &str) {
    assert!(!expected.contains(PLANTED), "{what} shows the secret:\n{expected}");
}

#[test]
fn help_shows_no_value_of_a_variable_that_may_hold_a_secret() {
    for command in ["serve", "demo", "check", "sources"] {
        for flag in ["--help", "-h"] {
            let output = run(&[command, flag], &variables());
            assert!(output.status.success());
            let text = output_text(&output);
            assert_hidden(&text, &format!("{command} {flag}"));
            assert!(text.contains("RADIXSCOPE_NATS_PASSWORD"), "the names are there: {text}");
        }
    }
}

#[test]
fn an_error_about_an_option_does_not_repeat_its_secret() {
    let p = PLANTED;
    let wrong: Vec<Vec<String>> = [
        format!("serve --nats nats://bob:{p}@host:99999"),
        format!("serve --nats bob:{p}@host:99999"),
        format!("serve --nats http://bob:{p}@host"),
        format!("serve --nats {p}://host"),
        format!("serve --nats nats://a,nats://{p}@"),
        format!("serve nats://bob:{p}@host"),
        format!("serve --nats nats://h --nats-user {p}x --nats-pasword={p}"),
        format!("serve --nats nats://h --nats-creds c --nats-token {p}"),
        format!("serve --nats nats://h --nats-password {p}"),
        format!("serve --nats nats://h --nats-token={p} --nats-user u --nats-password {p}"),
        format!("serve --prometheus http://bob:{p}@a:8000"),
        format!("serve --prometheus fe=bob:{p}@a:99999"),
        format!("serve --prometheus ftp://{p}@a"),
        format!("check --prometheus http://a?token={p}:x,http://[{p}"),
        format!("serve --discovery etcd://bob:{p}@host:99999"),
        format!("serve --discovery {p}://host"),
        format!("serve --discovery etcd://{p}@host"),
        format!("serve --discovery etcd://h --discovery-password {p}"),
        format!("serve --discovery kubernetes:ns@http://bob:{p}@host"),
        format!("serve --discovery kubernetes:{p}"),
        format!("serve --discovery kubernetes:ns@http://host?token={p}"),
        format!("demo --nats nats://{p}@host:99999"),
        format!("demo --access-token {p} --access-token-file /nowhere"),
        "demo --access-token-file /nowhere/x --listen nowhere".to_owned(),
    ]
    .iter()
    .map(|line| line.split(' ').map(str::to_owned).collect())
    .collect();
    for args in wrong {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = run(&args, &[]);
        assert!(!output.status.success(), "{args:?}");
        let text = output_text(&output);
        assert_hidden(&text, &format!("{args:?}"));
        assert!(text.len() > 20, "it says what is wrong: {args:?}: {text}");
    }
    for (name, value) in [
        ("RADIXSCOPE_NATS", format!("nats://bob:{p}@host:99999")),
        ("RADIXSCOPE_PROMETHEUS", format!("http://bob:{p}@a")),
        ("RADIXSCOPE_DEMO_NATS", format!("x://bob:{p}@a")),
    ] {
        for command in ["serve", "check", "demo"] {
            let args = [command, "--listen=nowhere"];
            let output = run(&args[..if command == "check" { 1 } else { 2 }], &[(name, value.clone())]);
            assert_hidden(&output_text(&output), &format!("{command} with {name}"));
        }
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret.pem");
    std::fs::write(&file, format!("-----BEGIN PRIVATE KEY-----\n{PLANTED}\n-----END PRIVATE KEY-----\n"))
        .unwrap();
    let path = file.to_str().unwrap();
    for args in [
        vec!["serve", "--nats", "nats://127.0.0.1:9", "--nats-creds", path],
        vec!["demo", "--tls-cert", path, "--tls-key", path],
    ] {
        let output = run(&args, &[]);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", output_text(&output));
        assert_hidden(&output_text(&output), &format!("{args:?}"));
        assert!(output_text(&output).contains("secret.pem"), "{}", output_text(&output));
    }
}

#[tokio::test]
async fn nothing_that_is_served_or_logged_shows_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, format!("{PLANTED}-access\n")).unwrap();
    let p = PLANTED;
    let (nats, metrics) =
        (format!("nats://bob:{p}@127.0.0.1:9"), format!("fe=http://127.0.0.1:9/m?token={p}"));
    let discovery = format!("etcd://bob:{p}@127.0.0.1:9");
    let login = [["--nats-user", "bob", "--nats-password"].as_slice(), ["--nats-token"].as_slice(), &[]];
    for login in login {
        let mut flags = vec!["serve", "--nats", &nats, "--prometheus", &metrics, "--prometheus-token", p];
        if !login.is_empty() {
            flags.extend(login);
            flags.push(p);
        }
        let file = token_file.to_str().unwrap();
        flags.extend([
            "--discovery",
            &discovery,
            "--access-token-file",
            file,
            "--log",
            "trace",
            "--log-format",
            "json",
        ]);
        let server = Radixscope::start(flags).await;
        let bearer = format!("Bearer {p}-access");
        let mut failed = false;
        while !failed {
            let cluster = server.get_with("/api/v1/cluster", &[("authorization", &bearer)]).await;
            assert_eq!(cluster.status, 200, "{}", cluster.text());
            failed = cluster.json()["sources"].as_array().unwrap().iter().all(|s| s["detail"] != "");
        }
        for path in [
            "/",
            "/?theme=dark",
            "/api/v1/cluster",
            "/api/v1/findings",
            "/api/v1/latency",
            "/api/v1/memory",
            "/metrics",
            "/healthz",
            "/readyz",
            "/api/v1/nothing",
            "/api/v1/tree",
        ] {
            for authorization in [bearer.as_str(), "Bearer wrong"] {
                let response = server.get_with(path, &[("authorization", authorization)]).await;
                assert_hidden(&format!("{:?}{}", response.headers, response.text()), path);
            }
        }
        let response = server.get_with(&format!("/?token={p}-access&view=tree"), &[]).await;
        assert_eq!(response.status, 303, "{}", response.text());
        assert_hidden(&format!("{:?}{}", response.headers, response.text()), "the redirection");
        let _ = server.get_with(&format!("/?token={p}-wrong"), &[]).await;
        assert_hidden(&server.process().output(), "the log");
    }
}
