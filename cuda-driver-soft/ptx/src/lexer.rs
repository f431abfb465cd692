//! Text to lexemes.
//!
//! The lexer holds one current token and no look-ahead, so that the parser can ask for an opcode with all its modifiers
//! as *one* lexeme ([`Lexer::extend_opcode`]): in `ld.global.nc.v4.f32` nothing is gained by five tokens.

/// What a token is. Its text is `text[start..end]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    End,
    /// Identifier: of a symbol, register, label or opcode.
    Word,
    /// `.name`: a directive, type, or modifier.
    Dot,
    /// An integer literal: its bits, and whether it is of type `.u64` (suffix `U`, or too large for `.s64`).
    Int {
        bits: u64,
        unsigned: bool,
    },
    /// `0f…`: bits of an f32.
    F32(u32),
    /// `0d…`, or a decimal literal: bits of an f64.
    F64 {
        bits: u64,
        hex: bool,
    },
    /// `"…"`, the quotes included.
    Str,
    /// An operator or bracket of one byte.
    Punct(u8),
    /// `<<` `>>` `<=` `>=` `==` `!=` `&&` `||`, by their first byte and their second.
    Punct2(u8, u8),
    /// A byte that starts nothing.
    Bad,
}

/// The current token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) line: u32,
}

pub(super) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
    /// The current token.
    pub(super) token: Token,
}

/// Byte classes.
const SPACE: u8 = 1;
const IDENT: u8 = 2;
const DIGIT: u8 = 4;
const OPCODE: u8 = 8;
const START: u8 = 16;

const CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        let mut class = 0;
        if matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c) {
            class |= SPACE;
        }
        if b.is_ascii_alphanumeric() || b == b'_' || b == b'$' {
            class |= IDENT | OPCODE;
        }
        if b == b'.' || b == b':' {
            class |= OPCODE;
        }
        if b.is_ascii_digit() {
            class |= DIGIT;
        }
        if b.is_ascii_alphabetic() || matches!(b, b'_' | b'$' | b'%') {
            class |= START;
        }
        table[i] = class;
        i += 1;
    }
    table
};

fn is(b: u8, class: u8) -> bool {
    CLASS[b as usize] & class != 0
}

impl<'a> Lexer<'a> {
    /// A lexer at the first token of `text`, which is shorter than 4 GiB.
    pub(super) fn new(text: &'a [u8]) -> Self {
        let token = Token {
            kind: Kind::End,
            start: 0,
            end: 0,
            line: 1,
        };
        let mut lexer = Lexer {
            text,
            at: 0,
            line: 1,
            token,
        };
        lexer.bump();
        lexer
    }

    fn byte(&self, i: usize) -> u8 {
        self.text.get(i).copied().unwrap_or(0)
    }

