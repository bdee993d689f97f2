//! Behaviour of the fold.
