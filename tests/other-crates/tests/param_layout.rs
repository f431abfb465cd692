//! Tests of the offsets of arguments in a `ParamBuffer` against a C compiler's: 1,000 random parameter lists, with the
//! vector types as this file declares them in C and, if it was fetched, with those of NVIDIA's header.
// `cuda-driver` lacks `long4_32a` and `ulong4_32a` for targets whose C `long` has 4 bytes: they would have padding.
#![cfg(all(not(windows), target_pointer_width = "64"))]

use std::fmt::Write as _;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[path = "../../common/needs.rs"]
mod needs;

use cuda_driver::vector::*;
use cuda_driver::{DevicePtr, Dim3, KernelArg, KernelArgs, ParamBuffer};

/// A type and its name in C.
struct Type {
    c_name: String,
    size: usize,
    align: usize,
    push: fn(&mut ParamBuffer),
}

fn of<T: KernelArg>(c_name: &str) -> Type {
    Type {
        c_name: c_name.to_owned(),
        size: size_of::<T>(),
        align: align_of::<T>(),
        push: |buffer| {
            // SAFETY: all zeros is a valid value of every type here.
            buffer.push(unsafe { MaybeUninit::<T>::zeroed().assume_init() });
        },
    }
}

/// Returns the scalar types.
fn scalars() -> Vec<Type> {
    vec![
        of::<u8>("unsigned char"),
        of::<i8>("signed char"),
        of::<bool>("_Bool"),
        of::<u16>("unsigned short"),
        of::<i16>("short"),
        of::<u32>("unsigned int"),
        of::<i32>("int"),
        of::<u64>("unsigned long long"),
        of::<i64>("long long"),
        of::<usize>("size_t"),
        of::<f32>("float"),
        of::<f64>("double"),
        of::<*mut f32>("void *"),
        of::<DevicePtr>("void *"),
    ]
}

macro_rules! vectors {
    ($($name:ident: $element:literal, $count:literal, $align:literal;)*) => {
        /// Returns the vector types.
        fn vectors() -> Vec<Type> {
            vec![$(of::<$name>(stringify!($name))),*]
        }

        /// The vector types' declarations in C.
        const VECTORS: &[(&str, &str, usize, usize)] = &[$((stringify!($name), $element, $count, $align)),*];
    };
}

vectors! {
    char1: "signed char", 1, 1; char2: "signed char", 2, 2; char3: "signed char", 3, 1; char4: "signed char", 4, 4;
    uchar1: "unsigned char", 1, 1; uchar2: "unsigned char", 2, 2; uchar3: "unsigned char", 3, 1; uchar4: "unsigned char", 4, 4;
    short1: "short", 1, 2; short2: "short", 2, 4; short3: "short", 3, 2; short4: "short", 4, 8;
    ushort1: "unsigned short", 1, 2; ushort2: "unsigned short", 2, 4; ushort3: "unsigned short", 3, 2; ushort4: "unsigned short", 4, 8;
    int1: "int", 1, 4; int2: "int", 2, 8; int3: "int", 3, 4; int4: "int", 4, 16;
    uint1: "unsigned int", 1, 4; uint2: "unsigned int", 2, 8; uint3: "unsigned int", 3, 4; uint4: "unsigned int", 4, 16;
    long1: "long", 1, 0; long2: "long", 2, 1000; long3: "long", 3, 0; long4: "long", 4, 16;
    ulong1: "unsigned long", 1, 0; ulong2: "unsigned long", 2, 1000; ulong3: "unsigned long", 3, 0; ulong4: "unsigned long", 4, 16;
    longlong1: "long long", 1, 8; longlong2: "long long", 2, 16; longlong3: "long long", 3, 8; longlong4: "long long", 4, 16;
    ulonglong1: "unsigned long long", 1, 8; ulonglong2: "unsigned long long", 2, 16; ulonglong3: "unsigned long long", 3, 8;
    ulonglong4: "unsigned long long", 4, 16;
    float1: "float", 1, 4; float2: "float", 2, 8; float3: "float", 3, 4; float4: "float", 4, 16;
    double1: "double", 1, 8; double2: "double", 2, 16; double3: "double", 3, 8; double4: "double", 4, 16;
    long4_16a: "long", 4, 16; long4_32a: "long", 4, 32; ulong4_16a: "unsigned long", 4, 16; ulong4_32a: "unsigned long", 4, 32;
    longlong4_16a: "long long", 4, 16; longlong4_32a: "long long", 4, 32;
    ulonglong4_16a: "unsigned long long", 4, 16; ulonglong4_32a: "unsigned long long", 4, 32;
    double4_16a: "double", 4, 16; double4_32a: "double", 4, 32;
}

macro_rules! structs {
    ($($name:ident { $($field:ident: $ty:ty = $c:literal),* $(,)? })*) => {
        $(
            #[derive(Clone, Copy)]
            #[repr(C)]
            #[allow(dead_code)]
            struct $name { $($field: $ty),* }

            // SAFETY: `repr(C)`, and every field is a kernel argument or an array of them.
            unsafe impl KernelArg for $name {}
        )*

        /// Returns the structs, each defined in Rust and in C.
        fn structs() -> Vec<Type> {
            vec![$(of::<$name>(concat!("struct ", stringify!($name)))),*]
        }

        const STRUCTS: &str = concat!($(
            "struct ", stringify!($name), " {", $(" ", $c, ";",)* " };\n",
        )*);
    };
}

