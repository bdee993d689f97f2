//! One attempt to connect to NATS, and in words why it failed and what to do. Never shows a secret.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};
use tokio::sync::watch;
use url::Url;

use super::session::TURN_BYTES;
use super::tls;
use crate::config::{InvalidOption, NatsLogin, Secret};
use crate::source::Failed;

/// How long an attempt may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A connection that answers no ping for about twice this long is lost.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Messages that wait in the client for each subscription until the session takes them: as many as can come in one turn
/// of the client, so that none is ever dropped there. Room is taken only by messages that are there.
const SUBSCRIPTION_MESSAGES: usize = TURN_BYTES / LEAST_MESSAGE_BYTES;
/// Size of the smallest message of any of our subjects on the wire.
const LEAST_MESSAGE_BYTES: usize = "MSG a.kv-events 1 0\r\n\r\n".len();
/// How long the client would wait before it connects again by itself: for ever, as far as a connection goes.
const NEVER: Duration = Duration::from_secs(24 * 3600);
/// Words of the server that are kept until somebody reads them.
const MAX_SAID: usize = 32;
/// Where replies to our own requests arrive: below the inboxes of all, so that a right to those holds, and apart from them, so
/// that a user needs a right to ours only.
pub(crate) const INBOX: &str = "_INBOX.radixscope";
/// What Dynamo logs in with unless told otherwise (reference §1.2).
const DYNAMO_USER: &str = "user";
const DYNAMO_PASSWORD: &str = "user";

/// How we log in.
#[derive(Clone, Debug)]
enum Credentials {
    File(std::path::PathBuf),
    Token(Secret),
    User { name: String, password: Secret, is_default: bool },
}

/// A NATS server and how to get in.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    servers: Vec<ServerAddr>,
    shown: String,
    credentials: Credentials,
    ca: Option<std::path::PathBuf>,
}

/// What the client tells beside messages.
#[derive(Debug, Default)]
struct Said {
    errors: Vec<String>,
    slow: Vec<u64>,
}

/// What the client told about a connection.
#[derive(Clone)]
pub(crate) struct Signals {
    said: Arc<Mutex<Said>>,
    /// Turns true when the connection is lost.
    pub(crate) lost: watch::Receiver<bool>,
}

impl Signals {
    /// What the server complained about since the last call.
    pub(crate) fn take_errors(&self) -> Vec<String> {
        std::mem::take(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner).errors)
    }

    /// Takes the first complaint of which something is made, and leaves the others to those that they concern.
    pub(crate) fn take_error<T>(&self, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let errors = &mut self.said.lock().unwrap_or_else(PoisonError::into_inner).errors;
        let (at, found) = errors.iter().enumerate().find_map(|(at, error)| Some((at, read(error)?)))?;
        errors.remove(at);
        Some(found)
    }

    /// Messages dropped in the client since the last call, by subscription in order of subscribing from 1 on.
    pub(crate) fn take_dropped(&self) -> Vec<u64> {
        std::mem::take(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner).slow)
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
                .map_err(|_| InvalidOption::new(format!("--nats {url}"), "not an address of a NATS server"))
        };
        let servers = bare.iter().map(address).collect::<Result<_, _>>()?;
        let shown = bare.iter().map(shown).collect::<Vec<_>>().join(",");
        Ok(Self { servers, shown, credentials, ca: login.nats_tls_ca.clone() })
    }

    /// The address without anything secret.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Hosts and ports of its servers.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (String, u16)> + '_ {
        self.servers.iter().map(|server| (server.host().to_owned(), server.port()))
    }

    /// Tries once.
    pub(crate) async fn connect(&self) -> Result<(Client, Signals), Failed> {
        let (lose, lost) = watch::channel(false);
        let said = Arc::new(Mutex::new(Said::default()));
        let signals = Signals { said: Arc::clone(&said), lost };
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
            // A lost connection is made anew by us, counted and with history read again, not by the client.
            .reconnect_delay_callback(move |_| {
                if was_connected.load(Ordering::Relaxed) { NEVER } else { Duration::ZERO }
            })
            .event_callback(move |event| {
                note(&said, &lose, event);
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
            Err(error) => Err(match tls::words(&error, &self.shown, self.ca.is_some()) {
                Some(words) => Failed::refused(words),
                None => self.failed(error.kind(), &error.to_string()),
            }),
        }
    }

    async fn login(&self, options: ConnectOptions) -> Result<ConnectOptions, Failed> {
        Ok(match &self.credentials {
            Credentials::User { name, password, .. } => {
                options.user_and_password(name.clone(), password.reveal().to_owned())
            }
            Credentials::Token(token) => options.token(token.reveal().to_owned()),
            // Read anew for every attempt: such files are renewed under running processes.
            Credentials::File(path) => options.credentials_file(path).await.map_err(|error| {
                Failed::refused(format!("The credentials file {} cannot be used: {error}.", path.display()))
            })?,
        })
    }

    fn failed(&self, kind: ConnectErrorKind, error: &str) -> Failed {
        let shown = &self.shown;
        match kind {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                Failed::refused(format!("NATS at {shown} {}.", self.credentials.refused()))
            }
            ConnectErrorKind::Tls => Failed::refused(format!(
                "TLS with NATS at {shown} fails: {error}. If its certificate comes from an authority of your own, name \
                 that with --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA)."
            )),
            ConnectErrorKind::Dns => Failed::connecting(format!(
                "The name in {shown} cannot be resolved: {error}. Check --nats (RADIXSCOPE_NATS)."
            )),
            ConnectErrorKind::TimedOut => Failed::connecting(format!(
                "NATS at {shown} does not answer within {} s. Check the address, and whether a firewall or network \
                 policy is in the way.",
                CONNECT_WITHIN.as_secs()
            )),
            _ => Failed::connecting(format!(
                "NATS at {shown} cannot be reached: {error}. Is it running, and is --nats (RADIXSCOPE_NATS) right?"
            )),
        }
    }
}

