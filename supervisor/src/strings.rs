//! Arguments and environment as the kernel hands them over, and as it takes them.

use std::ffi::{CStr, c_char};
use std::iter::successors;
use std::ptr::null;

/// Strings of the C kind, the last followed by a null pointer. They live as long as the process, so
/// that a command gets the very ones that were given.
#[derive(Clone, Copy)]
pub struct Strings(*const *const c_char);

impl Strings {
    /// The strings that begin at `first`.
    ///
    /// # Safety
    /// `first` must point to pointers to C strings, the last followed by a null pointer, all of which
    /// live unchanged as long as the process.
    #[must_use]
    #[expect(unsafe_code, reason = "the caller vouches for the pointers")]
    pub const unsafe fn new(first: *const *const c_char) -> Self {
        Self(first)
    }

    /// Strings of one's own, which stay allocated for ever.
    #[must_use]
    pub fn leaked(strings: impl IntoIterator<Item = &'static CStr>) -> Self {
        let pointers = strings.into_iter().map(CStr::as_ptr);
        let pointers: Vec<_> = pointers.chain([null()]).collect();
        Self(pointers.leak().as_ptr())
    }

    /// The first one.
    #[must_use]
    #[expect(unsafe_code, reason = "reads what the kernel laid out")]
    pub fn first(self) -> Option<&'static CStr> {
        // SAFETY: there is at least the null pointer, and what comes before it is a string.
        unsafe { (!(*self.0).is_null()).then(|| CStr::from_ptr(*self.0)) }
    }

    /// Those after the first; none when there is no first.
    #[must_use]
    #[expect(unsafe_code, reason = "reads what the kernel laid out")]
    pub fn rest(self) -> Self {
        if self.first().is_none() {
            return self;
        }
        // SAFETY: what was read is not the end, so there is at least the null pointer behind it.
        Self(unsafe { self.0.add(1) })
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = &'static CStr> {
        successors(Some(self), |strings| Some(strings.rest())).map_while(Self::first)
    }

    /// For `execve`.
    pub(crate) const fn as_ptr(self) -> *const *const c_char {
        self.0
    }

    /// The value of an environment variable: the first of that name counts.
    pub(crate) fn value(self, name: &[u8]) -> Option<&'static [u8]> {
        self.iter().find_map(|pair| value_of(pair, name))
    }

    /// An environment without a variable.
    pub(crate) fn without(self, name: &[u8]) -> Self {
        Self::leaked(self.iter().filter(|pair| value_of(pair, name).is_none()))
    }
}

/// What follows `name=`.
fn value_of<'a>(pair: &'a CStr, name: &[u8]) -> Option<&'a [u8]> {
    pair.to_bytes().strip_prefix(name)?.strip_prefix(b"=")
}

#[cfg(test)]
mod tests {
    use super::Strings;

    fn environment() -> Strings {
        Strings::leaked([c"A=1", c"AB=2", c"odd", c"A=3", c"E="])
    }

    #[test]
    fn the_first_variable_of_a_name_counts() {
        assert_eq!(environment().value(b"A"), Some(&b"1"[..]));
        assert_eq!(environment().value(b"AB"), Some(&b"2"[..]));
        assert_eq!(environment().value(b"E"), Some(&b""[..]));
        assert_eq!(environment().value(b"odd"), None);
    }

    #[test]
    fn a_variable_is_taken_out_everywhere_and_nothing_else() {
        let left: Vec<_> = environment().without(b"A").iter().collect();
        assert_eq!(left, [c"AB=2", c"odd", c"E="]);
    }

    #[test]
    fn nothing_follows_the_end() {
        let none = Strings::leaked([]);
        assert_eq!(none.rest().first(), None);
        assert_eq!(none.iter().count(), 0);
    }
}
