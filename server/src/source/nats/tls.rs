//! Why TLS with a NATS server fails, in words that name the option to change.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError, Error as TlsError};

/// `None`: the failure is none of TLS. `has_ca`: `--nats-tls-ca` is given.
pub(super) fn words(error: &(dyn Error + 'static), shown: &str, has_ca: bool) -> Option<String> {
    let error = find(error)?;
    Some(format!("TLS with NATS at {shown} fails: {error}. {}", advice(error, has_ca)))
}

/// The failure of TLS within `error`, which the client wraps into others.
pub(in crate::source) fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e TlsError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        // An error of I/O does not name what it holds as its source.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = held.map(|held| held as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

fn advice(error: &TlsError, has_ca: bool) -> String {
    match error {
        // An authority of the same name with another key, such as one that was renewed.
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) if has_ca => {
            "The authority in --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA) did not sign the server's certificate: name the \
             one that did."
                .to_owned()
        }
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "Name the authority that signed the server's certificate with --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA)."
                .to_owned()
        }
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "The certificate is for another name: connect by a name that is in it (--nats, RADIXSCOPE_NATS), or have \
              one made for this name. --nats-tls-ca cannot help here."
            .to_owned(),
        TlsError::InvalidCertificate(_) => {
            "The server's certificate has to be renewed or replaced; --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA) names only \
             who may sign it."
                .to_owned()
        }
        TlsError::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::HandshakeFailure
            | AlertDescription::UnknownCA,
        ) => "The server asks clients for a certificate (verify: true), which Radixscope does not have: use a \
              listener that asks for a password, token or credentials file instead. --nats-tls-ca \
              (RADIXSCOPE_NATS_TLS_CA) names only whom we trust."
            .to_owned(),
        TlsError::InvalidMessage(_) => {
            let why = if has_ca { " (--nats-tls-ca asks for it)" } else { "" };
            format!(
                "The server does not speak TLS{why}: use nats:// instead of tls:// and leave --nats-tls-ca \
                 (RADIXSCOPE_NATS_TLS_CA) out, or switch TLS on there."
            )
        }
        _ => "If the server's certificate comes from an authority of your own, name that with --nats-tls-ca \
              (RADIXSCOPE_NATS_TLS_CA)."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(error: TlsError) -> io::Error {
        io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error))
    }

    #[test]
    fn a_failure_of_tls_is_found_however_it_is_wrapped() {
        let unknown = wrapped(TlsError::InvalidCertificate(CertificateError::UnknownIssuer));
        let words = words(&unknown, "tls://x:4222", false).unwrap();
        assert!(words.contains("UnknownIssuer") && words.contains("with --nats-tls-ca"), "{words}");
        assert!(super::words(&io::Error::other("refused"), "x", false).is_none());
    }

    #[test]
    fn every_failure_names_the_option() {
        for error in [
            TlsError::InvalidCertificate(CertificateError::UnknownIssuer),
            TlsError::InvalidCertificate(CertificateError::NotValidForName),
            TlsError::InvalidCertificate(CertificateError::Expired),
            TlsError::AlertReceived(AlertDescription::CertificateRequired),
            TlsError::InvalidMessage(rustls::InvalidMessage::InvalidContentType),
            TlsError::General("x".to_owned()),
        ] {
            for has_ca in [false, true] {
                assert!(advice(&error, has_ca).contains("--nats-tls-ca"), "{error}");
            }
        }
    }
}
