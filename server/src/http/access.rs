//! Access control: by token, or by a trusted proxy that names a user. Without either, everyone may read.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use ipnet::IpNet;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::form_urlencoded;

use super::error::{ApiError, code};
use super::listen::Peer;
use super::{Front, page, panel};
use crate::config::{Access, InvalidOption, Secret, is_guessable};
use crate::shutdown::over;
pub(super) use failed_logins::FailedLogins;

mod failed_logins;

/// The query parameter with the token.
const PARAMETER: &str = "token";
/// Pictures get the token with every request: images have no cookie if third-party cookies are off, and their URL is not
/// visible in an address bar.
const PICTURES: &str = "/panel/";
/// Probes, which need no authentication.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];
/// The login form.
const LOGIN: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n<title>Radixscope: a token is needed</title>\n\
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:4rem auto;padding:0 1rem}\
input,button{font:inherit;padding:.25rem .5rem}</style>\n</head>\n<body>\n<h1>A token is needed</h1>\n\
<form method=\"get\"><label>Access token <input name=\"token\" type=\"password\" autocomplete=\"current-password\" required \
autofocus></label> <button>Open</button></form>\n\
<p>The server was started with <code>--access-token</code> or <code>--access-token-file</code>.</p>\n\
</body>\n</html>\n";
const LOGIN_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; \
                            frame-ancestors ";

/// Time after which a connection that is being closed is gone.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// Marks a request without authentication, which gets no details from probes.
#[derive(Clone, Copy)]
pub(super) struct Unauthenticated;

/// The access rules of a server.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    token: Option<Token>,
    proxy: Option<Proxy>,
    /// Whether the token is weak.
    is_guessable: bool,
}

/// A token, stored only as hashes: one for comparison, and one as the cookie's value, which does not reveal the token.
#[derive(Clone, Debug)]
struct Token {
    hash: [u8; 32],
    cookie: String,
}

#[derive(Clone, Debug)]
struct Proxy {
    header: HeaderName,
    networks: Vec<IpNet>,
}

impl AccessRules {
    /// The rules of the options.
    ///
    /// # Errors
    /// The token cannot be read.
    pub fn of(access: &Access) -> Result<Self, InvalidOption> {
        let (header, networks) = (access.trusted_proxy_header.clone(), access.trusted_proxy.clone());
        let token = access.token()?;
        Ok(Self {
            token: token.as_ref().map(Token::of),
            proxy: header.map(|header| Proxy { header, networks }),
            is_guessable: token.as_ref().is_some_and(is_guessable),
        })
    }

    /// Whether the token is weak.
    pub fn is_guessable(&self) -> bool {
        self.is_guessable
    }

    fn is_open(&self) -> bool {
        self.token.is_none() && self.proxy.is_none()
    }

    /// Whether the request is authenticated.
    fn admits(&self, headers: &HeaderMap, peer: Option<IpAddr>, cookie: &str) -> bool {
        let by_token = self.token.as_ref().is_some_and(|token| {
            bearer(headers).is_some_and(|shown| token.is(shown))
                // All cookies of this name are checked: other servers on this host may have set some.
                || cookies(headers, cookie).any(|shown| token.is_cookie(shown))
        });
        by_token || self.proxy.as_ref().is_some_and(|proxy| proxy.is_authenticated(headers, peer))
    }

    /// Whether a rejected request has a token or a cookie, which is wrong then.
    fn is_guess(&self, request: &Request, cookie: &str) -> bool {
        let headers = request.headers();
        let in_address = || can_carry_token(request.method()) && token_in(request.uri()).is_some();
        self.token.is_some()
            && (bearer(headers).is_some() || cookies(headers, cookie).next().is_some() || in_address())
    }
}

impl Token {
    fn of(secret: &Secret) -> Self {
        let hash: [u8; 32] = Sha256::digest(secret.reveal().as_bytes()).into();
        let mut salted = Sha256::new_with_prefix(b"radixscope cookie\0");
        salted.update(secret.reveal().as_bytes());
        let cookie: String = salted.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { hash, cookie }
    }

    // Hashes have the same length and are compared in constant time.
    fn is(&self, shown: &str) -> bool {
        self.hash.ct_eq(&Sha256::digest(shown.as_bytes())).into()
    }

