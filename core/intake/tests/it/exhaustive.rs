//! What takes minutes, and runs before an issue is resolved.

use crate::any_pace;

#[test]
fn exhaustive_every_pace_and_any_interleaving_give_the_same_decisions() {
    any_pace::compare_all();
}
