//! Changes to a cluster while it is simulated: what its users, its operator or bad luck do to it. The same changes at the same times
//! give the same bytes. Whatever changes shows as it would in a real deployment: other settings of the router restart the
//! frontends, another seed is a new deployment. Must not know who asks for a change.

use thiserror::Error;

use super::Simulation;
use super::config::{Config, ConfigError};
use super::fault::{Fault, FaultPlan};
use super::fault_events;
use super::topology::Pool;
use super::wire::WireOut;
use radixscope_model::id::Millis;
use radixscope_router::RouterMode;

/// A change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// So many users: others join within seconds, or some leave when they have their response.
    Concurrency(u32),
    /// How the frontends choose workers. They restart, which ends the requests in flight.
    RouterMode(RouterMode),
    /// `overlap_score_weight` of the frontends, which restart.
    OverlapScoreWeight(f64),
    /// `router_temperature` of the frontends, which restart.
    RouterTemperature(f64),
    /// A fault begins.
    Break(Fault),
    /// The fault ends.
    Mend,
    /// Everything is deployed anew, perhaps with a fault of the set-up; nothing else is wrong then.
    Restart {
        /// Of users and routers.
        seed: u64,
        /// What is wrong from the beginning.
        fault: Option<Fault>,
    },
}

/// Why something cannot be changed.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// What would be simulated then cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A mistake in the set-up cannot begin later.
    #[error(
        "fault {name} is a mistake in the set-up, which is there from the beginning: restart the simulation with it"
    )]
    NeedsRestart {
        /// Which fault.
        name: &'static str,
    },
    /// One fault at a time.
    #[error("fault {name} is at work, and faults come one at a time: mend it first")]
    IsBroken {
        /// Which fault.
        name: &'static str,
    },
    /// A mistake in the set-up is there for good.
    #[error(
        "fault {name} is a mistake in the set-up, which cannot be mended while it runs: restart the simulation without it"
    )]
    CannotMend {
        /// Which fault.
        name: &'static str,
    },
    /// There is no fault.
    #[error("no fault is at work, so there is nothing to mend")]
    NothingToMend,
}

impl Simulation {
    /// Lets everything up to and including `at` happen, and then makes a change. Messages go to `out`, in order of time.
    ///
    /// # Errors
    /// Why it cannot be changed; everything then goes on as before.
    pub fn apply(&mut self, at: Millis, change: Change, out: WireOut<'_>) -> Result<(), ChangeError> {
        self.run_until(at, out);
        self.driver.pass_to(at);
        let mut asked = self.asked.clone();
        let fault = asked.fault.map(|plan| plan.fault);
        match change {
            Change::Concurrency(users) => asked.concurrency = users,
            Change::RouterMode(mode) => asked.router.router_mode = mode,
            Change::OverlapScoreWeight(weight) => asked.router.overlap_score_weight = weight,
            Change::RouterTemperature(temperature) => asked.router.router_temperature = temperature,
            Change::Break(begins) => asked.fault = Some(self.plan(begins)?),
            Change::Mend => match fault {
                None => return Err(ChangeError::NothingToMend),
                Some(fault) if fault.is_set_up() => {
                    return Err(ChangeError::CannotMend { name: fault.name() });
                }
                Some(_) => asked.fault = None,
            },
            Change::Restart { seed, fault } => {
                asked.seed = seed;
                asked.fault = fault.map(|fault| FaultPlan { fault, after_ms: 0 });
                return self.redeploy(asked, out);
            }
        }
        asked.validate()?;
        let before = std::mem::replace(&mut self.asked, asked);
        let pools = self.asked.set_up().pools();
        match change {
            Change::Concurrency(users) => self.driver.set_concurrency(users, &mut self.pools),
            Change::Break(_) => {
                self.driver.set_fault(self.asked.fault, &pools);
                self.driver.begin_fault(&mut self.pools, out);
            }
            Change::Mend => self.mend(&before, &pools, out),
            _ if self.asked.router == before.router => {}
            _ => self.restart_frontends(&pools, out),
        }
        self.driver.end_broken(&mut self.pools, out);
        Ok(())
    }

    /// So many milliseconds pass in which nothing happens: what was to come comes later by so much.
    pub fn pass_idle(&mut self, idle_ms: u64) {
        self.driver.pass_idle(idle_ms);
    }

    /// What was asked for, with all changes since: without the mistakes of its fault, which [`Simulation::config`] has.
    pub fn asked(&self) -> &Config {
        &self.asked
    }

    /// A fault that begins now.
    fn plan(&self, fault: Fault) -> Result<FaultPlan, ChangeError> {
        if let Some(FaultPlan { fault, .. }) = self.asked.fault {
            return Err(ChangeError::IsBroken { name: fault.name() });
        }
        if fault.is_set_up() {
            return Err(ChangeError::NeedsRestart { name: fault.name() });
        }
        Ok(FaultPlan { fault, after_ms: self.driver.agenda.now_us() / 1_000 })
    }

    fn mend(&mut self, before: &Config, pools: &[Pool], out: WireOut<'_>) {
        let Some(plan) = before.fault else { return };
        let has_begun = plan.after_ms * 1_000 <= self.driver.agenda.now_us();
        let hit: Vec<bool> = self.driver.pools.iter().map(|of| of.pool.config.fault.is_some()).collect();
        self.driver.set_fault(None, pools);
        for (pool, serving) in self.pools.iter_mut().enumerate().filter(|(pool, _)| has_begun && hit[*pool]) {
            fault_events::mend(&mut self.driver.at(pool, out), serving, plan.fault);
        }
    }

    /// The frontends restart with the settings of these pools.
    fn restart_frontends(&mut self, pools: &[Pool], out: WireOut<'_>) {
        self.end_frontends(out);
        self.driver.config.router = self.asked.set_up().router;
        for (at, (serving, pool)) in self.pools.iter_mut().zip(pools).enumerate() {
            fault_events::frontends_return(&mut self.driver.at(at, out), serving, pool.config.router);
        }
    }

    /// The frontends go away in every pool.
    fn end_frontends(&mut self, out: WireOut<'_>) {
        for (pool, serving) in self.pools.iter_mut().enumerate() {
            fault_events::frontends_end(&mut self.driver.at(pool, out), serving);
        }
        self.driver.end_broken(&mut self.pools, out);
    }

    /// All processes end and their leases with them; a new deployment comes up in the next millisecond.
    fn redeploy(&mut self, asked: Config, out: WireOut<'_>) -> Result<(), ChangeError> {
        let at_ms = self.driver.now_ms();
        let next = Self::deploy(asked, Millis(at_ms.0 + 1), self.life + 1)?;
        self.end_frontends(out);
        for of in &self.driver.pools {
            for worker in 0..of.pool.config.workers {
                of.wire.lease_ended((&of.pool, worker), at_ms, out);
            }
        }
        *self = next;
        Ok(())
    }
}
