//! The page's side of the tokenizer's worker, which is a program of another crate. One file and one text at a time; of the
//! texts that come meanwhile, the last. A worker that breaks off or takes too long is ended, and the next text has a new one.

use std::cell::RefCell;
use std::rc::Rc;

use gloo_timers::callback::Timeout;
use js_sys::Uint8Array;
use radixscope_tokenizer_messages::{Text, TokenizerResponse};
use web_sys::File;

use super::running::RunningJob;

/// The worker's program, and its script.
const PROGRAM: &str = "tokenizer";
const SCRIPT: &str = "tokenizer_loader.js";
/// In place of a worker where the page was built without one.
const LEFT_OUT: &str = "This build has no tokenizer. The released one has; from a checkout, `cargo xtask demo --full` builds it.";
/// The largest files load, and the longest texts take, some seconds.
const PATIENCE_MS: u32 = 60_000;

/// Hands a file and texts to a worker.
#[derive(Clone)]
pub struct Tokenizer(Rc<RefCell<TokenizerState>>);

struct TokenizerState {
    notify: Rc<dyn Fn(TokenizerResponse)>,
    worker: Option<RunningJob>,
    file: Option<File>,
    doing: Doing,
    /// The text to be tokenized next.
    next: Option<Text>,
    patience: Option<Timeout>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    /// Loading the file; `again`: in a new worker, which is not reported.
    Loading {
        again: bool,
    },
    Tokenizing,
}

impl Tokenizer {
    /// `notify` is called for every file, and for the last text.
    pub fn new(notify: impl Fn(TokenizerResponse) + 'static) -> Self {
        let (worker, file, next, patience) = (None, None, None, None);
        Self(Rc::new(RefCell::new(TokenizerState {
            notify: Rc::new(notify),
            worker,
            file,
            doing: Doing::Nothing,
            next,
            patience,
        })))
    }

    /// Takes another file in the place of the one before, in a worker of its own: memory once taken is not given back.
    pub fn load(&self, file: File) {
        {
            let mut state = self.0.borrow_mut();
            (state.file, state.next, state.worker) = (Some(file), None, None);
        }
        self.start(false);
    }

    /// Tokenizes a text, and forgets the one that waits.
    pub fn tokenize(&self, text: Text) {
        let (doing, has_file) = {
            let mut state = self.0.borrow_mut();
            state.next = Some(text);
            (state.doing, state.file.is_some())
        };
        if doing == Doing::Nothing && has_file {
            if self.0.borrow().worker.is_some() { self.go_on() } else { self.start(true) }
        }
    }

    fn start(&self, again: bool) {
        let weak = Rc::downgrade(&self.0);
        let on_message = move |message: Uint8Array| {
            if let (Some(own), Ok(response)) = (weak.upgrade(), postcard::from_bytes(&message.to_vec())) {
                Self(own).on_response(response);
            }
        };
        let weak = Rc::downgrade(&self.0);
        let broken = move |why: String| {
            if let Some(own) = weak.upgrade() {
                let why = if why.is_empty() { "it could not be fetched" } else { &why };
                Self(own).give_up(&format!("The tokenizer failed: {why}."));
            }
        };
        let is_left_out = crate::asset::is_left_out(PROGRAM);
        let worker = match is_left_out {
            true => None,
            false => RunningJob::start(SCRIPT, on_message, broken),
        };
        let spawned = worker.is_some();
        {
            let mut state = self.0.borrow_mut();
            (state.worker, state.doing) = (worker, Doing::Loading { again });
        }
        self.wait();
        if !spawned {
            self.give_up(match crate::asset::address(SCRIPT).as_str() {
                _ if is_left_out => LEFT_OUT,
                "" => "This page is one file without the tokenizer: a page from a server has it.",
                _ => "This browser starts no worker.",
            });
        }
    }

    fn on_response(&self, response: TokenizerResponse) {
        let doing = self.0.borrow().doing;
        let is_news = match (&response, doing) {
            (TokenizerResponse::Ready, _) => {
                let state = self.0.borrow();
                if let (Some(worker), Some(file)) = (&state.worker, &state.file) {
                    worker.send_value(file);
                }
                return;
            }
            (TokenizerResponse::Loaded(Ok(_)), Doing::Loading { again }) => !again,
            (TokenizerResponse::Loaded(Err(_)), _) => {
                let mut state = self.0.borrow_mut();
                (state.file, state.next) = (None, None);
                true
            }
            // Another text is waiting already.
            (TokenizerResponse::Tokens(_), _) => self.0.borrow().next.is_none(),
            (TokenizerResponse::Loaded(Ok(_)), _) => true,
        };
        self.idle();
        if is_news {
            self.notify(response);
        }
        if self.0.borrow().doing == Doing::Nothing {
            self.go_on();
        }
    }

    /// Sends the text that waits, if one does.
    fn go_on(&self) {
        let sent = {
            let mut state = self.0.borrow_mut();
            let TokenizerState { worker: Some(worker), next, doing, .. } = &mut *state else { return };
            match next.take().and_then(|text| postcard::to_allocvec(&text).ok()) {
                Some(bytes) => {
                    worker.send(&bytes);
                    *doing = Doing::Tokenizing;
                    true
                }
                None => false,
            }
        };
        if sent {
            self.wait();
        }
    }

    /// Ends the worker; what it was doing has failed.
    fn give_up(&self, why: &str) {
        let (worker, doing) = {
            let mut state = self.0.borrow_mut();
            state.next = None;
            (state.worker.take(), state.doing)
        };
        // Its listeners may be running.
        wasm_bindgen_futures::spawn_local(async move { drop(worker) });
        self.idle();
        match doing {
            Doing::Loading { again: false } => {
                self.0.borrow_mut().file = None;
                self.notify(TokenizerResponse::Loaded(Err(why.to_owned())));
            }
            Doing::Loading { again: true } | Doing::Tokenizing => {
                self.notify(TokenizerResponse::Tokens(Err(why.to_owned())))
            }
            Doing::Nothing => {}
        }
    }

    fn wait(&self) {
        let weak = Rc::downgrade(&self.0);
        let over = Timeout::new(PATIENCE_MS, move || {
            if let Some(own) = weak.upgrade() {
                Self(own).give_up(&format!(
                    "The tokenizer took more than {} s and was ended.",
                    PATIENCE_MS / 1000
                ));
            }
        });
        self.0.borrow_mut().patience = Some(over);
    }

    fn idle(&self) {
        let over = {
            let mut state = self.0.borrow_mut();
            state.doing = Doing::Nothing;
            state.patience.take()
        };
        drop(over);
    }

    fn notify(&self, response: TokenizerResponse) {
        let notify = Rc::clone(&self.0.borrow().notify);
        notify(response);
    }
}
