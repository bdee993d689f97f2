//! A query as every version understands it: what one does not know of it, it ignores.

use super::super::request_plane::Codec;
use radixscope_model::id::Worker;

/// Which blocks are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeRequest {
    /// Whose.
    pub worker: Worker,
    /// The events from this one on. `None`: everything that it holds.
    pub start_event_id: Option<u64>,
}

impl TreeRequest {
    /// Writes it.
    pub fn encode(&self, codec: Codec) -> Vec<u8> {
        match codec {
            Codec::Json => self.json().into_bytes(),
            Codec::MsgPack => self.msgpack(),
        }
    }

    fn json(&self) -> String {
        let start = self.start_event_id.map_or_else(|| "null".to_owned(), |id| id.to_string());
        format!(
            r#"{{"worker_id":{},"dp_rank":{},"start_event_id":{start},"end_event_id":null,"supports_tree_dump_failed":true,"kind":"recovery"}}"#,
            self.worker.id.0, self.worker.dp_rank
        )
    }

    fn msgpack(&self) -> Vec<u8> {
        // A map of six.
        let mut out = vec![0x86];
        text(&mut out, "worker_id");
        integer(&mut out, self.worker.id.0);
        text(&mut out, "dp_rank");
        integer(&mut out, u64::from(self.worker.dp_rank));
        text(&mut out, "start_event_id");
        match self.start_event_id {
            Some(id) => integer(&mut out, id),
            None => out.push(0xc0),
        }
        text(&mut out, "end_event_id");
        out.push(0xc0);
        text(&mut out, "supports_tree_dump_failed");
        out.push(0xc3);
        text(&mut out, "kind");
        text(&mut out, "recovery");
        out
    }
}

/// All texts of a query are shorter than 32 bytes.
fn text(out: &mut Vec<u8>, text: &str) {
    out.push(0xa0 | text.len() as u8);
    out.extend(text.as_bytes());
}

fn integer(out: &mut Vec<u8>, value: u64) {
    if let Ok(small) = u8::try_from(value) {
        if small > 0x7f {
            out.push(0xcc);
        }
        out.push(small);
    } else if let Ok(two) = u16::try_from(value) {
        out.push(0xcd);
        out.extend(two.to_be_bytes());
    } else if let Ok(four) = u32::try_from(value) {
        out.push(0xce);
        out.extend(four.to_be_bytes());
    } else {
        out.push(0xcf);
        out.extend(value.to_be_bytes());
    }
}
