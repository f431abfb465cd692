//! The lexer: splits PTX text into tokens.
//!
//! The lexer holds one current token and no look-ahead. The parser can therefore extend a word to an opcode with all
//! its modifiers ([`Lexer::extend_opcode`]): `ld.global.nc.v4.f32` is one token instead of five.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// The end of the text.
    End,
    /// An identifier: the name of a symbol, register or label, or an opcode.
    Word,
    /// `.name`: a directive, type, modifier or selector.
    Dot,
    /// An integer literal.
    Int {
        bits: u64,
        /// True if the type is `.u64`: by the suffix `U`, or because the value is too large for `.s64`.
        unsigned: bool,
    },
    /// `0f…`: the bits of an f32.
    F32(u32),
    /// `0d…`, or a decimal literal: the bits of an f64.
    F64 {
        bits: u64,
        /// True for `0d…`.
        hex: bool,
    },
    /// `"…"`, including the quotes.
    Str,
    /// An operator, bracket or separator of one byte.
    Punct(u8),
    /// `<<` `>>` `<=` `>=` `==` `!=` `&&` `||`: the first byte and the second.
    Punct2(u8, u8),
    /// A byte that begins no token, the quote of a string that does not end on its line, or the end of the text inside
    /// a `/* … */` comment.
    Bad,
}

/// A token: its text is `text[start..end]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Line of the text, from 1.
    pub(crate) line: u32,
}

/// A lexer with its current token.
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
    /// The current token.
    pub(crate) token: Token,
}

// Classes of bytes, as bits.
const SPACE: u8 = 1;
/// Bytes of an identifier after the first.
const IDENT: u8 = 2;
const DIGIT: u8 = 4;
/// Bytes of an opcode with its modifiers.
const OPCODE: u8 = 8;
/// First bytes of an identifier.
const START: u8 = 16;

