//! What is said before anything is sent: what, where, how many at most, for how long, and what it costs.

use std::ops::RangeInclusive;

use radixscope_model::number_format::{count, plural, short};

use super::conversation::{QUESTION_TOKENS, STARTER_TOKENS, STARTERS, TURNS};
use super::{LoadOptions, LoadSettings};

/// The announcement, some lines.
pub(crate) fn announcement(options: &LoadOptions, settings: LoadSettings) -> String {
    let LoadOptions { model, output_tokens, think_time, max_requests, run_for, .. } = options;
    let users = plural(settings.users().into(), "user", "users");
    let rest = if think_time.is_zero() {
        "without rest".to_owned()
    } else {
        format!("with {} of rest between turns", humantime::format_duration(*think_time))
    };
    let prompt = max_requests.saturating_mul(mean_prompt_tokens(*output_tokens));
    let output = max_requests.saturating_mul((*output_tokens).into());
    format!(
        "radixscope stage sends requests to a real endpoint. It is a show, not a benchmark: to measure, see radixscope plan.\n\
         \n\
         \x20 where     {}\n\
         \x20 model     {model}\n\
         \x20 what      conversations of {} turns, made up: one of {STARTERS} shared starters of {} tokens,\n\
         \x20           then questions of {} tokens; each turn sends all before it; at most {} output\n\
         \x20           tokens each, streamed\n\
         \x20 how many  at most {}, {users} at a time, {rest}\n\
         \x20 how long  at most {}; Ctrl-C ends it\n\
         \x20 cost      roughly {} prompt tokens, part of them cached, and at most {} output tokens\n",
        options.endpoint(),
        range(&TURNS),
        range(&STARTER_TOKENS),
        range(&QUESTION_TOKENS),
        count((*output_tokens).into()),
        plural(*max_requests, "request", "requests"),
        humantime::format_duration(*run_for),
        short(prompt),
        short(output),
    )
}

fn range(of: &RangeInclusive<u32>) -> String {
    format!("{} to {}", count((*of.start()).into()), count((*of.end()).into()))
}

fn mean(of: &RangeInclusive<u32>) -> u64 {
    u64::from(of.start() + of.end()) / 2
}

/// Of all turns of all conversations, each turn with the questions and answers before it.
fn mean_prompt_tokens(output_tokens: u32) -> u64 {
    let of_turn = |turn: u64| {
        mean(&STARTER_TOKENS) + turn * mean(&QUESTION_TOKENS) + (turn - 1) * u64::from(output_tokens)
    };
    let turns = TURNS.map(u64::from);
    let (tokens, requests) = turns.fold((0, 0), |(tokens, requests), turns| {
        (tokens + (1..=turns).map(of_turn).sum::<u64>(), requests + turns)
    });
    tokens / requests
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_says_what_where_how_many_how_long_and_what_it_costs() {
        let options = LoadOptions {
            target: "http://frontend:8000/".parse().unwrap(),
            model: "models/llama".to_owned(),
            seed: 1,
            output_tokens: 200,
            think_time: Duration::ZERO,
            max_requests: 1_000,
            run_for: Duration::from_secs(600),
        };
        let text = announcement(&options, LoadSettings { concurrency: 8, is_paused: false });
        for said in [
            "http://frontend:8000/v1/chat/completions",
            "models/llama",
            "3 to 5 turns",
            "3,500 to 4,000 tokens",
            "at most 1,000 requests, 8 users at a time",
            "at most 10m",
            // (3 + 4 + 5 turns) of 3,750, 200 more with each question, 200 with each answer before it.
            "4.5M prompt tokens",
            "200k output tokens",
            "not a benchmark",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    }
}
