//! `radixscope stage`: serves as `serve` does, and holds conversations with a real endpoint meanwhile. The only command that sends
//! requests for inference; it says so and asks before it does.

use std::io::{self, BufRead, IsTerminal as _};
use std::str::FromStr as _;

use anyhow::anyhow;
use tokio::sync::{oneshot, watch};

use radixscope_model::record::SourceKind;

use super::server::Feed;
use super::{Failure, serve, sources};
use crate::config::{MetricsUrl, Stage};
use crate::shutdown::{Shutdown, over};
use crate::stage::load::{DRAIN_WITHIN, Load, LoadOptions, announcement, steered};
use crate::stage::stage;

/// Bytes that are read of the answer.
const MAX_ANSWER_BYTES: u64 = 64;

/// Runs until stopped.
pub(super) async fn run(options: Stage, mut stopped: Shutdown) -> Result<(), Failure> {
    let Stage { load: args, serve: mut shown } = options;
    let (load_options, settings) = args.options();
    let name = load_options.source_name();
    if sources::is_nothing(&shown.from) {
        shown.from.prometheus.prometheus.push(metrics_of(&load_options)?);
    }
    let announced = announcement(&load_options, settings);
    let (load, to_load) = Load::new(load_options, settings).map_err(|error| Failure::Usage(error.into()))?;
    if !confirmed(&announced, args.yes, &mut stopped).await? {
        return Ok(());
    }
    // The server ends after the requests in flight, so that what becomes of them is still seen and recorded.
    let (end_server, server_stopped) = watch::channel(false);
    let (sending, mut sent) = oneshot::channel::<()>();
    let stop_sending = stopped.clone();
    let feed = Feed::new(name, SourceKind::StageLoad, move |to, _| async move {
        load.run(to, stop_sending).await;
        drop(sending);
    });
    tokio::spawn(async move {
        over(&mut stopped).await;
        let _ = tokio::time::timeout(DRAIN_WITHIN * 2, &mut sent).await;
        end_server.send_replace(true);
    });
    let (controls, driver) = stage(steered::report(settings));
    tokio::spawn(steered::steer(driver, to_load));
    serve::run_with(shown, Some((feed, controls)), server_stopped).await
}

/// The target's own metrics.
fn metrics_of(options: &LoadOptions) -> Result<MetricsUrl, Failure> {
    let of_target = |error: String| Failure::Usage(anyhow!("--target: {error}"));
    MetricsUrl::from_str(&format!("frontend={}", options.below("metrics"))).map_err(of_target)
}

/// Says what will be sent, and waits for `yes` unless it is given. `false`: nothing is to be sent.
async fn confirmed(announced: &str, is_yes: bool, stopped: &mut Shutdown) -> Result<bool, Failure> {
    eprint(announced);
    if is_yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(anyhow!(
            "nothing was sent: standard input is no terminal on which to confirm it; give --yes"
        )));
    }
    eprint("\nType yes to send them: ");
    let answer = tokio::task::spawn_blocking(|| is_yes_in(io::stdin().lock()));
    let is_yes = tokio::select! {
        () = over(stopped) => false,
        answer = answer => answer.unwrap_or(false),
    };
    if !is_yes {
        eprint("Nothing was sent.\n");
    }
    Ok(is_yes)
}

/// Whether the next line is `yes`.
fn is_yes_in(answers: impl BufRead) -> bool {
    let mut line = String::new();
    let read = io::Read::take(answers, MAX_ANSWER_BYTES).read_line(&mut line);
    read.is_ok() && line.trim().eq_ignore_ascii_case("yes")
}

#[expect(clippy::print_stderr, reason = "said whatever the log's filter")]
fn eprint(text: &str) {
    eprint!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        for yes in ["yes\n", "  YES \r\n", "yes"] {
            assert!(is_yes_in(yes.as_bytes()), "{yes:?}");
        }
        for no in ["", "\n", "y\n", "no\n", "yes please\n", "\u{0}yes\n"] {
            assert!(!is_yes_in(no.as_bytes()), "{no:?}");
        }
        assert!(!is_yes_in(&*[b" ".repeat(100_000), b"yes\n".to_vec()].concat()));
        assert!(!is_yes_in(&b"\xff\xfe\n"[..]));
    }
}
