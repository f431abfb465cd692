//! Contexts: a thread's stack, a floating context on several threads, libraries that share their caller's context or
//! have their own, and the primary context.

use std::thread;

use cuda_driver::{Context, Device, DeviceBuffer, PrimaryContext, Result};
use cuda_driver_soft::Prefer;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let device = Device::first()?;
    stack(device)?;
    floating(device)?;
    attached(device)?;
    library_pattern(device)?;
    primary(device)?;
    println!("Result = PASS");
    Ok(())
}

/// Each thread has a stack of contexts. The one on top is current.
fn stack(device: Device) -> Result<()> {
    let (first, second) = (Context::create(device)?, Context::create(device)?);
    assert!(Context::current_raw()?.is_null(), "a new context is current");
    let outer = first.push()?;
    let inner = second.push()?;
    assert!(second.is_current()?);
    inner.pop()?;
    assert!(first.is_current()?);
    outer.pop()?;
    println!("Stack: two contexts pushed and popped");
    Ok(())
}

/// A floating context is current on no thread, and can be used on every thread: clones are references to it.
fn floating(device: Device) -> Result<()> {
    let context = Context::create(device)?;
    let threads: Vec<_> = (0..4u32)
        .map(|number| {
            let context = context.clone();
            // The buffer makes the context current for its own calls.
            thread::spawn(move || DeviceBuffer::from_slice(&context, &[number; 256]))
        })
        .collect();
    let mut sum = 0;
    for thread in threads {
        let buffer = thread.join().expect("the thread does not panic")?;
        sum += buffer.to_vec()?.iter().sum::<u32>();
    }
    assert_eq!(sum, 256 * (1 + 2 + 3));
    println!("Floating: four threads filled buffers in one context, sum {sum}");
    Ok(())
}

/// Three libraries that attach to their caller's context, use it and detach: the driver counts the context's users.
fn attached(device: Device) -> Result<()> {
    /// A library that uses the current context without owning it.
    fn library(number: u8) -> Result<u8> {
        // SAFETY: the caller, `attached`, keeps its context current and alive for the call.
        let context = unsafe { Context::current() }?.expect("a current context");
        let attachment = context.attach()?;
        let memory = DeviceBuffer::from_slice(&context, &[number; 16])?;
        let found = memory.to_vec()?[0];
        memory.free()?;
        attachment.detach()?;
        Ok(found)
    }
    let context = Context::create(device)?;
    let current = context.push()?;
    for number in 1..=3 {
        assert_eq!(library(number)?, number);
        assert!(context.is_current()?, "a library changed the current context");
    }
    current.pop()?;
    println!("Attached: three libraries used one context");
    Ok(())
}

/// A library with a context of its own: `fill` pushes this context and pops it at its end, so that its caller's context
/// is current again afterwards. Objects do the same for each of their calls.
fn library_pattern(device: Device) -> Result<()> {
    struct Library {
        context: Context,
        memory: DeviceBuffer<f32>,
    }
    impl Library {
        fn new(device: Device) -> Result<Self> {
            let context = Context::create(device)?;
            let memory = DeviceBuffer::zeroed(&context, 8)?;
            Ok(Self { context, memory })
        }

        fn fill(&mut self, value: f32) -> Result<Vec<f32>> {
            let _current = self.context.push()?;
            self.memory.copy_from(&[value; 8])?;
            self.memory.to_vec()
        }
    }
    let mut library = Library::new(device)?;
    let mine = Context::create(device)?;
    let current = mine.push()?;
    assert_eq!(library.fill(2.5)?, [2.5; 8]);
    assert!(mine.is_current()?);
    current.pop()?;
    println!("Library: its context was current only inside its function");
    Ok(())
}

/// The primary context is shared by all code of the process, the CUDA runtime included.
fn primary(device: Device) -> Result<()> {
    let one = PrimaryContext::retain(device)?;
    let other = PrimaryContext::retain(device)?;
    assert_eq!(one.as_raw(), other.as_raw());
    one.release()?;
    let state = PrimaryContext::state(device)?;
    println!("Primary: active {}, flags {:?}", state.active, state.flags);
    assert!(state.active);
    other.release()
}
