//! Values that a graph keeps alive.
#![forbid(unsafe_code)]

use core::any::Any;
use core::{fmt, mem, ptr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::refusal::Refusal;
use crate::sys::{CUcontext, CUresult, Function};
use crate::{Context, Error, Module, Result};

/// A value that nodes use.
#[derive(Clone)]
enum Value {
    Context(Context),
    Module(Module),
    Shared(Arc<dyn Any + Send + Sync>),
}

impl Value {
    /// Returns true if keeping `self` makes it unnecessary to keep `other`.
    #[inline]
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            // A borrowed context or module keeps nothing alive, so an owned one with the same handle is still added.
            (Self::Context(one), Self::Context(other)) => one == other && (one.keeps_alive() || !other.keeps_alive()),
            (Self::Module(one), Self::Module(other)) => {
                one.as_raw() == other.as_raw() && (one.context().is_some() || other.context().is_none())
            }
            (Self::Shared(one), Self::Shared(other)) => {
                // Compares only the addresses, because one type may have several vtables.
                ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
            }
            _ => false,
        }
    }
}

/// The values that a graph and its child graphs keep alive. Values are never removed, because executable graphs and
/// pending launches may still use the values of a node that was changed.
#[derive(Clone)]
pub(super) struct Kept {
    /// `None` for a borrowed graph or executable graph, whose lifetime is not known: its values are leaked.
    values: Option<Arc<Mutex<Vec<Value>>>>,
}

impl Kept {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            values: Some(Arc::default()),
        }
    }

    /// Returns the list of a borrowed graph or executable graph.
    #[inline]
    pub(super) const fn leaking() -> Self {
        Self { values: None }
    }

    #[inline]
    fn lock(&self) -> Option<MutexGuard<'_, Vec<Value>>> {
        let values = self.values.as_ref()?;
        Some(values.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    fn add(&self, value: Value) {
        match self.lock() {
            Some(mut values) => {
                if !values.iter().any(|kept| kept.covers(&value)) {
                    values.push(value);
                }
            }
            None => mem::forget(value),
        }
    }

    /// Keeps a context alive, if it is known: nodes of another graph or of a capture may run in another context than
    /// the graph's own.
    #[inline]
    pub(super) fn context(&self, context: Option<&Context>) {
        if let Some(context) = context {
            self.add(Value::Context(context.clone()));
        }
    }

    /// Returns the handle of the context in which a node of this owner runs. If `context` is not known, returns null,
    /// which means the current context, for a borrowed graph or executable graph, because the caller keeps that
    /// context; for others, returns an error of `called`.
    #[inline]
    #[track_caller]
    pub(super) fn node_context(&self, context: Option<&Context>, called: Function) -> Result<CUcontext> {
        match context {
            Some(context) => Ok(context.as_raw()),
            None if self.values.is_none() => Ok(ptr::null_mut()),
            None => {
                let code = CUresult::CUDA_ERROR_INVALID_CONTEXT;
                Err(Error::refused(code, called, Refusal::GraphContext))
            }
        }
    }

    /// Keeps a module loaded.
    #[inline]
    pub(super) fn module(&self, module: &Module) {
        self.add(Value::Module(module.clone()));
    }

    /// Keeps a value alive.
    #[inline]
    pub(super) fn shared(&self, value: Arc<dyn Any + Send + Sync>) {
        self.add(Value::Shared(value));
    }

    /// Keeps the values of another list, too.
    #[inline]
    pub(super) fn all_of(&self, other: &Self) {
        let values = other.lock().map(|values| values.clone());
        for value in values.into_iter().flatten() {
            self.add(value);
        }
    }

    /// Returns a separate list with the same values.
    #[inline]
    pub(super) fn copy(&self) -> Self {
        let copy = Self::new();
        copy.all_of(self);
        copy
    }
}

impl fmt::Debug for Kept {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.lock().map(|values| values.len());
        f.debug_tuple("Kept").field(&count).finish()
    }
}
