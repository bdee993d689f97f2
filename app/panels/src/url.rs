//! The address of a view: which panel, which worker, which theme, as the query says. Pure text in and out.
//!
//! Unknown keys are kept as they are (Grafana adds its own); a bad value is named and the default taken.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use radixscope_model::id::{DecisionId, Millis, Worker};
use radixscope_model::record::PanelRef;
use radixscope_state::cluster::{ByFilter, ClientFilter, DecisionKind, Sort};
use radixscope_state::tree::forest::Order;

use radixscope_insight::time_range::{TimePoint, TimeRange};
use radixscope_insight::view_context::{PoolQuery, is_all};

/// Which theme.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Theme {
    /// As the browser prefers.
    #[default]
    Auto,
    /// Dark.
    Dark,
    /// Light.
    Light,
}

impl Theme {
    /// Value in the address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Theme::Auto => "auto",
            Theme::Dark => "dark",
            Theme::Light => "light",
        }
    }

    /// The one that the toggle gives next.
    pub const fn next(self) -> Self {
        match self {
            Theme::Auto => Theme::Dark,
            Theme::Dark => Theme::Light,
            Theme::Light => Theme::Auto,
        }
    }
}

/// Declares [`Panel`]: for each its value in the address and its title.
macro_rules! panels {
    ($(#[$doc:meta] $panel:ident $value:literal $title:literal,)*) => {
        /// What fills the page.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub enum Panel {
            /// All panels.
            #[default]
            Overview,
            $(#[$doc] $panel,)*
        }

        impl Panel {
            /// Every panel, in the order of the navigation.
            pub const ALL: &'static [Panel] = &[Panel::Overview, $(Panel::$panel),*];
            const EXPECTED: &'static str = concat!("one of overview", $(", ", $value,)* "; overview is shown");

            /// Value in the address.
            pub const fn as_str(self) -> &'static str {
                match self {
                    Panel::Overview => "overview",
                    $(Panel::$panel => $value,)*
                }
            }

            /// Name in the navigation.
            pub const fn title(self) -> &'static str {
                match self {
                    Panel::Overview => "Overview",
                    $(Panel::$panel => $title,)*
                }
            }
        }
    };
}

panels! {
    /// What is wrong, why, and what to set.
    Findings "findings" "Findings",
    /// How long requests take, and how they lie on the workers.
    Latency "latency" "Latency",
    /// What the workers' memory is filled with, and what would fit.
    Memory "memory" "Memory",
    /// The tree, with everything to find one's way in it.
    Tree "tree" "Tree",
    /// The workers alone.
    Workers "workers" "Workers",
    /// The rates alone.
    Rates "rates" "Rates",
    /// The decisions alone, at length.
    Decisions "decisions" "Decisions",
    /// How much of the prompts was reused, and why not more.
    Reuse "reuse" "Reuse",
    /// What the router would decide now.
    WhatIf "whatif" "What-if",
    /// The latest decisions under other router settings.
    Counterfactual "counterfactual" "Counterfactual",
    /// Live traffic beside baselines.
    Compare "compare" "Compare",
    /// What changed between two moments.
    Changes "changes" "Changes",
}

impl From<PanelRef> for Panel {
    fn from(named: PanelRef) -> Self {
        match named {
            PanelRef::Overview => Self::Overview,
            PanelRef::Findings => Self::Findings,
            PanelRef::Latency => Self::Latency,
            PanelRef::Memory => Self::Memory,
            PanelRef::Tree => Self::Tree,
            PanelRef::Workers => Self::Workers,
            PanelRef::Decisions => Self::Decisions,
            PanelRef::Compare => Self::Compare,
        }
    }
}

/// The moments marked A and B.
pub type Marks = [Option<Millis>; 2];

/// Their keys in the address.
const MARKS: [&str; 2] = ["a", "b"];

