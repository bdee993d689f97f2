//! Colours of a picture: those of the page's design tokens, which a test holds them against.

use crate::colour::{Rgb, blend};
use crate::tree::sessions::BoxSession;
use radixscope_model::id::{Slot, WorkerIx};

/// Hues for up to this many workers come from the set of few, chosen further apart.
pub const FEW: usize = 4;
/// Hues for more workers; beyond them hues repeat with a pattern.
pub const MANY: usize = 8;

/// How much of the colour of shared blocks their boxes have within their frame.
const SHARED_BODY: f64 = 0.42;

/// What stands for several in pictures that do not say how many: quieter than what is of one, its `colour` is its frame's, and most of
/// it is ground.
pub fn shared_body(ground: Rgb, colour: Rgb) -> Rgb {
    blend(ground, colour, SHARED_BODY)
}

/// Colours for replica counts.
pub const REPLICA_SHADES: usize = 4;

/// Which shade a shared box has by how many workers hold it, here and on the page: the deepest is that of every worker of the pool, and
/// the numbers between two and that are spread over the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicaScale {
    /// Least replicas of each step; only the first `steps` count.
    from: [usize; REPLICA_SHADES],
    steps: usize,
    workers: usize,
}

impl ReplicaScale {
    /// For a pool of so many workers.
    pub fn of(workers: usize) -> Self {
        // Two workers have one number of replicas between them: two. Fewer have none, and a box may still be from before they left.
        let workers = workers.max(2);
        let steps = (workers - 1).min(REPLICA_SHADES);
        let mut from = [workers; REPLICA_SHADES];
        for (at, from) in from.iter_mut().enumerate().take(steps.saturating_sub(1)) {
            // Steps are factors: from 2 to 3 replicas is as far as from 20 to 30.
            let along = at as f64 / (steps - 1) as f64;
            let least = 2.0 * (workers as f64 / 2.0).powf(along);
            *from = (least.round() as usize).max(2 + at);
        }
        Self { from, steps, workers }
    }

    /// The shade of so many replicas, an index below [`REPLICA_SHADES`].
    pub fn shade(&self, replicas: usize) -> usize {
        let step = self.from[..self.steps].partition_point(|&from| from <= replicas).saturating_sub(1);
        self.shade_of_step(step)
    }

    /// From the faintest: each shade that is used, with the least and the most replicas that have it.
    pub fn steps(&self) -> impl Iterator<Item = (usize, std::ops::RangeInclusive<usize>)> + use<> {
        let (from, steps, workers) = (self.from, self.steps, self.workers);
        let to = move |step: usize| if step + 1 < steps { from[step + 1] - 1 } else { workers };
        let scale = *self;
        (0..steps).map(move |step| (scale.shade_of_step(step), from[step]..=to(step)))
    }

    /// Few steps are as far apart as many: the last is the deepest.
    const fn shade_of_step(&self, step: usize) -> usize {
        let last = REPLICA_SHADES - 1;
        match self.steps {
            0 | 1 => last,
            steps => (step * last).div_ceil(steps - 1),
        }
    }
}

/// How many replicas a step stands for, as text: `3`, `4–7`, or `8: all`.
pub fn replicas_to_text(replicas: &std::ops::RangeInclusive<usize>, workers: usize) -> String {
    let (from, to) = (*replicas.start(), *replicas.end());
    match (from == to, from >= workers) {
        (true, true) => format!("{from}: all"),
        (true, false) => from.to_string(),
        (false, _) => format!("{from}–{to}"),
    }
}

/// How much of the colour of shared blocks a box of no session has.
const NO_SESSION: f64 = 0.22;

/// How much of the colour of quiet text a box of a session without a colour has.
const OTHER_SESSION: f64 = 0.5;

/// What a box is filled with that is coloured by session, here and on the page, by the colours of the ground, of shared blocks, of quiet
/// text and of sessions.
pub fn of_session(
    session: Option<BoxSession>,
    [ground, shared, quiet]: [Rgb; 3],
    colour: impl Fn(Slot) -> Rgb,
) -> Rgb {
    match session {
        Some(BoxSession::One(slot)) => colour(slot),
        Some(BoxSession::Other) => blend(ground, quiet, OTHER_SESSION),
        Some(BoxSession::Several) => shared_body(ground, shared),
        None => blend(ground, shared, NO_SESSION),
    }
}

