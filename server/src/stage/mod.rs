//! What is shown to an audience and steered meanwhile.

pub mod load;
