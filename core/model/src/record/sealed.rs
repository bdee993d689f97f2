//! Values that travel and rest as their encoded bytes: of the scrapes of hundreds of processes, minutes are kept, and few
//! are ever read.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An encoded value.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed<'a>(Cow<'a, [u8]>);

impl Sealed<'_> {
    /// Encodes a value of plain data.
    pub fn of(value: &impl Serialize) -> Sealed<'static> {
        // Serialising plain data into memory cannot fail; empty bytes open as nothing.
        Sealed(Cow::Owned(postcard::to_allocvec(value).unwrap_or_default()))
    }

    /// The value; `None` if these are not the bytes of one.
    pub fn open<T: DeserializeOwned>(&self) -> Option<T> {
        postcard::from_bytes(&self.0).ok()
    }

    /// The same without the bytes it was read from.
    pub fn to_static(&self) -> Sealed<'static> {
        Sealed(Cow::Owned(self.0.to_vec()))
    }
}

impl fmt::Debug for Sealed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Sealed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Sealed<'_> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = <&'de [u8]>::deserialize(from)?;
        Ok(Sealed(Cow::Owned(bytes.to_vec())))
    }
}

/// What was opened once, kept beside the bytes; no part of the state it stands in.
#[derive(Default, Debug)]
pub struct Opened<T>(OnceLock<T>);

impl<T> Opened<T> {
    /// The value, opened now if it was not yet.
    pub fn get(&self, open: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(open)
    }
}

impl<T> Clone for Opened<T> {
    fn clone(&self) -> Self {
        Self(OnceLock::new())
    }
}

impl<T> PartialEq for Opened<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