    /// The text of a token.
    pub(super) fn text(&self, token: Token) -> &'a [u8] {
        self.text
            .get(token.start as usize..token.end as usize)
            .unwrap_or(&[])
    }

    /// Skips blanks, comments and `#` lines.
    fn skip(&mut self) {
        loop {
            let b = self.byte(self.at);
            if b == b'\n' {
                self.line += 1;
                self.at += 1;
            } else if is(b, SPACE) {
                self.at += 1;
            } else if (b == b'/' && self.byte(self.at + 1) == b'/')
                || (b == b'#' && self.line_marker())
            {
                self.skip_to_line_end();
            } else if b == b'/' && self.byte(self.at + 1) == b'*' {
                self.at += 2;
                while self.at < self.text.len() && !self.text[self.at..].starts_with(b"*/") {
                    self.line += u32::from(self.text[self.at] == b'\n');
                    self.at += 1;
                }
                self.at = (self.at + 2).min(self.text.len());
            } else {
                return;
            }
        }
    }

    /// `# 12 "file"`: what a preprocessor leaves.
    fn line_marker(&self) -> bool {
        let rest = self.text.get(self.at + 1..).unwrap_or(&[]);
        let next = rest.iter().find(|&&b| b != b' ' && b != b'\t');
        next.is_some_and(|&b| is(b, DIGIT))
    }

    fn skip_to_line_end(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    }

    /// Goes to the next token.
    pub(super) fn bump(&mut self) {
        self.skip();
        let start = self.at;
        let line = self.line;
        let b = self.byte(start);
        let kind = if start >= self.text.len() {
            Kind::End
        } else if is(b, START) && (b != b'%' || is(self.byte(start + 1), IDENT)) {
            self.at += 1;
            self.run(IDENT);
            Kind::Word
        } else if is(b, DIGIT) || (b == b'.' && is(self.byte(start + 1), DIGIT)) {
            self.number()
        } else if b == b'.' {
            self.at += 1;
            self.run(IDENT);
            if self.at == start + 1 {
                Kind::Punct(b'.')
            } else {
                Kind::Dot
            }
        } else if b == b'"' {
            let rest = &self.text[start + 1..];
            match rest.iter().position(|&b| b == b'"' || b == b'\n') {
                Some(n) if rest[n] == b'"' => {
                    self.at = start + n + 2;
                    Kind::Str
                }
                _ => {
                    self.at += 1;
                    Kind::Bad
                }
            }
        } else {
            self.at += 1;
            let next = self.byte(self.at);
            match (b, next) {
                (b'<', b'<') | (b'>', b'>') | (b'&', b'&') | (b'|', b'|') => self.pair(b, next),
                (b'<' | b'>' | b'=' | b'!', b'=') => self.pair(b, next),
                _ if b.is_ascii_punctuation() => Kind::Punct(b),
                _ => Kind::Bad,
            }
        };
        self.token = Token {
            kind,
            start: start as u32,
            end: self.at as u32,
            line,
        };
    }

    fn pair(&mut self, b: u8, next: u8) -> Kind {
        self.at += 1;
        Kind::Punct2(b, next)
    }

    fn run(&mut self, class: u8) {
        while is(self.byte(self.at), class) {
            self.at += 1;
        }
    }

    /// Makes the current word, which the caller knows to be an opcode, reach over all its modifiers.
    pub(super) fn extend_opcode(&mut self) {
        if self.byte(self.at) == b'.' && is(self.byte(self.at + 1), IDENT) {
            self.run(OPCODE);
            self.token.end = self.at as u32;
        }
    }

    /// Skips the rest of the line that the current token is on: debug directives end with the line.
    pub(super) fn skip_line(&mut self) {
        if self.token.line == self.line {
            self.at = self.token.end as usize;
            self.skip_to_line_end();
            self.bump();
        }
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        let (b, next) = (self.byte(start), self.byte(start + 1) | 0x20);
        if b == b'0' {
            match next {
                b'f' => {
                    if let Some(bits) = self.hex_exact(8) {
                        return Kind::F32(bits as u32);
                    }
                }
                b'd' => {
                    if let Some(bits) = self.hex_exact(16) {
                        return Kind::F64 { bits, hex: true };
                    }
                }
                b'x' if self.byte(start + 2).is_ascii_hexdigit() => {
                    return self.integer(start + 2, 16);
                }
                b'b' if matches!(self.byte(start + 2), b'0' | b'1') => {
                    return self.integer(start + 2, 2);
                }
                _ => {}
            }
        }
        let mut end = start;
        while is(self.byte(end), DIGIT) {
            end += 1;
        }
        let mut float = false;
        if self.byte(end) == b'.' {
            float = true;
            end += 1;
            while is(self.byte(end), DIGIT) {
                end += 1;
            }
        }
        if self.byte(end) | 0x20 == b'e' {
            let sign = usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            if is(self.byte(end + 1 + sign), DIGIT) {
                float = true;
                end += 1 + sign;
                while is(self.byte(end), DIGIT) {
                    end += 1;
                }
            }
        }
        if float {
            self.at = end;
            let value = std::str::from_utf8(&self.text[start..end])
                .ok()
                .and_then(|s| s.parse::<f64>().ok());
            return value.map_or(Kind::Bad, |v| Kind::F64 {
                bits: v.to_bits(),
                hex: false,
            });
        }
        if b == b'0' {
            self.integer(start, 8)
        } else {
            self.integer(start, 10)
        }
    }

    /// `0f` or `0d` and exactly `digits` hexadecimal digits.
    fn hex_exact(&mut self, digits: usize) -> Option<u64> {
        let hex = self.text.get(self.at + 2..self.at + 2 + digits)?;
        let mut value = 0u64;
        for &b in hex {
            value = value << 4 | u64::from((b as char).to_digit(16)?);
        }
        self.at += 2 + digits;
        Some(value)
    }

    fn integer(&mut self, from: usize, radix: u64) -> Kind {
        let mut value = 0u64;
        let mut large = false;
        let mut end = from;
        while let Some(digit) = (self.byte(end) as char).to_digit(radix as u32) {
            // What does not fit is cut off, as ptxas does.
            let wide = u128::from(value) * u128::from(radix) + u128::from(digit);
            large |= wide > i64::MAX as u128;
            value = wide as u64;
            end += 1;
        }
        let suffix = self.byte(end) == b'U';
        self.at = end + usize::from(suffix);
        Kind::Int {
            bits: value,
            unsigned: suffix || large,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut all = Vec::new();
        while lexer.token.kind != Kind::End {
            all.push(lexer.token.kind);
            lexer.bump();
        }
        all
    }

    #[test]
    fn numbers() {
        let int = |bits| Kind::Int {
            bits,
            unsigned: false,
        };
        assert_eq!(
            kinds("017 0x1F 0b101 42"),
            [int(15), int(31), int(5), int(42)]
        );
        assert_eq!(
            kinds("7U 0xFFFFFFFFFFFFFFFF"),
            [
                Kind::Int {
                    bits: 7,
                    unsigned: true
                },
                Kind::Int {
                    bits: u64::MAX,
                    unsigned: true
                }
            ]
        );
        assert_eq!(kinds("019"), [int(1), int(9)]);
        assert_eq!(
            kinds("0f3f800000 0D3ff0000000000000"),
            [
                Kind::F32(0x3f80_0000),
                Kind::F64 {
                    bits: 0x3ff0_0000_0000_0000,
                    hex: true
                }
            ]
        );
        let decimal = |v: f64| Kind::F64 {
            bits: v.to_bits(),
            hex: false,
        };
        assert_eq!(
            kinds("1.5 .5 5. 1e3 1.5E-3"),
            [1.5, 0.5, 5.0, 1e3, 1.5e-3].map(decimal)
        );
        // Too few digits: an integer, then a word.
        assert_eq!(kinds("0f3f80"), [int(0), Kind::Word]);
    }

    #[test]
    fn an_opcode_is_one_lexeme() {
        let mut lexer = Lexer::new(b"ld.global.L2::128B.v4.f32\t{%f1}; $L: bar");
        lexer.extend_opcode();
        assert_eq!(lexer.text(lexer.token), b"ld.global.L2::128B.v4.f32");
        while lexer.text(lexer.token) != b"$L" {
            lexer.bump();
        }
        lexer.extend_opcode();
        assert_eq!(lexer.text(lexer.token), b"$L");
    }

    #[test]
    fn debug_lines_end_with_the_line() {
        let mut lexer = Lexer::new(b".loc 1 2 3\nret;");
        lexer.skip_line();
        assert_eq!(lexer.text(lexer.token), b"ret");
        assert_eq!(lexer.token.line, 2);
    }
}
