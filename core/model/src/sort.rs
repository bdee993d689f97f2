//! Sorting what is shown. The order is that of the standard library's stable sorts, whose code is made anew for every type
//! of item and every comparison: some four kilobytes each, two dozen times in the page. Here one sort serves all; what is
//! sorted many times a second keeps the standard library's.

use std::cmp::Ordering;

/// Sorts `items` by `compare`; equal ones keep their order.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut order = order(items.len(), &mut |a, b| compare(&items[a], &items[b]));
    arrange(&mut order, &mut |a, b| items.swap(a, b));
}

/// Sorts `items` by their `key`; equal ones keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Which item stands at each place once they are sorted.
fn order(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

/// Puts the item `order[place]` at each place, one cycle of the order after the other.
fn arrange(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..order.len() {
        let mut place = first;
        loop {
            let item = std::mem::replace(&mut order[place], place);
            if item == first || item == place {
                break;
            }
            swap(place, item);
            place = item;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{sort_by, sort_by_key};

    /// Numbers that look random, the same each time.
    fn numbers(count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59, at)).collect()
    }

    #[test]
    fn the_order_is_that_of_the_standard_library_and_equal_ones_keep_theirs() {
        for count in [0, 1, 2, 3, 20, 21, 1_000] {
            let mut expected = numbers(count);
            expected.sort_by_key(|&(key, _)| key);
            let mut got = numbers(count);
            sort_by_key(&mut got, |&(key, _)| key);
            assert_eq!(got, expected, "{count}");
        }
    }

    #[test]
    fn a_rotation_and_a_reversal_are_undone() {
        let mut rotated: Vec<u32> = (1..100).chain([0]).collect();
        sort_by(&mut rotated, Ord::cmp);
        let mut reversed: Vec<u32> = (0..100).rev().collect();
        sort_by(&mut reversed, Ord::cmp);
        assert!(rotated == reversed && rotated.is_sorted());
    }
}
