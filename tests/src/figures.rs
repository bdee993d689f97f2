//! What each capture must come to, counted from its raw messages by other means than ours; and the comparison with
//! what the API says.

use serde_json::Value;

/// Figures of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figures {
    /// Blocks held at the end, by ascending worker id; `None`: no KV event was received from it.
    pub blocks: &'static [Option<u64>],
    /// Blocks in stored events.
    pub stored: u64,
    /// Hashes in removed events.
    pub removed: u64,
    /// Tree nodes that some worker holds.
    pub nodes: u64,
    /// Tree nodes that two or more hold.
    pub shared: u64,
    /// Routing decisions, their prompt blocks, and of these those that the chosen worker held.
    pub decisions: (u64, u64, u64),
}

/// Figures of the capture of this name.
pub fn of(capture: &str) -> Figures {
    const NONE: (u64, u64, u64) = (0, 0, 0);
    let (blocks, stored, removed, nodes, shared, decisions): (&'static [Option<u64>], _, _, _, _, _) =
        match capture {
            "0.9.1-healthy" => {
                (&[Some(1599), Some(1598), Some(1599)], 15_624, 10_828, 3059, 1737, (278, 71_721, 57_155))
            }
            "0.9.1-healthy-vllm" => {
                (&[Some(1600), Some(1600), Some(1600)], 12_806, 8006, 3432, 1239, (283, 73_050, 61_427))
            }
            "0.9.1-localindexer" => {
                (&[Some(1599), Some(1599), Some(1598)], 12_397, 7601, 3248, 1548, (239, 61_335, 49_834))
            }
            "0.9.1-log-jsonl-info" => {
                (&[Some(1540), Some(1599), Some(1599)], 5657, 919, 2981, 1493, (87, 21_143, 15_779))
            }
            // Workers and router disagree on the block size: stored events are empty, removed ones go on.
            "0.9.1-mismatch" => (&[Some(0), Some(0), Some(0)], 0, 8915, 0, 0, (276, 71_192, 0)),
            "0.9.1-no-events" => (&[None, None, None], 0, 0, 0, 0, (156, 39_357, 0)),
            // The restarted worker comes back under a new id and is a fourth one.
            "0.9.1-worker-restart" => (
                &[Some(1599), Some(1597), Some(1599), Some(1484)],
                14_978,
                8699,
                3889,
                1676,
                (282, 72_730, 58_747),
            ),
            "1.6.1-healthy" => (&[Some(1598), Some(1599), Some(1599)], 13_892, 9096, 3190, 1269, NONE),
            "1.6.1-log-jsonl-debug" => (&[Some(1563), Some(1599), Some(1599)], 5098, 337, 3536, 1132, NONE),
            "1.6.1-mismatch" => (&[Some(0), Some(0), Some(0)], 0, 7013, 0, 0, NONE),
            "1.6.1-router-restart" => (&[Some(1599), Some(1599), Some(1599)], 11_178, 6381, 3008, 1316, NONE),
            other => panic!("no figures for {other}"),
        };
    Figures { blocks, stored, removed, nodes, shared, decisions }
}

impl Figures {
    /// Compares with a response of `/api/v1/cluster`; the words say the first difference.
    pub fn check_cluster(&self, cluster: &Value) -> Result<(), String> {
        let workers = cluster["workers"].as_array().ok_or("no workers in the response")?;
        let blocks: Vec<Option<u64>> =
            by_id(workers).iter().map(|worker| worker["blocks"].as_u64()).collect();
        same("blocks per worker", &blocks.as_slice(), &self.blocks)?;
        same("stored", &sum(workers, "stored_total"), &self.stored)?;
        same("removed", &sum(workers, "removed_total"), &self.removed)?;
        same("tree nodes", &number(&cluster["tree"], "nodes"), &self.nodes)?;
        same("shared tree nodes", &number(&cluster["tree"], "shared"), &self.shared)?;
        let resident = self.blocks.iter().flatten().sum::<u64>();
        same("resident blocks", &number(&cluster["tree"], "resident"), &resident)
    }

    /// Compares with a response of `/api/v1/decisions` that holds all of them.
    pub fn check_decisions(&self, response: &Value) -> Result<(), String> {
        let decisions = response["decisions"].as_array().ok_or("no decisions in the response")?;
        let sums = (decisions.len() as u64, sum(decisions, "isl_blocks"), sum(decisions, "overlap_blocks"));
        same("decisions, prompt blocks, overlap blocks", &sums, &self.decisions)
    }
}

/// Workers of a response by ascending id: decimal strings, compared as the numbers they are.
pub fn by_id(workers: &[Value]) -> Vec<&Value> {
    let key = |worker: &Value| {
        let id = worker["worker_id"].as_str().expect("ids are strings").parse::<u64>().expect("of a u64");
        (id, worker["dp_rank"].as_u64())
    };
    let mut workers: Vec<&Value> = workers.iter().collect();
    workers.sort_by_key(|worker| key(worker));
    workers
}

/// A text in which workers are called `worker`, whether it names them by id (`worker 7/0`), as the API does, or by label (`W1`,
/// `W1.2`), as the page does.
pub fn without_names(text: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let name = word.trim_end_matches([',', ':', ';', '.']);
        let end = &word[name.len()..];
        let is_label = name.strip_prefix('W').is_some_and(|label| label.split('.').all(is_number));
        let is_id = name.split_once('/').is_some_and(|(id, rank)| is_number(id) && is_number(rank));
        match words.last_mut() {
            Some(last) if is_id && last == "worker" => *last += end,
            _ if is_label => words.push(format!("worker{end}")),
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// Sum of a field over rows; missing or null counts as 0.
pub fn sum(rows: &[Value], field: &str) -> u64 {
    rows.iter().map(|row| row[field].as_u64().unwrap_or(0)).sum()
}

/// A number that has to be there.
pub fn number(of: &Value, field: &str) -> u64 {
    of[field].as_u64().unwrap_or_else(|| panic!("{field} should be a number in {of}"))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, want: &T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: {got:?} instead of {want:?}")) }
}
