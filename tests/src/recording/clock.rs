//! The clock of a replayed recording: maps the recording's seconds to those of today and back.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The recording's clock, which runs `speed` times as fast as ours.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began_s: f64,
    speed: f64,
    started: Instant,
    started_s: f64,
}

impl Clock {
    /// Starts at the recorded time `began_s`, Unix seconds.
    pub fn start(began_s: f64, speed: f64) -> Self {
        let started_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
        Self { began_s, speed, started: Instant::now(), started_s }
    }

    /// The recorded time that is replayed now, Unix seconds.
    pub fn now_s(&self) -> f64 {
        self.began_s + self.started.elapsed().as_secs_f64() * self.speed
    }

    /// When a recorded moment is replayed, Unix seconds of today.
    pub fn today_s(&self, recorded_s: f64) -> f64 {
        self.started_s + (recorded_s - self.began_s) / self.speed
    }

    /// Waits until a recorded moment.
    pub async fn until(&self, recorded_s: f64) {
        let after = Duration::from_secs_f64(((recorded_s - self.began_s) / self.speed).max(0.0));
        tokio::time::sleep_until((self.started + after).into()).await;
    }
}
