//! What users say: made up of plain words, the same for the same seed. A few starters are shared by all conversations, so that their
//! prompts have prefixes in common; each turn sends the whole conversation so far and a new question. Knows no endpoint.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::words::WORDS;

/// Starters that conversations share.
pub(crate) const STARTERS: u64 = 5;
/// Length of a starter, in tokens.
pub(crate) const STARTER_TOKENS: RangeInclusive<u32> = 3_500..=4_000;
/// Turns of a conversation.
pub(crate) const TURNS: RangeInclusive<u32> = 3..=5;
/// Length of a question, in tokens.
pub(crate) const QUESTION_TOKENS: RangeInclusive<u32> = 100..=300;
/// Length of the prompt with which tokens per word are learned, in words.
const TRIAL_WORDS: u32 = 500;
/// A ratio beyond these is none of a tokenizer and text.
const TOKENS_PER_WORD: RangeInclusive<f64> = 0.25..=8.0;

/// Kinds of random numbers, so that no two kinds depend on each other.
const STARTER_LENGTH: u64 = 1;
const STARTER_WORD: u64 = 2;
const STARTER_OF: u64 = 3;
const TURNS_OF: u64 = 4;
const QUESTION_LENGTH: u64 = 5;
const QUESTION_WORD: u64 = 6;

/// What all conversations are made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Script {
    /// The same seed gives the same conversations.
    pub(super) seed: u64,
    /// As learned from the endpoint; see [`tokens_per_word`].
    pub(super) tokens_per_word: f64,
}

/// A conversation of one user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Conversation {
    seed: u64,
    number: u64,
    /// Of each question, in words.
    questions: Vec<u32>,
    /// The question that was asked last.
    at: usize,
    messages: Vec<Message>,
}

/// As the endpoint takes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Message {
    role: &'static str,
    content: String,
}

impl Script {
    /// The conversation of this number with its first question.
    pub(super) fn conversation(&self, number: u64) -> Conversation {
        let starter = self.random([STARTER_OF, number, 0]) % STARTERS;
        let length = self.within(&STARTER_TOKENS, [STARTER_LENGTH, starter, 0]);
        let starter = text(self.seed, [STARTER_WORD, starter], self.words(length));
        let turns = self.within(&TURNS, [TURNS_OF, number, 0]);
        let question = |turn| self.words(self.within(&QUESTION_TOKENS, [QUESTION_LENGTH, number, turn]));
        let questions = (0..u64::from(turns)).map(question).collect();
        Conversation::begin(self.seed, number, starter, questions)
    }

    fn words(&self, tokens: u32) -> u32 {
        (f64::from(tokens) / self.tokens_per_word).round().max(1.0) as u32
    }

    fn within(&self, range: &RangeInclusive<u32>, of: [u64; 3]) -> u32 {
        let choices = u64::from(range.end() - range.start()) + 1;
        range.start() + (self.random(of) % choices) as u32
    }

    fn random(&self, of: [u64; 3]) -> u64 {
        random(self.seed, of)
    }
}

impl Conversation {
    /// A short one of one turn, the first that is sent.
    pub(super) fn trial(seed: u64) -> Self {
        let starter = text(seed, [STARTER_WORD, STARTERS], TRIAL_WORDS - 1);
        Self::begin(seed, u64::MAX, starter, vec![1])
    }

    fn begin(seed: u64, number: u64, starter: String, questions: Vec<u32>) -> Self {
        let messages = vec![Message { role: "system", content: starter }];
        let mut this = Self { seed, number, questions, at: 0, messages };
        this.ask();
        this
    }

    fn ask(&mut self) {
        let stream = [QUESTION_WORD.wrapping_add((self.at as u64) << 8), self.number];
        let words = self.questions.get(self.at).copied().unwrap_or(1);
        self.messages.push(Message { role: "user", content: text(self.seed, stream, words) });
    }

    /// The history and the question that is asked now.
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Adds the answer and the next question. `None`: that was the last turn.
    pub(super) fn answered(mut self, answer: String) -> Option<Self> {
        self.at += 1;
        if self.at >= self.questions.len() {
            return None;
        }
        self.messages.push(Message { role: "assistant", content: answer });
        self.ask();
        Some(self)
    }
}

