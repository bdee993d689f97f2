//! Connects to NATS, and describes why an attempt failed and what to do. Never shows credentials.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};
use tokio::sync::watch;
use url::Url;

use super::session::TURN_BYTES;
use super::tls;
use crate::config::{InvalidOption, NatsLogin, Secret};
use crate::source::SourceStatus;

/// Connect timeout.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Ping interval. A connection without a pong for about twice this long is lost.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Capacity of the client's channel for each subscription: as many messages as the client can read in one turn, so that none is
/// dropped there. It is not allocated in advance.
const SUBSCRIPTION_MESSAGES: usize = TURN_BYTES / LEAST_MESSAGE_BYTES;
/// Size on the wire of the smallest possible message.
const LEAST_MESSAGE_BYTES: usize = "MSG a.kv-events 1 0\r\n\r\n".len();
/// Reconnect delay of the client, effectively never: the source reconnects by itself.
const NEVER: Duration = Duration::from_secs(24 * 3600);
/// Maximum errors of the server that are buffered.
const MAX_SERVER_ERRORS: usize = 32;
/// Inbox prefix for replies: below `_INBOX`, so that a permission for `_INBOX.>` covers it, with a token of its own, so that a
/// narrower permission is possible.
pub(crate) const INBOX: &str = "_INBOX.radixscope";
/// Dynamo's default login (reference §1.2).
const DYNAMO_USER: &str = "user";
const DYNAMO_PASSWORD: &str = "user";

/// Credentials.
#[derive(Clone, Debug)]
enum Credentials {
    File(std::path::PathBuf),
    Token(Secret),
    User { name: String, password: Secret, is_default: bool },
}

/// A NATS server and credentials.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    servers: Vec<ServerAddr>,
    shown: String,
    credentials: Credentials,
    ca: Option<std::path::PathBuf>,
}

/// Where NATS is now, or in words why it is nowhere. Without a sender it stays there.
pub(crate) type Whereabouts = watch::Receiver<Result<Target, String>>;

/// Events of the client other than messages.
#[derive(Debug, Default)]
struct ClientEvents {
    errors: Vec<String>,
    slow: Vec<u64>,
}

/// Events of a connection, shared with the client's callback.
#[derive(Clone)]
pub(crate) struct Signals {
    events: Arc<Mutex<ClientEvents>>,
    /// Turns true when the connection is lost.
    pub(crate) lost: watch::Receiver<bool>,
}

impl Signals {
    /// Takes the errors of the server since the last call.
    pub(crate) fn take_errors(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner).errors)
    }

    /// Takes the first error for which `read` returns a value, and leaves the others.
    pub(crate) fn take_error<T>(&self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let errors = &mut self.events.lock().unwrap_or_else(PoisonError::into_inner).errors;
        let (at, found) = errors.iter().enumerate().find_map(|(at, error)| Some((at, read(error)?)))?;
        errors.remove(at);
        Some(found)
    }

    /// Takes the number of messages that the client dropped since the last call, by subscription in order of subscribing.
    pub(crate) fn take_dropped(&self) -> Vec<u64> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner).slow)
    }
}

impl Target {
    pub(crate) fn new(urls: &[Url], login: &NatsLogin) -> Result<Self, InvalidOption> {
        let credentials = credentials(urls, login)?;
        if let Some(ca) = &login.nats_tls_ca {
            readable("--nats-tls-ca", ca)?;
        }
        let bare: Vec<Url> = urls.iter().map(without_login).collect();
        let address = |url: &Url| {
            url.as_str()
                .parse()
                .map_err(|_| InvalidOption::new(format!("--nats {url}"), "not a NATS server address"))
        };
        let servers = bare.iter().map(address).collect::<Result<_, _>>()?;
        let shown = bare.iter().map(shown).collect::<Vec<_>>().join(",");
        Ok(Self { servers, shown, credentials, ca: login.nats_tls_ca.clone() })
    }

