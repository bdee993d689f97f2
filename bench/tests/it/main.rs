//! What measuring programs send and compare, through a real NATS server and a real `radixscope serve`.

mod full_speed;
mod synthetic_tree;
