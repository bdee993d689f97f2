//! What DevTools say of a tab, its frames and its workers, event by event. Knows no connection: what has to be asked of a new frame
//! or worker is returned as commands.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::devtools::{Command, thrown};

/// What was seen so far.
#[derive(Default)]
pub(super) struct Seen {
    /// The page's frame, which has the id of the tab.
    page: String,
    session: String,
    is_loading: bool,
    /// Documents of the page in the order in which they came, and whether each was loaded.
    documents: Vec<(String, bool)>,
    /// Frames that have processes and sessions of their own.
    sessions: HashMap<String, String>,
    /// The frame of each context of a session in which a page's scripts run.
    contexts: HashMap<(String, u64), (String, String)>,
    /// Warnings and errors on consoles.
    pub(super) complaints: Vec<String>,
    /// Requests, sockets and their frames.
    pub(super) network: Vec<Value>,
    pub(super) has_crashed: bool,
}

/// What a page or a frame is asked to report.
pub(super) fn listening(is_page: bool, is_recorded: bool) -> Vec<(&'static str, Value)> {
    // A worker is of no interest but for its requests. What is attached waits for its first command, so none is missed.
    let also = if is_recorded { json!([{}]) } else { json!([{"type": "iframe"}]) };
    let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": also});
    let mut commands = vec![
        ("Page.enable", json!({})),
        ("Runtime.enable", json!({})),
        ("Log.enable", json!({})),
        ("Target.setAutoAttach", attach),
    ];
    if is_page {
        commands.push(("Page.setLifecycleEventsEnabled", json!({"enabled": true})));
    }
    if is_recorded {
        commands.push(("Network.enable", json!({})));
    }
    commands
}

impl Seen {
    /// The tab is attached.
    pub(super) fn begin(&mut self, page: &str, session: &str) {
        (self.page, self.session) = (page.to_owned(), session.to_owned());
    }

    pub(super) fn is_loading(&self) -> bool {
        self.is_loading
    }

    /// How many documents the page has had.
    pub(super) fn documents(&self) -> usize {
        self.documents.len()
    }

    /// Whether a document was loaded that came after so many others.
    pub(super) fn has_loaded_after(&self, documents: usize) -> bool {
        self.documents.iter().skip(documents).any(|(_, is_loaded)| *is_loaded)
    }

    /// Whether this document was loaded, or one that took its place.
    pub(super) fn has_loaded(&self, document: &str) -> bool {
        let at = self.documents.iter().position(|(known, _)| known == document);
        at.is_some_and(|at| self.has_loaded_after(at))
    }

    /// Session and context of a frame's document: a frame of another site has a session of its own.
    pub(super) fn place_of(&self, frame: &str) -> Option<(String, Option<String>)> {
        if let Some(session) = self.sessions.get(frame) {
            return Some((session.clone(), None));
        }
        let (session, context) = self.contexts.iter().find_map(|((session, _), (of, context))| {
            (of == frame).then(|| (session.clone(), context.clone()))
        })?;
        Some((session, Some(context)))
    }

    /// An event; returns what follows from it.
    pub(super) fn observe(&mut self, event: &Value, is_recorded: bool) -> Vec<Command> {
        let params = &event["params"];
        let session = event["sessionId"].as_str().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_of_page = params["frameId"] == self.page.as_str();
        match event["method"].as_str().unwrap_or_default() {
            "Target.attachedToTarget" => return self.attached(params, is_recorded),
            "Target.detachedFromTarget" => {
                let gone = text(&params["sessionId"]);
                self.sessions.retain(|_, session| *session != gone);
                self.contexts.retain(|(session, _), _| *session != gone);
            }
            "Runtime.executionContextCreated" => {
                let context = &params["context"];
                let data = &context["auxData"];
                if data["isDefault"] == true {
                    let id = context["id"].as_u64().unwrap_or_default();
                    let of = (text(&data["frameId"]), text(&context["uniqueId"]));
                    self.contexts.insert((session.to_owned(), id), of);
                }
            }
            "Runtime.executionContextDestroyed" => {
                let id = params["executionContextId"].as_u64().unwrap_or_default();
                self.contexts.remove(&(session.to_owned(), id));
            }
            "Runtime.executionContextsCleared" => {
                self.contexts.retain(|(of, _), _| of != session);
            }
            "Page.frameStartedLoading" if is_of_page => self.is_loading = true,
            "Page.frameStoppedLoading" if is_of_page => self.is_loading = false,
            "Page.lifecycleEvent" if is_of_page => {
                let document = text(&params["loaderId"]);
                if self.documents.iter().all(|(known, _)| *known != document) {
                    self.documents.push((document.clone(), false));
                }
                if params["name"] == "load" {
                    let of = self.documents.iter_mut().filter(|(known, _)| *known == document);
                    of.for_each(|(_, is_loaded)| *is_loaded = true);
                }
            }
            "Inspector.targetCrashed" => self.has_crashed |= session == self.session,
            "Runtime.consoleAPICalled"
                if matches!(params["type"].as_str(), Some("error" | "warning" | "assert")) =>
            {
                let said = params["args"].as_array().into_iter().flatten().map(said);
                self.complaints.push(said.collect::<Vec<_>>().join(" "));
            }
            "Runtime.exceptionThrown" => {
                let details = &params["exceptionDetails"];
                self.complaints.push(format!("{} {}", text(&details["url"]), thrown(details)));
            }
            "Log.entryAdded" => {
                let entry = &params["entry"];
                if matches!(entry["level"].as_str(), Some("error" | "warning")) {
                    self.complaints.push(format!("{} {}", text(&entry["url"]), text(&entry["text"])));
                }
            }
            "Network.requestWillBeSent" | "Network.webSocketCreated" | "Network.webSocketFrameReceived" => {
                self.network.push(json!({"method": event["method"], "params": params}));
            }
            _ => {}
        }
        Vec::new()
    }

