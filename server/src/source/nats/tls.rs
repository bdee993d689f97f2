//! Describes why TLS with a NATS server fails, and the option to change.

use std::error::Error;

use rustls::{AlertDescription, CertificateError, Error as TlsError};

use crate::source::cause::cause;

/// `None`: not a TLS error. `has_ca`: `--nats-tls-ca` is given.
pub(super) fn explain(error: &(dyn Error + 'static), shown: &str, has_ca: bool) -> Option<String> {
    let error = cause::<TlsError>(error)?;
    Some(format!("TLS with NATS at {shown} fails: {error}. {}", advice(error, has_ca)))
}

fn advice(error: &TlsError, has_ca: bool) -> String {
    match error {
        // A CA of the same name with another key, such as a renewed one.
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) if has_ca => {
            "The CA in --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA) did not sign the server's certificate: set the one that did."
                .to_owned()
        }
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "Set --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA) to the CA that signed the server's certificate."
                .to_owned()
        }
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "The certificate is for another name: connect by a name that is in it (--nats, RADIXSCOPE_NATS), or issue one for \
                 this name. --nats-tls-ca does not help here."
            .to_owned(),
        TlsError::InvalidCertificate(_) => {
            "The server's certificate must be renewed or replaced; --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA) does not help here."
                .to_owned()
        }
        TlsError::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::HandshakeFailure
            | AlertDescription::UnknownCA,
        ) => "The server requires client certificates (verify: true), which Radixscope does not support: use a listener with a \
                 password, token or credentials file instead. --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA) does not help here."
            .to_owned(),
        TlsError::InvalidMessage(_) => {
            let why = if has_ca { " (--nats-tls-ca requires it)" } else { "" };
            format!(
                "The server does not speak TLS{why}: use nats:// instead of tls:// and remove --nats-tls-ca \
                 (RADIXSCOPE_NATS_TLS_CA), or enable TLS on the server."
            )
        }
        _ => "If the server's certificate is signed by a private CA, set --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA)."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn wrapped(error: TlsError) -> io::Error {
        io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error))
    }

    #[test]
    fn a_tls_error_is_found_however_it_is_wrapped() {
        let unknown = wrapped(TlsError::InvalidCertificate(CertificateError::UnknownIssuer));
        let detail = explain(&unknown, "tls://x:4222", false).unwrap();
        assert!(detail.contains("UnknownIssuer") && detail.contains("Set --nats-tls-ca"), "{detail}");
        assert!(super::explain(&io::Error::other("refused"), "x", false).is_none());
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
