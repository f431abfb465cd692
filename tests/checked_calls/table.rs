//! The macro that turns a line of the table into a trial.
//!
//! A line has the export, the checked call, and a word for each parameter of the C function. The word tells how the
//! checked call passes the parameter:
//!
//! | word | in the checked call |
//! | --- | --- |
//! | `value`, `raw` | passed on unchanged |
//! | `length` | passed on; the number of elements that the call returns |
//! | `truth` | a `bool` that is passed |
//! | `in`, `in?`, `inout`, `inout?` | a reference, optional with `?` |
//! | `in[4]` | a reference to an array |
//! | `str`, `str?` | a `&CStr` |
//! | `in[n]`, `in[n]?`, `out[n]`, `out[n]?` | a slice that is read or written; `n` is the parameter that counts it |
//! | `bytes[n]`, `buf[n]`, `chars[n]` | a slice of any type that is read, one that is written, one of bytes that is written |
//! | `count` | nothing: the call computes it from the slices, or asks the driver |
//! | `counted` | returned: a count that the call computes and the driver changes |
//! | `out`, `out[8]`, `bool`, `text`, `string[n]` | returned |
//! | `vec[n]`, `list[n]`, `copied[n]` | returned as a `Vec` |
//!
//! `*n` is a count behind a pointer, `n-1` one less than the count. If a call returns several values, each word is
//! followed by the name of its field: `out.free`.
//!
//! The types are not in the table: the compiler infers them from the checked call.

/// Makes `TRIALS` from the table.
macro_rules! trials {
    ($($symbol:ident = $($path:ident)::+($($parameters:tt)*);)*) => {
        /// A trial of every export that has a checked call.
        pub(crate) const TRIALS: &[Case] = &[$(
            Case {
                symbol: stringify!($symbol),
                parameters: stringify!($($parameters)*),
                run: |trial| word! {
                    (trial [checked::$($path)::+] 0, [] [] []) $($parameters)*,
                },
            },
        )*];
    };
}

/// Takes the next word of a line, and chooses the slot for it.
macro_rules! word {
    ($state:tt $(,)?) => { run! { $state } };
    ($state:tt value, $($rest:tt)*) => { slot! { $state argument Value; $($rest)* } };
    ($state:tt raw, $($rest:tt)*) => { slot! { $state argument Value; $($rest)* } };
    ($state:tt length, $($rest:tt)*) => { slot! { $state argument Length; $($rest)* } };
    ($state:tt truth, $($rest:tt)*) => { slot! { $state argument Truth; $($rest)* } };
    ($state:tt in, $($rest:tt)*) => { slot! { $state argument In; $($rest)* } };
    ($state:tt in?, $($rest:tt)*) => { slot! { $state argument InOption; $($rest)* } };
    ($state:tt inout, $($rest:tt)*) => { slot! { $state argument InOut; $($rest)* } };
    ($state:tt inout?, $($rest:tt)*) => { slot! { $state argument InOutOption; $($rest)* } };
    ($state:tt in[$size:literal], $($rest:tt)*) => { slot! { $state argument In; $($rest)* } };
    ($state:tt str, $($rest:tt)*) => { slot! { $state argument Str; $($rest)* } };
    ($state:tt str?, $($rest:tt)*) => { slot! { $state argument StrOption; $($rest)* } };
    ($state:tt in[$($count:tt)*], $($rest:tt)*) => { slot! { $state argument Slice; $($rest)* } };
    ($state:tt in[$($count:tt)*]?, $($rest:tt)*) => { slot! { $state argument SliceOption; $($rest)* } };
    ($state:tt out[$size:literal] $(.$field:ident)?, $($rest:tt)*) => {
        slot! { $state output [$(.$field)?] Out; $($rest)* }
    };
    ($state:tt out[$($count:tt)*], $($rest:tt)*) => { slot! { $state argument SliceMut; $($rest)* } };
    ($state:tt out[$($count:tt)*]?, $($rest:tt)*) => { slot! { $state argument SliceMutOption; $($rest)* } };
    ($state:tt bytes[$($count:tt)*], $($rest:tt)*) => { slot! { $state argument Bytes; $($rest)* } };
    ($state:tt buf[$($count:tt)*], $($rest:tt)*) => { slot! { $state argument Buffer; $($rest)* } };
    ($state:tt chars[$($count:tt)*], $($rest:tt)*) => { slot! { $state argument Chars; $($rest)* } };
    ($state:tt count, $($rest:tt)*) => { slot! { $state nothing Count; $($rest)* } };
    ($state:tt counted $(.$field:ident)?, $($rest:tt)*) => {
        slot! { $state output [$(.$field)?] Counted; $($rest)* }
    };
    ($state:tt out $(.$field:ident)?, $($rest:tt)*) => {
        slot! { $state output [$(.$field)?] Out; $($rest)* }
    };
    ($state:tt bool $(.$field:ident)?, $($rest:tt)*) => {
        slot! { $state output [$(.$field)?] Bool; $($rest)* }
    };
    ($state:tt text $(.$field:ident)?, $($rest:tt)*) => {
        slot! { $state output [$(.$field)?] Text; $($rest)* }
    };
    ($state:tt string[$($count:tt)*] $(.$field:ident)?, $($rest:tt)*) => {
        slot! { $state output [$(.$field)?] Buffered; $($rest)* }
    };
    ($state:tt vec[$($count:tt)*] $(.$field:ident)?, $($rest:tt)*) => {
        slot! { $state output [$(.$field)?] Vector; $($rest)* }
    };
    ($state:tt list[$($count:tt)*] $(.$field:ident)?, $($rest:tt)*) => {
        slot! { $state output [$(.$field)?] List; $($rest)* }
    };
    ($state:tt copied[$($count:tt)*] $(.$field:ident)?, $($rest:tt)*) => {
        slot! { $state output [$(.$field)?] Copied; $($rest)* }
    };
}

