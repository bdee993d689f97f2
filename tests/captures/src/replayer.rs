//! A ZeroMQ ROUTER socket that sends an engine's recent batches again: written from the protocol's description, with none of the code that
//! reads it. Each request is answered from what is in the ring then, with its topic or without one as engines of a version do.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;

use crate::publisher::{message, read_frame};

/// See the module. Ends when it is dropped.
pub struct Replayer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    has_topic: bool,
    ring: Mutex<Ring>,
    requests: AtomicU64,
    has_ended: Mutex<bool>,
}

#[derive(Default)]
struct Ring {
    batches: Vec<(u64, Bytes)>,
    /// Replies that are sent for a request; the others are dropped.
    most: Option<usize>,
}

impl Replayer {
    /// On a free port, with an empty ring.
    pub fn bind(has_topic: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (ring, requests) = (Mutex::default(), AtomicU64::new(0));
        let shared = Arc::new(Shared { has_topic, ring, requests, has_ended: Mutex::new(false) });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if *accepting.has_ended.lock().unwrap_or_else(PoisonError::into_inner) {
                    return;
                }
                let shared = Arc::clone(&accepting);
                thread::spawn(move || stream.and_then(|stream| shared.serve(stream)));
            }
        });
        Self { address, shared }
    }

    /// Where it is bound, as `tcp://HOST:PORT`.
    pub fn endpoint(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// Puts a batch into the ring.
    pub fn keep(&self, sequence: u64, batch: &Bytes) {
        self.ring(|ring| ring.batches.push((sequence, batch.clone())));
    }

    /// Empties the ring: another process.
    pub fn clear(&self) {
        self.ring(|ring| ring.batches.clear());
    }

    /// From now on so many replies are sent for a request, as a socket does whose queue is full.
    pub fn send_at_most(&self, replies: usize) {
        self.ring(|ring| ring.most = Some(replies));
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Acquire)
    }

    fn ring<T>(&self, ask: impl FnOnce(&mut Ring) -> T) -> T {
        ask(&mut self.shared.ring.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Replayer {
    fn drop(&mut self) {
        *self.shared.has_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut greeting = [0; 64];
        (greeting[0], greeting[8], greeting[9], greeting[10], greeting[11]) = (0xff, 1, 0x7f, 3, 1);
        greeting[12..16].copy_from_slice(b"NULL");
        stream.write_all(&greeting)?;
        stream.read_exact(&mut greeting)?;
        stream.write_all(b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER")?;
        loop {
            let (flags, body) = read_frame(&mut stream)?;
            // Commands and the empty frame before the number.
            if flags & 4 != 0 || body.len() != 8 {
                continue;
            }
            let from = u64::from_be_bytes(body[..].try_into().expect("eight bytes"));
            self.requests.fetch_add(1, Ordering::AcqRel);
            let replies: Vec<(u64, Bytes)> = {
                let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
                let wanted = ring.batches.iter().filter(|(sequence, _)| *sequence >= from);
                wanted.take(ring.most.unwrap_or(usize::MAX)).cloned().collect()
            };
            for (sequence, batch) in replies {
                stream.write_all(&self.reply(sequence, &batch))?;
            }
            stream.write_all(&self.reply(u64::MAX, &[]))?;
        }
    }

    fn reply(&self, sequence: u64, batch: &[u8]) -> Vec<u8> {
        let sequence = sequence.to_be_bytes();
        match self.has_topic {
            true => message(&[&[][..], b"", &sequence, batch]),
            false => message(&[&[][..], &sequence, batch]),
        }
    }
}
