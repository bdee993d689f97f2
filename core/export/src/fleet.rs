//! Many clusters beside each other, as `radixscope fleet` gives them (`GET /api/v1/fleet`) and its page shows them. Knows no request and
//! no clock.

use std::cmp::Reverse;

use radixscope_model::id::Millis;
use radixscope_model::range::{Range, TargetComparison};
use serde::{Deserialize, Serialize};

use crate::ClusterSummary;

/// All members, in the order of the command line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FleetReport {
    /// Version of the process that asks.
    pub version: String,
    /// Its clock.
    pub at_ms: Millis,
    /// How often each member is asked, seconds.
    pub poll_interval_s: f64,
    /// Points are kept for so long, seconds.
    pub points_s: u64,
    /// Members that answer.
    pub answering: u32,
    /// The members.
    pub members: Vec<MemberReport>,
}

/// Whether a member answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It was not asked yet.
    Waiting,
    /// Its last answer came.
    Answering,
    /// It did not answer the last time, or not as a Radixscope does.
    NotAnswering,
    /// It answers, and is of a version that reports no summary.
    NoSummary,
}

impl MemberState {
    /// All.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Answering, Self::NotAnswering, Self::NoSummary];

    /// Name in JSON and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Answering => "answering",
            Self::NotAnswering => "not_answering",
            Self::NoSummary => "no_summary",
        }
    }

    /// The same on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Answering => "answering",
            Self::NotAnswering => "not answering",
            Self::NoSummary => "no summary",
        }
    }
}

/// A member.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MemberReport {
    /// Its name on the command line.
    pub name: String,
    /// Address of its page for browsers; it ends in a slash.
    pub link: String,
    /// Whether it answers.
    pub state: MemberState,
    /// Since when it is in this state.
    pub since_ms: Millis,
    /// Why it is, in words; empty while it answers.
    pub detail: String,
    /// When its last summary came.
    pub answered_ms: Option<Millis>,
    /// How long that took.
    pub took_ms: Option<u64>,
    /// Its version; `None`: it never reported one.
    pub version: Option<String>,
    /// Its last summary, which may be old.
    pub summary: Option<ClusterSummary>,
    /// What came before, oldest first.
    pub points: Vec<FleetPoint>,
}

/// Figures of a member at one moment, by the clock of the process that asks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FleetPoint {
    /// When.
    pub at_ms: Millis,
    /// KV hit rate, 0 … 1.
    pub hit_rate: Option<f64>,
    /// TTFT p95.
    pub ttft_ms: Option<Range>,
}

/// How urgent a member is, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Urgency {
    /// Nothing is known of it now.
    NotAnswering,
    /// A finding is critical.
    Critical,
    /// TTFT p95 is above its target.
    AboveTarget,
    /// A finding is a warning.
    Warning,
    /// It reports nothing that could be judged.
    Unknown,
    /// None of these.
    Good,
}

impl MemberReport {
    /// The last summary, if it is of now.
    pub fn current(&self) -> Option<&ClusterSummary> {
        self.summary.as_ref().filter(|_| self.state == MemberState::Answering)
    }

    /// How urgent it is.
    pub fn urgency(&self) -> Urgency {
        let Some(now) = self.current() else {
            return if self.state == MemberState::NotAnswering {
                Urgency::NotAnswering
            } else {
                Urgency::Unknown
            };
        };
        if now.findings.critical > 0 {
            Urgency::Critical
        } else if now.ttft.standing == TargetComparison::Above {
            Urgency::AboveTarget
        } else if now.findings.warning > 0 {
            Urgency::Warning
        } else {
            Urgency::Good
        }
    }

    /// By this members are ordered, the worst first.
    pub fn worst_first(&self) -> (Urgency, Reverse<(u64, u64)>, &str) {
        let counts = self.current().map_or((0, 0), |now| (now.findings.critical, now.findings.warning));
        (self.urgency(), Reverse(counts), &self.name)
    }

