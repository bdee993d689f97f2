//! How much a figure rises over time, and how well that is known. Pure.

/// A line through points of several groups that share its slope: each group has its own level.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slope {
    /// By how much `y` rises when `x` rises by one.
    pub per_x: f64,
    /// Its standard error, widened for neighbours that are alike: memory now is much like memory ten seconds ago.
    pub error: f64,
}

/// The slope by least squares; `None` if there are too few points for one.
pub fn slope(groups: &[Vec<(f64, f64)>]) -> Option<Slope> {
    let (mut along, mut up) = (0.0, 0.0);
    let centred: Vec<Vec<(f64, f64)>> =
        groups.iter().filter(|group| group.len() > 2).map(|g| centre(g)).collect();
    for (x, y) in centred.iter().flatten() {
        along += x * x;
        up += x * y;
    }
    if along <= 0.0 {
        return None;
    }
    let per_x = up / along;
    let (mut squares, mut neighbours) = (0.0, 0.0);
    for group in &centred {
        let rests: Vec<f64> = group.iter().map(|(x, y)| y - per_x * x).collect();
        squares += rests.iter().map(|rest| rest * rest).sum::<f64>();
        neighbours += rests.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
    }
    let count: usize = centred.iter().map(Vec::len).sum();
    let free = count.checked_sub(1 + centred.len()).filter(|free| *free > 0)?;
    // How alike neighbours are, from 0 to nearly 1: so many points say as much as one.
    let alike = if squares > 0.0 { (neighbours / squares).clamp(0.0, 0.99) } else { 0.0 };
    let widened = (1.0 + alike) / (1.0 - alike);
    Some(Slope { per_x, error: (squares / free as f64 / along * widened).sqrt() })
}

/// The points about their mean.
fn centre(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    points.iter().map(|point| (point.0 - x, point.1 - y)).collect()
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn parts_share_a_slope_and_not_a_level() {
        let group =
            |level: f64| (0..10).map(|x| (f64::from(x), level + 2.0 * f64::from(x))).collect::<Vec<_>>();
        let slope = slope(&[group(100.0), group(-50.0)]).expect("enough points");
        assert!((slope.per_x - 2.0).abs() < 1e-9 && slope.error < 1e-9, "{slope:?}");
    }
}
