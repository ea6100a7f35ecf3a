//! The copy that an init container makes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::processes::SUPERVISOR;

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("boxes-install-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn install(&self) -> Output {
        Command::new(SUPERVISOR)
            .arg("install")
            .arg(&self.0)
            .output()
            .unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_copy_is_the_program_for_everyone_to_execute() {
    let folder = Folder::new("copy");
    // What an interrupted one left, and what an earlier one made.
    fs::write(folder.0.join(".boxes-supervisor.part"), "x").unwrap();
    fs::write(folder.0.join("boxes-supervisor"), "x").unwrap();
    assert_eq!(folder.install().status.code(), Some(0));
    assert_eq!(folder.names(), ["boxes-supervisor"]);
    let copy = folder.0.join("boxes-supervisor");
    assert!(
        fs::read(&copy).unwrap() == fs::read(SUPERVISOR).unwrap(),
        "the copy differs"
    );
    assert_eq!(
        fs::metadata(&copy).unwrap().permissions().mode() & 0o7777,
        0o555
    );
    let run = Command::new(&copy).arg("--version").output().unwrap();
    assert!(run.status.success());
}

#[test]
fn a_folder_that_is_not_there() {
    let folder = Folder(PathBuf::from("/no/such/folder"));
    let output = folder.install();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        words,
        "boxes-supervisor: cannot install to /no/such/folder: the folder: No such file or directory (os error 2)\n"
    );
}

#[test]
fn nothing_is_left_of_a_copy_that_fails() {
    let folder = Folder::new("fails");
    // A folder in the place of the copy cannot be replaced by it.
    fs::create_dir(folder.0.join("boxes-supervisor")).unwrap();
    let output = folder.install();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("its name")
    );
    assert_eq!(folder.names(), ["boxes-supervisor"]);
}
