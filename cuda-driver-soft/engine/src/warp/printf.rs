//! Parses the conversions of `printf`, such as `%5.2f`, and formats their values.

#![forbid(unsafe_code)]

/// A conversion of `printf`.
pub(super) struct Conversion {
    flags: Vec<u8>,
    width: usize,
    precision: Option<usize>,
    long: bool,
    /// Number of `h`.
    short: usize,
    pub(super) letter: u8,
}

/// Limit on width and precision.
const MAX_WIDTH: u64 = 4096;

impl Conversion {
    /// Parses a conversion after its `%`; `star` reads the value of a `*`, given its size in bytes. Returns `None`, and
    /// does not change `rest`, if there is no conversion that a GPU's `printf` knows: an H200 prints `%zu`, `%jd`,
    /// `%td`, `%n` and a precision of `*` as they are, and takes no value for them.
    pub(super) fn parse<E>(rest: &mut &[u8], mut star: impl FnMut(u64) -> Result<u64, E>) -> Option<Result<Self, E>> {
        let text = *rest;
        let mut i = 0;
        let mut spec = Conversion {
            flags: Vec::new(),
            width: 0,
            precision: None,
            long: false,
            short: 0,
            letter: 0,
        };
        while let Some(b @ (b'-' | b'+' | b' ' | b'#' | b'0')) = text.get(i) {
            spec.flags.push(*b);
            i += 1;
        }
        // Only a `*` can give a negative number.
        let mut number = |i: &mut usize| -> Result<i64, E> {
            if text.get(*i) == Some(&b'*') {
                *i += 1;
                return star(4).map(|n| i64::from(n as u32 as i32));
            }
            let digits = text[*i..].iter().take_while(|b| b.is_ascii_digit()).count();
            let value = text[*i..*i + digits]
                .iter()
                .fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
            *i += digits;
            Ok(value)
        };
        match number(&mut i) {
            Ok(width) => {
                // As in C, a negative width is the flag `-` and a width.
                if width < 0 {
                    spec.flags.push(b'-');
                }
                spec.width = width.unsigned_abs().min(MAX_WIDTH) as usize;
            }
            Err(error) => return Some(Err(error)),
        }
        if text.get(i) == Some(&b'.') {
            i += 1;
            if text.get(i) == Some(&b'*') {
                return None;
            }
            match number(&mut i) {
                Ok(precision) => spec.precision = Some(precision.unsigned_abs().min(MAX_WIDTH) as usize),
                Err(error) => return Some(Err(error)),
            }
        }
        while let Some(b @ (b'l' | b'h' | b'L')) = text.get(i) {
            spec.long |= *b == b'l';
            spec.short += usize::from(*b == b'h');
            i += 1;
        }
        spec.letter = *text.get(i)?;
        if !b"diuoxXcspfFeEgGaA%".contains(&spec.letter) {
            return None;
        }
        *rest = &text[i + 1..];
        Some(Ok(spec))
    }

    /// Returns true if the value takes 8 bytes.
    pub(super) fn is_wide(&self) -> bool {
        self.long || b"spfFeEgGaA".contains(&self.letter)
    }

    fn has(&self, flag: u8) -> bool {
        self.flags.contains(&flag)
    }

    /// Cuts the value of an integer conversion to the bits of its type, and extends its sign for `%d` and `%i`.
    fn integer(&self, bits: u64) -> u64 {
        let unused = match (self.long, self.short) {
            (true, _) => 0,
            (false, 0) => 32,
            (false, 1) => 48,
            (false, _) => 56,
        };
        match self.letter {
            b'd' | b'i' => ((bits << unused).cast_signed() >> unused).cast_unsigned(),
            _ => bits << unused >> unused,
        }
    }

