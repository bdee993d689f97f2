//! Boxes coloured by how much or how recent something is, on one scale from dark to bright.
//!
//! ```text
//! recency   age of the latest touch, logarithmic: 1 s and less … the age of the oldest box, in steps
//! hits      requests of the window, logarithmic: 0 … a power of two at or above the most of any box
//! owners    replica count: 1 … all of them, step by step up to 16, then three more steps
//! ```

use radixscope_export::tree::recency;
use radixscope_model::id::{Millis, Slot};
use radixscope_state::cluster::touched_ms;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Chain, Forest, Holder, Sliver};

use crate::palette::{Palette, Rgb, blend, parse};
use crate::raster::{DIMMED, Fill, Fills, MAX_TICKS, lacks, lacks_sliver};
use radixscope_model::number_format;

/// Steps of the scale that have a token of their own.
pub const STEPS: usize = 9;
/// Colours between the tokens that can be distinguished.
const SHADES: usize = 256;
/// The clock for ages goes in steps of this: a picture must not be drawn anew only because time passes.
pub const CLOCK_MS: u64 = 5_000;

/// The scale's colours.
#[derive(Clone, PartialEq, Debug)]
pub struct Scale {
    shades: Box<[Rgb; SHADES]>,
}

impl Scale {
    /// Reads the tokens `--heat-0` … `--heat-8`, as [`Palette::read`] does.
    pub fn read(value: impl Fn(&str) -> String, dark: bool) -> Self {
        let token = |i: usize| parse(&value(&format!("--heat-{i}")), dark).unwrap_or_default();
        let stops: [Rgb; STEPS] = std::array::from_fn(token);
        let shade = |i: usize| {
            let along = (i * (STEPS - 1)) as f64 / (SHADES - 1) as f64;
            let at = (along as usize).min(STEPS - 2);
            blend(stops[at], stops[at + 1], along - at as f64)
        };
        Self { shades: Box::new(std::array::from_fn(shade)) }
    }

    /// The colour at `share`, 0 … 1; what lies beyond is at the ends.
    pub fn at(&self, share: f64) -> Rgb {
        // A share that is no number is the smallest.
        self.shades[(share.max(0.0) * (SHADES - 1) as f64).round().min((SHADES - 1) as f64) as usize]
    }
}

/// What is shown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Measure {
    /// Age of the latest touch.
    Recency {
        /// The clock, see [`clock`].
        now: Millis,
        /// Where the scale ends, in milliseconds, see [`recency::end_ms`].
        oldest_ms: u64,
    },
    /// Requests that found it held.
    Hits {
        /// Where the scale ends, see [`hits_end`]; `None`: no request was received, so that nothing is known.
        end: Option<u32>,
    },
    /// How many workers hold it.
    Owners {
        /// How many there are.
        workers: usize,
    },
}

/// The clock that ages are counted from.
pub fn clock(now: Millis) -> Millis {
    Millis(now.0 / CLOCK_MS * CLOCK_MS)
}

/// End of the scale of hits: a power of two, so that colours change rarely.
pub fn hits_end(most: u32) -> u32 {
    most.max(1).checked_next_power_of_two().unwrap_or(u32::MAX)
}

/// Most hits of any box: a box never has more than the one above it.
pub fn most_hits(forest: &Forest) -> u32 {
    forest.children(None).iter().map(|&id| forest.chain(id).sums.hits).max().unwrap_or(0)
}

/// Where a number of hits stands, 0 … 1 at `end`.
pub fn of_hits(hits: u32, end: u32) -> f64 {
    f64::from(hits).ln_1p() / f64::from(end.max(1)).ln_1p()
}

/// Where a number of owners, at least 1, stands among so many workers, 0 … 1.
pub fn of_owners(owners: usize, workers: usize) -> f64 {
    /// What the first [`MAX_TICKS`] owners have of the scale where there may be more.
    const FEW: f64 = 0.7;
    let beyond = owners.saturating_sub(1) as f64;
    if workers <= MAX_TICKS {
        return beyond / workers.saturating_sub(1).max(1) as f64;
    }
    match owners {
        0..=MAX_TICKS => FEW * beyond / (MAX_TICKS - 1) as f64,
        17..=32 => 0.8,
        33..=64 => 0.9,
        _ => 1.0,
    }
}

