//! Known colours for tests.

use radixscope_icicle::palette::Palette;

/// Colours that can be distinguished.
pub(super) fn palette() -> Palette {
    let value = |name: &str| match name {
        "--panel" => "#101010".to_owned(),
        "--tree-shared" => "#808080".to_owned(),
        "--tree-no-worker" => "#202020".to_owned(),
        other => format!("#{0}{0}{0}0{0}", other.bytes().last().map_or(0, |b| b - b'0').min(9)),
    };
    Palette::read(value, true, 4)
}
