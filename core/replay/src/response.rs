//! The addresses that a page requests from a server, served from a recording.

use std::io::{Read, Seek};

use radixscope_model::id::{Millis, Seq};
use serde::Serialize;

use crate::{Replay, ReplayError};

/// The response to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// Status of HTTP.
    pub status: u16,
    /// The body: frames, or JSON.
    pub body: Vec<u8>,
}

/// The server's error body.
#[derive(Serialize)]
struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Serialize)]
struct ErrorDetail {
    code: &'static str,
    message: String,
}

impl Response {
    fn ok(body: Vec<u8>) -> Self {
        Self { status: 200, body }
    }

    fn error(status: u16, code: &'static str, message: String) -> Self {
        let body = ErrorBody { error: ErrorDetail { code, message } };
        Self { status, body: serde_json::to_vec(&body).unwrap_or_default() }
    }
}

impl<R: Read + Seek> Replay<R> {
    /// The response to an address as a server would give it, relative to where it is served.
    pub fn respond(&mut self, address: &str) -> Response {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let number = |name: &str| {
            let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.parse::<u64>().ok())
        };
        let response = match path {
            "snapshot" => self.snapshot().map(Response::ok),
            "history" => {
                let index = self.index(Millis(number("after_ms").unwrap_or(0)));
                // Plain data always encodes.
                Ok(Response::ok(serde_json::to_vec(&index).unwrap_or_default()))
            }
            "history/segment" => match number("at_ms") {
                Some(at) => {
                    let (after, until) = (number("after").map(Seq), number("until_ms").map(Millis));
                    self.segment(Millis(at), after, until).map(Response::ok)
                }
                None => {
                    let message = "at_ms: a time in Unix milliseconds is missing".to_owned();
                    return Response::error(400, "bad_parameter", message);
                }
            },
            _ => {
                let message = "This needs a server: what is shown is a recording".to_owned();
                return Response::error(404, "not_found", message);
            }
        };
        response.unwrap_or_else(|error| match error {
            ReplayError::NotRecorded(_) => Response::error(404, "not_found", error.to_string()),
            _ => Response::error(500, "internal", error.to_string()),
        })
    }
}
