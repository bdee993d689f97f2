//! What the timeline's buttons say, and which of them can be pressed.

use crate::changes::NAMES;
use crate::time_zone::TimeZone;
use crate::url::Address;

/// The speed of real time: speeds are in quarters of it.
pub const REAL_TIME: u32 = 4;
/// Speeds in quarters of real time, with their names.
pub const SPEEDS: [(u32, &str); 9] = [
    (1, "0.25×"),
    (2, "0.5×"),
    (REAL_TIME, "1×"),
    (8, "2×"),
    (16, "4×"),
    (32, "8×"),
    (64, "16×"),
    (128, "32×"),
    (256, "64×"),
];
/// What can be stepped to: its name in the list, and what the buttons call it.
pub const STEPS: [(&str, &str); 3] = [
    ("Decision", "decision"),
    ("Finding", "finding or worker change"),
    ("Block", "block of the selected worker"),
];

/// A speed's name; empty: there is none such.
pub fn speed_name(speed: u32) -> &'static str {
    SPEEDS.into_iter().find(|(known, _)| *known == speed).map_or("", |(_, name)| name)
}

/// What a button that steps does, with this entry of [`STEPS`] chosen.
pub fn step_title(is_forward: bool, step: usize) -> String {
    let side = if is_forward { "next" } else { "previous" };
    format!("To the {side} {}", STEPS.get(step).map_or("", |(_, what)| what))
}

/// The button that plays and pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayButton {
    /// What it does.
    pub title: &'static str,
    /// Whether it plays, else it pauses.
    pub plays: bool,
}

impl PlayButton {
    /// While the past is shown (`is_back`), which plays or stands still.
    pub const fn of(is_back: bool, is_playing: bool) -> Self {
        match (is_back, is_playing) {
            (false, _) => Self { title: "Pause (Space)", plays: false },
            (true, false) => Self { title: "Play (Space)", plays: true },
            (true, true) => Self { title: "Pause the replay (Space)", plays: false },
        }
    }
}

/// The buttons that mark moments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkButtons {
    /// What each of the two does, and which moment it has marked.
    pub titles: [String; 2],
    /// Whether each has marked one.
    pub are_marked: [bool; 2],
    /// Whether they can be swapped.
    pub can_swap: bool,
    /// Whether there is something to clear.
    pub can_clear: bool,
}

impl MarkButtons {
    /// Of the moments that the address marks; those of a second recording are not swapped.
    pub fn of(address: &Address, is_second: bool, zone: TimeZone) -> Self {
        let title = |side: usize| {
            let name = NAMES[side];
            let is =
                address.marks[side].map_or(String::new(), |at| format!("; it is {}", zone.time_of_day(at)));
            format!("Mark the moment shown as {name} ({name}){is}")
        };
        let [a, b] = address.marks.map(|mark| mark.is_some());
        Self {
            titles: [title(0), title(1)],
            are_marked: [a, b],
            can_swap: a && !is_second,
            can_clear: a || b,
        }
    }
}
