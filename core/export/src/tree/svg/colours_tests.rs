use super::super::cam02::{Vision, distance};
use super::*;
use crate::colour::contrast;

/// Least distance of any worker's colour from the colours that states have.
const FROM_STATES: f64 = 20.0;
/// Least distance from the grey of shared blocks, in every vision.
const FROM_SHARED: f64 = 9.0;

/// A colour of the style sheet, its half for this theme.
fn token(name: &str, dark: bool) -> Rgb {
    let sheet = include_str!("../../../../../style/tokens.css");
    let line = sheet.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": light-dark("));
    let pair = line.and_then(|line| line.strip_suffix(");")).unwrap_or_else(|| panic!("{name} is no token"));
    let (light, for_dark) = pair.split_once(", ").expect("two colours");
    let hex = if dark { for_dark } else { light };
    rgb(u32::from_str_radix(hex.trim_start_matches('#'), 16).expect("a colour"))
}

fn each_set(check: impl Fn(&str, bool, &Theme, &[Rgb])) {
    for (dark, theme) in [(false, Theme::LIGHT), (true, Theme::DARK)] {
        let name = if dark { "dark" } else { "light" };
        check(&format!("{name}, few"), dark, &theme, &theme.few);
        check(&format!("{name}, many"), dark, &theme, &theme.many);
    }
}

#[test]
fn no_worker_looks_like_a_state() {
    each_set(|set, dark, _, hues| {
        for (at, &hue) in hues.iter().enumerate() {
            for state in ["--good", "--warn", "--bad"] {
                let apart = distance(hue, token(state, dark), Vision::Normal);
                assert!(apart >= FROM_STATES, "{set}: worker {at} and {state}: {apart:.1}");
            }
        }
    });
}

#[test]
fn workers_are_distinguishable_in_every_vision() {
    each_set(|set, _, _, hues| {
        let least = if hues.len() == FEW { 20.0 } else { 13.0 };
        for vision in Vision::ALL {
            for (at, &a) in hues.iter().enumerate() {
                for (other, &b) in hues.iter().enumerate().skip(at + 1) {
                    let apart = distance(a, b, vision);
                    assert!(apart >= least, "{set}, {vision:?}: workers {at} and {other}: {apart:.1}");
                }
            }
        }
    });
}

#[test]
fn workers_stand_out_from_the_panel_and_from_shared_blocks() {
    each_set(|set, _, theme, hues| {
        for (at, &hue) in hues.iter().enumerate() {
            let ratio = contrast(hue, theme.ground);
            assert!(ratio >= 3.0, "{set}: worker {at}: {ratio:.2}");
            for vision in Vision::ALL {
                let apart = distance(hue, theme.shared, vision);
                assert!(apart >= FROM_SHARED, "{set}, {vision:?}: worker {at} and shared: {apart:.1}");
            }
        }
    });
}

#[test]
fn replicas_are_told_by_depth_and_from_every_worker_and_state() {
    /// Least distance of a shade from the next, in every vision.
    const FROM_NEXT: f64 = 10.0;
    for (dark, theme) in [(false, Theme::LIGHT), (true, Theme::DARK)] {
        for (at, &shade) in theme.replicas.iter().enumerate() {
            for state in ["--good", "--warn", "--bad"] {
                let apart = distance(shade, token(state, dark), Vision::Normal);
                assert!(apart >= FROM_STATES, "dark {dark}: shade {at} and {state}: {apart:.1}");
            }
            for vision in Vision::ALL {
                for &hue in theme.few.iter().chain(&theme.many) {
                    let apart = distance(shade, hue, vision);
                    assert!(
                        apart >= FROM_SHARED,
                        "dark {dark}, {vision:?}: shade {at} and {hue:?}: {apart:.1}"
                    );
                }
                let below = theme.replicas[..at].last().unwrap_or(&theme.no_worker);
                let apart = distance(shade, *below, vision);
                let least = if at == 0 { 6.0 } else { FROM_NEXT };
                assert!(apart >= least, "dark {dark}, {vision:?}: shade {at} and the one before: {apart:.1}");
            }
        }
        let ratios = theme.replicas.map(|shade| contrast(shade, theme.ground));
        assert!(ratios.is_sorted() && ratios[0] >= 1.5 && ratios[2] >= 3.0, "dark {dark}: {ratios:?}");
    }
}

