//! A box with a terminal.

use std::fs::{self, File};
use std::io::Write;

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::harness::{Running, Terminal, script};

fn terminal() -> Terminal {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
    Terminal {
        ours: File::from(ours),
        theirs: File::from(theirs),
    }
}

/// A box of a script, and the other end of its terminal.
fn at_terminal(text: &str) -> (Running, File) {
    let terminal = terminal();
    let ours = terminal.ours.try_clone().unwrap();
    (script(text).terminal(terminal).start(), ours)
}

#[test]
fn it_is_the_commands() {
    let (mut running, _terminal) = at_terminal(
        "read -r pid name state parent group session tty foreground rest </proc/self/stat
        echo owned $((pid == session)) $((pid == foreground)) $((tty != 0))
        : </dev/tty && exit 4",
    );
    assert_eq!(running.says("owned"), "1 1 1");
    running.ends().returned("4");
}

#[test]
fn control_c_ends_what_is_in_the_foreground() {
    let (mut running, mut terminal) = at_terminal("echo ready; exec sleep 1000");
    running.says("ready");
    terminal.write_all(b"\x03").unwrap();
    running.ends().was_killed("2");
}

#[test]
fn control_c_reaches_the_command_once() {
    let (mut running, mut terminal) =
        at_terminal("trap 'echo interrupted' INT; echo ready; read x; read y; echo got $y; exit 6");
    running.says("ready");
    // The shell runs its handler once it has read its line.
    terminal.write_all(b"\x03one\ntwo\n").unwrap();
    running.says("interrupted");
    assert_eq!(running.says("got"), "two");
    running.ends().returned("6");
}

#[test]
fn a_changed_window_reaches_the_command() {
    let (mut running, terminal) =
        at_terminal("trap 'echo changed; exit 5' WINCH; echo ready; while :; do sleep 0.01; done");
    running.says("ready");
    let size = Winsize {
        ws_row: 40,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal, size).unwrap();
    running.says("changed");
    running.ends().returned("5");
}

#[test]
fn giving_it_up_hangs_nobody_up() {
    let (terminal, text) = (
        terminal(),
        "mkfifo wait; trap 'echo hung up; exit 1' HUP CONT; echo ready; read x <wait; exit 0",
    );
    let _ours = terminal.ours.try_clone().unwrap();
    let plan = script(text).terminal(terminal);
    let wait = plan.folder().join("wait");
    let mut running = plan.start();
    running.says("ready");
    let _ = running.supervisor();
    fs::write(wait, "\n").unwrap();
    assert_eq!(running.ends().returned("0").output, Vec::<String>::new());
}

#[test]
fn a_stop() {
    let (mut running, _terminal) = at_terminal("echo ready; exec sleep 1000");
    running.says("ready");
    running.signal(libc::SIGTERM);
    running.ends().was_stopped("signal", "15").seen();
}
