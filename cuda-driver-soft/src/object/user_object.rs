//! User objects: reference-counted objects of the program with a destructor.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::object::leak;
use crate::queue::scheduler::scheduler;
use crate::queue::work::{TaskId, Work};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};

static TABLE: Table<UserObject> = Table::new(HandleKind::UserObject);

/// An object with its destructor and its reference count.
pub(crate) struct UserObject {
    pub(crate) handle: usize,
    destroy: Arc<dyn Fn() + Send + Sync>,
    /// The references of the program and of all graphs.
    count: Mutex<u64>,
}

/// `cuUserObjectCreate`
pub(crate) fn create(destroy: Arc<dyn Fn() + Send + Sync>, count: u32) -> Result<usize> {
    if count == 0 || count > i32::MAX as u32 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let made = TABLE.insert_with(|handle| UserObject {
        handle,
        destroy,
        count: Mutex::new(count.into()),
    });
    leak::note("user object", &TABLE, made.handle, None);
    Ok(made.handle)
}

fn get(handle: usize) -> Result<Arc<UserObject>> {
    let found = TABLE.get(handle);
    found.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)
}

/// `cuUserObjectRetain`
pub(crate) fn retain(handle: usize, count: u32) -> Result<()> {
    let object = get(handle)?;
    if count == 0 || count > i32::MAX as u32 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let mut now = object.count.lock().unwrap_or_else(PoisonError::into_inner);
    if *now == 0 {
        // Another thread has released the last reference and is about to remove the object.
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    *now = now.checked_add(count.into()).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    Ok(())
}

/// `cuUserObjectRelease`: when the count reaches 0, queues the destructor as a host function that runs after the tasks
/// `after`.
pub(crate) fn release(handle: usize, count: u32, after: &[TaskId]) -> Result<()> {
    let object = get(handle)?;
    if count == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let mut now = object.count.lock().unwrap_or_else(PoisonError::into_inner);
    *now = now.checked_sub(count.into()).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    if *now == 0 {
        drop(now);
        let _ = TABLE.remove(handle);
        let destroy = object.destroy.clone();
        scheduler().submit(after, Work::Host(Box::new(move |_| destroy())), 0);
    }
    Ok(())
}

/// Adds references to several objects, or to none of them if one of the additions fails.
pub(crate) fn retain_all(objects: &BTreeMap<usize, u32>) -> Result<()> {
    for (index, (object, count)) in objects.iter().enumerate() {
        if let Err(error) = retain(*object, *count) {
            let retained = objects.iter().take(index).map(|(object, count)| (*object, *count));
            let _ = release_all(retained, &[]);
            return Err(error);
        }
    }
    Ok(())
}

/// Releases references to several objects, and returns the first error. `after` is as in [`release`].
pub(crate) fn release_all(objects: impl IntoIterator<Item = (usize, u32)>, after: &[TaskId]) -> Result<()> {
    let mut released = Ok(());
    for (object, count) in objects {
        released = released.and(release(object, count, after));
    }
    released
}

/// Returns an error if the handle is not a live user object.
pub(crate) fn check(handle: usize) -> Result<()> {
    get(handle).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_references_cannot_be_retained() {
        // The state between the release of the last reference and the removal of the object.
        let released = TABLE.insert_with(|handle| UserObject {
            handle,
            destroy: Arc::new(|| ()),
            count: Mutex::new(0),
        });
        assert_eq!(retain(released.handle, 1), Err(Error::CUDA_ERROR_INVALID_VALUE));
        assert_eq!(*released.count.lock().unwrap(), 0);
        assert!(TABLE.remove(released.handle).is_ok());
    }
}
