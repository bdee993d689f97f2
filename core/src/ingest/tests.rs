//! Behaviour of ingest.
