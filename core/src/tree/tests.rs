//! Behaviour of the tree, against a plain model and by hand.
