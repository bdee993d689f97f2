//! Finds an error of one type within another.

use std::error::Error;
use std::io;

/// The error of this type within `error`, which clients wrap in others.
pub(super) fn cause<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error does not return the wrapped error as its source.
        let buffered = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = buffered.map(|buffered| buffered as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_found_however_it_is_wrapped() {
        let tls = rustls::Error::General("x".to_owned());
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls.clone()));
        assert_eq!(cause::<rustls::Error>(&wrapped), Some(&tls));
        assert_eq!(cause::<rustls::Error>(&io::Error::other("refused")), None);
    }
}
