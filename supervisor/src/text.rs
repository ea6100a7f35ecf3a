//! Writing numbers and JSON strings by hand: the formatting of the standard library would be the
//! larger part of the program.

/// Writes a number with at least `width` digits. A negative one is written as 0.
pub(crate) fn push_padded(text: &mut String, number: i64, width: usize) {
    let number = u64::try_from(number).unwrap_or(0);
    for _ in digits(number)..width {
        text.push('0');
    }
    push_number(text, number);
}

/// Writes a number.
pub(crate) fn push_number(text: &mut String, number: u64) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

const fn digits(number: u64) -> usize {
    match number.checked_ilog10() {
        Some(power) => power as usize + 1,
        None => 1,
    }
}

/// Writes as much of some text as fits into `room` bytes once it is escaped for a JSON string; never
/// a part of a character.
pub(crate) fn push_escaped(text: &mut String, content: &str, room: usize) {
    let end = text.len().saturating_add(room);
    for character in content.chars() {
        let before = text.len();
        push_escaped_char(text, character);
        if text.len() > end {
            text.truncate(before);
            return;
        }
    }
}

fn push_escaped_char(text: &mut String, character: char) {
    match character {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '\t' => text.push_str("\\t"),
        '\0'..' ' => push_unicode_escape(text, character as u8),
        _ => text.push(character),
    }
}

fn push_unicode_escape(text: &mut String, byte: u8) {
    text.push_str("\\u00");
    for nibble in [byte >> 4, byte & 15] {
        text.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{push_escaped, push_number, push_padded};

    #[rstest]
    #[case(0, "0")]
    #[case(9, "9")]
    #[case(10, "10")]
    #[case(u64::MAX, "18446744073709551615")]
    fn numbers(#[case] number: u64, #[case] expected: &str) {
        let mut text = String::new();
        push_number(&mut text, number);
        assert_eq!(text, expected);
    }

    #[rstest]
    #[case(0, 2, "00")]
    #[case(7, 4, "0007")]
    #[case(99, 2, "99")]
    #[case(123, 2, "123")]
    #[case(-5, 2, "00")]
    fn padded_numbers(#[case] number: i64, #[case] width: usize, #[case] expected: &str) {
        let mut text = String::new();
        push_padded(&mut text, number, width);
        assert_eq!(text, expected);
    }

    #[rstest]
    #[case("plain", 99, "plain")]
    #[case("a\"b\\c", 99, r#"a\"b\\c"#)]
    #[case("\n\t\r\u{1f}\0", 99, r"\n\t\u000d\u001f\u0000")]
    #[case("aé", 2, "a")]
    #[case("aé", 3, "aé")]
    #[case("a\u{1}", 6, "a")]
    #[case("abc", 0, "")]
    fn escaped(#[case] content: &str, #[case] room: usize, #[case] expected: &str) {
        let mut text = String::new();
        push_escaped(&mut text, content, room);
        assert_eq!(text, expected);
    }
}
