//! TLS configuration of the HTTP clients: trusted CAs and client certificate.

use std::path::Path;

use hyper_rustls::ConfigBuilderExt as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::config::InvalidOption;

/// A client certificate and its key: the option and the file of each.
pub(crate) type Identity<'p> = [(&'static str, &'p Path); 2];

/// `ca`: the trusted CAs, as an option and its file; `None`: the system's.
pub(crate) fn client_config(
    ca: Option<(&'static str, &Path)>,
    identity: Option<Identity<'_>>,
) -> Result<ClientConfig, InvalidOption> {
    let builder = || {
        ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| InvalidOption::new("TLS cannot be set up", error))
    };
    let trusting = match ca {
        Some((option, path)) => builder()?.with_root_certificates(roots(option, path)?),
        // Without system certificates plain HTTP still works, and HTTPS reports the missing CA.
        None => match builder()?.with_native_roots() {
            Ok(config) => config,
            Err(_) => builder()?.with_root_certificates(RootCertStore::empty()),
        },
    };
    let Some([(certificate_option, certificate), (key_option, key)]) = identity else {
        return Ok(trusting.with_no_client_auth());
    };
    let chain = certificates(certificate_option, certificate)?;
    let bad_key = |why: String| InvalidOption::new(format!("{key_option} {}", key.display()), why);
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| bad_key(error.to_string()))?;
    trusting.with_client_auth_cert(chain, key).map_err(|error| bad_key(error.to_string()))
}

fn roots(option: &str, path: &Path) -> Result<RootCertStore, InvalidOption> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(option, path)? {
        roots
            .add(certificate)
            .map_err(|error| InvalidOption::new(format!("{option} {}", path.display()), error))?;
    }
    Ok(roots)
}

/// The certificates of a PEM file, at least one.
pub(super) fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, InvalidOption> {
    let bad = |why: String| InvalidOption::new(format!("{option} {}", path.display()), why);
    let all = CertificateDer::pem_file_iter(path).map_err(|error| bad(error.to_string()))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| bad(error.to_string()))?;
    if all.is_empty() { Err(bad("the file contains no certificate".to_owned())) } else { Ok(all) }
}
