//! Hours of a server among everything that happens to one: workers that are replaced, viewers that come and go, brokers and targets
//! that are killed, a disk that fills up. `checkpoint` is what is written down meanwhile, `verdict` and `plot` what follows from it.

pub mod checkpoint;
pub mod deployment;
pub mod plot;
pub mod verdict;
pub mod viewers;
pub mod worker;