    /// The same, shown as another address that leads there.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn shown_as(self, shown: &Url) -> Self {
        Self { shown: self::shown(&without_login(shown)), ..self }
    }

    /// Where it is for good.
    pub(crate) fn fixed(self) -> Whereabouts {
        watch::channel(Ok(self)).1
    }

    /// The address without credentials.
    pub(crate) fn display_address(&self) -> &str {
        &self.shown
    }

    /// Hosts and ports of its servers.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (String, u16)> + '_ {
        self.servers.iter().map(|server| (server.host().to_owned(), server.port()))
    }

    /// One attempt.
    pub(crate) async fn connect(&self) -> Result<(Client, Signals), SourceStatus> {
        let (lose, lost) = watch::channel(false);
        let events = Arc::new(Mutex::new(ClientEvents::default()));
        let signals = Signals { events: Arc::clone(&events), lost };
        let lose = Arc::new(lose);
        let is_connected = Arc::new(AtomicBool::new(false));
        let was_connected = Arc::clone(&is_connected);
        let options = self.login(ConnectOptions::new()).await?;
        let mut options = options
            .name("radixscope")
            .custom_inbox_prefix(INBOX)
            .connection_timeout(CONNECT_WITHIN)
            .ping_interval(PING_EVERY)
            .subscription_capacity(SUBSCRIPTION_MESSAGES)
            // The source reconnects, not the client: a break must be counted and history read again.
            .reconnect_delay_callback(move |_| {
                if was_connected.load(Ordering::Relaxed) { NEVER } else { Duration::ZERO }
            })
            .event_callback(move |event| {
                record_event(&events, &lose, event);
                std::future::ready(())
            });
        if let Some(ca) = &self.ca {
            options = options.add_root_certificates(ca.clone()).require_tls(true);
        }
        match options.connect(self.servers.as_slice()).await {
            Ok(client) => {
                is_connected.store(true, Ordering::Relaxed);
                Ok((client, signals))
            }
            Err(error) => Err(match tls::explain(&error, &self.shown, self.ca.is_some()) {
                Some(detail) => SourceStatus::refused(detail),
                None => self.failed(error.kind(), &error.to_string()),
            }),
        }
    }

    async fn login(&self, options: ConnectOptions) -> Result<ConnectOptions, SourceStatus> {
        Ok(match &self.credentials {
            Credentials::User { name, password, .. } => {
                options.user_and_password(name.clone(), password.reveal().to_owned())
            }
            Credentials::Token(token) => options.token(token.reveal().to_owned()),
            // Read for every attempt, because credentials are rotated at runtime.
            Credentials::File(path) => options.credentials_file(path).await.map_err(|error| {
                SourceStatus::refused(format!(
                    "The credentials file {} cannot be used: {error}.",
                    path.display()
                ))
            })?,
        })
    }

    fn failed(&self, kind: ConnectErrorKind, error: &str) -> SourceStatus {
        let shown = &self.shown;
        match kind {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                SourceStatus::refused(format!("NATS at {shown} {}.", self.credentials.rejected()))
            }
            ConnectErrorKind::Tls => SourceStatus::refused(format!(
                "TLS with NATS at {shown} fails: {error}. If its certificate is signed by a private CA, set --nats-tls-ca \
                 (RADIXSCOPE_NATS_TLS_CA)."
            )),
            ConnectErrorKind::Dns => SourceStatus::connecting(format!(
                "The host name in {shown} cannot be resolved: {error}. Check --nats (RADIXSCOPE_NATS)."
            )),
            ConnectErrorKind::TimedOut => SourceStatus::connecting(format!(
                "NATS at {shown} does not respond within {} s. Check the address, and whether a firewall or network \
                 policy is in the way.",
                CONNECT_WITHIN.as_secs()
            )),
            _ => SourceStatus::connecting(format!(
                "NATS at {shown} cannot be reached: {error}. Is it running, and is --nats (RADIXSCOPE_NATS) right?"
            )),
        }
    }
}

impl Credentials {
    fn rejected(&self) -> String {
        match self {
            Self::User { name, is_default: true, .. } => format!(
                "rejects user '{name}' with Dynamo's default password. Set --nats-user and --nats-password \
                 (RADIXSCOPE_NATS_USER, RADIXSCOPE_NATS_PASSWORD), --nats-token or --nats-creds"
            ),
            Self::User { name, .. } => format!(
                "rejects user '{name}': wrong user or password. Check --nats-user and --nats-password \
                 (RADIXSCOPE_NATS_USER, RADIXSCOPE_NATS_PASSWORD)"
            ),
            Self::Token(_) => "rejects the token. Check --nats-token (RADIXSCOPE_NATS_TOKEN)".to_owned(),
            Self::File(path) => format!(
                "rejects the credentials in {}. Check --nats-creds (RADIXSCOPE_NATS_CREDS)",
                path.display()
            ),
        }
    }
}