    /// A frame or a worker, which waits until it may begin.
    fn attached(&mut self, params: &Value, is_recorded: bool) -> Vec<Command> {
        let (target, session) = (&params["targetInfo"], params["sessionId"].as_str().unwrap_or_default());
        let commands = match target["type"].as_str() {
            // The tab itself, which was attached on purpose.
            Some("page" | "tab") => return Vec::new(),
            Some("iframe") => {
                let frame = target["targetId"].as_str().unwrap_or_default();
                self.sessions.insert(frame.to_owned(), session.to_owned());
                listening(false, is_recorded)
            }
            _ if is_recorded => vec![("Network.enable", json!({}))],
            _ => Vec::new(),
        };
        let begin = ("Runtime.runIfWaitingForDebugger", json!({}));
        let to = |(method, params)| Command { session: Some(session.to_owned()), method, params };
        commands.into_iter().chain([begin]).map(to).collect()
    }
}

/// An argument of a console's method, as text.
fn said(argument: &Value) -> String {
    match &argument["value"] {
        Value::Null => argument["description"].as_str().unwrap_or("null").to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(events: &[Value]) -> Seen {
        let mut seen = Seen::default();
        seen.begin("P", "S");
        events.iter().for_each(|event| drop(seen.observe(event, true)));
        seen
    }

    fn lifecycle(document: &str, name: &str) -> Value {
        json!({"method": "Page.lifecycleEvent", "sessionId": "S", "params": {"frameId": "P", "loaderId": document, "name": name}})
    }

    fn context(session: &str, id: u64, frame: &str) -> Value {
        let context = json!({"id": id, "uniqueId": format!("{session}.{id}"), "auxData": {"isDefault": true, "frameId": frame}});
        json!({"method": "Runtime.executionContextCreated", "sessionId": session, "params": {"context": context}})
    }

    #[test]
    fn a_document_that_sends_the_page_on_counts_as_loaded_with_its_successor() {
        let mut events = vec![lifecycle("a", "load"), lifecycle("b", "init"), lifecycle("c", "init")];
        assert!(!seen(&events).has_loaded("b"));
        events.push(lifecycle("c", "load"));
        let seen = seen(&events);
        assert!(seen.has_loaded("b") && seen.has_loaded("c") && !seen.has_loaded("d"));
        assert_eq!((seen.documents(), seen.has_loaded_after(2), seen.has_loaded_after(3)), (3, true, false));
    }

    #[test]
    fn a_frame_is_evaluated_in_its_context_or_in_its_own_session() {
        let mut events = vec![context("S", 1, "P"), context("S", 2, "F")];
        assert_eq!(seen(&events).place_of("F"), Some(("S".to_owned(), Some("S.2".to_owned()))));
        // Its document is one of another site from now on.
        events.push(json!({"method": "Runtime.executionContextDestroyed", "sessionId": "S", "params": {"executionContextId": 2}}));
        assert_eq!(seen(&events).place_of("F"), None);
        let target = json!({"type": "iframe", "targetId": "F"});
        let attached =
            json!({"method": "Target.attachedToTarget", "params": {"sessionId": "T", "targetInfo": target}});
        let mut seen = seen(&events);
        let commands = seen.observe(&attached, true);
        assert_eq!(commands.last().map(|command| command.method), Some("Runtime.runIfWaitingForDebugger"));
        assert!(commands.iter().all(|command| command.session.as_deref() == Some("T")));
        assert_eq!(seen.place_of("F"), Some(("T".to_owned(), None)));
    }

    #[test]
    fn errors_and_warnings_are_complaints_and_other_texts_are_not() {
        let console = |kind: &str| {
            let args = [json!({"value": "out of"}), json!({"value": 3})];
            json!({"method": "Runtime.consoleAPICalled", "params": {"type": kind, "args": args}})
        };
        let log = |level: &str| json!({"method": "Log.entryAdded", "params": {"entry": {"level": level, "text": "refused", "url": "u"}}});
        let thrown = json!({"description": "Error: odd"});
        let exception = json!({"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": {"url": "u", "exception": thrown}}});
        let events =
            [console("log"), console("warning"), console("error"), log("info"), log("error"), exception];
        assert_eq!(seen(&events).complaints, ["out of 3", "out of 3", "u refused", "u Error: odd"]);
    }
}
