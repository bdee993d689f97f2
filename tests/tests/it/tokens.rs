//! Access control: token, proxy, TLS; and the notice of a server without access control.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use radixscope_tests::http::HttpResponse;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{raw, wait};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const TOKEN: &str = "k7PnnL2t-a.token.for.tests";
/// What requires a token.
const PRIVATE: [&str; 6] =
    ["/", "/api/v1/cluster", "/metrics", "/api/v1/nothing", "/worker.js", "/api/v1/tree.svg"];

async fn demo(flags: &[&str]) -> Radixscope {
    Radixscope::start(["demo", "--warm-up", "0"].iter().chain(flags).copied()).await
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// The cookie as a browser would send it back.
fn cookie(response: &HttpResponse) -> String {
    response.header("set-cookie").split(';').next().unwrap_or_default().to_owned()
}

async fn opens(server: &Radixscope, headers: &[String]) -> bool {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!(
        "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{lines}\r\n",
        server.port()
    );
    match raw::status(server.port(), &request).await {
        101 => true,
        401 | 403 => false,
        status => panic!("{status}"),
    }
}

#[tokio::test]
async fn without_the_token_nothing_is_shown_but_whether_the_server_lives() {
    let server = demo(&["--access-token", TOKEN]).await;
    let wrong = [
        vec![],
        vec![("authorization", bearer("wrong"))],
        vec![("authorization", TOKEN.to_owned())],
        vec![("authorization", format!("Basic {TOKEN}"))],
        vec![("authorization", bearer(""))],
        vec![("authorization", bearer(&TOKEN[1..]))],
        vec![("cookie", format!("radixscope_access_{}={TOKEN}", server.port()))],
        vec![("cookie", format!("radixscope_access_{}=", server.port()))],
    ];
    for (number, headers) in wrong.iter().enumerate() {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // Responses to guesses are delayed after some: each wrong one tries a path of its own.
        let paths = if headers.is_empty() { &PRIVATE[..] } else { &PRIVATE[number % PRIVATE.len()..][..1] };
        for path in paths {
            let response = server.get_with(path, &headers).await;
            assert_eq!(response.status, 401, "{path} {headers:?}");
            assert!(response.header("www-authenticate").starts_with("Bearer"), "{:?}", response.headers);
            assert_eq!(response.json()["error"]["code"], "unauthorized");
        }
        let posted = ["/api/v1/score", "/api/v1/counterfactual"][number % 2];
        assert_eq!(server.post(posted, "{}", &headers).await.status, 401, "{posted}");
        let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert!(!opens(&server, &lines).await, "{headers:?}");
    }
    assert_eq!(server.get("/?token=wrong").await.status, 401);
    let alive = server.get("/healthz").await;
    assert_eq!(alive.status, 200);
    wait::until("it is ready", async || {
        let ready = server.get("/readyz").await;
        assert_eq!(ready.json()["sources"], serde_json::json!([]), "no names of sources: {}", ready.text());
        wait::expect(ready.status == 200, || ready.text().to_owned())
    })
    .await;
    for path in ["/api/v1/cluster", "/metrics"] {
        let response = server.get_with(path, &[("authorization", &bearer(TOKEN))]).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text());
    }
    assert!(opens(&server, &[format!("Authorization: {}", bearer(TOKEN))]).await);
}

