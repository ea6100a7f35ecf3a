//! Progress lines for a human.

use std::io::{self, Write};
use std::time::Instant;

use anyhow::Result;

/// Says on standard error what is being done, and how long it took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    quiet: bool,
}

impl Progress {
    /// Says nothing.
    #[must_use]
    pub fn quiet() -> Self {
        Self { quiet: true }
    }

    /// One line on its own.
    pub fn say(self, line: &str) {
        self.write(&format!("{line}\n"));
    }

    /// Names `what`, does it, and adds the time that it took.
    ///
    /// # Errors
    /// Those of the work.
    pub async fn step<T>(self, what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.write(&format!("{what} … "));
        let start = Instant::now();
        let done = work.await;
        match &done {
            Ok(_) => self.write(&format!("{:.1} s\n", start.elapsed().as_secs_f64())),
            Err(_) => self.write("failed\n"),
        }
        done
    }

    fn write(self, text: &str) {
        if self.quiet {
            return;
        }
        let mut stream = io::stderr().lock();
        // A closed standard error is no reason to stop.
        let _ = stream
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush());
    }
}