/// Fills by one measure.
pub struct ByHeat<'a> {
    /// Colours of everything else.
    pub palette: &'a Palette,
    /// Colours of the measure.
    pub scale: &'a Scale,
    /// What is shown.
    pub measure: Measure,
    /// The worker picked out: what it does not hold is dimmed.
    pub picked: Option<Slot>,
}

impl ByHeat<'_> {
    fn fill(&self, is_held: bool, owners: usize, touched: u32, hits: u32, is_dimmed: bool) -> Fill {
        let share = match self.measure {
            Measure::Recency { now, oldest_ms } => {
                Some(recency::share(now.since(touched_ms(touched)), oldest_ms))
            }
            Measure::Hits { end } => end.map(|end| of_hits(hits, end)),
            Measure::Owners { workers } => Some(of_owners(owners, workers)),
        };
        let colour = match share {
            Some(share) if is_held => self.scale.at(share),
            _ => self.palette.evicted_parent,
        };
        Fill::plain(if is_dimmed { blend(self.palette.ground, colour, DIMMED) } else { colour })
    }
}

impl Fills for ByHeat<'_> {
    fn of_chain(&self, tree: &Tree, chain: &Chain) -> Fill {
        let (owners, sums) = (tree.chain_owners(chain), &chain.sums);
        self.fill(!owners.is_empty(), owners.len(), sums.touched, sums.hits, lacks(self.picked, owners))
    }

    fn of_sliver(&self, sliver: &Sliver) -> Fill {
        let owners = match sliver.holder {
            Holder::NoWorker => 0,
            Holder::One(_) => 1,
            Holder::Several => sliver.replicas(),
        };
        let is_dimmed = lacks_sliver(self.picked, sliver);
        self.fill(owners > 0, owners, sliver.touched, sliver.hits, is_dimmed)
    }

    fn of_tick(&self, _: Slot) -> Option<Fill> {
        None
    }

    fn word(&self, tree: &Tree, chain: &Chain) -> Option<String> {
        let owners = tree.chain_owners(chain).len();
        if owners == 0 {
            return None;
        }
        match self.measure {
            Measure::Recency { .. } => Some(String::new()),
            Measure::Hits { end: None } => Some(String::new()),
            Measure::Hits { end: Some(_) } => {
                Some(number_format::plural(chain.sums.hits.into(), "hit", "hits"))
            }
            Measure::Owners { .. } => Some(number_format::plural(owners as u64, "worker", "workers")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale() -> Scale {
        Scale::read(|name| format!("#{0}{0}{0}{0}{0}{0}", &name[7..]), true)
    }

    #[test]
    fn the_scale_goes_through_its_tokens() {
        let scale = scale();
        assert_eq!([scale.at(0.0), scale.at(1.0)], [[0x00; 3], [0x88; 3]]);
        assert_eq!(scale.at(f64::NAN), [0x00; 3]);
        assert_eq!([scale.at(-1.0), scale.at(7.0)], [[0x00; 3], [0x88; 3]]);
        let middle = scale.at(0.5)[0];
        assert!((0x43..=0x45).contains(&middle), "{middle:x}");
    }

    #[test]
    fn the_end_of_hits_changes_only_when_the_most_doubles() {
        assert_eq!([0, 1, 2, 3, 33, 64, u32::MAX].map(hits_end), [1, 1, 2, 4, 64, 64, u32::MAX]);
        assert_eq!([of_hits(0, 64), of_hits(64, 64)], [0.0, 1.0]);
        assert!(of_hits(1, 64) > 0.1, "one hit is seen");
    }

    #[test]
    fn owners_are_distinguished_one_by_one_up_to_sixteen() {
        assert_eq!([of_owners(1, 8), of_owners(8, 8), of_owners(1, 1)], [0.0, 1.0, 0.0]);
        let shares = [1, 2, 15, 16, 17, 32, 33, 64, 65, 200].map(|n| of_owners(n, 200));
        assert!(shares.is_sorted() && shares[3] < shares[4] && shares[5] < shares[6] && shares[9] == 1.0);
    }

    #[test]
    fn the_clock_stands_still_between_steps() {
        assert_eq!(clock(Millis(12_345)), clock(Millis(14_999)));
        assert!(clock(Millis(15_000)) > clock(Millis(14_999)));
    }
}
