//! The table of agreements, a recording a row.

use std::collections::BTreeMap;

use super::decisions::{Agreement, HitRate};

/// Heading and rule.
pub const HEADING: &str = "\
| Recording | Decisions | Request ids | ISL | Overlap | Cost of the chosen | Costs as logged | Reconstructed right | Reconstructed of possible | Chosen is cheapest | Path | Mean hit rate | TTFT | ITL, length | First token | End | Other part | Cost by messages | Shown, not reported |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// One row.
pub fn row(name: &str, agreement: &Agreement) -> String {
    let a = agreement;
    let surplus = if a.surplus > 0 { format!(" **+{}**", a.surplus) } else { String::new() };
    let doubt =
        if a.contradicted > 0 { format!(" (recount wrong {})", a.contradicted) } else { String::new() };
    let miscounted =
        if a.miscounted > 0 { format!(" (not as logged {})", a.miscounted) } else { String::new() };
    format!(
        "| {name} | {}{surplus}{doubt} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {}{} | {} |",
        a.decisions,
        a.request_ids,
        a.isl,
        a.overlap,
        a.logits,
        a.candidates,
        a.reconstructed,
        a.reconstructible,
        a.cheapest,
        a.paths,
        hit_rate(a.hit_rate),
        a.ttft,
        a.itl,
        a.first_tokens,
        a.ends,
        a.linked,
        a.message_costs,
        miscounted,
        unreported(&a.unreported),
    )
}

fn hit_rate(of: HitRate) -> String {
    match of {
        HitRate::NotReported => "–".to_owned(),
        HitRate::Unknown(unknown, of) => format!("**unknown of {unknown} of {of}**"),
        HitRate::Equal(mean) => format!("= {mean:.10}"),
        HitRate::Differs(shown, reported) => format!("**{shown:.6} not {reported:.6}**"),
    }
}

fn unreported(of: &[&'static str]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for what in of {
        *counts.entry(what).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(what, count)| format!("**{what} {count}**")).collect();
    if counts.is_empty() { "0".to_owned() } else { counts.join(", ") }
}