structs! {
    Byte { a: u8 = "unsigned char a" }
    Pair { a: u8 = "unsigned char a", b: u16 = "unsigned short b" }
    Tail { a: f64 = "double a", b: u8 = "unsigned char b" }
    Odd { a: [u8; 3] = "unsigned char a[3]", b: [u16; 3] = "unsigned short b[3]" }
    Ray { origin: float3 = "float3 origin", direction: float3 = "float3 direction", length: f32 = "float length" }
    Aligned { a: u8 = "unsigned char a", b: float4 = "float4 b", c: u8 = "unsigned char c" }
    Wide { a: f32 = "float a", b: double4_32a = "double4_32a b" }
    Pointers { a: *mut f32 = "void *a", n: u32 = "unsigned int n", b: DevicePtr = "void *b" }
    Nested { a: u8 = "unsigned char a", b: Pair = "struct Pair b", c: Aligned = "struct Aligned c", d: i16 = "short d" }
    Table { rows: [Ray; 4] = "struct Ray rows[4]", flag: bool = "_Bool flag", last: Tail = "struct Tail last" }
    Deep { a: i8 = "signed char a", b: Nested = "struct Nested b", c: [Odd; 2] = "struct Odd c[2]", d: Wide = "struct Wide d" }
    Long { a: [f32; 250] = "float a[250]", b: u8 = "unsigned char b" }
}

/// A list of parameters, as indices into the list of types.
type List = Vec<usize>;

/// Marsaglia's xorshift: the same lists in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Declares 200 structs of random fields in C, and appends them to `types` with the sizes and alignments that
/// `repr(C)` gives them.
fn random_structs(types: &mut Vec<Type>, random: &mut Random) -> String {
    let mut declarations = String::new();
    for number in 0..200 {
        let fields: List = (0..1 + random.below(8)).map(|_| random.below(types.len())).collect();
        let mut declaration = format!("struct Random{number} {{");
        let (mut size, mut align) = (0usize, 1);
        for (place, &field) in fields.iter().enumerate() {
            let field = &types[field];
            let _ = write!(declaration, " {} f{place};", field.c_name);
            size = size.next_multiple_of(field.align) + field.size;
            align = align.max(field.align);
        }
        let _ = writeln!(declarations, "{declaration} }};");
        types.push(Type {
            c_name: format!("struct Random{number}"),
            size: size.next_multiple_of(align),
            align,
            push: |_| {},
        });
    }
    declarations
}

/// Writes the C program, which prints the size and alignment of every type and the offsets of every list.
fn program(types: &[Type], declarations: &str, lists: &[List]) -> String {
    let mut out = format!("#include <stddef.h>\n#include <stdio.h>\n{declarations}");
    for (number, list) in lists.iter().enumerate() {
        let _ = write!(out, "struct List{number} {{");
        for (place, &ty) in list.iter().enumerate() {
            let _ = write!(out, " {} p{place};", types[ty].c_name);
        }
        out.push_str(" };\n");
    }
    out.push_str("static const size_t facts[] = {\n");
    for ty in types {
        let _ = writeln!(out, "sizeof({0}), _Alignof({0}),", ty.c_name);
    }
    for (number, list) in lists.iter().enumerate() {
        for place in 0..list.len() {
            let _ = write!(out, "offsetof(struct List{number}, p{place}), ");
        }
        out.push('\n');
    }
    out.push_str("};\nint main(void) {\n  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) printf(\"%zu\\n\", facts[i]);\n  return 0;\n}\n");
    out
}

/// Declares the vector types in C. An alignment of 1000 means the size of the whole vector, 0 the alignment of an
/// element.
fn own_vectors() -> String {
    let mut out = String::new();
    for (name, element, count, align) in VECTORS {
        let align = match align {
            0 => format!("_Alignof({element})"),
            1000 => format!("{count} * sizeof({element})"),
            align => align.to_string(),
        };
        let fields = ["x", "y", "z", "w"][..*count].join(", ");
        let _ = writeln!(
            out,
            "typedef struct __attribute__((aligned({align}))) {{ {element} {fields}; }} {name};"
        );
    }
    out.push_str("typedef struct { unsigned int x, y, z; } dim3;\n");
    out
}

/// Returns the folder of NVIDIA's `vector_types.h`, if `cargo xtask headers` fetched it.
fn header_folder() -> Option<PathBuf> {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache");
    let found = fs::read_dir(cache).ok()?.flatten().flat_map(|entry| {
        ["nvidia/cu13/include", "nvidia/cuda_runtime/include"].map(|folder| entry.path().join(folder))
    });
    // Headers up to CUDA 12 lack the variants with an alignment in their names.
    let mut found: Vec<_> = found
        .filter(|folder| {
            fs::read_to_string(folder.join("vector_types.h")).is_ok_and(|text| text.contains("double4_32a"))
        })
        .collect();
    found.sort();
    found.pop()
}

