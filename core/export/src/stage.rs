//! The stage: what can be steered in what is shown, as `GET /api/v1/stage` gives it and the page's bar shows it, and the changes that
//! `POST /api/v1/stage` takes. Only `radixscope demo` and `radixscope stage` have one. What a driver cannot steer is absent. Knows
//! no driver.

use radixscope_model::id::{Decimal, Millis};
use radixscope_router::RouterMode;
use serde::{Deserialize, Serialize};

/// Everything that can be steered, with its present value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageReport {
    /// What takes the changes.
    pub driver: StageDriver,
    /// Whether it takes changes yet.
    pub is_ready: bool,
    /// Users at once, each with one request in flight.
    pub concurrency: Steered<u32>,
    /// Whether nothing happens at the moment.
    pub paused: bool,
    /// What the router runs with; `None`: it cannot be steered.
    pub router: Option<StageRouter>,
    /// What can go wrong on demand; empty: nothing can.
    pub faults: Vec<StageFault>,
    /// Name of the fault at work.
    pub fault: Option<String>,
    /// Seed of the traffic; `None`: it cannot be restarted.
    pub seed: Option<Decimal>,
    /// The latest change.
    pub latest: Option<StageEvent>,
}

/// What takes the changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageDriver {
    /// The simulator of this process.
    Simulator,
    /// Conversations with a real deployment.
    Load,
}

impl StageDriver {
    /// Its name in JSON and in the page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Simulator => "simulator",
            Self::Load => "load",
        }
    }
}

/// A value and its bounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Steered<T> {
    /// The present value.
    pub value: T,
    /// The least.
    pub min: T,
    /// The most.
    pub max: T,
}

/// What the router runs with.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct StageRouter {
    /// How it chooses.
    pub mode: RouterMode,
    /// Weight of the blocks to prefill in its cost.
    pub overlap_score_weight: Steered<f64>,
    /// 0 always selects the lowest cost.
    pub router_temperature: Steered<f64>,
}

/// Something that can go wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StageFault {
    /// Its name.
    pub name: String,
    /// What happens.
    pub summary: String,
    /// What the page should show.
    pub shows: String,
    /// Whether it is there from the beginning, so that the simulation restarts with it, and again without it.
    pub needs_restart: bool,
}

/// A change that was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StageEvent {
    /// When.
    pub at_ms: Millis,
    /// What, in a few words.
    pub text: String,
}

/// One change. Its JSON has one key, the name of the change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageChange {
    /// So many users.
    Concurrency(u32),
    /// Whether nothing happens.
    Paused(bool),
    /// How the router chooses.
    RouterMode(RouterMode),
    /// Weight of the blocks to prefill in its cost.
    OverlapScoreWeight(f64),
    /// Its temperature.
    RouterTemperature(f64),
    /// The fault of this name begins.
    Break(String),
    /// The fault at work ends.
    Mend(Mend),
    /// All begins anew.
    Restart(Restart),
}

/// A change without a value: `{}`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mend {}

/// How all begins anew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Seed of the traffic.
    pub seed: Decimal,
    /// A fault that is there from the beginning.
    #[serde(default)]
    pub fault: Option<String>,
}

