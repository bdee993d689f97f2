//! The channels of a recording and what their messages are.

/// A channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// The whole state: one message a frame, in order.
    Keyframes,
    /// Records: one message a frame.
    Batches,
    /// Routing decisions as JSON.
    Decisions,
    /// Findings as they begin and end, as JSON.
    Findings,
    /// A row a second, as JSON.
    Timeline,
}

impl Channel {
    /// All of them.
    pub const ALL: [Channel; 5] =
        [Channel::Keyframes, Channel::Batches, Channel::Decisions, Channel::Findings, Channel::Timeline];

    /// Its topic in the file.
    pub const fn topic(self) -> &'static str {
        match self {
            Channel::Keyframes => "/keyframes",
            Channel::Batches => "/batches",
            Channel::Decisions => "/decisions",
            Channel::Findings => "/findings",
            Channel::Timeline => "/timeline",
        }
    }

    /// Its number in files that we write: numbers begin with 1.
    pub(crate) const fn number(self) -> u16 {
        self as u16 + 1
    }

    /// Its bit where several are meant.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Which channel a file's number means: by their order in files of ours, by their topics in what other tools rewrote.
#[derive(Clone, Debug)]
pub(crate) struct Numbers([u16; Channel::ALL.len()]);

impl Default for Numbers {
    fn default() -> Self {
        Self(Channel::ALL.map(Channel::number))
    }
}

impl Numbers {
    /// The file maps `number` to the channel of `topic`. Whether that is new.
    pub(crate) fn set(&mut self, number: u16, topic: &str) -> bool {
        let at = Channel::ALL.iter().position(|channel| channel.topic() == topic);
        at.is_some_and(|at| std::mem::replace(&mut self.0[at], number) != number)
    }

    pub(crate) fn channel(&self, number: u16) -> Option<Channel> {
        let at = self.0.iter().position(|&known| known == number)?;
        Channel::ALL.get(at).copied()
    }
}
