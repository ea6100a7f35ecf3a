//! The archive in a folder: what a file system adds to the protocol.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use boxes_output::archive::{
    Archive, Error, LineHead, Options, Reader, Resumed, RunKey, Start, Stream, Uid, Writer,
};
use futures::TryStreamExt;
use jiff::Timestamp;

fn run() -> RunKey {
    RunKey::first(
        Uid::parse("box-uid").unwrap(),
        Uid::parse("pod-uid").unwrap(),
    )
}

fn open(folder: &std::path::Path) -> Archive {
    let url = url::Url::from_directory_path(folder).unwrap();
    Archive::open(url.as_str(), &Options::default()).unwrap()
}

async fn write(archive: &Archive) -> Result<(), Error> {
    let Resumed::At(mut writer) = Writer::resume(archive, &run()).await? else {
        panic!("it is done");
    };
    let head = LineHead {
        time: Timestamp::UNIX_EPOCH,
        stream: Stream::Stdout,
        ends_line: true,
    };
    writer.record(head, b"hello");
    writer.finish().await.map(drop)
}

async fn read(archive: &Archive) -> Result<usize, Error> {
    let entries = archive
        .read(&run(), Start::Beginning)
        .try_collect::<Vec<_>>()
        .await?;
    Ok(entries.concat().len())
}

#[tokio::test]
async fn nothing_is_left_of_a_deleted_box() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    write(&archive).await.unwrap();
    assert_eq!(read(&archive).await.unwrap(), 1);
    // A file that a crash left unfinished.
    let runs = folder.path().join("runs/box-uid/pod-uid/0");
    std::fs::write(runs.join("00000000000000000007.seg#1"), "half").unwrap();
    assert_eq!(read(&archive).await.unwrap(), 1);
    archive.delete(&run().box_uid).await.unwrap();
    assert_eq!(
        std::fs::read_dir(folder.path().join("runs"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test]
async fn a_damaged_segment_is_told_and_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    write(&archive).await.unwrap();
    let path = folder
        .path()
        .join("runs/box-uid/pod-uid/0/00000000000000000000.seg");
    let good = std::fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        std::fs::write(&path, &bad).unwrap();
        let error = read(&archive).await.unwrap_err();
        assert!(
            matches!(error, Error::Corrupt { .. }),
            "byte {at}: {error:?}"
        );
    }
    for length in 0..good.len() {
        std::fs::write(&path, &good[..length]).unwrap();
        let error = read(&archive).await.unwrap_err();
        assert!(
            matches!(error, Error::Corrupt { .. }),
            "length {length}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_segment_of_another_run_is_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let archive = open(folder.path());
    write(&archive).await.unwrap();
    let runs = folder.path().join("runs");
    std::fs::rename(runs.join("box-uid/pod-uid"), runs.join("box-uid/pod-uid-2")).unwrap();
    let other = RunKey::first(run().box_uid, Uid::parse("pod-uid-2").unwrap());
    let error = archive
        .read(&other, Start::Beginning)
        .try_collect::<Vec<_>>()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
}
