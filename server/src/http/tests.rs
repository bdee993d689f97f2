//! Routes, headers and errors as a client sees them.
