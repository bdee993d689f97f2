//! Frames into state: hello, snapshot, batches, lag. Compares digests. Knows no socket and no widget.

use leptos::prelude::*;
use radixscope_model::frame::{Batch, Frame, FrameError};
use radixscope_model::id::Seq;
use radixscope_state::cluster::Cluster;

use super::{Link, Live, Store, now_ms};

/// Why a connection cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// The server speaks this protocol version.
    Version(u8),
    /// The state must be fetched anew.
    Resync,
}

/// Changes of the tree that may wait for the next frame to be summed up. A page that is not looked at draws no frame.
const MAX_FOREST_BACKLOG: usize = 65_536;

/// What a batch did.
enum Folded {
    /// Folded; the digests were equal, or were not compared.
    Well { compared: Option<Seq> },
    /// A record is missing or unreadable.
    Unreadable(String),
    /// Our state is not the server's.
    Different,
}

impl Store {
    /// Takes one frame.
    pub fn apply_frame(self, bytes: &[u8]) -> Result<(), Broken> {
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(FrameError::Version { theirs }) => return Err(Broken::Version(theirs)),
            Err(error @ (FrameError::Empty | FrameError::Codec(_))) => {
                return Err(self.unreadable(error.to_string()));
            }
        };
        match frame {
            Frame::Hello { epoch, at_ms, server, .. } => {
                self.server.set(server.into_owned());
                self.live.update_value(|live| {
                    live.speaking = Some(epoch);
                    if live.epoch.is_none() {
                        live.present.now_ms = at_ms;
                        live.received_at_ms = now_ms();
                    }
                });
                Ok(())
            }
            Frame::Snapshot { part, parts, bytes, .. } => self.take_part(part, parts, bytes.0),
            Frame::Batch(batch) => self.apply_batch(&batch),
            Frame::Lag { skipped } => {
                self.resyncs.update(|r| {
                    r.behind += 1;
                    r.skipped += skipped;
                });
                Ok(())
            }
        }
    }

    /// Forgets what the next connection would resume, so that it begins with a snapshot. The state stays visible.
    pub fn forget_place(self) {
        self.live.update_value(|live| {
            live.epoch = None;
            live.reader = None;
        });
    }

    fn unreadable(self, why: String) -> Broken {
        self.resyncs.update(|r| {
            r.unreadable += 1;
            r.why = why;
        });
        Broken::Resync
    }

    fn take_part(self, part: u32, parts: u32, bytes: &[u8]) -> Result<(), Broken> {
        self.link.set(Link::Restoring { part: part + 1, parts });
        let applied = self.live.try_update_value(|live| -> Result<Option<Seq>, String> {
            if part == 0 {
                live.reader = Some(Default::default());
            }
            let reader = live.reader.as_mut().ok_or("a snapshot without a beginning")?;
            let cluster = reader.part(bytes).map_err(|error| error.to_string())?;
            if let Some(cluster) = cluster {
                live.reader = None;
                let seq = cluster.seq();
                // The reader has compared it with the digest that came with the snapshot.
                live.present.digest = Some((seq, cluster.digest()));
                live.present.cluster = cluster;
                live.paused_tree.renew();
                live.epoch = live.speaking;
                return Ok(Some(seq));
            }
            Ok(None)
        });
        match applied {
            Some(Ok(Some(seq))) => {
                self.verified(seq);
                if untrack(|| self.at.get()) == 0 {
                    self.beat_now();
                }
                self.now_live();
                Ok(())
            }
            Some(Ok(None)) => Ok(()),
            Some(Err(why)) => Err(self.unreadable(why)),
            None => Ok(()),
        }
    }

    fn apply_batch(self, batch: &Batch<'_>) -> Result<(), Broken> {
        let Some(folded) = self.live.try_update_value(|live| live.fold(batch)) else { return Ok(()) };
        match folded {
            Folded::Well { compared } => {
                if let Some(seq) = compared {
                    self.verified(seq);
                }
                self.now_live();
                Ok(())
            }
            Folded::Unreadable(why) => Err(self.unreadable(why)),
            Folded::Different => {
                self.check.update(|c| c.different += 1);
                Err(Broken::Resync)
            }
        }
    }

    fn verified(self, seq: Seq) {
        self.check.update(|c| {
            c.verified = Some(seq);
            c.equal += 1;
        });
    }

    fn now_live(self) {
        if self.link.get_untracked() != Link::Live {
            self.link.set(Link::Live);
        }
        if !self.ready.get_untracked() {
            self.ready.set(true);
            // Panels that were opened before the state came show none of it for a moment otherwise.
            self.beat_now();
        }
        if untrack(|| self.at.get()) == 0 {
            self.changed();
        }
    }
}

impl Live {
    fn fold(&mut self, batch: &Batch<'_>) -> Folded {
        if self.epoch != self.speaking {
            // Another run of the server, and it begins with records: they continue the empty state.
            self.present.cluster = Cluster::default();
            self.paused_tree.renew();
            self.epoch = self.speaking;
            self.present.digest = None;
        }
        if batch.first_seq.0 > self.present.cluster.seq().0 + 1 {
            return Folded::Unreadable(format!(
                "records from {} on are missing",
                self.present.cluster.seq().0 + 1
            ));
        }
        self.present.now_ms = batch.at_ms;
        self.received_at_ms = now_ms();
        for entry in batch.entries() {
            match entry {
                Ok((seq, entry)) => self.present.cluster.fold(seq, &entry),
                Err(error) => return Folded::Unreadable(error.to_string()),
            }
        }
        if self.present.cluster.trees().any(|(_, tree)| tree.forest_backlog() > MAX_FOREST_BACKLOG) {
            self.present.cluster.update_forest();
        }
        let seq = self.present.cluster.seq();
        if let Some(theirs) = batch.check {
            let ours = self.present.cluster.digest();
            self.present.digest = Some((seq, ours));
            if ours != theirs.0 {
                return Folded::Different;
            }
            return Folded::Well { compared: Some(seq) };
        }
        // While nothing happens the digest is brought up to date once; while much happens that would cost too much.
        if batch.count == 0 && self.present.digest.is_none_or(|(at, _)| at != seq) {
            self.present.digest = Some((seq, self.present.cluster.digest()));
        }
        Folded::Well { compared: None }
    }
}
