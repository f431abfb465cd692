//! Totals of calls, kernels, copies and fills, and their table.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Totals of the calls and the work of a program. `Display` prints them as a table.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Calls, by the name of the exported function.
    pub calls: BTreeMap<String, CallTotal>,
    /// Kernels, by name.
    pub kernels: BTreeMap<String, KernelTotal>,
    /// Copies and fills, by name, such as `copy HtoD`.
    pub copies: BTreeMap<String, CopyTotal>,
    /// The calls that returned `CUDA_ERROR_NOT_SUPPORTED`, by the name of the function.
    pub not_supported: BTreeMap<String, NotSupported>,
}

/// The total of the calls of a function.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallTotal {
    /// Number of calls.
    pub count: u64,
    /// Number of calls that returned an error; `CUDA_ERROR_NOT_READY` does not count.
    pub errors: u64,
    /// Duration of all calls.
    pub time: Duration,
}

/// The total of the launches of a kernel.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KernelTotal {
    /// Number of launches that ran.
    pub count: u64,
    /// Number of blocks of all launches.
    pub blocks: u64,
    /// Duration of all launches.
    pub time: Duration,
}

/// The total of the copies or fills of a kind.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CopyTotal {
    /// Number of copies or fills.
    pub count: u64,
    /// Number of bytes of all copies or fills.
    pub bytes: u64,
    /// Duration of all copies or fills.
    pub time: Duration,
}

/// The calls of a function that returned `CUDA_ERROR_NOT_SUPPORTED`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NotSupported {
    /// Number of such calls.
    pub count: u64,
    /// The last line that the last such call wrote to the log; empty if it wrote none.
    pub reason: String,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = [
            self.calls.keys().map(String::len).max(),
            self.kernels.keys().map(String::len).max(),
            self.copies.keys().map(String::len).max(),
        ];
        let width = widest.into_iter().flatten().max().unwrap_or(0).clamp(14, 60) + 2;
        writeln!(f, "{:width$} {:>9} {:>9} {:>12}", "calls", "count", "errors", "time")?;
        for (name, total) in &self.calls {
            let (count, time) = (total.count, Time(total.time));
            writeln!(f, "  {name:0$} {count:>9} {1:>9} {time:>12}", width - 2, total.errors)?;
        }
        if !self.kernels.is_empty() {
            writeln!(
                f,
                "{:width$} {:>9} {:>9} {:>12}",
                "kernels", "launches", "blocks", "time"
            )?;
        }
        for (name, total) in &self.kernels {
            let (count, time) = (total.count, Time(total.time));
            writeln!(f, "  {name:0$} {count:>9} {1:>9} {time:>12}", width - 2, total.blocks)?;
        }
        if !self.copies.is_empty() {
            writeln!(f, "{:width$} {:>9} {:>9} {:>12}", "copies", "count", "bytes", "time")?;
        }
        for (name, total) in &self.copies {
            let (count, time) = (total.count, Time(total.time));
            writeln!(f, "  {name:0$} {count:>9} {1:>9} {time:>12}", width - 2, total.bytes)?;
        }
        if self.not_supported.is_empty() {
            return writeln!(f, "not supported: nothing that was used");
        }
        writeln!(f, "not supported")?;
        for (name, calls) in &self.not_supported {
            write!(f, "  {name} ({}x)", calls.count)?;
            if !calls.reason.is_empty() {
                write!(f, ": {}", calls.reason)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A duration, printed in milliseconds.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.3} ms", self.0.as_secs_f64() * 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_all_totals() {
        let mut summary = Summary::default();
        summary.calls.insert(
            "cuInit".into(),
            CallTotal {
                count: 2,
                errors: 1,
                time: Duration::from_micros(1500),
            },
        );
        summary.kernels.insert(
            "saxpy".into(),
            KernelTotal {
                count: 1,
                blocks: 64,
                time: Duration::from_millis(3),
            },
        );
        assert_eq!(
            summary.to_string(),
            "calls                count    errors         time\n  \
             cuInit                 2         1     1.500 ms\n\
             kernels           launches    blocks         time\n  \
             saxpy                  1        64     3.000 ms\n\
             not supported: nothing that was used\n"
        );
        let reason = NotSupported {
            count: 3,
            reason: "no such thing".into(),
        };
        summary.not_supported.insert("cuFoo".into(), reason);
        let text = summary.to_string();
        assert!(text.ends_with("not supported\n  cuFoo (3x): no such thing\n"), "{text}");
    }
}
