//! What a file is, by its first lines. Its name decides nothing but the time of a snapshot of metrics.

use memchr::memmem;

use radixscope_dynamo::prometheus::may_be_metrics;

/// Bytes by which a file is told.
pub(super) const HEAD_BYTES: usize = 64 << 10;
/// Lines of them that are looked at.
const MAX_LINES: usize = 50;
/// Where tar has its mark.
const TAR_MARK_AT: usize = 257;

/// What a file was taken for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// Request traces of a frontend.
    RequestTraces,
    /// A log, of whatever process.
    Log,
    /// What a load generator measured of each request.
    ClientResults,
    /// Metrics of a process at one time.
    Metrics,
    /// Metrics of many processes over time, by Tachometer.
    Tachometer,
    /// A load generator's summary of runs.
    Summary,
    /// A recording of Radixscope.
    Recording,
    /// Nothing that is read.
    Other,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::RequestTraces => "request traces",
            Self::Log => "log",
            Self::ClientResults => "client results",
            Self::Metrics => "metrics",
            Self::Tachometer => "Tachometer metrics",
            Self::Summary => "summary of runs",
            Self::Recording => "recording",
            Self::Other => "not read",
        }
    }
}

/// How files are packed together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Archive {
    Tar,
    Zip,
}

/// Whether a file is an archive, by its first bytes.
pub(super) fn archive(head: &[u8]) -> Option<Archive> {
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Some(Archive::Zip);
    }
    let mark = head.get(TAR_MARK_AT..).unwrap_or_default();
    mark.starts_with(b"ustar").then_some(Archive::Tar)
}

/// What a file is, by its first bytes, unpacked. With why, if it is not read.
pub(super) fn kind(head: &[u8]) -> (Kind, Option<&'static str>) {
    let other = |why| (Kind::Other, Some(why));
    if head.is_empty() {
        return other("empty");
    }
    if head.starts_with(b"\x89MCAP0\r\n") {
        return (Kind::Recording, None);
    }
    if head.starts_with(b"PAR1") {
        // What its columns are is only known at its end.
        return (Kind::Tachometer, None);
    }
    if archive(head).is_some() || crate::source::gzip::is_gzip(head) {
        return other("packed within what is packed: unpack it first");
    }
    if head.contains(&0) {
        return other("binary, of an unknown kind");
    }
    text_kind(head)
}

fn text_kind(head: &[u8]) -> (Kind, Option<&'static str>) {
    let has = |part: &str| memmem::find(head, part.as_bytes()).is_some();
    if (has("# TYPE ") || has("# HELP ")) && may_be_metrics(head) {
        return (Kind::Metrics, None);
    }
    let lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let mut is_json = true;
    for line in lines.take(MAX_LINES) {
        let has = |part: &str| memmem::find(line, part.as_bytes()).is_some();
        if !line.starts_with(b"{") {
            is_json = false;
        } else if has("\"dynamo.request.trace.v1\"") {
            return (Kind::RequestTraces, None);
        } else if has("\"metadata\"") && has("\"request_start_ns\"") {
            return (Kind::ClientResults, None);
        } else if has("\"level\"") && (has("\"message\"") || has("\"msg\"")) {
            return (Kind::Log, None);
        }
    }
    if has("\"schema_version\"") && has("\"input_config\"") {
        return (Kind::Summary, None);
    }
    let first = head.trim_ascii_start().first();
    if is_json || first.is_some_and(|first| matches!(first, b'{' | b'[')) {
        return (Kind::Other, Some("JSON of an unknown kind"));
    }
    (Kind::Log, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_its_content() {
        let kinds: [(&[u8], Kind); 9] = [
            (
                br#"{"timestamp":1,"event":{"schema":"dynamo.request.trace.v1","event_type":"tool"}}"#,
                Kind::RequestTraces,
            ),
            (br#"{"metadata":{"session_num":0,"request_start_ns":1},"metrics":{}}"#, Kind::ClientResults),
            (b"2026-11-27T06:53:19.383415Z  INFO http-request: request received\n", Kind::Log),
            (br#"{"time":"2026-11-27T06:53:19Z","level":"INFO","message":"x"}"#, Kind::Log),
            (b"# HELP a b\n# TYPE a counter\na 1\n", Kind::Metrics),
            (b"\x89MCAP0\r\n", Kind::Recording),
            (b"PAR1\x15\x04", Kind::Tachometer),
            (b"{\n  \"schema_version\": \"1.4\",\n  \"input_config\": {}\n}", Kind::Summary),
            (b"a\0b", Kind::Other),
        ];
        for (head, expected) in kinds {
            let (kind, why) = kind(head);
            assert_eq!((kind, why.is_some()), (expected, expected == Kind::Other), "{}", head.escape_ascii());
        }
        // A container runtime begins lines anew, and a library writes its own first.
        let log = b"starting up\n# TYPE is not at the begin\n2026-11-27T06:53:19.383415Z  INFO x: y\n";
        assert_eq!(kind(log).0, Kind::Log);
    }
}
