//! A finding as plain text, for a terminal and for a ticket.

use std::fmt::Write as _;

use crate::cluster::Cluster;
use crate::id::WorkerIx;
use crate::record::{Finding, Phase};

/// Severity, title, what it means, the numbers it rests on, and what to set; ends with a line feed.
pub fn finding_text(cluster: &Cluster, finding: &Finding<'_>) -> String {
    let over = match finding.phase {
        Phase::Warn => "",
        Phase::Recheck => " (not seen just now)",
        Phase::Cleared => " (over)",
    };
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = writeln!(out, "{}: {}{over} [{}]", finding.severity.as_str(), finding.title, finding.code);
    let _ = writeln!(out, "  {}", finding.explanation);
    if !finding.workers.is_empty() {
        let name = |&ix: &WorkerIx| cluster.worker(ix).map(|worker| worker.id.to_string());
        let names: Vec<String> = finding.workers.iter().filter_map(name).collect();
        let _ = writeln!(out, "  Workers: {}", names.join(", "));
    }
    for evidence in &finding.evidence {
        let space = if evidence.unit.is_empty() { "" } else { " " };
        let _ = writeln!(out, "  Evidence: {}: {}{space}{}", evidence.label, evidence.value, evidence.unit);
    }
    for fix in &finding.fix {
        let _ = writeln!(out, "  Fix: {}", fix.text);
        if !fix.setting.is_empty() {
            let space = if fix.value.is_empty() { "" } else { " " };
            let _ = writeln!(out, "       {}{space}{}", fix.setting, fix.value);
        }
    }
    out
}
