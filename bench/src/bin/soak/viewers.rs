//! Viewers of a soak that join, stay for a while, and leave or lose their connection and resume.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::checkpoint::ViewerFigures;
use radixscope_bench::random::Random;
use radixscope_tests::viewer::{Resume, Viewer};

/// How long a viewer stays, seconds.
const STAYS_S: (u64, u64) = (20, 180);
/// How long its place is empty, seconds.
const AWAY_S: u64 = 10;
/// How long one waits that was not let in.
const TRIES_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Of 100 that go, those that resume: a network that changed, a laptop that slept.
const RESUME_PERCENT: u64 = 50;
/// How often figures are gathered.
const GATHER_EVERY: Duration = Duration::from_millis(500);

/// Viewers of one server.
pub(super) struct Viewers {
    shared: Arc<Mutex<Shared>>,
    places: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    figures: ViewerFigures,
    gaps: Vec<Duration>,
}

impl Viewers {
    /// Takes `count` places at the server's socket.
    pub(super) fn start(url: &str, count: u64, seed: u64) -> Self {
        let shared = Arc::<Mutex<Shared>>::default();
        let mut places = JoinSet::new();
        for place in 0..count {
            let random = Random::new(seed ^ (place + 1) << 32);
            places.spawn(Place { url: url.to_owned(), shared: Arc::clone(&shared), random }.run());
        }
        Self { shared, places }
    }

    /// What they saw so far, with the gaps since the last call.
    pub(super) fn figures(&self) -> ViewerFigures {
        let mut shared = lock(&self.shared);
        let mut gaps = std::mem::take(&mut shared.gaps);
        gaps.sort_unstable();
        let p99 = (gaps.len() * 99).div_ceil(100).checked_sub(1).map(|at| gaps[at]);
        let ms = |gap: Duration| u64::try_from(gap.as_millis()).expect("shorter than a soak");
        let gap_max_ms = gaps.last().copied().map(ms);
        ViewerFigures { gap_p99_ms: p99.map(ms), gap_max_ms, ..shared.figures.clone() }
    }

    /// Why a place is empty for good, if one is: a mistake of ours.
    pub(super) fn failed(&mut self) -> Option<String> {
        self.places
            .try_join_next()
            .map(|ended| ended.err().map_or_else(String::new, |error| error.to_string()))
    }
}

struct Place {
    url: String,
    shared: Arc<Mutex<Shared>>,
    random: Random,
}

/// How a viewer's stay ended.
enum Stay {
    Left(Option<Box<Resume>>),
    Differs,
    Broken(String),
}

impl Place {
    async fn run(mut self) {
        let mut resume: Option<Box<Resume>> = None;
        let mut is_to_heal = false;
        loop {
            let viewer = match Viewer::try_connect(&self.url, resume.take().map(|resume| *resume)).await {
                Ok(viewer) => viewer,
                // As the page does: it tries again.
                Err((why, left)) => {
                    resume = left.map(Box::new);
                    {
                        let mut shared = lock(&self.shared);
                        shared.figures.not_taken += 1;
                        shared.figures.broken_why = Some(why);
                    }
                    sleep(TRIES_AGAIN_AFTER).await;
                    continue;
                }
            };
            lock(&self.shared).figures.joined += 1;
            let stay = self.stay(viewer, &mut is_to_heal).await;
            let mut away = Duration::from_millis(self.random.below(AWAY_S * 1_000));
            match stay {
                Stay::Left(state) => resume = state,
                // As the page does: a new snapshot at once. If it is no cure, that is one more difference.
                Stay::Differs => {
                    lock(&self.shared).figures.differences += 1;
                    (is_to_heal, away) = (true, Duration::ZERO);
                }
                Stay::Broken(why) => {
                    let mut shared = lock(&self.shared);
                    shared.figures.broken += 1;
                    shared.figures.broken_why = Some(why);
                }
            }
            sleep(away).await;
        }
    }

    async fn stay(&mut self, viewer: Viewer, is_to_heal: &mut bool) -> Stay {
        let (least_s, most_s) = STAYS_S;
        let until = Instant::now() + Duration::from_secs(least_s + self.random.below(most_s - least_s));
        let resumes = self.random.percent(RESUME_PERCENT);
        lock(&self.shared).figures.present += 1;
        let (mut checks, mut skipped) = (0, 0);
        let ended = loop {
            sleep_until(until.min(Instant::now() + GATHER_EVERY)).await;
            let gaps = viewer.take_gaps();
            let (ended, differs) = viewer.with(|seen| {
                let mut shared = lock(&self.shared);
                shared.gaps.extend(gaps);
                shared.figures.checks += seen.checks - checks;
                shared.figures.skipped += seen.skipped - skipped;
                (checks, skipped) = (seen.checks, seen.skipped);
                if *is_to_heal && seen.checks > 0 {
                    *is_to_heal = false;
                    shared.figures.healed += 1;
                }
                (seen.ended.clone(), seen.differs)
            });
            if differs {
                break Stay::Differs;
            }
            if let Some(why) = ended {
                break Stay::Broken(why);
            }
            if Instant::now() >= until {
                let has_state = viewer.with(|seen| seen.state.is_some());
                break Stay::Left((resumes && has_state).then(|| Box::new(viewer.cut())));
            }
        };
        lock(&self.shared).figures.present -= 1;
        ended
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