/// Compiles and runs a program. Returns the numbers that it prints, or `Err` with the reason why there is no compiler.
fn run(name: &str, program: &str, arguments: &[String]) -> Result<Vec<usize>, String> {
    let folder = env::temp_dir().join(format!("cuda-driver-param-layout-{}-{name}", std::process::id()));
    fs::create_dir_all(folder.join("crt")).unwrap();
    // `vector_types.h` includes `crt/host_defines.h`, and needs only these definitions of it.
    fs::write(
        folder.join("crt/host_defines.h"),
        "#define __device_builtin__\n#define __align__(n) __attribute__((aligned(n)))\n#define __builtin_align__(n) __align__(n)\n",
    )
    .unwrap();
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    fs::write(&source, program).unwrap();
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let compiler = cc::Build::new()
        .target(&target)
        .host(&target)
        .opt_level(0)
        .out_dir(&folder)
        .cargo_metadata(false)
        .try_get_compiler()
        .map_err(|error| error.to_string())?;
    let output = compiler
        .to_command()
        .args(["-std=c11", "-w", "-I"])
        .arg(&folder)
        .args(arguments)
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .output()
        .map_err(|error| format!("{}: {error}", compiler.path().display()))?;
    assert!(
        output.status.success(),
        "the C program does not compile: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let output = Command::new(&binary).output().unwrap();
    assert!(output.status.success());
    let facts = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let _ = fs::remove_dir_all(&folder);
    Ok(facts)
}

fn compare(name: &str, vectors_in_c: &str, arguments: &[String]) {
    let mut types = scalars();
    types.extend(vectors());
    types.push(of::<Dim3>("dim3"));
    types.extend(structs());
    let rust_types = types.len();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let declarations = format!("{vectors_in_c}{STRUCTS}{}", random_structs(&mut types, &mut random));
    let lists: Vec<List> = (0..1000)
        .map(|_| (0..1 + random.below(40)).map(|_| random.below(types.len())).collect())
        .collect();

    let facts = match run(name, &program(&types, &declarations, &lists), arguments) {
        Ok(facts) => facts,
        Err(why) => {
            // CI's machine runs Linux and has a compiler. On other systems, one for the host may be missing.
            let missing = format!("a C compiler: {why}");
            return if cfg!(target_os = "linux") {
                needs::needs_but_not_in_ci(&missing)
            } else {
                needs::needs(&missing)
            };
        }
    };
    let mut facts = facts.into_iter();
    for ty in &types {
        let c = (facts.next().unwrap(), facts.next().unwrap());
        assert_eq!((ty.size, ty.align), c, "size and alignment of {}", ty.c_name);
    }
    let mut offsets = 0;
    for list in &lists {
        let mut buffer = ParamBuffer::new();
        for &ty in list {
            if ty < rust_types {
                (types[ty].push)(&mut buffer);
            } else {
                buffer.push_bytes(&vec![0; types[ty].size], types[ty].align);
            }
        }
        for (place, &ty) in list.iter().enumerate() {
            let given = buffer.parameters()[place];
            let names: Vec<_> = list.iter().map(|&ty| types[ty].c_name.as_str()).collect();
            assert_eq!(given.offset, facts.next().unwrap(), "parameter {place} of {names:?}");
            assert_eq!(given.size, types[ty].size);
            offsets += 1;
        }
        let last = buffer.parameters()[list.len() - 1];
        assert_eq!(buffer.len(), last.offset + last.size);
    }
    assert_eq!(facts.next(), None);
    println!("{offsets} offsets of {} lists agree with C ({name})", lists.len());
}

#[test]
fn offsets_match_a_c_compilers() {
    compare("own", &own_vectors(), &[]);
}

#[test]
fn vector_types_match_nvidias_header() {
    let Some(folder) = header_folder() else {
        return needs::needs("NVIDIA's vector_types.h, which `cargo xtask headers` fetches");
    };
    let declarations = "#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__\n#include <vector_types.h>\n";
    compare(
        "header",
        declarations,
        &["-isystem".to_owned(), folder.display().to_string()],
    );
}

#[test]
fn a_tuple_and_a_buffer_have_the_same_layout() {
    let tuple = (
        1u8,
        2.0f64,
        3u16,
        float4::new(0.0, 1.0, 2.0, 3.0),
        DevicePtr::null(),
        true,
        Dim3::from(4),
    );
    let mut buffer = ParamBuffer::new();
    buffer
        .push(tuple.0)
        .push(tuple.1)
        .push(tuple.2)
        .push(tuple.3)
        .push(tuple.4)
        .push(tuple.5)
        .push(tuple.6);
    assert_eq!(tuple.layout().as_deref(), Some(buffer.parameters()));
    let offsets: Vec<_> = buffer.parameters().iter().map(|parameter| parameter.offset).collect();
    assert_eq!(offsets, [0, 8, 16, 32, 48, 56, 60]);
    assert_eq!(buffer.len(), 72);
    buffer.clear();
    assert!(buffer.is_empty() && buffer.parameters().is_empty());
}
