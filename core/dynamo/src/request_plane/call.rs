//! What is sent: a call of an endpoint, as one frame over TCP and as one message over NATS.

use super::Codec;

/// Headers of the TCP frame: none are needed.
const NO_HEADERS: &[u8] = b"{}";

/// A call whose response comes on a connection of its own, which the worker opens to us.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Number of the call, any text that no other call has.
    pub id: &'a str,
    /// By which the connection of the response is known.
    pub subject: &'a str,
    /// Where the worker connects to, as host and port.
    pub callback: &'a str,
    /// How the body is written, and how the response is to be.
    pub codec: Codec,
}

impl Call<'_> {
    /// The message, as it is published on a NATS subject.
    pub fn message(&self, body: &[u8]) -> Vec<u8> {
        let header = self.header();
        let mut message = Vec::with_capacity(super::PRELUDE_BYTES + header.len() + body.len());
        for length in [header.len() as u64, body.len() as u64, 0] {
            message.extend(length.to_be_bytes());
        }
        message.extend(header.as_bytes());
        message.extend(body);
        message
    }

    fn header(&self) -> String {
        let (id, subject, callback) = (quoted(self.id), quoted(self.subject), quoted(self.callback));
        // JSON in a text of JSON.
        let info = format!(
            r#"{{"address":{callback},"subject":{subject},"context":{id},"stream_type":"response"}}"#
        );
        // Versions without codecs get no codec field.
        let codec = match self.codec {
            Codec::Json => "",
            Codec::MsgPack => r#""payload_codec":"msgpack","#,
        };
        format!(
            r#"{{"id":{id},"request_type":"single_in","response_type":"many_out",{codec}"connection_info":{{"transport":"tcp_server","info":{}}}}}"#,
            quoted(&info)
        )
    }
}

/// The message as it is sent to an endpoint's TCP socket. `None`: no such path or message can be sent.
pub fn frame(path: &str, message: &[u8]) -> Option<Vec<u8>> {
    let mut frame = Vec::with_capacity(path.len() + NO_HEADERS.len() + message.len() + 8);
    frame.extend(u16::try_from(path.len()).ok()?.to_be_bytes());
    frame.extend(path.as_bytes());
    frame.extend((NO_HEADERS.len() as u16).to_be_bytes());
    frame.extend(NO_HEADERS);
    frame.extend(u32::try_from(message.len()).ok()?.to_be_bytes());
    frame.extend(message);
    Some(frame)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
