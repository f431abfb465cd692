//! Rotates and scales a picture: reads it through a texture with linear filtering, writes it to a surface, checks every
//! pixel against the CPU, and saves it as PNG in FILE, by default `texture.png`.
//!
//! ```text
//! cargo run --example texture [-- FILE]
//! ```

use std::error::Error;
use std::io::Write;
use std::{env, fs};

use cuda_driver::array::ArrayShape;
use cuda_driver::sys::{CUaddress_mode, CUfilter_mode};
use cuda_driver::texture::TextureDescriptor;
use cuda_driver::vector::float3;
use cuda_driver::{Array, Context, Device, LaunchConfig, Module, Stream, Surface, Texture};
use cuda_driver_soft::Prefer;

/// `affine(picture, out, width, height, u, v)`: the pixel whose centre is (x, y) is the sample at (u · (x, y, 1),
/// v · (x, y, 1)).
const PTX: &str = include_str!("../tests/kernels/generated/texture.ptx");

const WIDTH: usize = 256;
const HEIGHT: usize = 192;

/// Red, green, blue and alpha.
type Pixel = [u8; 4];

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).unwrap_or_else(|| "texture.png".to_owned());
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let context = Context::create(Device::first()?)?;
    let stream = Stream::new(&context)?;
    let module = Module::from_ptx(&context, PTX)?;
    let affine = module.function("affine")?;

    // The texture: an array of pixels, in a layout that the device chooses.
    let picture: Vec<Pixel> = (0..WIDTH * HEIGHT).map(|i| checkers(i % WIDTH, i / WIDTH)).collect();
    let shape = ArrayShape::d2(WIDTH, HEIGHT);
    let array = Array::<Pixel>::new(&context, shape)?;
    array.copy_from(&picture)?;
    let descriptor = TextureDescriptor::new()
        .filter_mode(CUfilter_mode::CU_TR_FILTER_MODE_LINEAR)
        .address_mode(CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER)
        .border_color([0.0, 0.0, 0.25, 1.0]);
    let texture = Texture::new(&array, &descriptor)?;

    // The surface: an array of the same shape that kernels can write.
    let result = Array::<Pixel>::new(&context, shape.surface())?;
    let surface = Surface::new(&result)?;

    // Coordinates are rotated by 30 degrees around the centre and multiplied by 1.5, so the picture gets smaller.
    let (sin, cos) = 30_f32.to_radians().sin_cos();
    let (cx, cy) = (WIDTH as f32 / 2.0, HEIGHT as f32 / 2.0);
    let (sin, cos) = (1.5 * sin, 1.5 * cos);
    let u = float3::new(cos, -sin, cx - cos * cx + sin * cy);
    let v = float3::new(sin, cos, cy - sin * cx - cos * cy);
    let config = LaunchConfig::covering((WIDTH as u32, HEIGHT as u32), (16, 16));
    let arguments = (texture.handle(), surface.handle(), WIDTH as u32, HEIGHT as u32, u, v);
    // SAFETY: the arguments match the parameters of the kernel, which writes only the surface; the texture and the
    // surface live until it is done.
    unsafe { affine.launch(&stream, config, arguments) }?;
    stream.synchronize()?;

    let pixels = result.to_vec()?;
    let mut difference = 0;
    for (i, pixel) in pixels.iter().enumerate() {
        let (x, y) = ((i % WIDTH) as f32 + 0.5, (i / WIDTH) as f32 + 0.5);
        let expected = sample(&picture, u.x * x + u.y * y + u.z, v.x * x + v.y * y + v.z);
        for (channel, expected) in pixel.iter().zip(expected) {
            difference = difference.max(channel.abs_diff(expected));
        }
    }
    fs::write(&file, png(&pixels)?)?;
    println!("{file}: {WIDTH} x {HEIGHT} pixels, which differ from the CPU's by at most {difference} of 255");
    // The device's filter rounds its weights to 8 bits, so small differences are expected.
    if difference > 3 {
        return Err(format!("a pixel differs from the CPU's by {difference}, more than the expected 3").into());
    }
    println!("Result = PASS");
    Ok(())
}

/// Returns a pixel of the picture: squares of 32 pixels with a gradient.
fn checkers(x: usize, y: usize) -> Pixel {
    let light = if (x / 32 + y / 32) % 2 == 0 { 255 } else { 64 };
    [light, (x * 255 / WIDTH) as u8, (y * 255 / HEIGHT) as u8, 255]
}

/// Samples the picture as the texture does: linear between the centres of four pixels, and the border's color outside.
fn sample(picture: &[Pixel], x: f32, y: f32) -> Pixel {
    let (x, y) = (x - 0.5, y - 0.5);
    let (left, top) = (x.floor(), y.floor());
    let mut sum = [0.5; 4];
    for (column, row) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let weight_x = if column == 0 { 1.0 - (x - left) } else { x - left };
        let weight_y = if row == 0 { 1.0 - (y - top) } else { y - top };
        let inside = usize::try_from(left as i64 + column)
            .ok()
            .zip(usize::try_from(top as i64 + row).ok())
            .filter(|(x, y)| *x < WIDTH && *y < HEIGHT);
        let pixel = match inside {
            Some((x, y)) => picture[y * WIDTH + x].map(f32::from),
            None => [0.0, 0.0, 0.25 * 255.0, 255.0],
        };
        for (sum, channel) in sum.iter_mut().zip(pixel) {
            *sum += weight_x * weight_y * channel;
        }
    }
    sum.map(|channel| channel as u8)
}

/// Returns a PNG file, without compression.
fn png(pixels: &[Pixel]) -> Result<Vec<u8>, Box<dyn Error>> {
    // Each row starts with the number of its filter; 0 is none.
    let rows: Vec<u8> = pixels
        .chunks(WIDTH)
        .flat_map(|row| [0].into_iter().chain(row.iter().copied().flatten()))
        .collect();
    // A zlib stream: header, stored blocks of at most 65,535 bytes, and the Adler-32 of the rows.
    let mut data = vec![0x78, 0x01];
    let mut blocks = rows.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        data.push(u8::from(blocks.peek().is_none()));
        data.extend(length.to_le_bytes());
        data.extend((!length).to_le_bytes());
        data.extend(block);
    }
    let (a, b) = rows.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    data.extend((b << 16 | a).to_be_bytes());

    let mut header = Vec::new();
    header.extend((WIDTH as u32).to_be_bytes());
    header.extend((HEIGHT as u32).to_be_bytes());
    // 8 bits for each of red, green, blue and alpha.
    header.extend([8, 6, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, content) in [(b"IHDR", header), (b"IDAT", data), (b"IEND", Vec::new())] {
        file.extend(u32::try_from(content.len())?.to_be_bytes());
        let start = file.len();
        file.write_all(name)?;
        file.extend(content);
        let crc = file[start..].iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
            })
        });
        file.extend((!crc).to_be_bytes());
    }
    Ok(file)
}
