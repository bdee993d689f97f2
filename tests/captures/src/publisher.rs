//! A ZeroMQ PUB socket: written from the protocol's description, with none of the code that reads it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::port::free_port;

/// Nothing that is waited for takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A PUB socket with its subscribers. Ends when it is dropped.
pub struct Publisher {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// Of ZMTP 3.
    minor: u8,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    subscribers: Vec<Subscriber>,
    /// Connections taken so far.
    accepted: u64,
    pings: u64,
    is_mute: bool,
    has_ended: bool,
}

struct Subscriber {
    id: u64,
    stream: TcpStream,
    prefixes: Vec<Vec<u8>>,
}

impl Publisher {
    /// On a free port, speaking ZMTP 3.`minor`. Nobody else gets it before another comes [`at`](Self::at) its address.
    pub fn bind(minor: u8) -> Self {
        Self::at(([127, 0, 0, 1], free_port()).into(), minor)
    }

    /// On this address, which may have been another's just now.
    pub fn at(address: SocketAddr, minor: u8) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared { minor, state: Mutex::default(), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Self { address, shared }
    }

    /// Where it is bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as Dynamo announces it.
    pub fn endpoint(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// How many are subscribed to something that `topic` begins with.
    pub fn subscribers(&self, topic: &str) -> usize {
        self.shared.state().subscribers.iter().filter(|one| one.wants(topic.as_bytes())).count()
    }

    /// Waits until so many are subscribed to something that `topic` begins with.
    pub fn wait_for_subscribers(&self, topic: &str, count: usize) {
        self.wait("subscribers", |state| {
            state.subscribers.iter().filter(|one| one.wants(topic.as_bytes())).count() >= count
        });
    }

    /// Waits until so many connections were taken, from the start.
    pub fn wait_for_connections(&self, count: u64) {
        self.wait("connections", |state| state.accepted >= count);
    }

    /// Waits until there is no subscriber any more.
    pub fn wait_for_no_subscriber(&self) {
        self.wait("the last subscriber to go", |state| state.subscribers.is_empty());
    }

    /// Waits until so many heartbeats came.
    pub fn wait_for_pings(&self, count: u64) {
        self.wait("heartbeats", |state| state.pings >= count);
    }

    /// From now on heartbeats are not answered.
    pub fn be_mute(&self) {
        self.shared.state().is_mute = true;
    }

    /// Sends a message to whoever wants it.
    pub fn publish(&self, frames: &[impl AsRef<[u8]>]) {
        let topic = frames.first().map_or(&[][..], AsRef::as_ref);
        let bytes = message(frames);
        let mut state = self.shared.state();
        for subscriber in state.subscribers.iter_mut().filter(|one| one.wants(topic)) {
            // One that has gone is removed where its end is read.
            let _ = subscriber.stream.write_all(&bytes);
        }
    }

    /// The same to those whose sockets take it at once: what a real one does with those who are slow.
    pub fn offer(&self, frames: &[impl AsRef<[u8]>]) -> bool {
        let topic = frames.first().map_or(&[][..], AsRef::as_ref);
        let bytes = message(frames);
        let mut state = self.shared.state();
        let mut is_taken = true;
        for one in state.subscribers.iter_mut().filter(|one| one.wants(topic)) {
            one.stream.set_nonblocking(true).expect("a socket");
            match one.stream.write(&bytes) {
                Ok(written) if written == bytes.len() => {}
                Ok(written) => {
                    one.stream.set_nonblocking(false).expect("a socket");
                    let _ = one.stream.write_all(&bytes[written..]);
                }
                Err(error) => is_taken &= error.kind() != ErrorKind::WouldBlock,
            }
            one.stream.set_nonblocking(false).expect("a socket");
        }
        is_taken
    }

    /// Sends bytes as they are to everybody.
    pub fn send_raw(&self, bytes: &[u8]) {
        for subscriber in &mut self.shared.state().subscribers {
            let _ = subscriber.stream.write_all(bytes);
        }
    }

    /// Ends all connections and waits until they are gone; new ones are taken.
    pub fn disconnect(&self) {
        let mut cut = Vec::new();
        for subscriber in &self.shared.state().subscribers {
            let _ = subscriber.stream.shutdown(Shutdown::Both);
            cut.push(subscriber.id);
        }
        // Some are here again before the last is gone.
        self.wait("what was cut to go", |state| state.subscribers.iter().all(|one| !cut.contains(&one.id)));
    }

    fn wait(&self, what: &str, is_there: impl Fn(&State) -> bool) {
        let state = self.shared.state();
        let waited = self.shared.changed.wait_timeout_while(state, PATIENCE, |state| !is_there(state));
        let (_state, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!outcome.timed_out(), "waited in vain for {what} at {}", self.address);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.has_ended = true;
            for subscriber in &state.subscribers {
                let _ = subscriber.stream.shutdown(Shutdown::Both);
            }
        }
        // Wakes the thread that accepts, which then closes the socket; the port is free once it refuses.
        while TcpStream::connect(self.address).is_ok() {}
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            let mut state = self.state();
            if state.has_ended {
                return;
            }
            let Ok(stream) = stream else { continue };
            state.accepted += 1;
            let (id, shared) = (state.accepted, Arc::clone(&self));
            drop(state);
            self.changed.notify_all();
            thread::spawn(move || {
                // However it ends, the subscriber is gone.
                let _ = shared.serve(id, stream);
                shared.state().subscribers.retain(|subscriber| subscriber.id != id);
                shared.changed.notify_all();
            });
        }
    }

    fn serve(&self, id: u64, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut greeting = [0; 64];
        (greeting[0], greeting[8], greeting[9], greeting[10], greeting[11]) = (0xff, 1, 0x7f, 3, self.minor);
        greeting[12..16].copy_from_slice(b"NULL");
        stream.write_all(&greeting)?;
        stream.read_exact(&mut greeting)?;
        stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB")?;
        loop {
            let (flags, body) = read_frame(&mut stream)?;
            let mut state = self.state();
            let is_command = flags & 4 != 0;
            if is_command && body.starts_with(b"\x05READY") {
                let stream = stream.try_clone()?;
                state.subscribers.push(Subscriber { id, stream, prefixes: Vec::new() });
            } else if is_command && body.starts_with(b"\x04PING") {
                state.pings += 1;
                if !state.is_mute {
                    let mut pong = vec![4, (body.len() - 2) as u8, 4];
                    pong.extend_from_slice(b"PONG");
                    pong.extend_from_slice(&body[7..]);
                    stream.write_all(&pong)?;
                }
            } else if let Some(prefix) = subscription(is_command, &body)
                && let Some(subscriber) = state.subscribers.iter_mut().find(|one| one.id == id)
            {
                subscriber.prefixes.push(prefix.to_vec());
            }
            drop(state);
            self.changed.notify_all();
        }
    }
}

