//! The stage of `radixscope demo` and `radixscope stage`: [`Controls`], which HTTP has, hand one change after the other to the
//! [`Driver`], which a source has, and wait for what became of it. Knows neither HTTP nor what is steered.

pub mod load;
pub mod simulator;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use radixscope_export::stage::{StageChange, StageEvent, StageReport};

use crate::time::now;

/// Changes that wait for the driver.
const WAITING: usize = 16;
/// Most changes in [`WINDOW`]: more than a hand can make.
const MOST_CHANGES: u32 = 20;
const WINDOW: Duration = Duration::from_secs(1);
/// How long a change may take; the simulator makes one every 50 ms.
const MADE_WITHIN: Duration = Duration::from_secs(5);

/// Why a change was not made.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NotChanged {
    /// It is no change that can be made here and now.
    #[error("{0}")]
    Invalid(String),
    /// The warm-up is not over.
    #[error("the stage is not ready yet: it is still warming up")]
    NotReady,
    /// Somebody makes too many.
    #[error("more than {MOST_CHANGES} changes a second; try again")]
    TooMany,
    /// The driver takes none.
    #[error("the change was not made within {} s", MADE_WITHIN.as_secs())]
    NotTaken,
}

/// What can be steered, with its present values, and the way to change it.
#[derive(Debug)]
pub struct Controls {
    report: watch::Receiver<StageReport>,
    orders: mpsc::Sender<Order>,
    /// When the window began, and changes in it.
    recent: Mutex<(Instant, u32)>,
}

/// A change that somebody waits for.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) change: StageChange,
    done: oneshot::Sender<Result<(), String>>,
}

/// The end of a source that makes the changes.
#[derive(Debug)]
pub struct Driver {
    report: watch::Sender<StageReport>,
    orders: mpsc::Receiver<Order>,
}

/// A stage as it is at the beginning.
pub fn stage(report: StageReport) -> (Arc<Controls>, Driver) {
    let (orders, to_driver) = mpsc::channel(WAITING);
    let (of_driver, report) = watch::channel(report);
    let recent = Mutex::new((Instant::now(), 0));
    (Arc::new(Controls { report, orders, recent }), Driver { report: of_driver, orders: to_driver })
}

impl Controls {
    /// What can be steered, as it is now.
    pub fn report(&self) -> StageReport {
        self.report.borrow().clone()
    }

    /// Makes a change and gives what is then.
    ///
    /// # Errors
    /// It was not made.
    pub async fn change(&self, change: StageChange) -> Result<StageReport, NotChanged> {
        if !self.is_within_rate() {
            return Err(NotChanged::TooMany);
        }
        {
            let report = self.report.borrow();
            report.check(&change).map_err(NotChanged::Invalid)?;
            if !report.is_ready {
                return Err(NotChanged::NotReady);
            }
        }
        let (done, is_done) = oneshot::channel();
        self.orders.try_send(Order { change, done }).map_err(|_| NotChanged::NotTaken)?;
        match tokio::time::timeout(MADE_WITHIN, is_done).await {
            Ok(Ok(Ok(()))) => Ok(self.report()),
            Ok(Ok(Err(why))) => Err(NotChanged::Invalid(why)),
            Ok(Err(_)) | Err(_) => Err(NotChanged::NotTaken),
        }
    }

    fn is_within_rate(&self) -> bool {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.0.elapsed() >= WINDOW {
            *recent = (Instant::now(), 0);
        }
        recent.1 = recent.1.saturating_add(1);
        recent.1 <= MOST_CHANGES
    }
}

impl Driver {
    /// From now on changes are taken.
    pub(crate) fn is_ready(&self) {
        self.report.send_modify(|report| report.is_ready = true);
    }

    /// The next change that waits, if there is one.
    pub(crate) fn next_order(&mut self) -> Option<Order> {
        self.orders.try_recv().ok()
    }

    /// The next change; `None`: nobody can ask for any.
    pub(crate) async fn order(&mut self) -> Option<Order> {
        self.orders.recv().await
    }

    /// What became of a change: `made` sets the values that are new, or says why it could not be made.
    pub(crate) fn answer(&self, order: Order, made: Result<impl FnOnce(&mut StageReport), String>) {
        let Order { change, done } = order;
        let outcome = made.map(|set| {
            self.report.send_modify(|report| {
                let text = report.describe(&change);
                set(report);
                report.latest = Some(StageEvent { at_ms: now(), text });
            });
        });
        // Whoever asked may have gone.
        let _ = done.send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_sim::Config;

    fn ready() -> (Arc<Controls>, Driver) {
        let (controls, driver) = stage(simulator::report(&Config::default()));
        driver.is_ready();
        (controls, driver)
    }

    /// Makes every change that comes.
    fn obey(mut driver: Driver) {
        tokio::spawn(async move {
            while let Some(order) = driver.orders.recv().await {
                let StageChange::Concurrency(users) = order.change else {
                    driver.answer(order, Err::<fn(&mut StageReport), _>("not today".to_owned()));
                    continue;
                };
                driver.answer(order, Ok(move |report: &mut StageReport| report.concurrency.value = users));
            }
        });
    }

    #[tokio::test]
    async fn a_change_returns_what_the_driver_made_of_it() {
        let (controls, driver) = ready();
        obey(driver);
        let report = controls.change(StageChange::Concurrency(180)).await.unwrap();
        assert_eq!(report.concurrency.value, 180);
        assert_eq!(report.latest.unwrap().text, "Concurrency 120 → 180");
        let refused = controls.change(StageChange::Paused(true)).await;
        assert_eq!(refused, Err(NotChanged::Invalid("not today".to_owned())));
        let beyond = controls.change(StageChange::Concurrency(201)).await;
        assert_eq!(beyond, Err(NotChanged::Invalid("concurrency is 201; it must be 1 to 200".to_owned())));
    }

    #[tokio::test]
    async fn nothing_is_taken_before_the_warm_up_is_over_or_after_the_driver_ended() {
        let (controls, driver) = stage(simulator::report(&Config::default()));
        assert_eq!(controls.change(StageChange::Concurrency(7)).await, Err(NotChanged::NotReady));
        driver.is_ready();
        drop(driver);
        assert_eq!(controls.change(StageChange::Concurrency(7)).await, Err(NotChanged::NotTaken));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_bounded() {
        let (controls, driver) = ready();
        obey(driver);
        let mut refused = 0;
        for _ in 0..1_000 {
            refused +=
                u32::from(controls.change(StageChange::Concurrency(7)).await == Err(NotChanged::TooMany));
        }
        assert_eq!(refused, 1_000 - MOST_CHANGES);
        tokio::time::advance(WINDOW).await;
        assert!(controls.change(StageChange::Concurrency(8)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_that_does_not_answer_makes_nobody_wait_for_ever() {
        let (controls, driver) = ready();
        assert_eq!(controls.change(StageChange::Concurrency(7)).await, Err(NotChanged::NotTaken));
        drop(driver);
    }
}
