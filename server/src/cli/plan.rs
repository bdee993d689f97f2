//! `radixscope plan`: the commands that measure a deployment with KV-aware routing and then with round-robin. Looks at the
//! deployment as `radixscope sources` does; prints or writes a file for a shell and runs nothing of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use url::Url;

use radixscope_insight::baseline::Router;
use radixscope_model::record::ProcessRole;

use super::Failure;
use super::probe::{self, in_shell};
use crate::config::{Experiment, Plan};
use crate::shutdown::Shutdown;

/// The version whose options these are.
const AIPERF: &str = "0.13.0";
/// What aiperf needs for a run beside its warm-up and its length, as measured with 0.13.0: start, prompts, export.
const BETWEEN_RUNS: Duration = Duration::from_secs(15);
/// Conversations that are generated for a run, for each request in flight; they begin again after the last.
const CONVERSATIONS_PER_REQUEST: u32 = 4;

/// Prints the commands or writes them.
pub(super) async fn run(options: Plan, stopped: Shutdown) -> Result<(), Failure> {
    let Plan { from, experiment, script, limits, .. } = options;
    let seen = probe::look(from, &limits, stopped).await?;
    let scraped = seen.scraped();
    let found = seen
        .read(move |report, cluster| {
            let frontends =
                cluster.processes().iter().filter(|process| process.role == ProcessRole::Frontend);
            let names: BTreeSet<&str> = frontends.map(|process| process.name.as_str()).collect();
            let urls =
                scraped.iter().filter(|(name, _)| names.contains(name.as_str())).map(|(_, url)| base(url));
            Found { models: report.models(), frontends: urls.collect(), serve: report.command() }
        })
        .await?;
    let text = Script::new(experiment, found).map_err(Failure::Usage)?.to_text();
    let Some(path) = script else {
        let written = std::io::stdout().write_all(text.as_bytes());
        return written.map_err(|error| Failure::Failed(anyhow!(error).context("writing the plan")));
    };
    let named = || format!("--script {}", path.display());
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .with_context(named)
        .map_err(Failure::Usage)?;
    file.write_all(text.as_bytes()).with_context(named).map_err(Failure::Failed)?;
    let path = path.display().to_string();
    let path = in_shell(&path);
    let said = writeln!(std::io::stdout(), "Written to {path}. Read it, then run it: sh {path}");
    said.map_err(|error| Failure::Failed(anyhow!(error).context("writing the plan")))
}

/// The frontend whose metrics are at `url`.
fn base(url: &Url) -> Url {
    let mut base = url.clone();
    base.set_path("/");
    base.set_query(None);
    base
}

/// What the deployment says of itself.
struct Found {
    models: Vec<String>,
    frontends: Vec<Url>,
    /// The command that shows it.
    serve: Option<String>,
}

/// Everything that the commands need.
struct Script {
    experiment: Experiment,
    model: String,
    frontends: Vec<Url>,
    serve: String,
}

impl Script {
    fn new(mut experiment: Experiment, found: Found) -> anyhow::Result<Self> {
        let model = match (experiment.model.take(), &found.models[..]) {
            (Some(model), _) => model,
            (None, [model]) => model.clone(),
            (None, []) => return Err(anyhow!("the deployment's model is not known: give --model NAME")),
            (None, several) => {
                return Err(anyhow!(
                    "the deployment has several models, {}: give --model NAME",
                    several.join(", ")
                ));
            }
        };
        let frontends = match std::mem::take(&mut experiment.url) {
            given if given.is_empty() => found.frontends,
            given => given,
        };
        if frontends.is_empty() {
            return Err(anyhow!(
                "no frontend is known: give --url http://FRONTEND:8000, or --prometheus of it"
            ));
        }
        experiment.levels.sort_unstable();
        experiment.levels.dedup();
        let serve = found.serve.unwrap_or_else(|| "radixscope serve".to_owned());
        Ok(Self { experiment, model, frontends, serve })
    }

    fn folder(&self, router: Router) -> String {
        self.experiment.results.join(router.as_str()).display().to_string()
    }

    /// How long both sweeps take.
    fn takes(&self) -> Duration {
        let Experiment { levels, repeats, run_seconds, run_warm_up, .. } = &self.experiment;
        let run = Duration::from_secs(u64::from(*run_seconds) + u64::from(*run_warm_up)) + BETWEEN_RUNS;
        run * 2 * *repeats * u32::try_from(levels.len()).unwrap_or(u32::MAX)
    }

