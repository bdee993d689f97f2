//! The rules, one file each; adding one is a file and a line here.

mod errors;
mod own_losses;

use super::Rule;

/// Every rule, in the order in which they are listed.
pub(super) const ALL: &[&dyn Rule] = &[&own_losses::OwnLosses, &errors::Errors];