/// What the query says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Address {
    /// The worker that is picked out everywhere.
    pub worker: Option<Worker>,
    /// The pool that every panel shows.
    pub pools: PoolQuery,
    /// Theme.
    pub theme: Theme,
    /// For a screen without a viewer at the keyboard: on the overview the kiosk, on other panels as [`Address::no_chrome`].
    pub kiosk: bool,
    /// The panel alone, for frames within other pages: no bar, no navigation, no buttons in its head.
    pub no_chrome: bool,
    /// What fills the page.
    pub panel: Panel,
    /// Order of siblings in the tree.
    pub order: Order,
    /// The decision that is open: its details in the ledger, its path in the tree.
    pub decision: Option<DecisionId>,
    /// Only decisions of this kind are listed.
    pub outcome: Option<DecisionKind>,
    /// Only decisions are listed that this decided.
    pub by: Option<ByFilter>,
    /// Only decisions are listed of which the client measured this.
    pub client: Option<ClientFilter>,
    /// Only decisions of this session are listed; empty: all.
    pub session: String,
    /// Only decisions are listed that contain this in their texts; empty: all.
    pub find: String,
    /// What decisions are listed by.
    pub sort: Sort,
    /// The time that every chart shows.
    pub range: TimeRange,
    /// The moments that are marked A and B, to be compared; without B it is the present.
    pub marks: Marks,
    /// Keys of others, raw, in their order.
    rest: Vec<String>,
}

impl Address {
    /// Reads a query, with or without `?`. The second value says what was not understood.
    pub fn parse(query: &str) -> (Self, Vec<String>) {
        let mut address = Address::default();
        let mut notices = Vec::new();
        for part in query.trim_start_matches('?').split('&').filter(|part| !part.is_empty()) {
            let (key, raw) = part.split_once('=').unwrap_or((part, ""));
            let value = decode(raw);
            // Variables of a dashboard, as Grafana puts them into links; without a choice they say nothing.
            let key = match key.strip_prefix("var-") {
                Some(name @ ("worker" | "pool" | "model")) => name,
                _ => key,
            };
            if matches!(key, "worker" | "pool" | "model") && is_all(&value) {
                continue;
            }
            let understood = match key {
                "worker" => parse_worker(&value).map(|worker| address.worker = Some(worker)),
                "pool" => named(&value).map(|pool| address.pools.pool = Some(pool)),
                "model" => named(&value).map(|model| address.pools.model = Some(model)),
                "theme" => [Theme::Auto, Theme::Dark, Theme::Light]
                    .into_iter()
                    .find(|theme| theme.as_str() == value)
                    .map(|theme| address.theme = theme),
                "kiosk" => parse_switch(&value).map(|kiosk| address.kiosk = kiosk),
                "chrome" => parse_switch(&value).map(|chrome| address.no_chrome = !chrome),
                "view" => Panel::ALL
                    .iter()
                    .find(|panel| panel.as_str() == value)
                    .map(|panel| address.panel = *panel),
                "order" => parse_order(&value).map(|order| address.order = order),
                "decision" => value.parse().ok().map(|id| address.decision = Some(DecisionId(id))),
                "outcome" => DecisionKind::named(&value).map(|kind| address.outcome = Some(kind)),
                "by" => ByFilter::named(&value).map(|by| address.by = Some(by)),
                "client" => ClientFilter::named(&value).map(|client| address.client = Some(client)),
                "session" => {
                    address.session = value.clone();
                    Some(())
                }
                // Links of earlier versions look for a request id.
                "find" | "request" => {
                    address.find = value.clone();
                    Some(())
                }
                "sort" => Sort::named(&value).map(|sort| address.sort = sort),
                "from" => TimePoint::parse(&value).map(|from| address.range.from = from),
                "to" => TimePoint::parse(&value).map(|to| address.range.to = to),
                "a" => moment(&value).map(|at| address.marks[0] = Some(at)),
                "b" => moment(&value).map(|at| address.marks[1] = Some(at)),
                _ => {
                    address.rest.push(part.to_owned());
                    Some(())
                }
            };
            if understood.is_none() {
                notices.push(format!("{key}={value} in the address is invalid: {}", expected(key)));
            }
        }
        if !address.range.is_forward() {
            let TimeRange { from, to } = std::mem::take(&mut address.range);
            notices.push(format!(
                "from={from} in the address is not before to={to}: the last 5 minutes are shown"
            ));
        }
        (address, notices)
    }

    /// Whether the kiosk is shown: what can be read from afar, and nothing to click.
    pub fn is_kiosk(&self) -> bool {
        self.kiosk && self.panel == Panel::Overview
    }

