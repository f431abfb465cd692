//! Reads the user, groups and capabilities of this process.

use super::paths;
use super::surroundings::Surroundings;
use crate::findings::User;

/// The bit of `CAP_DAC_OVERRIDE`, the capability to ignore file permissions.
const OVERRIDE: u64 = 1 << 1;

/// Returns the user of this process from `/proc/self/status`, or `None` if that file does not exist or names no user.
pub(super) fn user(surroundings: &Surroundings) -> Option<User> {
    let status = paths::read(&surroundings.root, "/proc/self/status")?;
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::split_whitespace)
    };
    // The line has the real, effective, saved and file-system IDs. The kernel checks permissions with the last.
    let id = field("Uid")?.nth(3)?.parse().ok()?;
    let own = field("Gid").and_then(|mut numbers| numbers.nth(3));
    let others = field("Groups").into_iter().flatten();
    let groups = own
        .into_iter()
        .chain(others)
        .filter_map(|number| number.parse().ok())
        .collect();
    let capabilities = field("CapEff").and_then(|mut words| u64::from_str_radix(words.next()?, 16).ok());
    Some(User {
        id,
        groups,
        overrides_permissions: capabilities.is_some_and(|set| set & OVERRIDE != 0),
    })
}