/// What the trial shows: roughly, because the chat template adds tokens.
pub(super) fn tokens_per_word(prompt_tokens: u32) -> f64 {
    let ratio = f64::from(prompt_tokens) / f64::from(TRIAL_WORDS);
    ratio.clamp(*TOKENS_PER_WORD.start(), *TOKENS_PER_WORD.end())
}

/// Words of a stream; a shorter text is the beginning of a longer one.
fn text(seed: u64, [kind, stream]: [u64; 2], words: u32) -> String {
    let mut text = String::new();
    for at in 0..u64::from(words) {
        let word = WORDS[(random(seed, [kind, stream, at]) % WORDS.len() as u64) as usize];
        // Writing to a string cannot fail.
        let _ = if at == 0 { write!(text, "{word}") } else { write!(text, " {word}") };
    }
    text
}

fn random(seed: u64, [kind, a, b]: [u64; 3]) -> u64 {
    let mut bytes = [0; 24];
    for (to, from) in bytes.chunks_exact_mut(8).zip([kind, a, b]) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    xxh3_64_with_seed(&bytes, seed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SCRIPT: Script = Script { seed: 42, tokens_per_word: 1.0 };

    fn words(message: &Message) -> u32 {
        message.content.split(' ').count() as u32
    }

    /// All turns of a conversation, each answered with `answer`.
    fn turns(conversation: Conversation, answer: &str) -> Vec<Vec<Message>> {
        let next = |turn: &Conversation| turn.clone().answered(answer.to_owned());
        std::iter::successors(Some(conversation), next).map(|turn| turn.messages).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_conversations_and_another_gives_others() {
        for number in 0..20 {
            assert_eq!(SCRIPT.conversation(number), SCRIPT.conversation(number));
            assert_ne!(SCRIPT.conversation(number).messages, SCRIPT.conversation(number + 1).messages);
            let other = Script { seed: 43, ..SCRIPT };
            assert_ne!(SCRIPT.conversation(number).messages, other.conversation(number).messages);
        }
    }

    #[test]
    fn conversations_share_a_few_starters_of_the_promised_length() {
        let mut starters: BTreeMap<String, u32> = BTreeMap::new();
        for number in 0..200 {
            let conversation = SCRIPT.conversation(number);
            let starter = &conversation.messages[0];
            assert!(STARTER_TOKENS.contains(&words(starter)));
            *starters.entry(starter.content.clone()).or_default() += 1;
        }
        assert_eq!(starters.len() as u64, STARTERS);
        assert!(starters.values().all(|&uses| uses >= 10), "{:?}", starters.values());
    }

    #[test]
    fn each_turn_is_the_conversation_so_far_and_a_new_question() {
        let mut seen = BTreeMap::new();
        for number in 0..100 {
            let turns = turns(SCRIPT.conversation(number), "as they said");
            *seen.entry(turns.len() as u32).or_insert(0) += 1;
            for pair in turns.windows(2) {
                let [before, after] = pair else { panic!("two") };
                assert_eq!(after[..before.len()], before[..], "a prefix of the next prompt");
                let [answer, question] = &after[before.len()..] else { panic!("an answer and a question") };
                assert_eq!(
                    (answer.role, &*answer.content, question.role),
                    ("assistant", "as they said", "user")
                );
                assert!(QUESTION_TOKENS.contains(&words(question)));
                assert!(before.iter().all(|message| message.content != question.content));
            }
        }
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), TURNS.collect::<Vec<_>>());
    }

    #[test]
    fn what_is_learned_of_tokens_changes_lengths_and_not_beginnings() {
        let trial = Conversation::trial(42);
        assert_eq!(trial.messages.iter().map(words).sum::<u32>(), TRIAL_WORDS);
        assert_eq!(trial.answered(String::new()), None, "one turn");
        let ratio = tokens_per_word(1_000);
        assert_eq!(ratio, 2.0);
        let shorter = Script { tokens_per_word: ratio, ..SCRIPT }.conversation(7);
        let longer = SCRIPT.conversation(7);
        assert!((1_750..=2_000).contains(&words(&shorter.messages[0])));
        assert!(longer.messages[0].content.starts_with(&shorter.messages[0].content));
        assert_eq!((tokens_per_word(0), tokens_per_word(u32::MAX)), (0.25, 8.0), "whatever is reported");
    }

    #[test]
    fn words_are_plain_and_each_is_there_once() {
        let mut sorted = WORDS.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), WORDS.len());
        assert!(WORDS.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }
}
