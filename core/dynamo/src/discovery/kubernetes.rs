//! Discovery in Kubernetes: lists and watches of its API, the entries in a custom resource `DynamoWorkerMetadata`, and the ready
//! pods of an `EndpointSlice` (reference §8.1). Finds where entries begin and end; what they say is read by
//! [`decode`](super::decode()).

use crate::error::{DecodeError, Reason};
use crate::wire::{Fault, InField, Json, Kind, Wire, required};
use radixscope_model::record::Topic;

/// Longest name, version or continue token, in bytes. Kubernetes' names have at most 253.
const MAX_TEXT_BYTES: usize = 4_096;
/// Most objects of a list, endpoints of a slice or entries of a resource: a hundred times what Kubernetes and Dynamo put there.
const MAX_ITEMS: usize = 100_000;

/// Dynamo's maps of entries, each with the kind that the keys of its entries begin with in etcd.
const KINDS: [(&[u8], &str); 4] = [
    (b"endpoints", "instances"),
    (b"model_cards", "mdc"),
    (b"event_channels", "event_channels"),
    (b"event_sources", "event_sources"),
];

/// A part of a list.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Page<'a> {
    /// Where a watch goes on from here.
    pub version: String,
    /// What to ask for the next part with; "" after the last.
    pub next: String,
    /// JSON of each object.
    pub objects: Vec<&'a [u8]>,
}

/// An event of a watch.
#[derive(PartialEq, Eq, Debug)]
pub enum WatchEvent<'a> {
    /// The object came, or is so now.
    Put(&'a [u8]),
    /// The object is gone.
    End(&'a [u8]),
    /// Nothing changed up to this version.
    Bookmark(&'a [u8]),
    /// The watch ends.
    Failed(Status),
}

/// The metadata of an object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Meta {
    /// Its name in its namespace.
    pub name: String,
    /// Differs between two objects of one name, one after the other; "" if it is not given.
    pub uid: String,
    /// The pod that it goes with.
    pub owner: Option<Pod>,
}

/// A pod.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Differs between two pods of one name; "" if it is not given.
    pub uid: String,
}

/// What a process registered.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct WorkerMetadata<'a> {
    /// The process, as its endpoints name it.
    pub instance_id: Option<u64>,
    /// Keys as in etcd, and the JSON of each value.
    pub entries: Vec<(String, &'a [u8])>,
}

/// Why a question was refused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// As in HTTP; 410: the version to watch from is no longer kept. 0 if it is not given.
    pub code: u64,
    /// For people.
    pub message: String,
}

