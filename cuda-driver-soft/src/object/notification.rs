//! Callbacks for notifications of a device. The API has one type of notification: a budget of device memory is
//! exceeded. There are no budgets here, so no callback is called.

use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};

static TABLE: Table<Registration> = Table::new(HandleKind::Notification);

/// A registered callback.
#[derive(Debug)]
struct Registration {
    device: i32,
}

/// `cuDeviceRegisterAsyncNotification`: returns the handle.
pub(crate) fn register(device: i32) -> usize {
    let mut made = 0;
    TABLE.insert_with(|handle| {
        made = handle;
        Registration { device }
    });
    made
}

/// `cuDeviceUnregisterAsyncNotification`
pub(crate) fn unregister(device: i32, handle: usize) -> Result<()> {
    let refused = |_| {
        host::log!("{handle:#x} is not a registered callback of device {device}");
        Error::CUDA_ERROR_INVALID_VALUE
    };
    let known = TABLE.get(handle).map_err(refused)?;
    if known.device != device {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    TABLE.remove(handle).map(drop).map_err(refused)
}