impl Credentials {
    fn refused(&self) -> String {
        match self {
            Self::User { name, is_default: true, .. } => format!(
                "refuses user '{name}' with Dynamo's default password. Set --nats-user and --nats-password \
                 (RADIXSCOPE_NATS_USER, RADIXSCOPE_NATS_PASSWORD), --nats-token or --nats-creds"
            ),
            Self::User { name, .. } => format!(
                "refuses user '{name}': wrong user or password. Check --nats-user and --nats-password \
                 (RADIXSCOPE_NATS_USER, RADIXSCOPE_NATS_PASSWORD)"
            ),
            Self::Token(_) => "refuses the token. Check --nats-token (RADIXSCOPE_NATS_TOKEN)".to_owned(),
            Self::File(path) => format!(
                "refuses the credentials in {}. Check --nats-creds (RADIXSCOPE_NATS_CREDS)",
                path.display()
            ),
        }
    }
}

fn note(said: &Mutex<Said>, lose: &watch::Sender<bool>, event: Event) {
    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
    match event {
        Event::Disconnected | Event::Closed => {
            lose.send_replace(true);
        }
        Event::SlowConsumer(sid) => {
            let at = usize::try_from(sid.saturating_sub(1)).unwrap_or(0).min(MAX_SAID - 1);
            if said.slow.len() <= at {
                said.slow.resize(at + 1, 0);
            }
            said.slow[at] += 1;
        }
        Event::ServerError(error) if said.errors.len() < MAX_SAID => {
            said.errors.push(match error {
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

/// The part of a URL with its `%xx` read.
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
    // Both fail only for URLs without a host, which the command line does not accept.
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
    fn what_is_shown_holds_no_secret() {
        let target = target("nats://alice:s3cr%2Ft@broker:4222");
        assert_eq!(target.shown(), "nats://broker:4222");
        assert!(!format!("{target:?}").contains("s3cr"));
        let Credentials::User { name, password, is_default } = &target.credentials else { panic!() };
        assert_eq!((name.as_str(), password.reveal(), *is_default), ("alice", "s3cr/t", false));
    }

    #[test]
    fn without_credentials_it_is_dynamos_own() {
        let failed = target("nats://broker").failed(ConnectErrorKind::AuthorizationViolation, "x");
        assert_eq!(failed.state, LinkState::Refused);
        assert!(
            failed.words.contains("refuses user 'user'") && failed.words.contains("RADIXSCOPE_NATS_USER")
        );
    }

    #[test]
    fn absence_is_not_refusal() {
        let failed = target("nats://broker").failed(ConnectErrorKind::Io, "connection refused");
        assert_eq!(failed.state, LinkState::Connecting);
        assert!(failed.words.contains("connection refused"));
    }

    #[test]
    fn a_missing_credentials_file_is_told_at_once() {
        let login = NatsLogin { nats_creds: Some("/nowhere/x.creds".into()), ..NatsLogin::default() };
        let error = Target::new(&["nats://x".parse().unwrap()], &login).unwrap_err().to_string();
        assert!(error.contains("--nats-creds /nowhere/x.creds"), "{error}");
    }
}