    // A cookie is already a hash of known length.
    fn is_cookie(&self, shown: &str) -> bool {
        self.cookie.as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

impl Proxy {
    /// Whether a trusted proxy names exactly one user.
    fn is_authenticated(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> bool {
        let is_trusted = peer.is_some_and(|peer| self.networks.iter().any(|network| network.contains(&peer)));
        let mut named = headers.get_all(&self.header).iter();
        let is_named = matches!((named.next(), named.next()), (Some(user), None) if !user.as_bytes().trim_ascii().is_empty());
        is_trusted && is_named
    }
}

/// Admits authenticated requests; others get an error or the login form.
pub(super) async fn check(State(front): State<Front>, mut request: Request, next: Next) -> Response {
    let rules = &front.options.access;
    if rules.is_open() {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<Peer>().cloned();
    let cookie = cookie_name(&front);
    let uri = request.uri();
    if let Some(token) = &rules.token
        && can_carry_token(request.method())
        && let Some((shown, rest)) = token_in(uri)
        && token.is(&shown)
    {
        if uri.path().starts_with(PICTURES) {
            let path = if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{rest}", uri.path()) };
            return match path.parse() {
                Ok(bare) => {
                    *request.uri_mut() = bare;
                    next.run(request).await
                }
                Err(_) => ApiError::new(code::BAD_PARAMETER, "the address cannot be read").into_response(),
            };
        }
        let is_tls = peer.as_ref().is_some_and(|peer| peer.is_tls) || is_forwarded_tls(request.headers());
        return set_cookie(&front, token, &cookie, is_tls, request.headers(), uri.path(), &rest);
    }
    if rules.admits(request.headers(), peer.as_ref().map(|peer| peer.address), &cookie) {
        return next.run(request).await;
    }
    if rules.is_guess(&request, &cookie) {
        delay_failed_login(&front, peer).await;
    }
    let uri = request.uri();
    if PROBES.contains(&uri.path()) {
        request.extensions_mut().insert(Unauthenticated);
        return next.run(request).await;
    }
    if uri.path().starts_with(PICTURES) && panel::wants_picture(request.headers()) {
        return panel::refused(&front, uri, &no_token(&front.options.access));
    }
    refused(&front, request.headers())
}

/// Counts a wrong token and waits until its response may be sent. Meanwhile the connection counts as idle and may be evicted;
/// it is closed if too many responses to its address are delayed.
async fn delay_failed_login(front: &Front, peer: Option<Peer>) {
    let delay = front.failed_logins.count(peer.as_ref().map(|peer| peer.address), &front.shutdown);
    if let (None, Some(peer)) = (delay, &peer) {
        peer.slot.close();
    }
    let delay = delay.unwrap_or(CLOSED_WITHIN);
    if delay.is_zero() {
        return;
    }
    let _idle = peer.map(|peer| peer.slot.idle());
    let mut shutdown = front.shutdown.clone();
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        () = over(&mut shutdown) => {}
    }
}

/// Whether the token may be in the URL of such a request: pages and pictures.
fn can_carry_token(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Whether a proxy reports that the browser uses TLS. A forged header only yields a cookie that the browser does not store.
fn is_forwarded_tls(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|proto| proto.as_bytes().eq_ignore_ascii_case(b"https"))
}

/// The error for a request without authentication.
fn no_token(rules: &AccessRules) -> ApiError {
    if rules.token.is_none() {
        let message = "only users logged in at the proxy may read; the request did not come from a --trusted-proxy, or its \
                       --trusted-proxy-header names no user";
        return ApiError::new(code::NOT_BY_PROXY, message);
    }
    let message = "an access token is needed: send it as `Authorization: Bearer TOKEN`, or open the page with ?token=TOKEN \
                   once";
    ApiError::new(code::UNAUTHORIZED, message)
}

/// Cookies are shared between ports, so the name contains the port.
fn cookie_name(front: &Front) -> String {
    format!("radixscope_access_{}", front.options.listen.port())
}

/// `Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn cookies<'h>(headers: &'h HeaderMap, name: &'h str) -> impl Iterator<Item = &'h str> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(';')).filter_map(move |pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

/// The token in a URL, and the query without it.
fn token_in(uri: &Uri) -> Option<(String, String)> {
    let query = uri.query()?;
    let shown = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == PARAMETER)?.1.into_owned();
    let is_other = |pair: &&str| form_urlencoded::parse(pair.as_bytes()).all(|(key, _)| key != PARAMETER);
    let rest: Vec<&str> = query.split('&').filter(is_other).collect();
    Some((shown, rest.join("&")))
}

/// Redirects to the same URL without the token, and sets the cookie.
fn set_cookie(
    front: &Front,
    token: &Token,
    name: &str,
    is_tls: bool,
    headers: &HeaderMap,
    path: &str,
    rest: &str,
) -> Response {
    let forwarded = headers.get("x-forwarded-prefix").and_then(|value| value.to_str().ok());
    let prefix = page::prefix(&front.options.base_path, forwarded);
    // Two leading slashes would refer to another server.
    let path = path.trim_start_matches(['/', '\\']);
    let query = if rest.is_empty() { String::new() } else { format!("?{rest}") };
    let cookie = format!("{name}={}; Path={prefix}; HttpOnly; {}", token.cookie, where_sent(front, is_tls));
    let (Ok(location), Ok(cookie)) =
        (HeaderValue::from_str(&format!("{prefix}{path}{query}")), HeaderValue::from_str(&cookie))
    else {
        return ApiError::new(code::BAD_PARAMETER, "the address cannot be read").into_response();
    };
    let headers =
        [(header::LOCATION, location), (header::SET_COOKIE, cookie), (header::CACHE_CONTROL, NO_STORE)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Attributes of the cookie. For frames of other sites, which require TLS, it is partitioned: each embedding site has its own.
fn where_sent(front: &Front, is_tls: bool) -> &'static str {
    match (is_tls, front.options.frame_ancestors.names_others()) {
        (true, true) => "SameSite=None; Secure; Partitioned",
        (true, false) => "SameSite=Lax; Secure",
        (false, _) => "SameSite=Lax",
    }
}

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

fn refused(front: &Front, headers: &HeaderMap) -> Response {
    let rules = &front.options.access;
    if rules.token.is_none() {
        return no_token(rules).into_response();
    }
    let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"radixscope\""))];
    let wants_page = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"));
    if wants_page {
        let policy = format!("{LOGIN_POLICY}{}", front.options.frame_ancestors.as_str());
        let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
        let headers = [(header::CONTENT_SECURITY_POLICY, policy), (header::CACHE_CONTROL, NO_STORE)];
        return (StatusCode::UNAUTHORIZED, challenge, headers, Html(LOGIN)).into_response();
    }
    (challenge, no_token(rules)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_token_is_cut_out_of_an_address_and_nothing_else() {
        let uri: Uri = "/x?view=tree&token=a%2Bb&worker=1".parse().unwrap();
        assert_eq!(token_in(&uri), Some(("a+b".to_owned(), "view=tree&worker=1".to_owned())));
        assert_eq!(token_in(&"/x?tokens=1".parse().unwrap()), None);
    }

    #[test]
    fn a_cookie_stands_for_the_token_and_is_not_it() {
        let token = Token::of(&Secret::from("abc".to_owned()));
        assert!(token.is("abc") && !token.is("abcd") && !token.is("") && !token.is(&token.cookie));
        assert!(token.is_cookie(&token.cookie) && !token.is_cookie("abc"));
        assert!(!format!("{token:?}").contains("abc\""));
    }

    #[test]
    fn any_cookie_of_our_name_may_be_the_right_one() {
        let token = Token::of(&Secret::from("abc".to_owned()));
        let junk = "ours=junk; ".repeat(300);
        let text = format!("{junk}ours={}", token.cookie);
        let rules = AccessRules { token: Some(token), ..AccessRules::default() };
        assert!(rules.admits(&headers(&[("cookie", &text)]), None, "ours"));
        assert!(!rules.admits(&headers(&[("cookie", &junk)]), None, "ours"));
        assert!(!rules.admits(&headers(&[("cookie", &text)]), None, "other"));
    }

    #[test]
    fn only_a_trusted_proxy_that_names_one_user_is_believed() {
        let proxy = Proxy {
            header: HeaderName::from_static("x-user"),
            networks: vec!["10.0.0.0/8".parse().unwrap()],
        };
        let from = |address: &str| Some(address.parse().unwrap());
        let bob = headers(&[("x-user", "bob")]);
        assert!(proxy.is_authenticated(&bob, from("10.1.2.3")));
        assert!(!proxy.is_authenticated(&bob, from("11.1.2.3")) && !proxy.is_authenticated(&bob, None));
        assert!(!proxy.is_authenticated(&headers(&[("x-user", " ")]), from("10.1.2.3")));
        let mut two = bob.clone();
        two.append("x-user", "eve".parse().unwrap());
        assert!(!proxy.is_authenticated(&two, from("10.1.2.3")));
    }
}
