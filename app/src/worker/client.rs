//! The page's side: one worker, one job at a time. A new job or a cancelled one ends the worker where it stands, and
//! the next job has a new one: a job need not look whether it is still wanted.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Uint8Array;

use super::running::RunningJob;
use super::{Job, WorkerRequest, WorkerResponse};

/// The worker's script.
const SCRIPT: &str = "worker_loader.js";

/// Hands jobs to a worker.
#[derive(Clone, Default)]
pub struct Client(Rc<RefCell<ClientState>>);

#[derive(Default)]
struct ClientState {
    worker: Option<RunningJob>,
    is_ready: bool,
    last_id: u32,
    /// The job under way, encoded until the worker listens, and who wants to notify of it.
    message: Option<Vec<u8>>,
    notify: Option<Rc<dyn Fn(WorkerResponse)>>,
}

impl Client {
    /// Starts `job` in the place of the one under way. `notify` gets its progress and, last, `Done` or `Failed`;
    /// nothing more once another job is started or it is cancelled.
    pub fn run(&self, job: Job, notify: impl Fn(WorkerResponse) + 'static) {
        self.cancel();
        let mut state = self.0.borrow_mut();
        state.last_id += 1;
        let id = state.last_id;
        state.message = postcard::to_allocvec(&WorkerRequest { id, job }).ok();
        state.notify = Some(Rc::new(notify));
        if state.worker.is_none() {
            (state.worker, state.is_ready) = (self.spawn(), false);
        }
        let spawned = state.worker.is_some();
        drop(state);
        if spawned {
            self.send();
        } else {
            self.end(WorkerResponse::Failed { id, message: "this browser starts no worker".to_owned() });
        }
    }

    /// Ends the job under way, if there is one.
    pub fn cancel(&self) {
        let mut state = self.0.borrow_mut();
        if state.notify.take().is_some() {
            (state.worker, state.message) = (None, None);
        }
    }

    fn spawn(&self) -> Option<RunningJob> {
        let client = Rc::downgrade(&self.0);
        let on_message = move |message: Uint8Array| {
            let Some(client) = client.upgrade().map(Client) else { return };
            if let Ok(response) = postcard::from_bytes(&message.to_vec()) {
                client.on_response(response);
            }
        };
        let client = Rc::downgrade(&self.0);
        let broken = move |why: String| {
            let Some(client) = client.upgrade().map(Client) else { return };
            let id = client.0.borrow().last_id;
            // Whatever it was, the next job has a new worker. This one's listeners are still running.
            let broken = client.0.borrow_mut().worker.take();
            wasm_bindgen_futures::spawn_local(async move { drop(broken) });
            client.end(WorkerResponse::Failed { id, message: format!("the worker failed: {why}") });
        };
        RunningJob::start(SCRIPT, on_message, broken)
    }

    fn send(&self) {
        let mut state = self.0.borrow_mut();
        let ClientState { worker: Some(running), is_ready: true, message, .. } = &mut *state else { return };
        if let Some(bytes) = message.take() {
            running.send(&bytes);
        }
    }

    fn on_response(&self, response: WorkerResponse) {
        match response {
            WorkerResponse::Ready => {
                self.0.borrow_mut().is_ready = true;
                self.send();
            }
            WorkerResponse::Progress { .. } => {
                let notify = self.0.borrow().notify.clone();
                if let Some(notify) = notify {
                    notify(response);
                }
            }
            WorkerResponse::Done { .. } | WorkerResponse::Failed { .. } => self.end(response),
        }
    }

    /// The job is over; who wanted to notify may start another one at once.
    fn end(&self, response: WorkerResponse) {
        let notify = self.0.borrow_mut().notify.take();
        if let Some(notify) = notify {
            notify(response);
        }
    }
}