impl StageReport {
    /// # Errors
    /// Why a change cannot be made, as far as that is known beforehand.
    pub fn check(&self, change: &StageChange) -> Result<(), String> {
        let router = || self.router.as_ref().ok_or_else(|| "the router cannot be steered here".to_owned());
        match change {
            StageChange::Concurrency(users) => self.concurrency.check("concurrency", *users),
            StageChange::Paused(_) => Ok(()),
            StageChange::RouterMode(_) => router().map(|_| ()),
            StageChange::OverlapScoreWeight(weight) => {
                router()?.overlap_score_weight.check("overlap_score_weight", *weight)
            }
            StageChange::RouterTemperature(temperature) => {
                router()?.router_temperature.check("router_temperature", *temperature)
            }
            StageChange::Break(name) => match self.known_fault(name)?.needs_restart {
                true => Err(format!(
                    "fault {name} is there from the beginning: restart with it, {{\"restart\":{{\"seed\":…,\"fault\":\"{name}\"}}}}"
                )),
                false => Ok(()),
            },
            StageChange::Mend(_) if self.faults.is_empty() => {
                Err("nothing can be broken or mended here".to_owned())
            }
            StageChange::Mend(_) => Ok(()),
            StageChange::Restart(_) if self.seed.is_none() => Err("nothing can be restarted here".to_owned()),
            StageChange::Restart(Restart { fault: Some(name), .. }) => {
                match self.known_fault(name)?.needs_restart {
                    true => Ok(()),
                    false => Err(format!(
                        "fault {name} begins while all runs: restart without it and then {{\"break\":\"{name}\"}}"
                    )),
                }
            }
            StageChange::Restart(_) => Ok(()),
        }
    }

    /// The fault of a name.
    pub fn fault_named(&self, name: &str) -> Option<&StageFault> {
        self.faults.iter().find(|fault| fault.name == name)
    }

    fn known_fault(&self, name: &str) -> Result<&StageFault, String> {
        self.fault_named(name).ok_or_else(|| {
            let shown: String = name.chars().take(40).collect();
            format!("{shown:?} is no fault that can be caused here; GET lists those that can")
        })
    }

    /// A change to these values, in a few words.
    pub fn describe(&self, change: &StageChange) -> String {
        match change {
            StageChange::Concurrency(users) => format!("Concurrency {} → {users}", self.concurrency.value),
            StageChange::Paused(true) => "Paused".to_owned(),
            StageChange::Paused(false) => "Running".to_owned(),
            StageChange::RouterMode(RouterMode::Kv) => "Router: KV-aware".to_owned(),
            StageChange::RouterMode(RouterMode::RoundRobin) => "Router: round-robin".to_owned(),
            StageChange::OverlapScoreWeight(weight) => {
                let before = self.router.map(|router| router.overlap_score_weight.value);
                from_to("Overlap weight", before, *weight)
            }
            StageChange::RouterTemperature(temperature) => {
                let before = self.router.map(|router| router.router_temperature.value);
                from_to("Temperature", before, *temperature)
            }
            StageChange::Break(name) => format!("Broken: {}", self.summary(name)),
            StageChange::Mend(_) => {
                let fault = self.fault.as_deref().map(|name| format!(": {}", self.summary(name)));
                format!("Mended{}", fault.unwrap_or_default())
            }
            StageChange::Restart(Restart { seed, fault }) => {
                let fault = fault.as_deref().map(|name| format!(", broken: {}", self.summary(name)));
                format!("Restarted with seed {}{}", seed.0, fault.unwrap_or_default())
            }
        }
    }

    fn summary<'a>(&'a self, name: &'a str) -> &'a str {
        self.fault_named(name).map_or(name, |fault| &fault.summary)
    }
}

fn from_to(name: &str, before: Option<f64>, after: f64) -> String {
    match before {
        Some(before) => format!("{name} {before} → {after}"),
        None => format!("{name} {after}"),
    }
}

