//! TLS of our own listener: certificate and key from files, read again when they change. Never says what stands in them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

use crate::config::InvalidOption;

/// How often the files are looked at: certificates are renewed days before they end.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// The settings of the moment.
pub(in crate::http) type Current = watch::Receiver<Arc<ServerConfig>>;

/// Certificate and key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The chain of certificates, as PEM.
    pub cert: PathBuf,
    /// The private key, as PEM.
    pub key: PathBuf,
}

/// What was read from the files.
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

    /// Goes on looking at the files as long as somebody wants the settings.
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
                        tracing::info!("certificate and key have changed; the new ones are used from now on");
                        now.send_replace(settings);
                    }
                    Err(error) => {
                        let error = error.to_string();
                        // Files that are being written are not whole for a moment; the former ones go on.
                        if error != reported {
                            tracing::warn!(%error, "certificate and key cannot be read again; the previous ones stay in use");
                            reported = error;
                        }
                    }
                }
            }
        });
        current
    }

    /// New settings, if the files are others than before.
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
        // What the parser says of a file quotes the file.
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
