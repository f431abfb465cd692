//! Loads the driver and describes it and its devices.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use cuda_driver::sys::library::{Source, is_stub, set_default};
use cuda_driver::sys::{CUresult, Function, Library};
use cuda_driver::{Device, Error};

use super::open::Open;
use super::progress::{begin, complete};
use super::task::Place;
use crate::attributes::ATTRIBUTES;
use crate::call_failure::{call_failure, failure_of};
use crate::findings::{
    self, Attempt, AttemptResult, CallFailure, Driver, DriverLibrary, LibraryKind, MissingFunctions,
};
use crate::library_version::library_version;

/// Examines the driver at the first place that has one.
pub(super) fn examine(places: &[Place], is_named: bool, open: Open<'_>, output: &mut dyn Write) {
    let mut driver = Driver::default();
    if let Some(library) = load(places, is_named, open, &mut driver, output) {
        describe(library, &mut driver, output);
    }
    complete(&driver, output);
}

/// Returns the name of the step that loads a library from a place.
pub(crate) fn loading(place: &Place) -> String {
    format!("loading {place}")
}

/// Loads the driver from the first place that has one, as the loader's search does.
fn load(
    places: &[Place],
    is_named: bool,
    open: Open<'_>,
    driver: &mut Driver,
    output: &mut dyn Write,
) -> Option<&'static Library> {
    for place in places {
        begin(loading(place), driver, output);
        let (result, library) = match open(place) {
            Err(message) => (AttemptResult::Failed { message }, None),
            Ok(library) => match library.path().filter(|path| !is_named && is_stub(path)) {
                Some(path) => (
                    AttemptResult::Stub {
                        path: path.to_string_lossy().into_owned(),
                    },
                    None,
                ),
                None => (AttemptResult::Loaded, Some(library)),
            },
        };
        driver.attempts.push(Attempt {
            place: place.to_string(),
            result,
        });
        if let Some(library) = library {
            let path = path_of(library, place);
            driver.library = Some(DriverLibrary {
                place: place.to_string(),
                version: path.as_deref().and_then(library_version),
                path: path.map(|path| path.to_string_lossy().into_owned()),
                kind: kind(library),
            });
            return Some(library);
        }
    }
    None
}

/// Returns the path of a library, with symbolic links resolved if possible; `None` for one that is not a file.
fn path_of(library: &Library, place: &Place) -> Option<PathBuf> {
    let place = match place {
        Place::File(path) => Some(Path::new(path)).filter(|path| path.is_absolute()),
        Place::Software => None,
    };
    let path = library.path().or(place)?;
    Some(path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

fn kind(library: &Library) -> LibraryKind {
    if library.is_software() {
        LibraryKind::Software
    } else if library.path().is_some_and(is_stub) {
        LibraryKind::Stub
    } else {
        LibraryKind::Real
    }
}

fn describe(library: &'static Library, driver: &mut Driver, output: &mut dyn Write) {
    begin("cuDriverGetVersion", driver, output);
    driver.cuda_version = library.version();
    begin("looking up functions", driver, output);
    driver.functions = Function::COUNT;
    driver.missing = missing(library);

    begin("cuInit", driver, output);
    // SAFETY: cuInit takes no pointer.
    let code = unsafe { library.cuInit(0) };
    if code == CUresult::CUDA_ERROR_STUB_LIBRARY {
        if let Some(library) = &mut driver.library {
            library.kind = LibraryKind::Stub;
        }
    }
    if code != CUresult::CUDA_SUCCESS {
        driver.failure = Some(failure_of(library, code, Function::cuInit));
        return;
    }
    driver.is_initialised = true;

    begin("cuDeviceGetCount", driver, output);
    // The functions of `cuda-driver` call the default library.
    if let Err(error) = set_default(Source::library(library)) {
        driver.failure = Some(CallFailure {
            function: Function::cuDeviceGetCount.name().to_owned(),
            code: 0,
            name: None,
            message: format!("The devices were not examined: {error}"),
        });
        return;
    }
    let devices = match Device::all() {
        Ok(devices) => devices,
        Err(error) => {
            driver.failure = Some(call_failure(&error));
            return;
        }
    };
    for (ordinal, device) in (0..).zip(devices) {
        begin(format!("reading the attributes of device {ordinal}"), driver, output);
        driver.devices.push(describe_device(ordinal, device));
    }
}

/// Returns the functions that a library does not export, by the CUDA version that introduced them.
fn missing(library: &Library) -> Vec<MissingFunctions> {
    let mut missing = BTreeMap::<u32, Vec<String>>::new();
    for function in Function::ALL {
        if !library.supports(*function) {
            missing
                .entry(function.since())
                .or_default()
                .push(function.name().to_owned());
        }
    }
    let group = |(since, functions)| MissingFunctions { since, functions };
    missing.into_iter().map(group).collect()
}

fn describe_device(ordinal: u32, device: Device) -> findings::Device {
    let attribute = |attribute: &crate::attributes::Attribute| {
        let value = device.attribute(attribute.raw).ok()?;
        Some((attribute.key.to_owned(), value))
    };
    findings::Device {
        ordinal,
        name: device.name().ok(),
        uuid: uuid(device).ok(),
        pci_bus_id: device.pci_bus_id().ok(),
        memory: device.total_mem().ok().and_then(|bytes| u64::try_from(bytes).ok()),
        attributes: ATTRIBUTES.iter().filter_map(attribute).collect(),
    }
}

/// Returns the UUID in the form that `CUDA_VISIBLE_DEVICES` of NVIDIA's driver takes.
fn uuid(device: Device) -> Result<String, Error> {
    Ok(format!("GPU-{}", device.uuid()?))
}
