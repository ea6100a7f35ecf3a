//! Which files a program's name can mean: the rules of `execvp`.

use std::ffi::CStr;

use rustix::io::Errno;

/// Where programs are looked for when there is no `PATH`: what container runtimes set then.
const DEFAULT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The longest path that the kernel takes, with the zero at its end.
const LONGEST_PATH: usize = 4096;

/// Tries every file that `name` can mean, in order, until one does not fail for lack of it. Gives the
/// error that tells most: that of a file that may not be executed, rather than that there is none.
///
/// `attempt` executes a file and returns only if that failed.
pub(crate) fn search(
    name: &CStr,
    path: Option<&[u8]>,
    mut attempt: impl FnMut(&CStr) -> Errno,
) -> Errno {
    if name.is_empty() {
        return Errno::NOENT;
    }
    if name.to_bytes().contains(&b'/') {
        return attempt(name);
    }
    let mut error = Errno::NOENT;
    for folder in path.unwrap_or(DEFAULT_PATH).split(|byte| *byte == b':') {
        let mut buffer = [0; LONGEST_PATH];
        let Some(file) = join(&mut buffer, folder, name) else {
            continue;
        };
        match attempt(file) {
            Errno::ACCESS => error = Errno::ACCESS,
            Errno::NOENT | Errno::NOTDIR | Errno::STALE | Errno::NODEV | Errno::TIMEDOUT => {}
            other => return other,
        }
    }
    error
}

/// The path of a file in a folder, where an empty folder means the current one. Nothing when it is
/// too long.
fn join<'a>(buffer: &'a mut [u8], folder: &[u8], name: &CStr) -> Option<&'a CStr> {
    let slash: &[u8] = if folder.is_empty() { b"" } else { b"/" };
    let mut length = 0;
    for part in [folder, slash, name.to_bytes_with_nul()] {
        buffer
            .get_mut(length..length + part.len())?
            .copy_from_slice(part);
        length += part.len();
    }
    CStr::from_bytes_with_nul(buffer.get(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use rstest::rstest;
    use rustix::io::Errno;

    use super::search;

    /// What is tried when every file answers with `error`, and what comes of it.
    fn tried(
        name: &str,
        path: Option<&str>,
        error: impl Fn(&str) -> Errno,
    ) -> (Vec<String>, Errno) {
        let mut tried = Vec::new();
        let name = CString::new(name).unwrap();
        let error = search(&name, path.map(str::as_bytes), |file| {
            let file = file.to_str().unwrap().to_owned();
            let error = error(&file);
            tried.push(file);
            error
        });
        (tried, error)
    }

    #[rstest]
    #[case::with_slash("./x", Some("/a"), &["./x"])]
    #[case::through_path("x", Some("/a:/b/"), &["/a/x", "/b//x"])]
    #[case::empty_elements("x", Some(":/a:"), &["x", "/a/x", "x"])]
    #[case::empty_path("x", Some(""), &["x"])]
    #[case::no_name("", Some("/a"), &[])]
    #[case::no_path("x", None, &["/usr/local/sbin/x", "/usr/local/bin/x", "/usr/sbin/x", "/usr/bin/x", "/sbin/x", "/bin/x"])]
    fn places(#[case] name: &str, #[case] path: Option<&str>, #[case] expected: &[&str]) {
        let (tried, error) = tried(name, path, |_| Errno::NOENT);
        assert_eq!(tried, expected);
        assert_eq!(error, Errno::NOENT);
    }

    #[rstest]
    #[case::refusal_is_remembered(Errno::ACCESS, Errno::ACCESS, 3)]
    #[case::no_folder(Errno::NOTDIR, Errno::NOENT, 3)]
    #[case::other_errors_end_the_search(Errno::NOEXEC, Errno::NOEXEC, 1)]
    fn errors(#[case] first: Errno, #[case] expected: Errno, #[case] attempts: usize) {
        let answer = |file: &str| if file == "/a/x" { first } else { Errno::NOENT };
        let (tried, error) = tried("x", Some("/a:/b:/c"), answer);
        assert_eq!(error, expected);
        assert_eq!(tried.len(), attempts);
    }

    #[test]
    fn a_folder_too_long_for_the_kernel_is_passed_over() {
        let path = format!("/{}:/b", "a".repeat(5000));
        assert_eq!(tried("x", Some(&path), |_| Errno::NOENT).0, ["/b/x"]);
    }
}
