//! Who may ask: names of the server and origins of pages, as a page of somebody else would try them.

use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::raw::{self, RawResponse};

async fn demo(flags: &[&str]) -> Radixscope {
    let flags = ["demo", "--warm-up", "0"].iter().chain(flags);
    Radixscope::start(flags.copied()).await
}

/// `GET path` with these header lines and no others but one that ends the connection.
async fn get(server: &Radixscope, path: &str, headers: &[String]) -> RawResponse {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    raw::ask(server.port(), &format!("GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n")).await
}

async fn with_host(server: &Radixscope, host: &str) -> RawResponse {
    get(server, "/api/v1/cluster", &[format!("Host: {host}")]).await
}

/// An attempt to open the socket from a page of `origin`.
async fn open(server: &Radixscope, host: &str, origins: &[&str]) -> u16 {
    let mut headers = vec![format!("Host: {host}")];
    headers.extend(origins.iter().map(|origin| format!("Origin: {origin}")));
    let handshake =
        ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="];
    headers.extend(handshake.map(str::to_owned));
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!("GET /ws HTTP/1.1\r\n{lines}Connection: Upgrade\r\n\r\n");
    raw::status(server.port(), &request).await
}

#[tokio::test]
async fn a_name_that_is_not_ours_gets_nothing_whatever_is_requested() {
    let server = demo(&["--allow-host", "radixscope.example.org,*.tools.example"]).await;
    let port = server.port();
    for host in [
        "localhost",
        "LocalHost",
        "radix.localhost",
        "127.0.0.1",
        "127.1.2.3",
        "[::1]",
        "radixscope.example.org",
        "Radixscope.Example.ORG.",
        "a.tools.example",
    ] {
        for host in [host.to_owned(), format!("{host}:{port}"), format!("{host}:9000")] {
            let response = with_host(&server, &host).await;
            assert_eq!(response.status, 200, "{host}: {}", response.text);
        }
    }
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evillocalhost",
        "tools.example",
        "eviltools.example",
        "radixscope.example.org.evil.example",
        "10.1.2.3",
        "[2001:db8::1]",
    ] {
        let response = with_host(&server, &format!("{host}:{port}")).await;
        assert_eq!(response.status, 403, "{host}: {}", response.text);
        assert!(response.text.contains("--allow-host"), "it says what to do: {}", response.text);
        assert!(!response.text.contains("workers"), "nothing of the state: {}", response.text);
    }
    for path in ["/", "/ws", "/metrics", "/healthz", "/readyz", "/nothing", "/api/v1/tree"] {
        let response = get(&server, path, &["Host: evil.example".to_owned()]).await;
        assert_eq!(response.status, 403, "{path}: {}", response.text);
    }
    let absolute = format!(
        "GET http://evil.example/healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(raw::ask(port, &absolute).await.status, 403, "the address of the request counts as well");
}

#[tokio::test]
async fn a_request_without_one_name_is_refused_with_a_reason() {
    let server = demo(&[]).await;
    let ours = format!("Host: 127.0.0.1:{}", server.port());
    let wrong: [&[String]; 6] = [
        &[],
        &[ours.clone(), ours.clone()],
        &[ours.clone(), "Host: evil.example".to_owned()],
        &["Host:".to_owned()],
        &["Host: user@127.0.0.1".to_owned()],
        &["Host: 127.0.0.1/x".to_owned()],
    ];
    for headers in wrong {
        let response = get(&server, "/healthz", headers).await;
        assert_eq!(response.status, 400, "{headers:?}: {}", response.text);
        assert!(response.text.contains("Host"), "{headers:?}: {}", response.text);
    }
    let old = raw::ask(server.port(), "GET /healthz HTTP/1.0\r\n\r\n").await;
    assert_eq!(old.status, 400, "{}", old.text);
}

/// What a browser asks before a page of `origin` may post JSON or show a token.
async fn preflight(server: &Radixscope, path: &str, headers: &[String]) -> RawResponse {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let host = format!("Host: 127.0.0.1:{}", server.port());
    let request = format!("OPTIONS {path} HTTP/1.1\r\n{host}\r\n{lines}Connection: close\r\n\r\n");
    raw::ask(server.port(), &request).await
}