    /// Whether bar and navigation are left out.
    pub const fn is_bare(&self) -> bool {
        self.kiosk || self.no_chrome
    }

    /// The same view with `panel` filling the page.
    pub fn with_panel(&self, panel: Panel) -> Self {
        Self { panel, ..self.clone() }
    }

    /// The same view with `panel` filling the page and `decision` open.
    pub fn with_decision(&self, panel: Panel, decision: DecisionId) -> Self {
        Self { panel, decision: Some(decision), ..self.clone() }
    }

    /// A key that only one panel reads.
    pub fn other(&self, key: &str) -> Option<String> {
        let parts = self.rest.iter().map(|part| part.split_once('=').unwrap_or((part, "")));
        parts.into_iter().find(|(name, _)| *name == key).map(|(_, value)| decode(value))
    }

    /// The same view with `worker` picked out, if there is one.
    pub fn with_worker(&self, worker: Option<Worker>) -> Self {
        Self { worker: worker.or(self.worker), ..self.clone() }
    }

    /// The same view with another value of a key that only one panel reads; `None` takes it out.
    pub fn with_other(&self, key: &str, value: Option<&str>) -> Self {
        let mut address = self.clone();
        address.set_other(key, value);
        address
    }

    /// A panel with this worker selected, looking as this view does: its theme, its order, with or without bar and navigation.
    /// The worker may be of another pool than the one shown, so that with one all pools are.
    pub fn of_panel(&self, panel: Panel, worker: Option<Worker>) -> Self {
        let Self { theme, kiosk, no_chrome, order, range, marks, .. } = *self;
        let pools = if worker.is_none() { self.pools.clone() } else { PoolQuery::default() };
        Self { panel, worker, theme, kiosk, no_chrome, order, range, marks, pools, ..Self::default() }
    }

    /// Sets a key that only one panel reads, at its place if it is there; `None` takes it out.
    pub fn set_other(&mut self, key: &str, value: Option<&str>) {
        let is_it = |part: &String| part.split_once('=').map_or(part.as_str(), |(name, _)| name) == key;
        let new = value.map(|value| format!("{key}={}", encode(value)));
        let at = self.rest.iter().position(is_it);
        match (at, new) {
            (Some(at), Some(new)) => self.rest[at] = new,
            (None, Some(new)) => self.rest.push(new),
            (_, None) => self.rest.retain(|part| !is_it(part)),
        }
    }

    /// The query, with `?` unless it is empty; defaults are left out.
    pub fn query(&self) -> String {
        let mut parts = Vec::new();
        if self.panel != Panel::Overview {
            parts.push(format!("view={}", self.panel.as_str()));
        }
        if let Some(worker) = self.worker {
            parts.push(format!("worker={worker}"));
        }
        for (key, name) in [("pool", &self.pools.pool), ("model", &self.pools.model)] {
            parts.extend(name.as_ref().map(|name| format!("{key}={}", encode(name))));
        }
        if self.theme != Theme::Auto {
            parts.push(format!("theme={}", self.theme.as_str()));
        }
        if self.order != Order::default() {
            parts.push(format!("order={}", order_str(self.order)));
        }
        if let Some(kind) = self.outcome {
            parts.push(format!("outcome={}", kind.as_str()));
        }
        if let Some(by) = self.by {
            parts.push(format!("by={}", by.as_str()));
        }
        if let Some(client) = self.client {
            parts.push(format!("client={}", client.as_str()));
        }
        if !self.session.is_empty() {
            parts.push(format!("session={}", encode(&self.session)));
        }
        if !self.find.is_empty() {
            parts.push(format!("find={}", encode(&self.find)));
        }
        if self.sort != Sort::default() {
            parts.push(format!("sort={}", self.sort.value()));
        }
        if let Some(decision) = self.decision {
            parts.push(format!("decision={decision}"));
        }
        if self.kiosk {
            parts.push("kiosk".to_owned());
        }
        if self.no_chrome {
            parts.push("chrome=0".to_owned());
        }
        if self.range != TimeRange::default() {
            parts.push(format!("from={}", self.range.from));
            parts.push(format!("to={}", self.range.to));
        }
        for (key, at) in MARKS.into_iter().zip(self.marks) {
            parts.extend(at.map(|at| format!("{key}={}", at.0)));
        }
        parts.extend(self.rest.iter().cloned());
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }
}