    /// The command of one sweep.
    fn sweep(&self, router: Router) -> String {
        let Experiment {
            levels,
            repeats,
            run_seconds,
            run_warm_up,
            starters,
            starter_tokens,
            turns,
            user_tokens,
            output_tokens,
            tokenizer,
            ..
        } = &self.experiment;
        let least = levels.first().copied().unwrap_or(1);
        let most = levels.last().copied().unwrap_or(1);
        let list = levels.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut lines = vec![format!("aiperf profile --model {}", in_shell(&self.model))];
        let mut add = |line: String| lines.push(line);
        if let Some(tokenizer) = tokenizer {
            add(format!("--tokenizer {}", in_shell(tokenizer)));
        }
        for url in &self.frontends {
            add(format!("--url {}", in_shell(url.as_str().trim_end_matches('/'))));
        }
        add("--endpoint-type chat --streaming".to_owned());
        add(format!("--concurrency {list} --num-profile-runs {repeats}"));
        add(format!("--benchmark-duration {run_seconds} --benchmark-grace-period 60"));
        // aiperf warms up with one request in flight unless told otherwise, and only before the first run.
        add(format!(
            "--warmup-duration {run_warm_up} --warmup-concurrency {least} --no-profile-run-disable-warmup-after-first"
        ));
        add(format!("--num-prefix-prompts {starters} --prefix-prompt-length {starter_tokens}"));
        // Not as a number of conversations, which would also end the run.
        add(format!("--num-dataset-entries {}", most.saturating_mul(CONVERSATIONS_PER_REQUEST)));
        add(format!("--conversation-turn-mean {turns} --conversation-turn-stddev {}", u32::from(*turns > 1)));
        add(format!("--synthetic-input-tokens-mean {user_tokens} --output-tokens-mean {output_tokens}"));
        // The same prompts in both sweeps; no two runs of a sweep have the same, which would be cached by then.
        add("--random-seed 42 --vary-seed-per-trial".to_owned());
        add(format!("--output-artifact-dir {}", in_shell(&self.folder(router))));
        lines.join(" \\\n  ")
    }