#[tokio::test]
async fn pages_of_allowed_origins_and_of_none_learn_what_they_may_send() {
    let server =
        demo(&["--allow-origin", "https://portal.example.org,null", "--access-token", "secret"]).await;
    let (path, wish) = ("/api/v1/score", "Access-Control-Request-Method: POST".to_owned());
    for origin in ["https://portal.example.org", "null"] {
        let from = format!("Origin: {origin}");
        let response = preflight(&server, path, &[from.clone(), wish.clone()]).await;
        assert_eq!(response.status, 204, "{origin}: {}", response.text);
        for line in [
            format!("access-control-allow-origin: {origin}\r\n"),
            "access-control-allow-methods: GET, HEAD, POST\r\n".to_owned(),
            "access-control-allow-headers: authorization, content-type\r\n".to_owned(),
            "vary: origin\r\n".to_owned(),
        ] {
            assert!(response.text.contains(&line), "{origin}, {line:?}: {}", response.text);
        }
        assert!(!response.text.contains("access-control-allow-credentials"), "{}", response.text);
        // What follows needs the token as ever.
        let post = |token: &'static str| {
            let headers =
                [("origin", origin), ("authorization", token), ("content-type", "application/json")];
            let server = &server;
            async move { server.post(path, r#"{"example":true}"#, &headers).await }
        };
        let (without, with) = (post("Bearer wrong").await, post("Bearer secret").await);
        assert_eq!((without.status, with.status), (401, 200), "{origin}: {}", with.text());
        assert_eq!(with.header("access-control-allow-origin"), origin);
        // A question that is none.
        assert_eq!(preflight(&server, path, &[from]).await.status, 401, "{origin}");
    }
    let ours = format!("Origin: http://127.0.0.1:{}", server.port());
    for from in ["Origin: https://evil.example", "Origin: https://portal.example.org.evil.example", &ours] {
        let response = preflight(&server, path, &[from.to_owned(), wish.clone()]).await;
        assert_eq!(response.status, 401, "{from}: {}", response.text);
        assert!(!response.text.contains("access-control-"), "{from}: {}", response.text);
    }
    assert_eq!(preflight(&server, path, &[wish]).await.status, 401, "not authenticated");
}

#[tokio::test]
async fn only_pages_of_our_own_may_open_the_socket_or_have_something_computed() {
    let server = demo(&["--allow-origin", "https://portal.example.org"]).await;
    let (port, host) = (server.port(), format!("127.0.0.1:{}", server.port()));
    let ours = format!("http://{host}");
    for origins in [&[][..], &[ours.as_str()], &["https://portal.example.org"]] {
        assert_eq!(open(&server, &host, origins).await, 101, "{origins:?}");
    }
    let (rebound, file, other) =
        (format!("http://evil.example:{port}"), format!("file://{host}"), format!("xx://{host}"));
    assert_eq!(open(&server, &format!("evil.example:{port}"), &[&rebound]).await, 403, "rebound");
    for origins in [
        &[rebound.as_str()][..],
        &[file.as_str()],
        &[other.as_str()],
        &["file://"],
        &["null"],
        &[""],
        &[ours.as_str(), ours.as_str()],
        &[ours.as_str(), "http://evil.example"],
    ] {
        assert_eq!(open(&server, &host, origins).await, 403, "{origins:?}");
    }
    for path in ["/api/v1/score", "/api/v1/counterfactual"] {
        for (origin, expected) in [("http://evil.example", 403), ("null", 403), (ours.as_str(), 200)] {
            let body = if path.ends_with("score") { r#"{"example":true}"# } else { r#"{"frozen":{}}"# };
            let response = server.post(path, body, &[("origin", origin)]).await;
            let is_refused = response.status == 403 && response.text().contains("--allow-origin");
            assert_eq!(is_refused, expected == 403, "{path} from {origin}: {}", response.text());
        }
    }
}

#[test]
fn an_option_that_would_admit_everybody_or_match_nothing_is_refused_with_what_to_write() {
    let header = |name| vec!["--trusted-proxy", "127.0.0.1", "--trusted-proxy-header", name];
    for (flags, expected) in [
        (header("Host"), "the framing of a message"),
        (header("Connection"), "the framing of a message"),
        (header("Content-Length"), "the content of a message"),
        (header("User-Agent"), "set by browsers"),
        (header("Cookie"), "a credential that the client chooses"),
        (header("Authorization"), "a credential that the client chooses"),
        (header("X-Forwarded-For"), "set by proxies on every request"),
        (vec!["--allow-origin", "https://*.x.org"], "list each origin"),
        (vec!["--allow-origin", "https://a..x.org"], "such as https://example.org"),
        (vec!["--allow-host", ".x.org"], "such as radixscope.example.org"),
        (
            vec!["--trusted-proxy-header", "X-User", "--trusted-proxy", "::ffff:10.1.0.0/64"],
            "write the IPv4 network",
        ),
        (vec!["--trusted-proxy-header", "X-User", "--trusted-proxy", "0.0.0.0"], "such as 10.1.0.0/16"),
    ] {
        // Where nothing else is wrong, the address is.
        let output = Radixscope::run(&[&["demo"], &flags[..], &["--listen", "nowhere"]].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {message}");
        assert!(message.contains(expected), "{flags:?}: {message}");
    }
}
