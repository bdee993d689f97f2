//! Colours as the style sheet's tokens give them, and which of them a worker has. No colour is written here.

pub use radixscope_export::colour::{Rgb, blend, contrast, css, ink};
pub use radixscope_export::tree::svg::colours::{
    FEW, MANY, REPLICA_SHADES, ReplicaScale, replicas_to_text, shared_body,
};
pub use radixscope_export::tree::svg::label;
use radixscope_model::id::Slot;

/// What distinguishes workers of the same hue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Workers 1 to 8.
    Plain,
    /// Workers 9 to 16.
    Stripes,
    /// Workers 17 to 24.
    Dots,
    /// Workers from 25 on.
    Bars,
}

impl Pattern {
    /// Of a worker.
    pub const fn of(worker: Slot) -> Self {
        match worker.at() / MANY {
            0 => Pattern::Plain,
            1 => Pattern::Stripes,
            2 => Pattern::Dots,
            _ => Pattern::Bars,
        }
    }

    /// Class of the style sheet that draws it.
    pub const fn class(self) -> &'static str {
        match self {
            Pattern::Plain => "plain",
            Pattern::Stripes => "stripes",
            Pattern::Dots => "dots",
            Pattern::Bars => "bars",
        }
    }
}

/// Name of the token with the colour of `worker`, one of `workers`.
pub fn token(worker: Slot, workers: usize) -> String {
    if workers <= FEW {
        format!("--series-few-{}", worker.at() + 1)
    } else {
        format!("--series-{}", worker.at() % MANY + 1)
    }
}

/// Name of the token with a shade of shared blocks.
pub fn replicas_token(shade: usize) -> String {
    format!("--tree-replicas-{}", shade + 1)
}

/// Name of the token with the colour of a session.
pub fn session_token(slot: Slot) -> String {
    token(slot, MANY)
}

/// Colours for the tree and the chart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Palette {
    /// Behind everything.
    pub ground: Rgb,
    /// Blocks that several workers hold, where it is not said how many: their frames.
    pub shared: Rgb,
    /// The same by how many, see [`ReplicaScale`].
    pub replicas: [Rgb; REPLICA_SHADES],
    /// Blocks that are cached on no worker, but are parents of cached ones.
    pub evicted_parent: Rgb,
    /// Text.
    pub text: Rgb,
    /// Quiet text.
    pub quiet: Rgb,
    /// Lines.
    pub line: Rgb,
    /// Ring around what has the focus.
    pub focus: Rgb,
    /// Behind what stands out of the ground.
    pub raised: Rgb,
    /// Blocks that were stored between two moments.
    pub stored: Rgb,
    /// Blocks that were evicted between them.
    pub evicted: Rgb,
    /// Blocks that moved from one worker to another between them.
    pub moved: Rgb,
    /// What asks for a look.
    pub warn: Rgb,
    /// What is not as it should be.
    pub bad: Rgb,
    hues: Vec<Rgb>,
    sessions: [Rgb; MANY],
}

impl Palette {
    /// Reads the tokens for `workers` workers. `value` gives a token's text, `dark` says which half of a
    /// `light-dark()` counts. A token that cannot be read is black, which is seen at once.
    pub fn read(value: impl Fn(&str) -> String, dark: bool, workers: usize) -> Self {
        let colour = |name: &str| parse(&value(name), dark).unwrap_or_default();
        let hues = if workers <= FEW { FEW } else { MANY };
        Self {
            ground: colour("--panel"),
            shared: colour("--tree-shared"),
            replicas: std::array::from_fn(|shade| colour(&replicas_token(shade))),
            evicted_parent: colour("--tree-no-worker"),
            text: colour("--text"),
            quiet: colour("--text-quiet"),
            line: colour("--line"),
            focus: colour("--focus"),
            raised: colour("--raised"),
            stored: colour("--tree-stored"),
            evicted: colour("--tree-evicted"),
            moved: colour("--tree-moved"),
            warn: colour("--warn"),
            bad: colour("--bad"),
            // Workers have these too where they are many: a picture is by one or by the other.
            sessions: std::array::from_fn(|i| colour(&session_token(Slot(i as u16)))),
            hues: (0..hues).map(|i| colour(&token(Slot(i as u16), workers))).collect(),
        }
    }