    /// Appends the value, or `string` for `%s`.
    pub(super) fn write(&self, bits: u64, string: &[u8], out: &mut Vec<u8>) {
        let integer = b"diuoxX".contains(&self.letter);
        let bits = if integer { self.integer(bits) } else { bits };
        let (sign, mut digits) = match self.letter {
            b'c' => ("", vec![bits as u8]),
            b's' => (
                "",
                string[..string.len().min(self.precision.unwrap_or(usize::MAX))].to_vec(),
            ),
            b'd' | b'i' => {
                let value = bits.cast_signed();
                (self.sign(value < 0), value.unsigned_abs().to_string().into_bytes())
            }
            b'u' => ("", bits.to_string().into_bytes()),
            b'o' if self.has(b'#') && bits != 0 => ("", format!("0{bits:o}").into_bytes()),
            b'o' => ("", format!("{bits:o}").into_bytes()),
            b'x' => (
                if self.has(b'#') && bits != 0 { "0x" } else { "" },
                format!("{bits:x}").into_bytes(),
            ),
            b'X' => (
                if self.has(b'#') && bits != 0 { "0X" } else { "" },
                format!("{bits:X}").into_bytes(),
            ),
            // An H200 prints a null pointer as `(nil)`.
            b'p' if bits == 0 => ("", b"(nil)".to_vec()),
            b'p' => ("0x", format!("{bits:x}").into_bytes()),
            _ => {
                let value = f64::from_bits(bits);
                (
                    self.sign(value.is_sign_negative()),
                    self.float(value.abs()).into_bytes(),
                )
            }
        };
        if let Some(precision) = self.precision.filter(|_| integer) {
            // As in C, 0 with precision 0 has no digits.
            if precision == 0 && digits == b"0" {
                digits.clear();
            }
            while digits.len() < precision {
                digits.insert(0, b'0');
            }
        }
        let fill = self.width.saturating_sub(sign.len() + digits.len());
        let is_finite = !b"fFeEgGaA".contains(&self.letter) || f64::from_bits(bits).is_finite();
        let number = !b"cs".contains(&self.letter) && is_finite;
        let zeros = self.has(b'0') && !self.has(b'-') && number && !(integer && self.precision.is_some());
        if !self.has(b'-') && !zeros {
            out.extend(std::iter::repeat_n(b' ', fill));
        }
        out.extend_from_slice(sign.as_bytes());
        if zeros {
            out.extend(std::iter::repeat_n(b'0', fill));
        }
        out.append(&mut digits);
        if self.has(b'-') {
            out.extend(std::iter::repeat_n(b' ', fill));
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.has(b'+'), self.has(b' ')) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            _ => "",
        }
    }

    /// Formats a value that is not negative as `%f`, `%e`, `%g` or `%a`.
    fn float(&self, value: f64) -> String {
        let upper = self.letter.is_ascii_uppercase();
        let text = if value.is_nan() {
            "nan".into()
        } else if value.is_infinite() {
            "inf".into()
        } else {
            match self.letter.to_ascii_lowercase() {
                b'e' => exponent(value, self.precision.unwrap_or(6)),
                b'g' => self.general(value),
                b'a' => hexadecimal(value, self.precision),
                _ => format!("{value:.*}", self.precision.unwrap_or(6)),
            }
        };
        if upper { text.to_uppercase() } else { text }
    }

    fn general(&self, value: f64) -> String {
        let precision = self.precision.unwrap_or(6).max(1);
        let scientific = exponent(value, precision - 1);
        let power: i32 = scientific
            .split_once('e')
            .and_then(|(_, e)| e.parse().ok())
            .unwrap_or(0);
        let trim = |text: &str| match text.contains('.') && !self.has(b'#') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text.to_string(),
        };
        if power < -4 || power >= precision as i32 {
            match scientific.split_once('e') {
                Some((digits, e)) => format!("{}e{e}", trim(digits)),
                None => scientific,
            }
        } else {
            trim(&format!("{value:.*}", (precision as i32 - 1 - power).max(0) as usize))
        }
    }
}

/// Formats a value as `1.500000e+00`.
fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, power) = match power.strip_prefix('-') {
                Some(power) => ('-', power),
                None => ('+', power),
            };
            format!("{digits}e{sign}{power:0>2}")
        }
        None => text,
    }
}

