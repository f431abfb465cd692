//! Values that a graph keeps alive.
#![forbid(unsafe_code)]

use core::any::Any;
use core::{fmt, mem, ptr};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::refusal::Refusal;
use crate::sys::{CUcontext, CUresult, Function};
use crate::{Context, Error, Module, Result};

/// Values that nodes use, each once.
#[derive(Clone, Default)]
struct Values {
    contexts: Vec<Context>,
    modules: Vec<Module>,
    /// Other values by their addresses.
    shared: BTreeMap<usize, Shared>,
}

type Shared = Arc<dyn Any + Send + Sync>;

impl Values {
    #[inline]
    fn context(&mut self, context: Context) {
        // A borrowed context keeps nothing alive, so an owned one with the same handle is still added.
        let covers = |kept: &Context| *kept == context && (kept.keeps_alive() || !context.keeps_alive());
        if !self.contexts.iter().any(covers) {
            self.contexts.push(context);
        }
    }

    #[inline]
    fn module(&mut self, module: Module) {
        // As above.
        let covers = |kept: &Module| {
            kept.as_raw() == module.as_raw() && (kept.context().is_some() || module.context().is_none())
        };
        if !self.modules.iter().any(covers) {
            self.modules.push(module);
        }
    }

    #[inline]
    fn shared(&mut self, value: Shared) {
        self.shared.entry(Arc::as_ptr(&value).addr()).or_insert(value);
    }

    #[inline]
    fn all(&mut self, other: Self) {
        other.contexts.into_iter().for_each(|context| self.context(context));
        other.modules.into_iter().for_each(|module| self.module(module));
        other.shared.into_values().for_each(|value| self.shared(value));
    }
}

/// The values that a graph and its child graphs keep alive. Values are never removed, because executable graphs and
/// pending launches may still use the values of a node that was changed.
#[derive(Clone)]
pub(super) struct Kept {
    /// `None` for a borrowed graph or executable graph, whose lifetime is not known: its values are leaked.
    values: Option<Arc<Mutex<Values>>>,
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
    fn lock(&self) -> Option<MutexGuard<'_, Values>> {
        let values = self.values.as_ref()?;
        Some(values.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds values, or leaks them.
    #[inline]
    fn add<T>(&self, added: T, add: impl FnOnce(&mut Values, T)) {
        match self.lock() {
            Some(mut values) => add(&mut values, added),
            None => mem::forget(added),
        }
    }

    /// Keeps a context alive, if it is known: nodes of another graph or of a capture may run in another context than
    /// the graph's own.
    #[inline]
    pub(super) fn context(&self, context: Option<&Context>) {
        if let Some(context) = context {
            self.add(context.clone(), Values::context);
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
        self.add(module.clone(), Values::module);
    }

    /// Keeps a value alive.
    #[inline]
    pub(super) fn shared(&self, value: Shared) {
        self.add(value, Values::shared);
    }

    /// Keeps the values of another list, too.
    #[inline]
    pub(super) fn all_of(&self, other: &Self) {
        self.add(other.clone_values(), Values::all);
    }

    /// Returns a separate list with the same values.
    #[inline]
    pub(super) fn copy(&self) -> Self {
        Self {
            values: Some(Arc::new(Mutex::new(self.clone_values()))),
        }
    }

    #[inline]
    fn clone_values(&self) -> Values {
        self.lock().map(|values| values.clone()).unwrap_or_default()
    }
}

impl fmt::Debug for Kept {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self
            .lock()
            .map(|values| values.contexts.len() + values.modules.len() + values.shared.len());
        f.debug_tuple("Kept").field(&count).finish()
    }
}