fn expected(key: &str) -> &'static str {
    match key {
        "worker" => "a worker is its decimal id, optionally with /rank; no worker is selected",
        "pool" => "a pool is NAMESPACE/COMPONENT; all pools are shown",
        "model" => "a model is its name; all models are shown",
        "theme" => "dark, light or auto; auto is used",
        "kiosk" => "1 or 0; the page is shown as usual",
        "chrome" => "0 or 1; bar and navigation are shown",
        "view" => Panel::EXPECTED,
        "decision" => "a decision is its decimal number; none is opened",
        "sort" => "a column, with - for the most first: -ttft, hit-rate, -cost-gap; newest first is used",
        "from" | "to" => "now, now-15m or Unix milliseconds; the last 5 minutes are shown",
        "a" | "b" => "a moment is Unix milliseconds; it is not marked",
        "client" => "above_target, within_target, failed or unknown; all are shown",
        "by" => "cost, session_affinity, pinned, policy, mode or unknown; all are shown",
        "outcome" => "hit, partial, miss, tie, lost-affinity or unknown; all are shown",
        _ => "size or stable; size is used",
    }
}

fn order_str(order: Order) -> &'static str {
    match order {
        Order::LeftHeavy => "size",
        Order::Stable => "stable",
    }
}

fn parse_order(value: &str) -> Option<Order> {
    [Order::LeftHeavy, Order::Stable].into_iter().find(|&order| order_str(order) == value)
}

fn parse_worker(value: &str) -> Option<Worker> {
    let (id, rank) = value.split_once('/').unwrap_or((value, "0"));
    Some(Worker::new(id.parse().ok()?, rank.parse().ok()?))
}

/// A moment of which JavaScript has a date.
fn moment(value: &str) -> Option<Millis> {
    match TimePoint::parse(value)? {
        TimePoint::At(at) => Some(at).filter(|at| at.0 > 0),
        TimePoint::Ago(_) => None,
    }
}