/// Colours of one theme.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Theme {
    /// Behind everything.
    pub ground: Rgb,
    /// Text.
    pub text: Rgb,
    /// Quiet text.
    pub quiet: Rgb,
    /// Lines.
    pub line: Rgb,
    /// Bars that belong to no worker.
    pub edge: Rgb,
    /// Blocks that several workers hold, where it is not said how many: their frames.
    pub shared: Rgb,
    /// The same by how many, see [`ReplicaScale`].
    pub replicas: [Rgb; REPLICA_SHADES],
    /// Evicted blocks with cached blocks below them.
    pub no_worker: Rgb,
    /// Behind what stands out of the ground.
    pub raised: Rgb,
    /// What is looked at first.
    pub focus: Rgb,
    /// What asks for a look.
    pub warn: Rgb,
    /// What is not as it should be.
    pub bad: Rgb,
    /// Text of what is as it should be.
    pub good_text: Rgb,
    /// Text of what asks for a look.
    pub warn_text: Rgb,
    /// Text of what is not as it should be.
    pub bad_text: Rgb,
    /// Hues of few workers.
    pub few: [Rgb; FEW],
    /// Hues of more workers.
    pub many: [Rgb; MANY],
}

const fn rgb(hex: u32) -> Rgb {
    [(hex >> 16) as u8, (hex >> 8) as u8, hex as u8]
}

impl Theme {
    /// Light.
    pub const LIGHT: Self = Self {
        ground: rgb(0xffffff),
        text: rgb(0x1f2328),
        quiet: rgb(0x555d69),
        line: rgb(0xdcdfe4),
        edge: rgb(0x8a919c),
        shared: rgb(0x8b929c),
        replicas: [rgb(0xcad2dd), rgb(0xa1adbf), rgb(0x7e8c95), rgb(0x575f6b)],
        no_worker: rgb(0xe3e6ea),
        raised: rgb(0xeef0f2),
        focus: rgb(0x1a56cf),
        warn: rgb(0xb87a00),
        bad: rgb(0xcf222e),
        good_text: rgb(0x156a2d),
        warn_text: rgb(0x7d5200),
        bad_text: rgb(0xb3182a),
        few: [rgb(0x4f86f8), rgb(0x1d5246), rgb(0x6e1083), rgb(0x84698b)],
        many: [
            rgb(0x7535f0),
            rgb(0x244b3f),
            rgb(0x9a7fb5),
            rgb(0x627776),
            rgb(0x4f21a9),
            rgb(0x7f5791),
            rgb(0x8f7bfa),
            rgb(0x4e355a),
        ],
    };

    /// Dark.
    pub const DARK: Self = Self {
        ground: rgb(0x181b1f),
        text: rgb(0xdfe1e6),
        quiet: rgb(0x9ea4af),
        line: rgb(0x2c3038),
        edge: rgb(0x6b7280),
        shared: rgb(0x767d8a),
        replicas: [rgb(0x373b47), rgb(0x48516a), rgb(0x707b89), rgb(0x909498)],
        no_worker: rgb(0x2a2d34),
        raised: rgb(0x22252b),
        focus: rgb(0x8ab4ff),
        warn: rgb(0xe0a82e),
        bad: rgb(0xf0555d),
        good_text: rgb(0x63cf9c),
        warn_text: rgb(0xf0c04f),
        bad_text: rgb(0xff8f8f),
        few: [rgb(0x99fbe1), rgb(0x715cd6), rgb(0xb5a4ea), rgb(0x845b6d)],
        many: [
            rgb(0x6a92ad),
            rgb(0x99fbe1),
            rgb(0x9670ec),
            rgb(0xe5a6c1),
            rgb(0x655f9f),
            rgb(0xd4d2fe),
            rgb(0x845b6d),
            rgb(0xc39afa),
        ],
    };

    /// What a box of a session is filled with.
    pub fn session(&self, session: Option<BoxSession>) -> Rgb {
        let colour = |slot: Slot| self.many[slot.at() % MANY];
        of_session(session, [self.ground, self.shared, self.quiet], colour)
    }

    /// Hue of a worker, one of `workers`.
    pub fn worker(&self, worker: WorkerIx, workers: usize) -> Rgb {
        match workers <= FEW {
            true => self.few[worker.slot().at() % FEW],
            false => self.many[worker.slot().at() % self.many.len()],
        }
    }
}

/// From little to much, distinguishable with any colour-vision deficiency; the same in both themes.
pub const HEAT: [Rgb; 9] = [
    rgb(0x00224e),
    rgb(0x123570),
    rgb(0x3b496c),
    rgb(0x575d6d),
    rgb(0x6b6d72),
    rgb(0x8f8b77),
    rgb(0xa99f74),
    rgb(0xc8b866),
    rgb(0xfde737),
];

/// The colour of `share`, 0 (little) … 1 (much), between the two nearest of [`HEAT`].
pub fn ramp(share: f64) -> Rgb {
    let last = HEAT.len() - 1;
    let at = if share > 0.0 { share.min(1.0) * last as f64 } else { 0.0 };
    let below = (at as usize).min(last - 1);
    let part = at - below as f64;
    blend(HEAT[below], HEAT[below + 1], part)
}

#[cfg(test)]
#[path = "colours_tests.rs"]
mod tests;