/// Formats a value as `0x1.8p+0`, with all its digits or with `precision` of them after the point, rounded half to
/// even.
fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (lead, power) = match exponent {
        0 if fraction == 0 => (0, 0),
        0 => (0, -1022),
        _ => (1, exponent - 1023),
    };
    let mut significand = lead << 52 | fraction;
    // A number has 13 digits after the point.
    let cut = 4 * 13usize.saturating_sub(precision.unwrap_or(13));
    if cut > 0 {
        let (rest, half) = (significand & ((1 << cut) - 1), 1 << (cut - 1));
        significand >>= cut;
        significand += u64::from(rest > half || (rest == half && significand & 1 == 1));
        significand <<= cut;
    }
    let digits = format!("{:013x}", significand & ((1 << 52) - 1));
    let digits = match precision {
        Some(count) => format!("{digits:0<count$.count$}"),
        None => digits.trim_end_matches('0').to_owned(),
    };
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{}{point}{digits}p{power:+}", significand >> 52)
}

#[cfg(test)]
mod tests {
    use super::Conversion;

    fn print(format: &str, bits: u64) -> String {
        print_with(format, bits, 7)
    }

    fn print_with(format: &str, bits: u64, star: i32) -> String {
        let mut rest = format.as_bytes();
        let star = |_| Ok::<_, ()>(u64::from(star as u32));
        let spec = Conversion::parse(&mut rest, star).unwrap().unwrap();
        assert!(rest.is_empty(), "{format}");
        let mut out = Vec::new();
        spec.write(bits, b"text", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn conversions_match_c() {
        for (format, bits, want) in [
            ("d", -5i32 as u32 as u64, "-5"),
            ("5d", 42, "   42"),
            ("-5d", 42, "42   "),
            ("05d", -42i32 as u32 as u64, "-0042"),
            ("+d", 42, "+42"),
            (".3d", 7, "007"),
            ("u", 0xffff_ffff, "4294967295"),
            ("lld", -1i64 as u64, "-1"),
            ("llx", 0xdead_beef_0001, "deadbeef0001"),
            ("#X", 255, "0XFF"),
            ("o", 8, "10"),
            ("#o", 8, "010"),
            ("#o", 0, "0"),
            ("hd", 70_000, "4464"),
            ("hhd", 300, "44"),
            ("hd", 0xffff_8000, "-32768"),
            ("hx", 0xffff_ffff, "ffff"),
            ("hhu", 0xffff_ff78, "120"),
            ("c", 65, "A"),
            ("6s", 0, "  text"),
            (".2s", 0, "te"),
            ("p", 0x10, "0x10"),
            ("*d", 1, "      1"),
            ("f", 1.5f64.to_bits(), "1.500000"),
            (".2f", 0.125f64.to_bits(), "0.12"),
            ("8.3f", (-1.0f64).to_bits(), "  -1.000"),
            ("08.2f", (-1.0f64).to_bits(), "-0001.00"),
            ("e", 12345.678f64.to_bits(), "1.234568e+04"),
            (".0e", 1e-7f64.to_bits(), "1e-07"),
            ("g", 0.0001f64.to_bits(), "0.0001"),
            ("g", 1e10f64.to_bits(), "1e+10"),
            ("g", 100000.0f64.to_bits(), "100000"),
            ("G", 1e-10f64.to_bits(), "1E-10"),
            (".0d", 0, ""),
            ("+3.0d", 0, "  +"),
            ("a", 1.5f64.to_bits(), "0x1.8p+0"),
            (".0a", 1.5f64.to_bits(), "0x2p+0"),
            (".2a", 1.0f64.to_bits(), "0x1.00p+0"),
            (".1a", 1.046875f64.to_bits(), "0x1.1p+0"),
            (".15a", 1.5f64.to_bits(), "0x1.800000000000000p+0"),
            ("06f", f64::NAN.to_bits(), "   nan"),
            ("06.1f", f64::INFINITY.to_bits(), "   inf"),
            ("f", f64::NAN.to_bits(), "nan"),
            ("F", f64::NEG_INFINITY.to_bits(), "-INF"),
        ] {
            assert_eq!(print(format, bits), want, "%{format}");
        }
        // A negative `*` is a width on the left.
        assert_eq!(print_with("*d", 42, -5), "42   ");
    }

    #[test]
    fn conversions_that_a_gpu_does_not_know_are_none() {
        for format in ["zu", "jd", "td", "n", "k", ".*f", "qd", "", "5"] {
            let mut rest = format.as_bytes();
            assert!(Conversion::parse(&mut rest, |_| Ok::<_, ()>(7)).is_none(), "%{format}");
            assert_eq!(rest, format.as_bytes());
        }
    }
}
