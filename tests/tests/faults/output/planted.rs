//! Links, pipes and foreign files that somebody put into the log folders of a node.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use boxes_output::archive::GapReason;
use boxes_tests::harness::{World, Written, e2e};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::archived::Address;
use super::full::noise;
use super::machine::{Machine, Running};

const PASSWD: &str = "/etc/passwd";

/// A line as a runtime writes it, of nobody's.
const FOREIGN: &str = "2026-01-01T00:00:00.000000000Z stdout F foreign\n";

fn pipe(path: &Path) -> Result<()> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    Ok(())
}

async fn beside_a_log(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let mut victim = machine.runs("victim").await?;
    let mut curious = machine.runs("curious").await?;
    let (there, here) = (victim.log.folder(), curious.log.folder());
    symlink(there.join("0.log"), here.join("0.log.20200101-000000"))?;
    symlink(PASSWD, here.join("0.log.20200101-000001.gz"))?;
    symlink(there, here.join("0.log.20200101-000002"))?;
    symlink("0.log", here.join("0.log.20200101-000003"))?;
    pipe(&here.join("0.log.20200101-000004"))?;
    fs::create_dir(here.join("0.log.20200101-000005"))?;
    for name in ["01.log", "0.log.bak", "0.log.20200101-000000.tmp", "secret"] {
        fs::write(here.join(name), FOREIGN)?;
    }
    victim.log.out("secret of another\n")?;
    curious.log.out(noise(100))?;
    let collector = machine.collector()?;
    victim.is_stored().await?;
    curious.log.rotate()?;
    curious.log.out(noise(100))?;
    victim.ends().await?;
    curious.ends().await?;
    victim.is_saved_whole().await?;
    // What stands there could be a part of the log that was replaced.
    let (_, archived) = curious.is_saved_in_part().await?;
    archived.lacks(&[GapReason::Unreadable])?;
    archived.holds(curious.log.written())?;
    collector.stop().await
}

#[tokio::test]
async fn what_is_planted_beside_a_log_leads_nowhere_and_stops_nothing() {
    e2e(beside_a_log).await;
}

/// What stands in the place of a box's log.
#[derive(Clone, Copy, Debug)]
enum Planted {
    LinkToPasswd,
    LinkToAnother,
    Pipe,
    Folder,
    LinkedFolder,
}

const ALL: [Planted; 5] = [
    Planted::LinkToPasswd,
    Planted::LinkToAnother,
    Planted::Pipe,
    Planted::Folder,
    Planted::LinkedFolder,
];

impl Planted {
    fn in_place_of(self, log: &Path, another: &Path) -> Result<()> {
        let file = log.join("0.log");
        fs::remove_file(&file)?;
        match self {
            Self::LinkToPasswd => symlink(PASSWD, file)?,
            Self::LinkToAnother => symlink(another.join("0.log"), file)?,
            Self::Pipe => pipe(&file)?,
            Self::Folder => fs::create_dir(file)?,
            Self::LinkedFolder => {
                fs::remove_dir(log)?;
                symlink(another, log)?;
            }
        }
        Ok(())
    }
}

async fn in_place_of_a_log(world: &World) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::new(world, Address::folder(folder.path())).await?;
    let mut victim = machine.runs("victim").await?;
    victim.log.out("secret of another\n")?;
    let mut all: Vec<Running> = Vec::new();
    for (number, planted) in ALL.iter().enumerate() {
        let curious = machine.runs(&format!("curious-{number}")).await?;
        planted.in_place_of(curious.log.folder(), victim.log.folder())?;
        all.push(curious);
    }
    let collector = machine.collector()?;
    victim.is_stored().await?;
    for curious in &mut all {
        curious.ends().await?;
    }
    ensure!(!collector.open_files()?.contains(&PASSWD.into()));
    victim.log.out("another secret\n")?;
    victim.ends().await?;
    victim.is_saved_whole().await?;
    for (curious, planted) in all.iter().zip(ALL) {
        let told = || format!("{planted:?}");
        let (_, archived) = curious.is_saved_in_part().await.with_context(told)?;
        archived
            .lacks(&[GapReason::Unreadable])
            .with_context(told)?;
        archived.holds(&Written::default()).with_context(told)?;
    }
    collector.stop().await
}

#[tokio::test]
async fn what_stands_in_place_of_a_log_leads_nowhere_and_is_told() {
    e2e(in_place_of_a_log).await;
}