    fn to_text(&self) -> String {
        let Experiment { levels, repeats, run_seconds, run_warm_up, results, .. } = &self.experiment;
        let [kv, rr] =
            [Router::KvAware, Router::RoundRobin].map(|router| (self.sweep(router), self.folder(router)));
        let runs = levels.len() * *repeats as usize;
        let takes = humantime::format_duration(Duration::from_secs(self.takes().as_secs() / 60 * 60));
        let baselines = [(Router::KvAware, &kv.1), (Router::RoundRobin, &rr.1)]
            .map(|(router, folder)| {
                format!("--baseline {}", in_shell(&format!("{}={folder}", router.as_str())))
            })
            .join(" ");
        let serve = format!("{} {baselines}", self.serve);
        let results = results.display().to_string();
        let results = in_shell(&results);
        let [kv_folder, rr_folder] = [&kv.1, &rr.1].map(|folder| in_shell(folder));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "#!/bin/sh\n\
             # The same traffic with KV-aware routing, then with round-robin. Made by radixscope plan, which ran none of it.\n\
             # It sends requests for about {takes}: twice {runs} runs, {repeats} at each of {} levels of concurrency, each of {run_warm_up} s warm-up\n\
             # and {run_seconds} s measured. It restarts nothing itself: between the sweeps it waits until you have.\n\
             # Needs aiperf {AIPERF}: pip install aiperf=={AIPERF}\n\
             set -eu\n\
             mkdir -p {results}\n\
             # Refuses to mix with results that are there.\n\
             mkdir {kv_folder} {rr_folder}\n\
             \n\
             # To watch it, in another terminal, in this folder; the page's Compare shows what is there and what is missing:\n\
             #   {serve}\n\
             \n\
             echo 'Sweep 1 of 2: KV-aware. Every frontend must run with --router-mode kv (DYN_ROUTER_MODE=kv).'\n\
             {}\n\
             \n\
             echo 'Now restart every worker, whose cache still holds the prompts of the first sweep, and every frontend with'\n\
             echo '--router-mode round-robin (DYN_ROUTER_MODE=round-robin). Then press Enter for sweep 2 of 2.'\n\
             read -r answer\n\
             {}\n\
             \n\
             echo 'Done. To compare:'\n\
             echo {}\n",
            levels.len(),
            kv.0,
            rr.0,
            in_shell(&serve),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use clap::Parser as _;

    use super::*;
    use crate::config::{Cli, Command as CliCommand};

    fn experiment(args: &[&str]) -> Experiment {
        let cli = Cli::try_parse_from(["radixscope", "plan"].iter().chain(args)).unwrap();
        let CliCommand::Plan(plan) = cli.command else { panic!("not plan") };
        plan.experiment
    }

    fn found(models: &[&str], frontends: &[&str]) -> Found {
        Found {
            models: models.iter().map(|&model| model.to_owned()).collect(),
            frontends: frontends.iter().map(|url| url.parse().unwrap()).collect(),
            serve: Some("radixscope serve --discovery etcd://etcd:2379".to_owned()),
        }
    }

    fn script(args: &[&str]) -> String {
        Script::new(experiment(args), found(&["models/llama"], &["http://frontend:8000/"])).unwrap().to_text()
    }

    /// Gives `script` to a shell that only reads it, and to one in which `aiperf` prints its arguments.
    fn shell(text: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let run = |args: &[&str], text: &str| {
            let mut shell = Command::new("sh");
            shell.args(args).current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = shell.spawn().unwrap();
            child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{text}");
            String::from_utf8(output.stdout).unwrap()
        };
        run(&["-n"], text);
        let stubbed = format!(
            "aiperf() {{ for word; do printf 'word:%s\\n' \"$word\"; done; }}\n{}",
            text.replace("read -r answer", ":")
        );
        let said = run(&[], &stubbed);
        said.lines().filter_map(|line| line.strip_prefix("word:")).map(str::to_owned).collect()
    }

    #[test]
    fn the_script_is_two_sweeps_of_the_same_traffic_with_a_restart_between() {
        let text = script(&[]);
        let words = shell(&text);
        let [kv, rr] = words.chunks(words.len() / 2).collect::<Vec<_>>()[..] else { panic!("two commands") };
        let (kv_folder, kv) = kv.split_last().unwrap();
        let (rr_folder, rr) = rr.split_last().unwrap();
        assert_eq!(kv, rr);
        assert_eq!(
            (&**kv_folder, &**rr_folder),
            ("radixscope-experiment/kv-aware", "radixscope-experiment/round-robin")
        );
        let value = |option: &str| &*kv[kv.iter().position(|word| word == option).unwrap() + 1];
        assert_eq!(value("--model"), "models/llama");
        assert_eq!(value("--url"), "http://frontend:8000");
        assert_eq!(value("--concurrency"), "60,80,100,120,140,160,180");
        assert_eq!((value("--num-profile-runs"), value("--warmup-concurrency")), ("6", "60"));
        let between = text.find("restart every worker").unwrap();
        assert!(
            text.find("read -r answer").unwrap() > between && text.rfind("aiperf profile").unwrap() > between
        );
        // 2 × 42 × 375 s.
        assert!(text.contains("for about 8h 45m: twice 42 runs"), "{text}");
        assert!(text.contains("radixscope serve --discovery etcd://etcd:2379 --baseline 'kv-aware=radixscope-experiment/kv-aware'"), "{text}");
    }

    #[test]
    fn names_reach_aiperf_as_they_are_whatever_is_in_them() {
        let strange = "it's $(touch x); `y` \"z\"";
        let words =
            shell(&script(&["--model", strange, "--results", "a b", "--levels", "8,4,8", "--repeats", "2"]));
        assert_eq!(words.iter().filter(|word| *word == strange).count(), 2);
        assert!(words.iter().any(|word| word == "a b/kv-aware"));
        assert!(words.iter().any(|word| word == "4,8"));
    }

    #[test]
    fn what_is_not_known_is_asked_for() {
        let error =
            |args: &[&str], of: Found| Script::new(experiment(args), of).map(drop).unwrap_err().to_string();
        assert!(error(&[], found(&[], &["http://a:1"])).contains("--model"));
        assert!(error(&[], found(&["a", "b"], &["http://a:1"])).contains("several models, a, b"));
        assert!(error(&[], found(&["a"], &[])).contains("--url"));
        assert!(
            Script::new(experiment(&["--model", "b", "--url", "http://x"]), found(&["a", "b"], &[])).is_ok()
        );
    }
}
