//! Which browser tests are run in.

/// Names the browser: `chromium`, which is also meant where it is not set, `firefox` or `webkit`.
const CHOICE: &str = "RADIXSCOPE_TEST_BROWSER";

/// A browser that tests can drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// Chromium: everything, by its DevTools.
    Chromium,
    /// Firefox, by WebDriver.
    Firefox,
    /// WebKitGTK's own small browser, by WebDriver.
    WebKit,
}

impl Engine {
    /// The one that the environment names.
    pub fn chosen() -> Self {
        match std::env::var(CHOICE).as_deref() {
            Err(_) | Ok("" | "chromium") => Self::Chromium,
            Ok("firefox") => Self::Firefox,
            Ok("webkit") => Self::WebKit,
            Ok(other) => panic!("{CHOICE}={other}: chromium, firefox or webkit"),
        }
    }

    /// For people and folders.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Firefox => "firefox",
            Self::WebKit => "webkit",
        }
    }
}
