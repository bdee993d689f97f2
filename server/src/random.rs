//! Unpredictable ids, from the operating system's random numbers.

use std::io;

/// Bytes of an id: as many as of a UUID, so that ids are unique and cannot be guessed.
const ID_BYTES: usize = 16;

/// An id, in hexadecimal.
///
/// # Errors
/// The operating system provides no random numbers.
pub(crate) fn id() -> io::Result<String> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_comes_twice() {
        let ids: std::collections::BTreeSet<String> = (0..1_000).map(|_| id().unwrap()).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| id.len() == 2 * ID_BYTES && id.bytes().all(|b| b.is_ascii_hexdigit())));
    }
}