    /// Address of a panel of its page: at the moment of the last summary if its history reaches there, else live.
    pub fn href(&self, view: &str) -> String {
        let moment = self
            .current()
            .filter(|now| !now.is_replay && now.history_from_ms.is_some_and(|from| from <= now.at_ms));
        let fragment = moment.map_or(String::new(), |now| format!("#t={}", now.at_ms.0));
        let query = if view.is_empty() { String::new() } else { format!("?view={view}") };
        format!("{}{query}{fragment}", self.link)
    }
}

#[cfg(test)]
mod tests {
    use radixscope_state::cluster::Cluster;

    use super::*;

    fn member(name: &str, change: impl FnOnce(&mut MemberReport)) -> MemberReport {
        let now = Millis(1_800_000_000_000);
        let summary = ClusterSummary::of(&Cluster::default(), now, false, Some(Millis(1)));
        let mut member = MemberReport {
            name: name.to_owned(),
            link: "https://radix.example/eu/".to_owned(),
            state: MemberState::Answering,
            since_ms: now,
            detail: String::new(),
            answered_ms: Some(now),
            took_ms: Some(3),
            version: Some("1.2.3".to_owned()),
            summary: Some(summary),
            points: Vec::new(),
        };
        change(&mut member);
        member
    }

    #[test]
    fn nothing_known_is_null_with_a_reason_and_reads_back_as_it_was_written() {
        let member = member("a", |_| {});
        let json = serde_json::to_value(&member).unwrap();
        let summary = &json["summary"];
        assert!(summary["hit_rate"]["share"].is_null() && summary["ttft"]["p95_ms"].is_null());
        assert_eq!(summary["hit_rate"]["why"], "no decision in 60 s");
        assert_eq!(summary["reuse"]["why"], "no decision in 60 s");
        assert_eq!(summary["findings"]["checked"], "nothing was checked yet");
        assert_eq!(summary["findings"]["is_good"], false, "what was not checked is not good");
        assert_eq!(serde_json::from_value::<MemberReport>(json).unwrap(), member);
    }

    #[test]
    fn the_worst_come_first_and_of_equals_the_one_with_more_findings() {
        let findings = |critical, warning| {
            move |member: &mut MemberReport| {
                let found = &mut member.summary.as_mut().unwrap().findings;
                (found.critical, found.warning) = (critical, warning);
            }
        };
        let mut all = [
            member("good", |_| {}),
            member("old", |member| member.state = MemberState::NoSummary),
            member("warned", findings(0, 1)),
            member("slow", |member| {
                member.summary.as_mut().unwrap().ttft.standing = TargetComparison::Above;
            }),
            member("one", findings(1, 0)),
            member("two", findings(2, 0)),
            member("dead", |member| {
                findings(3, 0)(member);
                member.state = MemberState::NotAnswering;
            }),
        ];
        all.sort_by(|a, b| a.worst_first().cmp(&b.worst_first()));
        let names: Vec<&str> = all.iter().map(|member| &*member.name).collect();
        assert_eq!(names, ["dead", "two", "one", "slow", "warned", "old", "good"]);
    }

    #[test]
    fn a_link_leads_to_the_moment_only_where_the_member_can_go_back_to_it() {
        let of = |change: fn(&mut MemberReport)| member("a", change).href("findings");
        let link = "https://radix.example/eu/?view=findings";
        assert_eq!(of(|_| {}), format!("{link}#t=1800000000000"));
        assert_eq!(of(|member| member.summary.as_mut().unwrap().history_from_ms = None), link);
        assert_eq!(of(|member| member.summary.as_mut().unwrap().is_replay = true), link);
        assert_eq!(of(|member| member.state = MemberState::NotAnswering), link);
        assert_eq!(of(|member| member.summary = None), link);
        assert_eq!(member("a", |member| member.summary = None).href(""), "https://radix.example/eu/");
    }
}