#[test]
fn the_steps_of_replicas_cover_every_number_once() {
    for workers in 0..200 {
        let scale = ReplicaScale::of(workers);
        let steps: Vec<_> = scale.steps().collect();
        assert_eq!(steps.last().map(|(shade, _)| *shade), Some(REPLICA_SHADES - 1), "{workers} workers");
        assert!(steps.is_sorted_by(|(a, _), (b, _)| a < b), "{workers} workers: {steps:?}");
        let mut next = 2;
        for (shade, replicas) in &steps {
            assert_eq!(*replicas.start(), next, "{workers} workers: {steps:?}");
            assert!(replicas.clone().all(|count| scale.shade(count) == *shade), "{workers}: {steps:?}");
            next = replicas.end() + 1;
        }
        assert_eq!(next, workers.max(2) + 1, "{workers} workers: {steps:?}");
        assert_eq!(scale.shade(workers + 7), REPLICA_SHADES - 1, "more than there are");
    }
}

#[test]
fn steps_are_single_numbers_for_few_workers_and_factors_for_many() {
    let text = |workers: usize| {
        let steps = ReplicaScale::of(workers).steps().map(|(_, range)| replicas_to_text(&range, workers));
        steps.collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(
        [2, 3, 4, 8, 16, 100].map(text),
        [
            "2: all",
            "2 | 3: all",
            "2 | 3 | 4: all",
            "2 | 3–4 | 5–7 | 8: all",
            "2–3 | 4–7 | 8–15 | 16: all",
            "2–6 | 7–26 | 27–99 | 100: all"
        ]
    );
}

#[test]
fn changes_are_distinguished_in_every_vision_and_from_what_is_kept() {
    for (dark, theme) in [(false, Theme::LIGHT), (true, Theme::DARK)] {
        let changes = ["--tree-stored", "--tree-evicted", "--tree-moved"].map(|name| token(name, dark));
        let retained = shared_body(theme.ground, theme.shared);
        for (at, &change) in changes.iter().enumerate() {
            assert!(contrast(change, theme.ground) >= 3.0, "change {at}, dark {dark}");
            for vision in Vision::ALL {
                for &other in changes.iter().skip(at + 1).chain([&retained]) {
                    let apart = distance(change, other, vision);
                    assert!(apart >= 30.0, "dark {dark}, {vision:?}: change {at} and {other:?}: {apart:.1}");
                }
            }
        }
    }
}

#[test]
fn distances_are_those_of_the_published_space() {
    // White and black, by the definition of its lightness.
    assert!((distance([255; 3], [0; 3], Vision::Normal) - 100.0).abs() < 0.1);
    assert_eq!(distance([1, 2, 3], [1, 2, 3], Vision::Tritan), 0.0);
    // Red and green of one lightness are far apart, and near for those who do not see the difference.
    let (red, green) = ([0xcc, 0x44, 0x44], [0x66, 0x88, 0x22]);
    assert!(distance(red, green, Vision::Normal) > 2.0 * distance(red, green, Vision::Deutan));
}

#[test]
fn the_colours_are_those_of_the_style_sheet() {
    for (dark, theme) in [(false, Theme::LIGHT), (true, Theme::DARK)] {
        let all = [
            ("--panel", theme.ground),
            ("--text", theme.text),
            ("--text-quiet", theme.quiet),
            ("--line", theme.line),
            ("--edge", theme.edge),
            ("--tree-shared", theme.shared),
            ("--tree-no-worker", theme.no_worker),
            ("--raised", theme.raised),
            ("--focus", theme.focus),
            ("--warn", theme.warn),
            ("--bad", theme.bad),
            ("--good-text", theme.good_text),
            ("--warn-text", theme.warn_text),
            ("--bad-text", theme.bad_text),
        ];
        for (name, colour) in all {
            assert_eq!(colour, token(name, dark), "{name}, dark {dark}");
        }
        for (at, &colour) in theme.replicas.iter().enumerate() {
            assert_eq!(colour, token(&format!("--tree-replicas-{}", at + 1), dark));
        }
        let hue = |set: &str, at: usize| token(&format!("--series-{set}{}", at + 1), dark);
        for (at, &colour) in theme.few.iter().enumerate() {
            assert_eq!(colour, hue("few-", at));
        }
        for (at, &colour) in theme.many.iter().enumerate() {
            assert_eq!(colour, hue("", at));
        }
    }
}
