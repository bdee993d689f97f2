//! Requests as a Mooncake trace, JSON line by JSON line, which load generators such as aiperf send again: when each arrived, how long
//! prompt and response were, and which blocks of the prompts are the same. Blocks are numbered in the order in which they first occur, so a
//! trace shows which prompts have a prefix in common and nothing of what is in them.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use serde::Serialize;

use radixscope_model::id::Millis;
use radixscope_state::requests::{Arrival, Arrivals};

/// A request in the trace.
#[derive(Serialize)]
struct Line<'a> {
    /// Milliseconds since the first request.
    timestamp: u64,
    /// Prompt length in tokens.
    input_length: u64,
    /// Output length in tokens; unknown: left out, and the load generator's own default applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_length: Option<u64>,
    /// A number for each block of the prompt, the last one possibly not full.
    hash_ids: &'a [u64],
}

/// Numbers of blocks.
#[derive(Default)]
struct Numbers {
    of: BTreeMap<u64, u64>,
    next: u64,
}

impl Numbers {
    /// The number of a block with everything before it.
    fn of(&mut self, chain_hash: u64) -> u64 {
        *self.of.entry(chain_hash).or_insert_with(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// A number that no block has.
    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

/// Writes the trace of `arrivals`, whose prompts are cut into blocks of `block_size_tokens`.
///
/// # Errors
/// Those of `to`.
pub fn write(arrivals: &Arrivals, block_size_tokens: u32, to: &mut impl Write) -> Result<()> {
    let mut in_order: Vec<&Arrival> = arrivals.iter().collect();
    in_order.sort_by_key(|arrival| arrival.at_ms);
    let begin = in_order.first().map_or(Millis(0), |arrival| arrival.at_ms);
    let block_size = u64::from(block_size_tokens.max(1));
    let (mut numbers, mut chain, mut hash_ids) = (Numbers::default(), Vec::new(), Vec::new());
    for arrival in in_order {
        arrivals.prompt(arrival, &mut chain);
        hash_ids.clear();
        hash_ids.extend(chain.iter().map(|&hash| numbers.of(hash)));
        let full = chain.len() as u64 * block_size;
        // Of a length that the blocks contradict only what is full is certain.
        let input_length = arrival.isl_tokens.filter(|&isl| (full..full + block_size).contains(&isl));
        let input_length = input_length.unwrap_or(full);
        if input_length > full {
            // What is in the last block is in no hash.
            hash_ids.push(numbers.fresh());
        }
        if input_length == 0 {
            continue;
        }
        let timestamp = arrival.at_ms.since(begin);
        let line =
            Line { timestamp, input_length, output_length: arrival.output_tokens, hash_ids: &hash_ids };
        serde_json::to_writer(&mut *to, &line)?;
        to.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::DecisionId;

    use super::*;

    #[test]
    fn blocks_are_numbered_by_what_they_and_those_before_them_are() {
        let mut arrivals = Arrivals::default();
        arrivals.push(DecisionId(1), Millis(5_000), Some(70), &[901, 902, 903, 904]);
        arrivals.push(DecisionId(2), Millis(5_250), Some(48), &[901, 902, 905]);
        arrivals.push(DecisionId(3), Millis(5_250), None, &[901]);
        // Shorter than a block, a length of another request, nothing known at all.
        arrivals.push(DecisionId(4), Millis(6_000), Some(7), &[]);
        arrivals.push(DecisionId(5), Millis(6_001), Some(7_000), &[905]);
        arrivals.push(DecisionId(6), Millis(6_002), None, &[]);
        arrivals.finished(DecisionId(1), 12);
        let mut written = Vec::new();
        write(&arrivals, 16, &mut written).unwrap();
        let expected = r#"{"timestamp":0,"input_length":70,"output_length":12,"hash_ids":[0,1,2,3,4]}
{"timestamp":250,"input_length":48,"hash_ids":[0,1,5]}
{"timestamp":250,"input_length":16,"hash_ids":[0]}
{"timestamp":1000,"input_length":7,"hash_ids":[6]}
{"timestamp":1001,"input_length":16,"hash_ids":[5]}
"#;
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}
