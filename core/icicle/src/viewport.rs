//! Which part of the tree is looked at, and how its coordinates become pixels. Knows no colour and no canvas.

use radixscope_state::tree::forest::{ChainId, Forest, Window};

pub use radixscope_state::tree::forest::Region;

/// A region on a surface of so many device pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Viewport {
    /// What is shown.
    pub region: Region,
    /// Device pixels across.
    pub width: u32,
    /// Device pixels down.
    pub height: u32,
    /// Device pixels per CSS pixel.
    pub scale: f64,
}

/// A rectangle in device pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rect {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Right edge.
    pub right: f64,
    /// Lower edge.
    pub bottom: f64,
}

impl Rect {
    /// The part of it on a surface of so many device pixels; its edges are the wrong way round where nothing is.
    pub fn within(self, width: f64, height: f64) -> Self {
        Self {
            left: self.left.max(0.0),
            top: self.top.max(0.0),
            right: self.right.min(width),
            bottom: self.bottom.min(height),
        }
    }
}

impl Viewport {
    /// Pixel of a place in units.
    pub fn x(&self, x: f64) -> f64 {
        (x - self.region.x0) * (f64::from(self.width) / (self.region.x1 - self.region.x0))
    }

    /// Pixel of a block position.
    pub fn y(&self, position: f64) -> f64 {
        (position - self.region.top) * (f64::from(self.height) / (self.region.bottom - self.region.top))
    }

    /// The region with the columns it is drawn on.
    pub fn window(&self) -> Window {
        let Region { x0, x1, top, bottom } = self.region;
        Window { x0, x1, top, bottom, columns: self.width }
    }

    /// Where something of so many units at `x0` stands, between two block positions; may reach beyond the surface.
    pub fn rect(&self, x0: f64, units: f64, top: u32, bottom: u32) -> Rect {
        Rect {
            left: self.x(x0),
            top: self.y(f64::from(top)),
            right: self.x(x0 + units),
            bottom: self.y(f64::from(bottom)),
        }
    }

    /// Where a box stands.
    pub fn rect_of(&self, forest: &Forest, id: ChainId) -> Rect {
        let chain = forest.chain(id);
        self.rect(f64::from(forest.left(id)), f64::from(chain.width()), chain.position, chain.end())
    }

    /// What lies under a device pixel: units and block position.
    pub fn under(&self, x: f64, y: f64) -> (f64, f64) {
        let r = self.region;
        let across = x / f64::from(self.width.max(1));
        let down = y / f64::from(self.height.max(1));
        (r.x0 + across * (r.x1 - r.x0), r.top + down * (r.bottom - r.top))
    }
}

/// Positions of axis marks within `top … bottom`: round steps, at least `gap` pixels apart on `height` pixels.
pub fn marks(top: f64, bottom: f64, height: f64, gap: f64) -> Vec<u64> {
    let span = bottom - top;
    if span <= 0.0 || height <= 0.0 {
        return Vec::new();
    }
    let least = span * gap / height;
    let mut step = 1u64;
    // 1, 2, 4, 8 … are the field's round numbers up to 64 blocks, then they stay powers of two as well.
    while (step as f64) < least {
        step *= 2;
    }
    let first = (top.max(0.0) / step as f64).ceil() as u64 * step;
    (0..).map(|i| first + i * step).take_while(|&at| at as f64 <= bottom).collect()
}

/// Moves labels that want to stand at these heights, from the top down, so that each is `gap` below the one before and none
/// is above `top`; and below `bottom` only as many as there is no room for.
pub fn keep_apart(heights: &mut [f64], gap: f64, top: f64, bottom: f64) {
    let mut least = top;
    for y in heights.iter_mut() {
        *y = y.max(least);
        least = *y + gap;
    }
    let mut most = bottom;
    let room = ((bottom - top) / gap).max(0.0) as usize + 1;
    for (i, y) in heights.iter_mut().enumerate().rev() {
        if i < room {
            *y = y.min(most.max(top + i as f64 * gap));
            most = *y - gap;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: Viewport = Viewport {
        region: Region { x0: 0.5, x1: 1.0, top: 100.0, bottom: 200.0 },
        width: 1000,
        height: 500,
        scale: 1.0,
    };

    #[test]
    fn pixels_and_coordinates_agree() {
        assert_eq!((VIEW.x(0.75), VIEW.y(150.0)), (500.0, 250.0));
        assert_eq!(VIEW.under(500.0, 250.0), (0.75, 150.0));
    }

    #[test]
    fn marks_keep_their_distance() {
        assert_eq!(marks(0.0, 400.0, 400.0, 60.0), [0, 64, 128, 192, 256, 320, 384]);
        assert_eq!(marks(0.0, 4.0, 400.0, 60.0), [0, 1, 2, 3, 4]);
        assert_eq!(marks(100.0, 200.0, 100.0, 60.0), [128, 192]);
        assert!(marks(5.0, 5.0, 100.0, 60.0).is_empty());
    }

    fn spread_out(heights: &[f64]) -> Vec<f64> {
        let mut heights = heights.to_vec();
        keep_apart(&mut heights, 10.0, 5.0, 95.0);
        heights
    }

    #[test]
    fn labels_that_have_room_stay_and_others_move_apart() {
        assert_eq!(spread_out(&[20.0, 40.0, 60.0]), [20.0, 40.0, 60.0]);
        assert_eq!(spread_out(&[20.0, 21.0, 60.0]), [20.0, 30.0, 60.0]);
        assert_eq!(spread_out(&[0.0, 0.0]), [5.0, 15.0]);
        assert_eq!(spread_out(&[90.0, 91.0, 92.0]), [75.0, 85.0, 95.0]);
        assert_eq!(spread_out(&[]), [0.0; 0]);
    }

    #[test]
    fn labels_never_stand_on_each_other() {
        for count in 1..15 {
            let heights = spread_out(&vec![90.0; count]);
            assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 10.0), "{heights:?}");
            assert!(heights[0] >= 5.0 && (count > 10 || heights[count - 1] <= 95.0), "{heights:?}");
        }
    }

    #[test]
    fn a_zoom_begins_and_ends_where_it_should() {
        let all = Region { x0: 0.0, x1: 1.0, top: 0.0, bottom: 10.0 };
        assert_eq!(all.towards(VIEW.region, 0.0), all);
        assert_eq!(all.towards(VIEW.region, 1.0), VIEW.region);
    }
}
