//! Finds the addresses of exports: by symbol, as `dlsym` does, and for `cuGetProcAddress`.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use cuda_driver_sys::Function;

use super::table::list;
use super::undocumented;
use crate::state::settings;

/// Returns the addresses of all exports by symbol: those that the system's loader gives them, if [`set_exports`] was
/// called before the first use.
fn addresses() -> &'static HashMap<&'static str, usize> {
    static ADDRESSES: OnceLock<HashMap<&'static str, usize>> = OnceLock::new();
    ADDRESSES.get_or_init(|| match EXPORTED.get() {
        Some(exported) => exported().into_iter().collect(),
        None => list()
            .map(|(symbol, address, _)| (symbol, address))
            .chain(undocumented::ALL.iter().map(|f| (f.symbol, f.own as usize)))
            .collect(),
    })
}

/// Returns the variants of a function of `cuda.h`, by their base name.
pub(super) fn variants(base: &[u8]) -> &'static [Function] {
    static VARIANTS: OnceLock<HashMap<&'static [u8], Vec<Function>>> = OnceLock::new();
    let variants = VARIANTS.get_or_init(|| {
        let mut variants: HashMap<_, Vec<_>> = HashMap::new();
        for &function in Function::ALL {
            variants.entry(function.base().as_bytes()).or_default().push(function);
        }
        variants
    });
    variants.get(base).map_or(&[], Vec::as_slice)
}

/// A symbol and its address.
type Address = (&'static str, usize);

static EXPORTED: OnceLock<fn() -> Vec<Address>> = OnceLock::new();

/// Sets the exported marker, and the addresses that the system's loader gives to the symbols, so that
/// `cuGetProcAddress` returns the same ones. Called by the library that exports them, when it is loaded.
#[doc(hidden)]
pub fn set_exports(exported: fn() -> Vec<Address>, marker: &'static crate::Marker) {
    let _ = EXPORTED.set(exported);
    crate::marker::set(marker);
}

/// Returns the address of an export; null for a symbol that is newer than the version that this driver reports.
pub(crate) fn address(function: Function) -> *const c_void {
    if function.since() > settings::version() {
        return std::ptr::null();
    }
    addresses()
        .get(function.name())
        .map_or(std::ptr::null(), |&address| address as *const c_void)
}

/// Returns the address of an undocumented export (one that is not in `cuda.h`); null for any other name.
fn address_of_undocumented(name: &[u8]) -> *const c_void {
    let found = undocumented::ALL.iter().find(|f| f.symbol.as_bytes() == name);
    found
        .and_then(|f| addresses().get(f.symbol))
        .map_or(std::ptr::null(), |&address| address as *const c_void)
}

/// Finds a symbol of the software driver, as `dlsym` does: the exports of `cuda.h` up to the reported version, those of
/// the profiler and of graphics interoperability, and the marker that identifies a software driver. Returns null for
/// any other symbol.
#[must_use]
pub fn resolve(symbol: &CStr) -> *const c_void {
    if symbol == crate::MARKER {
        return std::ptr::from_ref(crate::marker::own()).cast();
    }
    match symbol.to_str().ok().and_then(Function::by_symbol) {
        Some(function) => address(function),
        None => address_of_undocumented(symbol.to_bytes()),
    }
}

/// Finds an undocumented function by its name for `cuGetProcAddress`: the newest variant up to a version. With
/// `per_thread`, searches the variants for the per-thread default stream, if there are any. Returns `None` for an
/// unknown name, and null if all of these variants are newer.
pub(super) fn find_undocumented(base: &[u8], version: u32, per_thread: bool) -> Option<*const c_void> {
    let named = || undocumented::ALL.iter().filter(|f| f.base.as_bytes() == base);
    named().next()?;
    let per_thread = per_thread && named().any(|f| f.per_thread);
    let newest = named()
        .filter(|f| f.per_thread == per_thread && f.since <= version)
        .max_by_key(|f| f.since);
    Some(newest.map_or(std::ptr::null(), |f| address_of_undocumented(f.symbol.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::implemented::IMPLEMENTED;
    use crate::abi::table::list;

    #[test]
    fn the_list_of_implemented_functions_matches_the_code() {
        let mut written: Vec<&str> = list().filter(|e| e.2).map(|e| e.0).collect();
        written.sort_unstable();
        let mut listed = IMPLEMENTED.to_vec();
        listed.sort_unstable();
        let missing: Vec<_> = written.iter().filter(|s| !listed.contains(s)).collect();
        let extra: Vec<_> = listed.iter().filter(|s| !written.contains(s)).collect();
        assert!(
            missing.is_empty() && extra.is_empty(),
            "implemented, but not in abi/implemented.rs: {missing:?}; listed there, but not implemented: {extra:?}"
        );
    }

    #[test]
    fn a_base_name_has_a_few_variants() {
        for &function in Function::ALL {
            let variants = variants(function.base().as_bytes());
            assert!(variants.contains(&function), "{}", function.name());
            assert!(variants.iter().all(|variant| variant.base() == function.base()));
            // A query searches only these variants.
            assert!(variants.len() <= 8, "{}: {variants:?}", function.base());
        }
        assert!(variants(b"cuNoSuchFunction").is_empty());
    }

    #[test]
    fn every_symbol_of_the_registry_resolves_to_a_function_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        assert_eq!(Function::ALL.len(), 685);
        for &function in Function::ALL {
            let address = resolve(function.symbol());
            assert!(!address.is_null(), "{}", function.name());
            assert!(seen.insert(address), "{} shares its address", function.name());
        }
        assert!(resolve(c"cuNoSuchFunction").is_null());
    }
}
