//! Recordings in object storage: where and with which credentials, how finished files get there, and how objects are read by ranges. Credentials
//! and endpoints come from the environment, under the names that the stores' own tools use. Nothing here deletes an object.

mod client;
mod failure;
mod layout;
mod read;
mod table;
mod upload;

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectMeta, ObjectStore, ObjectStoreExt as _, RetryConfig};

use crate::config::{InvalidOption, StoreAt, StoreKind};
use client::Connector;
use failure::StoreFailure;
pub(super) use read::{OPENED_AT_ONCE, StoreFile, open};
pub(super) use upload::start;

/// Requests are repeated so often at once, for what is over in a moment; what lasts longer is reported, and tried again later.
const RETRIES: usize = 2;
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LONGEST: Duration = Duration::from_secs(2);
const RETRY_WITHIN: Duration = Duration::from_secs(15);

/// An address that can be read and written.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(super) at: StoreAt,
    /// That of the address.
    prefix: Path,
    objects: Arc<dyn ObjectStore>,
}

impl Store {
    /// Takes credentials and endpoint from the environment; sends nothing yet.
    ///
    /// # Errors
    /// A variable cannot be used, or TLS cannot be set up.
    pub(crate) fn open(at: StoreAt) -> Result<Self, InvalidOption> {
        let prefix = Path::parse(&at.prefix).map_err(|error| InvalidOption::new(at.to_string(), error))?;
        let connector = Connector::new()?;
        let backoff = BackoffConfig { init_backoff: RETRY_FIRST, max_backoff: RETRY_LONGEST, base: 2.0 };
        let retry = RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_WITHIN };
        let bucket = at.bucket.as_str();
        let opened: Result<Arc<dyn ObjectStore>, _> = match at.kind {
            StoreKind::S3 => {
                let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
                builder.with_http_connector(connector).build().map(|store| Arc::new(store) as _)
            }
            StoreKind::Google => {
                let builder =
                    GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(retry);
                builder.with_http_connector(connector).build().map(|store| Arc::new(store) as _)
            }
            StoreKind::Azure => {
                let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket).with_retry(retry);
                builder.with_http_connector(connector).build().map(|store| Arc::new(store) as _)
            }
        };
        let objects =
            opened.map_err(|error| InvalidOption::new(at.to_string(), StoreFailure::of(&error, at.kind)))?;
        Ok(Self { at, prefix, objects })
    }

    /// A name under the prefix.
    fn named(&self, name: &str) -> Path {
        let parts = self.prefix.parts().map(|part| part.as_ref().to_owned());
        Path::from_iter(parts.chain(name.split('/').map(str::to_owned)))
    }

    /// What the store has under a name; `None`: nothing.
    async fn head(&self, of: &Path) -> Result<Option<ObjectMeta>, StoreFailure> {
        match self.objects.head(of).await {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => {
                // A response to this request has no body; to another one the store says why it refuses.
                if matches!(error, object_store::Error::PermissionDenied { .. }) {
                    self.probe().await?;
                }
                Err(self.failure(&error))
            }
        }
    }

    /// Whether the store can be reached and listed.
    async fn probe(&self) -> Result<(), StoreFailure> {
        let listed = self.objects.list_with_delimiter(Some(&self.prefix)).await;
        listed.map(drop).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &object_store::Error) -> StoreFailure {
        StoreFailure::of(error, self.at.kind)
    }
}