fn record_event(events: &Mutex<ClientEvents>, lose: &watch::Sender<bool>, event: Event) {
    let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
    match event {
        Event::Disconnected | Event::Closed => {
            lose.send_replace(true);
        }
        Event::SlowConsumer(sid) => {
            let at = usize::try_from(sid.saturating_sub(1)).unwrap_or(0).min(MAX_SERVER_ERRORS - 1);
            if events.slow.len() <= at {
                events.slow.resize(at + 1, 0);
            }
            events.slow[at] += 1;
        }
        Event::ServerError(error) if events.errors.len() < MAX_SERVER_ERRORS => {
            events.errors.push(match error {
                ServerError::Other(text) => text,
                other => other.to_string(),
            });
        }
        _ => {}
    }
}

fn credentials(urls: &[Url], login: &NatsLogin) -> Result<Credentials, InvalidOption> {
    if let Some(path) = &login.nats_creds {
        let text = readable("--nats-creds", path)?;
        ConnectOptions::with_credentials(&text)
            .map_err(|error| unusable("--nats-creds", path, format!("not a credentials file: {error}")))?;
        return Ok(Credentials::File(path.clone()));
    }
    if let Some(token) = &login.nats_token {
        return Ok(Credentials::Token(token.clone()));
    }
    if let (Some(name), Some(password)) = (&login.nats_user, &login.nats_password) {
        return Ok(Credentials::User { name: name.clone(), password: password.clone(), is_default: false });
    }
    let in_url = urls.iter().find(|url| !url.username().is_empty());
    Ok(match in_url {
        Some(url) => match url.password() {
            Some(password) => Credentials::User {
                name: decoded(url.username()),
                password: Secret::from(decoded(password)),
                is_default: false,
            },
            None => Credentials::Token(Secret::from(decoded(url.username()))),
        },
        None => Credentials::User {
            name: DYNAMO_USER.to_owned(),
            password: Secret::from(DYNAMO_PASSWORD.to_owned()),
            is_default: true,
        },
    })
}

/// Percent-decodes a part of a URL.
fn decoded(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}

fn readable(option: &'static str, path: &std::path::Path) -> Result<String, InvalidOption> {
    std::fs::read_to_string(path).map_err(|error| unusable(option, path, error))
}

fn unusable(option: &str, path: &std::path::Path, why: impl ToString) -> InvalidOption {
    InvalidOption::new(format!("{option} {}", path.display()), why)
}

fn without_login(url: &Url) -> Url {
    let mut bare = url.clone();
    // Both fail only for URLs without a host, which the options do not accept.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare
}

fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::record::LinkState;

    fn target(url: &str) -> Target {
        Target::new(&[url.parse().unwrap()], &NatsLogin::default()).unwrap()
    }

    #[test]
    fn the_displayed_address_has_no_credentials() {
        let target = target("nats://alice:s3cr%2Ft@broker:4222");
        assert_eq!(target.display_address(), "nats://broker:4222");
        assert!(!format!("{target:?}").contains("s3cr"));
        let Credentials::User { name, password, is_default } = &target.credentials else { panic!() };
        assert_eq!((name.as_str(), password.reveal(), *is_default), ("alice", "s3cr/t", false));
    }

    #[test]
    fn without_credentials_it_is_dynamos_own() {
        let failed = target("nats://broker").failed(ConnectErrorKind::AuthorizationViolation, "x");
        assert_eq!(failed.state, LinkState::Refused);
        assert!(
            failed.detail.contains("rejects user 'user'") && failed.detail.contains("RADIXSCOPE_NATS_USER")
        );
    }

    #[test]
    fn absence_is_not_refusal() {
        let failed = target("nats://broker").failed(ConnectErrorKind::Io, "connection refused");
        assert_eq!(failed.state, LinkState::Connecting);
        assert!(failed.detail.contains("connection refused"));
    }

    #[test]
    fn a_missing_credentials_file_is_reported_at_once() {
        let login = NatsLogin { nats_creds: Some("/nowhere/x.creds".into()), ..NatsLogin::default() };
        let error = Target::new(&["nats://x".parse().unwrap()], &login).unwrap_err().to_string();
        assert!(error.contains("--nats-creds /nowhere/x.creds"), "{error}");
    }
}