/// Adds a slot to the state of a line. All slots are named `slot`, but hygiene makes them different variables.
macro_rules! slot {
    (($trial:ident $path:tt $index:expr, [$($slots:tt)*] [$($arguments:tt)*] $outputs:tt)
        argument $slot:ident; $($rest:tt)*) => {
        word! {
            ($trial $path $index + 1,
                [$($slots)* slot = $slot::new($trial, $index);] [$($arguments)* slot] $outputs)
            $($rest)*
        }
    };
    (($trial:ident $path:tt $index:expr, [$($slots:tt)*] $arguments:tt [$($outputs:tt)*])
        output $field:tt $slot:ident; $($rest:tt)*) => {
        word! {
            ($trial $path $index + 1,
                [$($slots)* slot = $slot::new($trial, $index);] $arguments [$($outputs)* slot $field])
            $($rest)*
        }
    };
    (($trial:ident $path:tt $index:expr, [$($slots:tt)*] $arguments:tt $outputs:tt)
        nothing $slot:ident; $($rest:tt)*) => {
        word! {
            ($trial $path $index + 1,
                [$($slots)* slot = $slot::new($trial, $index);] $arguments $outputs)
            $($rest)*
        }
    };
}

/// Makes the call, and checks the arguments and the returned values.
macro_rules! run {
    (($trial:ident [$($path:tt)*] $index:expr,
        [$($slot:ident = $new:expr;)*] [$($argument:ident)*] [$($output:ident [$($field:tt)*])*])) => {{
        // Only some slots are changed.
        $(#[allow(unused_mut)] let mut $slot = $new;)*
        // SAFETY: the recorder follows no pointers except those to the slots.
        let result = unsafe { $($path)*($($argument.argument($trial)),*) };
        if $trial.is_uneven() {
            return $trial.expect_refusal(result);
        }
        $($slot.check($trial);)*
        let Some(_value) = $trial.settle(result) else { return };
        $($output.check_returned($trial, &_value $($field)*);)*
    }};
}
