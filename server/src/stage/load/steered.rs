//! The load as a driver of the stage: users and pause can be steered, nothing else.

use tokio::sync::watch;

use radixscope_export::stage::{StageChange, StageDriver, StageReport, Steered};

use super::{LoadSettings, MAX_CONCURRENCY};
use crate::stage::Driver;

/// What can be steered, with these values.
pub(crate) fn report(settings: LoadSettings) -> StageReport {
    StageReport {
        driver: StageDriver::Load,
        is_ready: false,
        concurrency: Steered { value: settings.concurrency, min: 1, max: MAX_CONCURRENCY },
        paused: settings.is_paused,
        router: None,
        faults: Vec::new(),
        fault: None,
        seed: None,
        latest: None,
    }
}

/// Makes changes until nobody can ask for any.
pub(crate) async fn steer(mut driver: Driver, settings: watch::Sender<LoadSettings>) {
    driver.is_ready();
    while let Some(order) = driver.order().await {
        let now = *settings.borrow();
        let then =
            match order.change {
                StageChange::Concurrency(concurrency) => Ok(LoadSettings { concurrency, ..now }),
                StageChange::Paused(is_paused) => Ok(LoadSettings { is_paused, ..now }),
                _ => Err("a real deployment is not changed from here: only users and pause can be steered"
                    .to_owned()),
            };
        let made = then.map(|then| {
            settings.send_replace(then);
            move |report: &mut StageReport| {
                report.concurrency.value = then.concurrency;
                report.paused = then.is_paused;
            }
        });
        driver.answer(order, made);
    }
}

#[cfg(test)]
mod tests {
    use radixscope_router::RouterMode;

    use super::*;
    use crate::stage::{NotChanged, stage};

    #[tokio::test]
    async fn users_and_pause_are_steered_and_nothing_of_the_deployment_is() {
        let begun = LoadSettings { concurrency: 8, is_paused: false };
        let (sender, settings) = watch::channel(begun);
        let (controls, driver) = stage(report(begun));
        assert_eq!(controls.change(StageChange::Paused(true)).await, Err(NotChanged::NotReady));
        tokio::spawn(steer(driver, sender));
        while !controls.report().is_ready {
            tokio::task::yield_now().await;
        }
        controls.change(StageChange::Concurrency(30)).await.unwrap();
        let paused = controls.change(StageChange::Paused(true)).await.unwrap();
        assert_eq!(*settings.borrow(), LoadSettings { concurrency: 30, is_paused: true });
        assert_eq!((paused.concurrency.value, paused.paused), (30, true));
        assert_eq!(paused.latest.unwrap().text, "Paused");
        for refused in [StageChange::RouterMode(RouterMode::RoundRobin), StageChange::Concurrency(201)] {
            assert!(matches!(controls.change(refused).await, Err(NotChanged::Invalid(_))));
        }
        assert_eq!(*settings.borrow(), LoadSettings { concurrency: 30, is_paused: true });
    }
}