/// What somebody subscribes to: a command since 3.1, a message before.
fn subscription(is_command: bool, body: &[u8]) -> Option<&[u8]> {
    if is_command { body.strip_prefix(b"\x09SUBSCRIBE") } else { body.strip_prefix(&[1]) }
}

impl Subscriber {
    fn wants(&self, topic: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| topic.starts_with(prefix))
    }
}

pub(crate) fn read_frame(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut flags = [0; 1];
    stream.read_exact(&mut flags)?;
    let length = if flags[0] & 2 == 0 {
        let mut length = [0; 1];
        stream.read_exact(&mut length)?;
        u64::from(length[0])
    } else {
        let mut length = [0; 8];
        stream.read_exact(&mut length)?;
        u64::from_be_bytes(length)
    };
    let mut body = vec![0; usize::try_from(length).expect("subscribers say little")];
    stream.read_exact(&mut body)?;
    Ok((flags[0], body))
}

/// A message in the protocol's bytes.
pub(crate) fn message(frames: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let frame = frame.as_ref();
        let more = u8::from(at + 1 < frames.len());
        if frame.len() < 256 {
            bytes.extend_from_slice(&[more, frame.len() as u8]);
        } else {
            bytes.push(more | 2);
            bytes.extend_from_slice(&(frame.len() as u64).to_be_bytes());
        }
        bytes.extend_from_slice(frame);
    }
    bytes
}

/// Dynamo's four frames round an envelope.
pub fn frames(topic: &str, publisher_id: u64, sequence: u64, envelope: &[u8]) -> [Vec<u8>; 4] {
    let mut body = vec![1];
    body.extend_from_slice(&(envelope.len() as u32).to_be_bytes());
    body.extend_from_slice(envelope);
    [topic.into(), publisher_id.to_be_bytes().into(), sequence.to_be_bytes().into(), body]
}
