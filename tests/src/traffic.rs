//! What the clients of a recorded deployment measured by their own clocks.

use radixscope_captures::Recording;
use serde::Deserialize;

/// Times to the first token of the requests that were answered, seconds, ascending.
pub fn ttft_s(capture: &str) -> Vec<f64> {
    #[derive(Deserialize)]
    struct Request {
        t0: f64,
        status: Option<u16>,
        t_first: Option<f64>,
    }
    let requests = Recording::fixture(capture).traffic::<Request>();
    let answered = requests.filter(|request| request.status == Some(200));
    let mut times: Vec<f64> = answered.filter_map(|r| Some(r.t_first? - r.t0)).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The value that the share `q` of `sorted` does not exceed.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = (q * sorted.len() as f64).ceil() as usize;
    sorted[at.clamp(1, sorted.len()) - 1]
}
