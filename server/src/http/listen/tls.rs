//! TLS of the listener: certificate and key from files, reloaded when they change. Never logs their content.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

use crate::config::InvalidOption;

/// Poll interval of the files: certificates are renewed days before they expire.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// The current settings.
pub(in crate::http) type Current = watch::Receiver<Arc<ServerConfig>>;

/// Certificate and key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The chain of certificates, as PEM.
    pub cert: PathBuf,
    /// The private key, as PEM.
    pub key: PathBuf,
}

/// Content of the files.
#[derive(PartialEq, Eq)]
struct CertificateBytes {
    cert: Vec<u8>,
    key: Vec<u8>,
}

/// Settings that follow the files.
pub struct Tls {
    files: TlsFiles,
    read: CertificateBytes,
    current: Arc<ServerConfig>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or the two do not belong together.
    pub fn open(files: TlsFiles) -> Result<Self, InvalidOption> {
        let read = files.read()?;
        let current = files.settings(&read)?;
        Ok(Self { files, read, current })
    }

    /// Polls the files until the receiver is dropped.
    pub(in crate::http) fn follow(mut self) -> Current {
        let (now, current) = watch::channel(Arc::clone(&self.current));
        tokio::spawn(async move {
            let mut reported = String::new();
            loop {
                tokio::select! {
                    () = now.closed() => return,
                    () = tokio::time::sleep(POLL_EVERY) => {}
                }
                match self.look() {
                    Ok(None) => reported.clear(),
                    Ok(Some(settings)) => {
                        reported.clear();
                        tracing::info!("certificate and key reloaded");
                        now.send_replace(settings);
                    }
                    Err(error) => {
                        let error = error.to_string();
                        // Files may be incomplete while they are written; the previous ones stay in use.
                        if error != reported {
                            tracing::warn!(%error, "reloading certificate and key failed; the previous ones stay in use");
                            reported = error;
                        }
                    }
                }
            }
        });
        current
    }

    /// New settings, if the files changed.
    fn look(&mut self) -> Result<Option<Arc<ServerConfig>>, InvalidOption> {
        let read = self.files.read()?;
        if read == self.read {
            return Ok(None);
        }
        let settings = self.files.settings(&read)?;
        self.read = read;
        Ok(Some(settings))
    }
}

impl TlsFiles {
    fn read(&self) -> Result<CertificateBytes, InvalidOption> {
        let bytes = |option: &str, path: &PathBuf| {
            std::fs::read(path)
                .map_err(|error| InvalidOption::new(format!("{option} {}", path.display()), error))
        };
        Ok(CertificateBytes { cert: bytes("--tls-cert", &self.cert)?, key: bytes("--tls-key", &self.key)? })
    }

    fn settings(&self, read: &CertificateBytes) -> Result<Arc<ServerConfig>, InvalidOption> {
        // The parser's errors quote the file.
        let certs: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&read.cert).collect::<Result<_, _>>().unwrap_or_default();
        if certs.is_empty() {
            let option = format!("--tls-cert {}", self.cert.display());
            return Err(InvalidOption::new(option, "the file contains no certificate in PEM format"));
        }
        let key = PrivateKeyDer::from_pem_slice(&read.key).map_err(|_| {
            InvalidOption::new(
                format!("--tls-key {}", self.key.display()),
                "the file contains no private key in PEM format",
            )
        })?;
        let unusable = |error: rustls::Error| {
            InvalidOption::new(format!("--tls-cert {} with --tls-key", self.cert.display()), error)
        };
        let mut settings = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(certs, key)
            .map_err(unusable)?;
        settings.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(settings))
    }
}
