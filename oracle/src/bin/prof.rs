use radixscope_core::cluster::Cluster;
use radixscope_core::id::{Millis, Seq};
use radixscope_core::ingest::{Ingest, Message};
use radixscope_core::record::{Entry, SourceKind};
use radixscope_oracle::capture;
fn main() {
    let name = std::env::args().nth(1).unwrap();
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let messages = capture::kv_events(&name).unwrap();
    for _ in 0..n {
        let (mut ingest, mut cluster, mut seq) = (Ingest::default(), Cluster::default(), 0);
        let mut fold = |entry: Entry<'_>| { seq += 1; cluster.fold(Seq(seq), &entry); };
        let source = ingest.source("capture", SourceKind::Nats, Millis(1), &mut fold).unwrap();
        for m in &messages {
            ingest.message(Message { source, at_ms: Millis(m.at_ms), subject: &m.subject, reply: m.reply.as_deref(), payload: &m.payload }, &mut fold);
        }
        std::hint::black_box(cluster);
    }
}