impl<T: Copy + PartialOrd + std::fmt::Display> Steered<T> {
    fn check(&self, name: &str, value: T) -> Result<(), String> {
        let Self { min, max, .. } = *self;
        // Not a number is within no bounds.
        match min <= value && value <= max {
            true => Ok(()),
            false => Err(format!("{name} is {value}; it must be {min} to {max}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> StageReport {
        let fault = |name: &str, needs_restart| StageFault {
            name: name.to_owned(),
            summary: format!("The summary of {name}"),
            shows: "A finding".to_owned(),
            needs_restart,
        };
        StageReport {
            driver: StageDriver::Simulator,
            is_ready: true,
            concurrency: Steered { value: 120, min: 1, max: 200 },
            paused: false,
            router: Some(StageRouter {
                mode: RouterMode::Kv,
                overlap_score_weight: Steered { value: 1.0, min: 0.0, max: 10.0 },
                router_temperature: Steered { value: 0.0, min: 0.0, max: 2.0 },
            }),
            faults: vec![fault("kill-worker", false), fault("churn", true)],
            fault: Some("kill-worker".to_owned()),
            seed: Some(Decimal(u64::MAX)),
            latest: None,
        }
    }

    fn read(json: &str) -> StageChange {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_change_is_one_key_and_is_checked_against_what_can_be_steered() {
        let report = report();
        for (json, why) in [
            (r#"{"concurrency":200}"#, None),
            (r#"{"concurrency":0}"#, Some("concurrency is 0; it must be 1 to 200")),
            (r#"{"overlap_score_weight":10.5}"#, Some("overlap_score_weight is 10.5; it must be 0 to 10")),
            (r#"{"router_mode":"round-robin"}"#, None),
            (r#"{"break":"kill-worker"}"#, None),
            (r#"{"break":"churn"}"#, Some("fault churn is there from the beginning")),
            (r#"{"break":"coffee"}"#, Some("\"coffee\" is no fault")),
            (r#"{"mend":{}}"#, None),
            (r#"{"restart":{"seed":"7","fault":"churn"}}"#, None),
            (
                r#"{"restart":{"seed":"7","fault":"kill-worker"}}"#,
                Some("fault kill-worker begins while all runs"),
            ),
        ] {
            let checked = report.check(&read(json));
            match (why, checked) {
                (None, checked) => assert_eq!(checked, Ok(()), "{json}"),
                (Some(why), Err(text)) => assert!(text.contains(why) && text.len() < 400, "{json}: {text}"),
                (Some(_), Ok(())) => panic!("{json} is accepted"),
            }
        }
        let not_a_number = StageChange::OverlapScoreWeight(f64::NAN);
        assert!(report.check(&not_a_number).is_err());
        assert!(serde_json::from_str::<StageChange>(r#"{"concurrency":1,"paused":true}"#).is_err());
        assert!(serde_json::from_str::<StageChange>(r#"{"concurrency":-1}"#).is_err());
    }

    #[test]
    fn a_driver_that_steers_the_load_alone_refuses_the_rest() {
        let load = StageReport {
            driver: StageDriver::Load,
            router: None,
            faults: Vec::new(),
            fault: None,
            seed: None,
            ..report()
        };
        assert_eq!(load.check(&read(r#"{"concurrency":7}"#)), Ok(()));
        assert_eq!(load.check(&read(r#"{"paused":true}"#)), Ok(()));
        for json in [
            r#"{"router_mode":"kv"}"#,
            r#"{"router_temperature":0}"#,
            r#"{"break":"kill-worker"}"#,
            r#"{"mend":{}}"#,
            r#"{"restart":{"seed":"1"}}"#,
        ] {
            assert!(load.check(&read(json)).is_err(), "{json}");
        }
    }

    #[test]
    fn a_change_reads_well_and_a_seed_keeps_its_64_bits() {
        let report = report();
        let words = |json: &str| report.describe(&read(json));
        assert_eq!(words(r#"{"concurrency":180}"#), "Concurrency 120 → 180");
        assert_eq!(words(r#"{"overlap_score_weight":0.5}"#), "Overlap weight 1 → 0.5");
        assert_eq!(words(r#"{"mend":{}}"#), "Mended: The summary of kill-worker");
        let seed = "18446744073709551615";
        assert_eq!(
            words(&format!(r#"{{"restart":{{"seed":"{seed}"}}}}"#)),
            format!("Restarted with seed {seed}")
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["seed"], seed);
        assert_eq!(serde_json::from_value::<StageReport>(json).unwrap(), report);
    }
}