    /// Colour of a session.
    pub fn session(&self, slot: Slot) -> Rgb {
        self.sessions[slot.at() % MANY]
    }

    /// Colour of a worker.
    pub fn worker(&self, worker: Slot) -> Rgb {
        self.hues.get(worker.at() % self.hues.len().max(1)).copied().unwrap_or_default()
    }
}

/// A colour of a token: `#rrggbb`, or one of two in `light-dark(#…, #…)`.
pub fn parse(token: &str, dark: bool) -> Option<Rgb> {
    let token = token.trim();
    if let Some(pair) = token.strip_prefix("light-dark(").and_then(|rest| rest.strip_suffix(')')) {
        let (light, for_dark) = pair.split_once(',')?;
        return parse(if dark { for_dark } else { light }, dark);
    }
    let digits = token.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let channel = |i: usize| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok();
    Some([channel(0)?, channel(2)?, channel(4)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::token_text;

    fn each_theme(check: impl Fn(bool, Palette, usize)) {
        for dark in [false, true] {
            for workers in [FEW, MANY] {
                check(dark, Palette::read(token_text, dark, workers), workers);
            }
        }
    }

    #[test]
    fn every_worker_stands_out_from_the_panel() {
        each_theme(|dark, palette, workers| {
            for i in 0..workers {
                let colour = palette.worker(Slot(i as u16));
                let ratio = contrast(colour, palette.ground);
                assert!(ratio >= 3.0, "worker {i} of {workers}, dark {dark}: {ratio:.2}");
            }
            assert!(contrast(palette.shared, palette.ground) >= 3.0, "shared, dark {dark}");
            assert!(contrast(palette.focus, palette.ground) >= 3.0, "focus, dark {dark}");
        });
    }

    #[test]
    fn text_is_read_on_panel_and_page() {
        for dark in [false, true] {
            let colour = |name: &str| parse(&token_text(name), dark).expect(name);
            for text in ["--text", "--text-quiet", "--good-text", "--warn-text", "--bad-text", "--link"] {
                for ground in ["--panel", "--page", "--raised"] {
                    let ratio = contrast(colour(text), colour(ground));
                    assert!(ratio >= 4.5, "{text} on {ground}, dark {dark}: {ratio:.2}");
                }
            }
        }
    }

    #[test]
    fn labels_are_read_on_every_box() {
        each_theme(|dark, palette, workers| {
            for colour in (0..workers)
                .map(|i| palette.worker(Slot(i as u16)))
                .chain([palette.shared])
                .chain(palette.replicas)
            {
                assert!(contrast(ink(colour), colour) >= 4.5, "{colour:?}, dark {dark}");
            }
        });
    }

    #[test]
    fn colours_are_written_in_the_tokens_alone() {
        let sheets = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../style");
        for sheet in
            std::fs::read_dir(sheets).expect("style sheets").map(|entry| entry.expect("a file").path())
        {
            if sheet.file_name().is_some_and(|name| name == "tokens.css") {
                continue;
            }
            let text = std::fs::read_to_string(&sheet).expect("a style sheet");
            for literal in [": #", " #", "rgb(", "rgba(", "hsl(", "white", "black"] {
                let found = text.lines().find(|l| l.contains(literal) && !l.contains("white-space"));
                assert_eq!(found, None, "{literal:?} in {}", sheet.display());
            }
        }
    }

    #[test]
    fn a_token_gives_the_colour_of_its_theme() {
        assert_eq!(parse(" light-dark(#ffffff, #181b1f) ", true), Some([0x18, 0x1b, 0x1f]));
        assert_eq!(parse("light-dark(#ffffff, #181b1f)", false), Some([255; 3]));
        assert_eq!(parse("#010203", true), Some([1, 2, 3]));
        assert_eq!([parse("red", true), parse("#12345", true), parse("#ggggggg", true)], [None; 3]);
    }

    #[test]
    fn a_hue_that_repeats_has_a_pattern() {
        assert_eq!(token(Slot(3), 4), "--series-few-4");
        assert_eq!(token(Slot(9), 20), "--series-2");
        assert_eq!(
            [0, 8, 16, 24, 99].map(|i| Pattern::of(Slot(i)).class()),
            ["plain", "stripes", "dots", "bars", "bars"]
        );
    }
}