#[tokio::test]
async fn an_address_with_the_token_is_opened_once_and_a_cookie_stands_for_it() {
    let server = demo(&["--access-token", TOKEN, "--base-path", "/x/"]).await;
    let opened =
        server.get_with(&format!("/?view=tree&token={TOKEN}&theme=dark"), &[("accept", "text/html")]).await;
    assert_eq!(opened.status, 303, "{}", opened.text());
    assert_eq!(opened.header("location"), "/x/?view=tree&theme=dark");
    let set = opened.header("set-cookie");
    assert!(
        set.contains("; HttpOnly") && set.contains("; SameSite=Lax") && set.contains("; Path=/x/"),
        "{set}"
    );
    assert!(!set.contains(TOKEN), "the cookie does not give the token away: {set}");
    let cookie = cookie(&opened);
    let headers = [("cookie", cookie.as_str()), ("accept", "text/html")];
    assert_ne!(server.get_with("/?view=tree&theme=dark", &headers).await.status, 401);
    assert_eq!(server.get_with("/api/v1/cluster", &headers).await.status, 200);
    assert!(opens(&server, &[format!("Cookie: other=1; {cookie}")]).await);
    for path in ["//evil.example", "/\\evil.example"] {
        let response = raw::ask(
            server.port(),
            &format!("GET {path}?token={TOKEN} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        )
        .await;
        let location =
            response.text.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or("/x/");
        assert!(location.starts_with("/x/"), "{path} leads to {location}");
    }
    let asked = server.get_with("/", &[("accept", "text/html")]).await;
    assert_eq!(asked.status, 401);
    assert!(asked.text().contains("<form method=\"get\">"), "{}", asked.text());
    assert!(asked.header("content-security-policy").contains("default-src 'none'"), "{:?}", asked.headers);
}

#[tokio::test]
async fn only_a_trusted_proxy_may_say_who_is_logged_in() {
    for (networks, is_trusted) in [
        ("127.0.0.0/8,10.0.0.0/8", true),
        ("127.0.0.1", true),
        ("::ffff:127.0.0.1/128", true),
        ("10.0.0.0/8", false),
    ] {
        let server = demo(&["--trusted-proxy-header", "X-Forwarded-User", "--trusted-proxy", networks]).await;
        let named = server.get_with("/api/v1/cluster", &[("x-forwarded-user", "bob")]).await;
        assert_eq!(named.status == 200, is_trusted, "{networks}: {}", named.text());
        assert_eq!(opens(&server, &["X-Forwarded-User: bob".to_owned()]).await, is_trusted);
        for headers in
            [&[][..], &[("x-forwarded-user", "")], &[("x-forwarded-user", " ")], &[("x-user", "bob")]]
        {
            let response = server.get_with("/api/v1/cluster", headers).await;
            assert_eq!(response.status, 403, "{headers:?}");
            assert!(response.text().contains("--trusted-proxy"), "{}", response.text());
        }
        let twice = ["X-Forwarded-User: bob".to_owned(), "X-Forwarded-User: eve".to_owned()];
        assert!(!opens(&server, &twice).await, "two names are none");
        assert_eq!(server.get("/healthz").await.status, 200);
    }
    for flags in [&["--trusted-proxy-header", "X-User"][..], &["--trusted-proxy", "10.0.0.0/8"]] {
        let output = Radixscope::run(&[&["demo"], flags].concat());
        assert_eq!(output.status.code(), Some(2), "one without the other: {flags:?}");
    }
}

/// A counter in `/metrics`.
async fn counter(server: &Radixscope, name: &str) -> u64 {
    let metrics = server.get_with("/metrics", &[("authorization", &bearer(TOKEN))]).await;
    assert_eq!(metrics.status, 200, "{}", metrics.text());
    let line = metrics.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect(name).parse().expect("a count")
}

#[tokio::test]
async fn guesses_are_delayed_counted_and_logged_in_sum_and_the_right_token_never_waits() {
    const GUESSERS: usize = 32;
    const RIGHT: u64 = 300;
    let server = demo(&["--access-token", TOKEN]).await;
    let answered = Arc::new(AtomicU64::new(0));
    let mut guessers = JoinSet::new();
    for _ in 0..GUESSERS {
        guessers.spawn(raw::guess(server.port(), Arc::clone(&answered)));
    }
    wait::until("more is guessed than is answered", async || {
        let unanswered = counter(&server, "radixscope_failed_logins_unanswered_total").await;
        wait::expect(unanswered > 0, || unanswered.to_string())
    })
    .await;
    let before = answered.load(Ordering::Relaxed);
    for _ in 0..RIGHT {
        let response = server.get_with("/healthz", &[("authorization", &bearer(TOKEN))]).await;
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let guessed = answered.load(Ordering::Relaxed) - before;
    assert!(guessed < RIGHT, "{GUESSERS} clients got {guessed} guesses answered while one got {RIGHT}");
    guessers.shutdown().await;
    let failed = counter(&server, "radixscope_failed_logins_total").await;
    assert!(failed > before + guessed, "every guess counts: {failed}");
    let log = server.process().output();
    let lines = log.lines().filter(|line| line.contains("wrong access token")).count();
    assert!((1..20).contains(&lines), "{lines} lines for {failed} guesses: {log}");
}

#[tokio::test]
async fn cookies_of_our_name_that_others_set_lock_nobody_out() {
    let server = demo(&["--access-token", TOKEN]).await;
    let opened = server.get_with(&format!("/?token={TOKEN}"), &[]).await;
    let ours = cookie(&opened);
    let name = ours.split('=').next().expect("a name");
    for count in [1, 8, 300] {
        let junk = format!("{name}=junk; ").repeat(count);
        for cookies in [format!("{junk}{ours}"), format!("{ours}; {junk}")] {
            let response = server.get_with("/api/v1/cluster", &[("cookie", &cookies)]).await;
            assert_eq!(response.status, 200, "{count} others: {}", response.text());
        }
    }
}

#[tokio::test]
async fn a_token_that_can_be_guessed_is_warned_of_in_the_log_and_on_the_page() {
    for (token, is_warned) in [("x", true), ("fifteen-letters", true), (TOKEN, false)] {
        let server = demo(&["--access-token", token]).await;
        let page = server.get_with("/", &[("authorization", &bearer(token))]).await;
        let log = server.process().output();
        assert_eq!(log.contains("WARN") && log.contains("openssl rand"), is_warned, "{token}: {log}");
        assert_eq!(page.text().contains("openssl rand"), is_warned, "{token}: {}", page.text());
    }
}

#[tokio::test]
async fn listening_beyond_this_machine_warns_unless_readers_must_log_in() {
    for (flags, is_warned) in [
        (&["--listen", "0.0.0.0:0"][..], true),
        (&["--listen", "0.0.0.0:0", "--access-token", TOKEN], false),
        (&["--listen", "127.0.0.1:0"], false),
    ] {
        let server =
            Radixscope::start_listening(["demo", "--warm-up", "0"].iter().chain(flags).copied()).await;
        let page = server.get_with("/", &[("authorization", &bearer(TOKEN))]).await;
        let log = server.process().output();
        assert_eq!(log.contains("WARN") && log.contains("--access-token"), is_warned, "{flags:?}: {log}");
        assert_eq!(page.text().contains("radixscope-notice"), is_warned, "{flags:?}: {}", page.text());
    }
}

/// A certificate and its key, as files.
struct Certificate {
    folder: TempDir,
    roots: RootCertStore,
}

impl Certificate {
    fn new() -> Self {
        let mut all = Self { folder: tempfile::tempdir().expect("a folder"), roots: RootCertStore::empty() };
        all.renew();
        all
    }

    /// Writes another certificate of another authority in the place of the first.
    fn renew(&mut self) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let own = params.signed_by(&key, &authority).expect("a certificate");
        self.roots.add(authority.der().clone()).expect("an authority");
        std::fs::write(self.path("cert.pem"), own.pem()).expect("it can be written");
        std::fs::write(self.path("key.pem"), key.serialize_pem()).expect("it can be written");
        own.der().clone()
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("a plain path").to_owned()
    }

    /// The certificate that is shown, and what is answered to a request.
    async fn ask(&self, port: u16, request: &str) -> Result<(CertificateDer<'static>, String), String> {
        let config = ClientConfig::builder_with_provider(
            tokio_rustls::rustls::crypto::ring::default_provider().into(),
        )
        .with_safe_default_protocol_versions()
        .expect("usual versions")
        .with_root_certificates(self.roots.clone())
        .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let socket = TlsConnector::from(Arc::new(config)).connect(name, raw::connect(port).await).await;
        let mut socket = socket.map_err(|error| error.to_string())?;
        let shown = socket.get_ref().1.peer_certificates().expect("it shows one")[0].clone().into_owned();
        socket.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut text = String::new();
        socket.read_to_string(&mut text).await.map_err(|error| error.to_string())?;
        Ok((shown, text))
    }
}

#[tokio::test]
async fn over_tls_everything_is_served_and_a_renewed_certificate_is_used_without_a_restart() {
    let mut certificate = Certificate::new();
    let first = certificate.renew();
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    let server = demo(&["--tls-cert", &cert, "--tls-key", &key, "--access-token", TOKEN]).await;
    let port = server.port();
    let head = format!("HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n");
    let (shown, text) = certificate.ask(port, &format!("GET /healthz {head}\r\n")).await.expect("a response");
    assert_eq!(shown, first);
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let (_, text) =
        certificate.ask(port, &format!("GET /?token={TOKEN} {head}\r\n")).await.expect("a response");
    assert!(text.contains("; Secure"), "{text}");
    // Half a handshake and plain HTTP delay no one.
    let mut half = raw::connect(port).await;
    half.write_all(&[0x16, 0x03, 0x01]).await.expect("it takes them");
    assert_eq!(raw::ask(port, &format!("GET /healthz {head}\r\n")).await.status, 0);
    // A file that is half written changes nothing.
    std::fs::write(&cert, "-----BEGIN CERTIFICATE-----\n").expect("it can be written");
    wait::until("the log says so", async || {
        let log = server.process().output();
        wait::expect(log.contains("the previous ones stay in use"), || log.clone())
    })
    .await;
    certificate
        .ask(port, &format!("GET /healthz {head}\r\n"))
        .await
        .expect("the former certificate still works");
    let second = certificate.renew();
    let since = Instant::now();
    wait::until("the new certificate is shown", async || {
        let (shown, _) = certificate.ask(port, &format!("GET /healthz {head}\r\n")).await?;
        wait::expect(shown == second, || "the former".to_owned())
    })
    .await;
    assert!(since.elapsed() < Duration::from_secs(10));
    drop(half);
}
