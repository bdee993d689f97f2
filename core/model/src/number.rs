//! Text as decimal numbers.

/// Reads a decimal number. What people type and import is read by whoever gives this: the page leaves it to the browser,
/// for the standard library's tables are ten kilobytes.
pub type ReadNumber = fn(&str) -> Option<f64>;

/// As the standard library reads it.
pub fn decimal(text: &str) -> Option<f64> {
    text.parse().ok()
}