/// A name that is not empty.
fn named(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

fn parse_switch(value: &str) -> Option<bool> {
    match value {
        "" | "1" | "true" | "tv" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

/// What stands in a query unharmed beside letters and digits.
const UNESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A value as it stands in a query.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, UNESCAPED).to_string()
}

/// What is not well-formed stays as it is.
fn decode(raw: &str) -> String {
    percent_decode_str(&raw.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_state::cluster::Column;

    #[test]
    fn an_address_survives_reading_and_writing() {
        let query = "?view=tree&worker=18446744073709551615/3&theme=light&order=stable&kiosk&from=now-15m&to=now-2m&var-x=a%20b";
        let (address, notices) = Address::parse(query);
        assert!(notices.is_empty(), "{notices:?}");
        assert_eq!(address.worker, Some(Worker::new(u64::MAX, 3)));
        assert_eq!((address.theme, address.panel, address.kiosk), (Theme::Light, Panel::Tree, true));
        assert_eq!(address.query(), query);
    }

    #[test]
    fn a_dashboards_variables_and_refresh_are_understood() {
        let (address, notices) = Address::parse(
            "var-worker=7%2F1&var-pool=dynamo%2Fbackend&var-model=%24__all&refresh=5s&orgId=1",
        );
        assert!(notices.is_empty(), "{notices:?}");
        assert_eq!(address.worker, Some(Worker::new(7, 1)));
        assert_eq!((address.pools.pool.as_deref(), address.pools.model), (Some("dynamo/backend"), None));
        for query in
            ["var-worker=All", "worker=All", "worker=.*&pool=.*", "pool=All&model=%24__all", "pool=&model="]
        {
            let (address, notices) = Address::parse(query);
            assert!(notices.is_empty(), "{query}: {notices:?}");
            assert_eq!((address.worker, address.pools), (None, PoolQuery::default()), "{query}");
        }
    }

    #[test]
    fn a_kiosk_is_requested_as_grafana_does_and_other_panels_stand_alone() {
        for query in ["kiosk", "kiosk=", "kiosk=1", "kiosk=tv", "kiosk=true"] {
            let (address, notices) = Address::parse(query);
            assert!(address.is_kiosk() && address.is_bare() && notices.is_empty(), "{query}");
            assert_eq!(address.query(), "?kiosk");
        }
        let panel = Address::parse("view=tree&kiosk=tv").0;
        assert!(!panel.is_kiosk() && panel.is_bare());
        for (query, is_bare) in
            [("view=tree&chrome=0", true), ("view=tree&chrome=1", false), ("chrome=0", true)]
        {
            let (address, notices) = Address::parse(query);
            assert!(!address.is_kiosk() && address.is_bare() == is_bare && notices.is_empty(), "{query}");
        }
        let alone = Address::parse("view=findings&chrome=0").0;
        assert_eq!(alone.of_panel(Panel::Workers, None).query(), "?view=workers&chrome=0", "links keep it");
        assert_eq!(Address::parse("chrome=none").1.len(), 1);
    }

    #[test]
    fn unknown_keys_are_kept_untouched() {
        let (address, notices) = Address::parse("refresh=5s&orgId=1&%zz&theme=dark");
        assert!(notices.is_empty());
        assert_eq!(address.query(), "?theme=dark&refresh=5s&orgId=1&%zz");
    }

    #[test]
    fn the_range_of_time_is_read_as_grafana_writes_it_and_every_link_keeps_it() {
        let fixed = "?view=latency&from=1800000000000&to=1800000060000";
        let (address, notices) = Address::parse(fixed);
        assert!(notices.is_empty(), "{notices:?}");
        assert_eq!(address.query(), fixed);
        assert_eq!(address.of_panel(Panel::Findings, None).range, address.range);
        assert_eq!(Address::parse("from=now-5m&to=now").0.query(), "", "the default is not written");
        let (address, notices) = Address::parse("from=now-1m&to=now-1h");
        assert_eq!((address.range, notices.len()), (TimeRange::default(), 1));
        assert_eq!(Address::parse("from=2026-11-22").1.len(), 1);
    }

    #[test]
    fn marked_moments_are_read_and_every_link_keeps_them() {
        let query = "?view=changes&a=1800000000000&b=1800000030000";
        let (address, notices) = Address::parse(query);
        assert!(notices.is_empty(), "{notices:?}");
        assert_eq!(address.marks, [Some(Millis(1_800_000_000_000)), Some(Millis(1_800_000_030_000))]);
        assert_eq!(address.query(), query);
        assert_eq!(address.of_panel(Panel::Workers, None).marks, address.marks);
        for wrong in ["a=now", "b=now-5m", "a=0", "a=-3", "b=soon", "a="] {
            let (address, notices) = Address::parse(wrong);
            assert_eq!((address.marks, notices.len()), ([None; 2], 1), "{wrong}");
        }
    }

    #[test]
    fn what_only_one_panel_reads_can_be_read_and_stays() {
        let query = "?theme=dark&prefix=7%2F0%3A5";
        let address = Address::parse(query).0;
        assert_eq!(address.other("prefix").as_deref(), Some("7/0:5"));
        assert_eq!(address.other("pre"), None);
        assert_eq!(address.query(), query);
    }

    #[test]
    fn what_only_one_panel_reads_can_be_set_and_taken_out() {
        let address = Address::parse("?view=latency&ttft_slo=500&refresh=5s").0;
        let other = address.with_other("ttft_slo", Some("1 000"));
        assert_eq!(other.other("ttft_slo").as_deref(), Some("1 000"));
        assert_eq!(other.with_other("ttft_slo", None).query(), "?view=latency&refresh=5s");
    }

    #[test]
    fn a_link_leads_elsewhere_and_looks_the_same() {
        let here = Address::parse("?view=findings&theme=light&kiosk&severity=critical").0;
        assert_eq!(
            here.of_panel(Panel::Decisions, Some(Worker::new(7, 1))).query(),
            "?view=decisions&worker=7/1&theme=light&kiosk"
        );
    }

    #[test]
    fn what_only_one_panel_reads_is_changed_at_its_place() {
        let mut address = Address::parse("?cap.hbm=80&x=1").0;
        address.set_other("cap.hbm", Some("141 GB"));
        address.set_other("cap.p95", Some(""));
        assert_eq!(address.query(), "?cap.hbm=141%20GB&x=1&cap.p95=");
        assert_eq!(
            (address.other("cap.hbm").as_deref(), address.other("cap.p95").as_deref()),
            (Some("141 GB"), Some(""))
        );
        address.set_other("cap.hbm", None);
        assert_eq!(address.query(), "?x=1&cap.p95=");
    }

    #[test]
    fn a_bad_value_is_named_and_the_default_taken() {
        let (address, notices) = Address::parse("?theme=blue&worker=W1&kiosk=maybe&view=&order=");
        assert_eq!(address, Address::default());
        assert_eq!(notices.len(), 5);
        assert!(notices[0].starts_with("theme=blue in the address is invalid: dark, light or auto"));
    }

    #[test]
    fn what_is_looked_for_in_the_ledger_is_in_the_address() {
        let query = "?view=decisions&outcome=lost-affinity&find=a%26b%20%C3%A9&sort=-ttft&decision=18446744073709551615";
        let (address, notices) = Address::parse(query);
        assert!(notices.is_empty(), "{notices:?}");
        assert_eq!((address.outcome, address.find.as_str()), (Some(DecisionKind::LostAffinity), "a&b é"));
        assert_eq!(address.sort, Sort::by(Column::Ttft));
        assert_eq!(address.query(), query);
        assert_eq!(Address::parse("request=a").0.query(), "?find=a", "as links of earlier versions have it");
        let (address, notices) = Address::parse("outcome=good&decision=x&sort=best");
        assert_eq!((address, notices.len()), (Address::default(), 3));
        assert!(notices[0].ends_with("lost-affinity or unknown; all are shown"));
    }

    #[test]
    fn what_decided_and_whose_session_it_was_is_in_the_address() {
        let query = "?view=decisions&by=session_affinity&session=a%26b";
        let (address, notices) = Address::parse(query);
        assert!(notices.is_empty(), "{notices:?}");
        assert_eq!((address.by, address.session.as_str()), (ByFilter::named("session_affinity"), "a&b"));
        assert_eq!(address.query(), query);
        for by in ByFilter::ALL {
            assert_eq!(Address::parse(&format!("by={}", by.as_str())).0.by, Some(by));
        }
        for client in ClientFilter::ALL {
            let query = format!("?client={}", client.as_str());
            let address = Address::parse(&query).0;
            assert_eq!((address.client, address.query()), (Some(client), query));
        }
        let (address, notices) = Address::parse("by=luck");
        assert_eq!((address, notices.len()), (Address::default(), 1));
    }

    #[test]
    fn a_worker_without_rank_is_rank_0_and_its_slash_may_be_encoded() {
        assert_eq!(Address::parse("worker=7").0.worker, Some(Worker::new(7, 0)));
        assert_eq!(Address::parse("worker=7%2F2").0.worker, Some(Worker::new(7, 2)));
    }

    #[test]
    fn every_panel_has_an_address_of_its_own() {
        for &panel in Panel::ALL {
            let (address, notices) = Address::parse(&Address::default().with_panel(panel).query());
            assert_eq!((address.panel, notices.len()), (panel, 0));
        }
        let notices = Address::parse("view=forest").1;
        assert!(notices[0].ends_with(
            "one of overview, findings, latency, memory, tree, workers, rates, decisions, reuse, whatif, counterfactual, compare, changes; overview is shown"
        ));
    }

    #[test]
    fn a_pool_and_a_model_are_named_in_the_address() {
        let query = "?view=tree&pool=dynamo/backend2&model=Qwen/Qwen3%208B";
        let (address, notices) = Address::parse(query);
        assert!(notices.is_empty(), "{notices:?}");
        assert_eq!(address.pools.pool.as_deref(), Some("dynamo/backend2"));
        assert_eq!(address.pools.model.as_deref(), Some("Qwen/Qwen3 8B"));
        assert_eq!(address.query(), query);
        assert_eq!(address.of_panel(Panel::Workers, None).pools, address.pools, "links keep it");
        let of_worker = address.of_panel(Panel::Workers, Some(Worker::new(7, 0)));
        assert_eq!(of_worker.pools, PoolQuery::default(), "the worker may be of another pool");
    }

    #[test]
    fn nothing_given_is_no_query() {
        assert_eq!(Address::parse("").0.query(), "");
        assert!(Address::parse("kiosk=0").0.query().is_empty());
    }
}