/// Reads a part of a list.
///
/// # Errors
/// The first thing that was not understood.
pub fn page(bytes: &[u8]) -> Result<Page<'_>, DecodeError> {
    whole(bytes, |wire| {
        let (mut version, mut next, mut objects) = (None, String::new(), None);
        fields(wire, |key, wire| {
            match key {
                b"metadata" => fields(wire, |key, wire| {
                    match key {
                        b"resourceVersion" => version = Some(text(wire).field("resourceVersion")?),
                        b"continue" => next = text(wire).field("continue")?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                b"items" => objects = Some(items(wire, object).field("items")?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Page {
            version: required(version, "resourceVersion", 0)?,
            next,
            objects: required(objects, "items", 0)?,
        })
    })
}

/// Reads a line of a watch.
///
/// # Errors
/// The first thing that was not understood.
pub fn change(line: &[u8]) -> Result<WatchEvent<'_>, DecodeError> {
    whole(line, |wire| {
        let (mut kind, mut read) = (None, None);
        fields(wire, |key, wire| {
            match key {
                b"type" => kind = Some((wire.at(), wire.word().field("type")?)),
                b"object" => read = Some(object(wire)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let ((at, kind), object) = (required(kind, "type", 0)?, required(read, "object", 0)?);
        Ok(match kind {
            b"ADDED" | b"MODIFIED" => WatchEvent::Put(object),
            b"DELETED" => WatchEvent::End(object),
            b"BOOKMARK" => WatchEvent::Bookmark(object),
            b"ERROR" => WatchEvent::Failed(status(object)),
            _ => return Err(Fault::new(Reason::UnknownKind, "no event of a watch", at)).field("type"),
        })
    })
}

/// Reads a `Status`; of what is none, nothing.
pub fn status(bytes: &[u8]) -> Status {
    let mut status = Status::default();
    let _ = fields(&mut Json::new(bytes), |key, wire| {
        match key {
            b"code" => status.code = wire.u64()?,
            b"message" => status.message = wire.text()?.chars().take(DecodeError::MAX_DETAIL_CHARS).collect(),
            _ => return Ok(false),
        }
        Ok(true)
    });
    status
}

/// Reads where a watch goes on after an object; "" if it does not say. A bookmark has nothing else.
///
/// # Errors
/// It is not JSON.
pub fn version(bytes: &[u8]) -> Result<String, DecodeError> {
    whole(bytes, |wire| {
        let mut version = String::new();
        fields(wire, |key, wire| {
            if key != b"metadata" {
                return object(wire).map(|_| true);
            }
            fields(wire, |key, wire| {
                if key == b"resourceVersion" {
                    version = text(wire).field("resourceVersion")?;
                }
                Ok(key == b"resourceVersion")
            })?;
            Ok(true)
        })?;
        Ok(version)
    })
}

/// Reads the metadata of an object.
///
/// # Errors
/// It has no name, or is not JSON.
pub fn meta(bytes: &[u8]) -> Result<Meta, DecodeError> {
    whole(bytes, |wire| {
        let (mut meta, mut name) = (Meta::default(), None);
        fields(wire, |key, wire| {
            if key != b"metadata" {
                return object(wire).map(|_| true);
            }
            fields(wire, |key, wire| {
                match key {
                    b"name" => name = Some(text(wire).field("name")?),
                    b"uid" => meta.uid = text(wire).field("uid")?,
                    b"ownerReferences" => {
                        let mark = wire.mark();
                        let owners = items(wire, pod).or_else(|_| {
                            wire.rewind(mark);
                            wire.skip().map(|()| Vec::new())
                        })?;
                        meta.owner = owners.into_iter().flatten().next();
                    }
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            Ok(true)
        })?;
        meta.name = name.filter(|name| !name.is_empty()).ok_or(Fault::missing("metadata.name", 0))?;
        Ok(meta)
    })
}

/// Reads the name of an object of which only the front is there; `None`: it is not in that.
pub fn name_in_front(front: &[u8]) -> Option<String> {
    let mut name = None;
    let _ = fields(&mut Json::new(front), |key, wire| {
        if key == b"metadata" {
            fields(wire, |key, wire| {
                if key == b"name" {
                    name = Some(text(wire)?);
                }
                Ok(key == b"name")
            })?;
        }
        Ok(key == b"metadata")
    });
    name.filter(|name| !name.is_empty())
}

/// The front of the object in the front of a line of a watch; what became of it is not read.
pub fn object_in_front(front: &[u8]) -> Option<&[u8]> {
    let mut object = None;
    let _ = fields(&mut Json::new(front), |key, wire| {
        if key == b"object" {
            object = Some(wire.mark());
        }
        Ok(false)
    });
    object
}

/// Reads what a `DynamoWorkerMetadata` holds.
///
/// # Errors
/// The first thing that was not understood; also a resource without data, which Dynamo writes for a moment.
pub fn worker_metadata(object: &[u8]) -> Result<WorkerMetadata<'_>, DecodeError> {
    whole(object, |wire| {
        let mut read = WorkerMetadata::default();
        let mut has_data = false;
        fields(wire, |key, wire| {
            if key != b"spec" {
                return Ok(false);
            }
            fields(wire, |key, wire| {
                if key != b"data" || wire.nil()? {
                    // A null is read; anything else is skipped.
                    return Ok(key == b"data");
                }
                has_data = true;
                fields(wire, |key, wire| {
                    let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == key) else {
                        return Ok(false);
                    };
                    entries(kind, wire, &mut read).map(|()| true)
                })
                .field("data")?;
                Ok(true)
            })?;
            Ok(true)
        })?;
        if !has_data {
            return Err(Fault::missing("spec.data", 0));
        }
        Ok(read)
    })
}

/// The entries of one kind.
fn entries<'a>(kind: &str, wire: &mut Json<'a>, read: &mut WorkerMetadata<'a>) -> Result<(), Fault> {
    fields(wire, |path, wire| {
        let at = wire.at();
        let path = std::str::from_utf8(path)
            .ok()
            .filter(|path| !path.contains('\\') && path.len() <= MAX_TEXT_BYTES);
        let path = path
            .ok_or(Fault::new(Reason::Malformed, "a key that is no path of Dynamo's", at))
            .field("data")?;
        if read.entries.len() == MAX_ITEMS {
            return Err(Fault::new(Reason::TooLarge, "more than 100,000 entries", at));
        }
        let value = raw(wire)?;
        if read.instance_id.is_none() && matches!(kind, "instances" | "mdc") {
            read.instance_id = instance_id(value);
        }
        read.entries.push((format!("v1/{kind}/{path}"), value));
        Ok(true)
    })
}

fn instance_id(entry: &[u8]) -> Option<u64> {
    let mut id = None;
    let read = fields(&mut Json::new(entry), |key, wire| {
        if key == b"instance_id" {
            id = Some(wire.u64()?);
        }
        Ok(key == b"instance_id")
    });
    read.ok().and(id)
}

/// The pods that are ready by an `EndpointSlice`. Without a condition a pod is not ready, as for Dynamo.
///
/// # Errors
/// The first thing that was not understood.
pub fn ready_pods(object: &[u8]) -> Result<Vec<Pod>, DecodeError> {
    whole(object, |wire| {
        let mut ready = Vec::new();
        fields(wire, |key, wire| {
            if key != b"endpoints" {
                return Ok(false);
            }
            ready = items(wire, endpoint).field("endpoints")?;
            Ok(true)
        })?;
        Ok(ready.into_iter().flatten().collect())
    })
}

/// The pod of an endpoint, if it is ready.
fn endpoint(wire: &mut Json<'_>) -> Result<Option<Pod>, Fault> {
    let (mut is_ready, mut target) = (false, None);
    fields(wire, |key, wire| {
        match key {
            b"conditions" => fields(wire, |key, wire| {
                if key == b"ready" {
                    is_ready = wire.optional(|wire| wire.bool()).field("ready")? == Some(true);
                }
                Ok(key == b"ready")
            })?,
            b"targetRef" => target = pod(wire)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(target.filter(|_| is_ready))
}

/// A reference to a pod; `None`: to something else.
fn pod(wire: &mut Json<'_>) -> Result<Option<Pod>, Fault> {
    let (mut is_pod, mut pod) = (false, Pod::default());
    fields(wire, |key, wire| {
        match key {
            b"kind" => is_pod = wire.word().field("kind")? == b"Pod",
            b"name" => pod.name = text(wire).field("name")?,
            b"uid" => pod.uid = text(wire).field("uid")?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Some(pod).filter(|pod| is_pod && !pod.name.is_empty()))
}

/// Reads all of `bytes`.
fn whole<'a, T>(
    bytes: &'a [u8],
    read: impl FnOnce(&mut Json<'a>) -> Result<T, Fault>,
) -> Result<T, DecodeError> {
    let wire = &mut Json::new(bytes);
    let read = read(wire).and_then(|read| wire.end().map(|()| read));
    read.map_err(|fault| fault.into_error(Topic::Discovery.as_str()))
}

/// Reads a map, or a null in its place. `read` returns whether it read the field; else the field is skipped.
fn fields<'a>(
    wire: &mut Json<'a>,
    mut read: impl FnMut(&'a [u8], &mut Json<'a>) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    if wire.nil()? {
        return Ok(());
    }
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        if !read(key, wire)? {
            wire.skip()?;
        }
    }
    Ok(())
}

/// Reads an array, or a null in its place.
fn items<'a, T>(
    wire: &mut Json<'a>,
    mut read: impl FnMut(&mut Json<'a>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut all = Vec::new();
    if wire.nil()? {
        return Ok(all);
    }
    let mut left = wire.array()?;
    while wire.next_element(&mut left)? {
        if all.len() == MAX_ITEMS {
            return Err(Fault::new(Reason::TooLarge, "more than 100,000 elements", wire.at()));
        }
        all.push(read(wire)?);
    }
    Ok(all)
}

/// The bytes of an object or array. Only its end is looked for: what is wrong inside, also its depth, is its own fault alone.
fn object<'a>(wire: &mut Json<'a>) -> Result<&'a [u8], Fault> {
    if !matches!(wire.kind()?, Kind::Map | Kind::Array) {
        return raw(wire);
    }
    let from = wire.mark();
    let (mut depth, mut is_text, mut is_escaped) = (0usize, false, false);
    for (at, byte) in from.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => depth += 1,
            b'}' | b']' if !is_text => depth -= 1, // it began with a bracket and ends with the last
            _ => {}
        }
        if depth == 0 {
            let (object, rest) = from.split_at(at + 1);
            wire.rewind(rest);
            return Ok(object);
        }
    }
    Err(Fault::new(Reason::Truncated, "the message ends here", wire.at() + from.len()))
}

/// The bytes of a value, whatever it is.
fn raw<'a>(wire: &mut Json<'a>) -> Result<&'a [u8], Fault> {
    wire.kind()?; // past white space
    let from = wire.mark();
    wire.skip()?;
    Ok(&from[..from.len() - wire.mark().len()])
}

fn text(wire: &mut Json<'_>) -> Result<String, Fault> {
    let at = wire.at();
    let text = wire.text()?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(Fault::new(Reason::TooLarge, "a text of more than 4,096 bytes", at));
    }
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests;