/// The classes of each byte.
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
    /// Returns a lexer at the first token of `text`, which must be shorter than 4 GiB.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let token = Token {
            kind: TokenKind::End,
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

    /// Returns a byte of the text, and 0 after its end.
    fn byte(&self, i: usize) -> u8 {
        self.text.get(i).copied().unwrap_or(0)
    }

    /// Returns the text of a token.
    pub(crate) fn text(&self, token: Token) -> &'a [u8] {
        self.text.get(token.start as usize..token.end as usize).unwrap_or(&[])
    }

    /// Skips white space, comments and line markers. Returns false if the text ends in a `/* … */` comment.
    fn skip(&mut self) -> bool {
        loop {
            let b = self.byte(self.at);
            if b == b'\n' {
                self.line += 1;
                self.at += 1;
            } else if is(b, SPACE) {
                self.at += 1;
            } else if (b == b'/' && self.byte(self.at + 1) == b'/') || (b == b'#' && self.line_marker()) {
                self.skip_to_line_end();
            } else if b == b'/' && self.byte(self.at + 1) == b'*' {
                self.at += 2;
                while !self.text[self.at..].starts_with(b"*/") {
                    if self.at == self.text.len() {
                        return false;
                    }
                    self.line += u32::from(self.text[self.at] == b'\n');
                    self.at += 1;
                }
                self.at += 2;
            } else {
                return true;
            }
        }
    }

    /// Returns true at a line marker of a preprocessor: `# 12 "file"`.
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
    pub(crate) fn bump(&mut self) {
        let comments_end = self.skip();
        let start = self.at;
        let line = self.line;
        let b = self.byte(start);
        let kind = if !comments_end {
            TokenKind::Bad
        } else if start >= self.text.len() {
            TokenKind::End
        } else if is(b, START) && (b != b'%' || is(self.byte(start + 1), IDENT)) {
            self.at += 1;
            self.run(IDENT);
            TokenKind::Word
        } else if is(b, DIGIT) || (b == b'.' && is(self.byte(start + 1), DIGIT)) {
            self.number()
        } else if b == b'.' {
            self.at += 1;
            self.run(IDENT);
            if self.at == start + 1 {
                TokenKind::Punct(b'.')
            } else {
                TokenKind::Dot
            }
        } else if b == b'"' {
            let rest = &self.text[start + 1..];
            match rest.iter().position(|&b| b == b'"' || b == b'\n') {
                Some(n) if rest[n] == b'"' => {
                    self.at = start + n + 2;
                    TokenKind::Str
                }
                _ => {
                    self.at += 1;
                    TokenKind::Bad
                }
            }
        } else {
            self.at += 1;
            let next = self.byte(self.at);
            match (b, next) {
                (b'<', b'<') | (b'>', b'>') | (b'&', b'&') | (b'|', b'|') => self.pair(b, next),
                (b'<' | b'>' | b'=' | b'!', b'=') => self.pair(b, next),
                _ if b.is_ascii_punctuation() => TokenKind::Punct(b),
                _ => TokenKind::Bad,
            }
        };
        self.token = Token {
            kind,
            start: start as u32,
            end: self.at as u32,
            line,
        };
    }

    fn pair(&mut self, b: u8, next: u8) -> TokenKind {
        self.at += 1;
        TokenKind::Punct2(b, next)
    }

    fn run(&mut self, class: u8) {
        while is(self.byte(self.at), class) {
            self.at += 1;
        }
    }

    /// Extends the current token, an opcode or one of its modifiers, by the modifiers that follow without white space,
    /// and a modifier itself by its part after `::`.
    pub(crate) fn extend_opcode(&mut self) {
        let first = match self.byte(self.at) {
            b'.' => self.byte(self.at + 1),
            b':' if self.token.kind == TokenKind::Dot && self.byte(self.at + 1) == b':' => self.byte(self.at + 2),
            _ => return,
        };
        if is(first, IDENT) {
            self.run(OPCODE);
            self.token.end = self.at as u32;
        }
    }

    fn number(&mut self) -> TokenKind {
        let start = self.at;
        let (b, next) = (self.byte(start), self.byte(start + 1) | 0x20);
        if b == b'0' {
            match next {
                b'f' => {
                    if let Some(bits) = self.hex_exact(8) {
                        return TokenKind::F32(bits as u32);
                    }
                }
                b'd' => {
                    if let Some(bits) = self.hex_exact(16) {
                        return TokenKind::F64 { bits, hex: true };
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
            return value.map_or(TokenKind::Bad, |v| TokenKind::F64 {
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

    /// Reads `0f` or `0d` and exactly `digits` hexadecimal digits.
    fn hex_exact(&mut self, digits: usize) -> Option<u64> {
        let hex = self.text.get(self.at + 2..self.at + 2 + digits)?;
        let mut value = 0u64;
        for &b in hex {
            value = value << 4 | u64::from((b as char).to_digit(16)?);
        }
        self.at += 2 + digits;
        Some(value)
    }

    fn integer(&mut self, from: usize, radix: u64) -> TokenKind {
        let mut value = 0u64;
        let mut large = false;
        let mut end = from;
        while let Some(digit) = (self.byte(end) as char).to_digit(radix as u32) {
            // Bits that do not fit are cut off. ptxas does so, too, except for some numbers, which it refuses.
            let wide = u128::from(value) * u128::from(radix) + u128::from(digit);
            large |= wide > i64::MAX as u128;
            value = wide as u64;
            end += 1;
        }
        let suffix = self.byte(end) == b'U';
        self.at = end + usize::from(suffix);
        TokenKind::Int {
            bits: value,
            unsigned: suffix || large,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut all = Vec::new();
        while lexer.token.kind != TokenKind::End {
            all.push(lexer.token.kind);
            lexer.bump();
        }
        all
    }

    #[test]
    fn numbers() {
        let int = |bits| TokenKind::Int { bits, unsigned: false };
        assert_eq!(kinds("017 0x1F 0b101 42"), [int(15), int(31), int(5), int(42)]);
        assert_eq!(
            kinds("7U 0xFFFFFFFFFFFFFFFF"),
            [
                TokenKind::Int {
                    bits: 7,
                    unsigned: true
                },
                TokenKind::Int {
                    bits: u64::MAX,
                    unsigned: true
                }
            ]
        );
        assert_eq!(kinds("019"), [int(1), int(9)]);
        assert_eq!(
            kinds("0f3f800000 0D3ff0000000000000"),
            [
                TokenKind::F32(0x3f80_0000),
                TokenKind::F64 {
                    bits: 0x3ff0_0000_0000_0000,
                    hex: true
                }
            ]
        );
        let decimal = |v: f64| TokenKind::F64 {
            bits: v.to_bits(),
            hex: false,
        };
        assert_eq!(kinds("1.5 .5 5. 1e3 1.5E-3"), [1.5, 0.5, 5.0, 1e3, 1.5e-3].map(decimal));
        // With too few digits it is an integer and a word.
        assert_eq!(kinds("0f3f80"), [int(0), TokenKind::Word]);
    }

    #[test]
    fn a_comment_must_end() {
        assert_eq!(kinds("a /* b */ c"), [TokenKind::Word; 2]);
        for open in ["a /*", "a /* b *", "a /*/", "a /* b\n/* c"] {
            assert_eq!(kinds(open), [TokenKind::Word, TokenKind::Bad], "{open}");
        }
    }

    #[test]
    fn an_opcode_is_one_token() {
        let mut lexer = Lexer::new(b"ld.global.L2::128B.v4.f32\t{%f1}; $L: bar");
        lexer.extend_opcode();
        assert_eq!(lexer.text(lexer.token), b"ld.global.L2::128B.v4.f32");
        while lexer.text(lexer.token) != b"$L" {
            lexer.bump();
        }
        lexer.extend_opcode();
        assert_eq!(lexer.text(lexer.token), b"$L");
    }
}
