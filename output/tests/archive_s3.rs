//! The archive over a real S3 protocol: a server on loopback that keeps objects in a folder.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::net::SocketAddr;

use boxes_output::archive::{
    Archive, Error, Flushed, Label, LineHead, Options, Reader, Resumed, RunKey, Start, Stream, Uid,
    Writer,
};
use futures::TryStreamExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use jiff::Timestamp;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;

const KEY: &str = "test-key";
const SECRET: &str = "test-secret";

/// Starts a server over a folder.
async fn serve(folder: &std::path::Path) -> SocketAddr {
    let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder).unwrap());
    service.set_auth(SimpleAuth::from_single(KEY, SECRET));
    let service = service.build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let service = service.clone();
            tokio::spawn(async move {
                let server = Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    address
}

fn open(address: SocketAddr, more: &[(&str, &str)]) -> Archive {
    let endpoint = format!("http://{address}");
    let settings = [
        ("aws_endpoint", endpoint.as_str()),
        ("aws_allow_http", "true"),
        ("aws_region", "us-east-1"),
        ("aws_access_key_id", KEY),
        ("aws_secret_access_key", SECRET),
    ];
    let settings = settings.iter().chain(more);
    let options = Options {
        settings: settings
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..Options::default()
    };
    Archive::open("s3://boxes/some/prefix", &options).unwrap()
}

fn run() -> RunKey {
    RunKey::first(
        Uid::parse("box-uid").unwrap(),
        Uid::parse("pod-uid").unwrap(),
    )
}

async fn writer(archive: &Archive) -> Box<Writer> {
    match Writer::resume(archive, &run()).await.unwrap() {
        Resumed::At(writer) => writer,
        Resumed::Done(_) => panic!("it is done"),
    }
}

fn line(writer: &mut Writer, text: &str) {
    let head = LineHead {
        time: Timestamp::UNIX_EPOCH,
        stream: Stream::Stdout,
        ends_line: true,
    };
    writer.record(head, text.as_bytes());
}

#[rstest::rstest]
#[case(&[])]
#[case(&[("aws_conditional_put", "disabled")])]
#[tokio::test]
async fn output_is_written_read_and_deleted(#[case] more: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("boxes")).unwrap();
    let archive = open(serve(folder.path()).await, more);
    let label = Label {
        uid: run().box_uid,
        namespace: "ns".to_owned(),
        name: "hello".to_owned(),
    };
    archive.put_label(&label).await.unwrap();
    archive.put_label(&label).await.unwrap();
    assert_eq!(archive.label(&label.uid).await.unwrap(), Some(label));

    let mut first = writer(&archive).await;
    for number in 0..40 {
        line(&mut first, &format!("line {number}"));
        assert_eq!(first.flush().await.unwrap(), Flushed::Stored);
    }
    let mut second = writer(&archive).await;
    line(&mut second, "line 40");
    assert_eq!(second.flush().await.unwrap(), Flushed::Stored);
    line(&mut first, "something else");
    assert_eq!(first.flush().await.unwrap(), Flushed::Overtaken);
    let manifest = second.finish().await.unwrap().unwrap();
    assert_eq!((manifest.entries, manifest.stdout.lines), (41, 41));
    let objects = folder
        .path()
        .join("boxes/some/prefix/runs/box-uid/pod-uid/0");
    let objects = std::fs::read_dir(objects).unwrap().count();
    assert!(objects < 15, "small segments were merged: {objects}");

    let last = Start::TailLines {
        lines: 3,
        stream: None,
    };
    for (start, count) in [(Start::Beginning, 41), (last, 3), (Start::Entry(40), 1)] {
        let read = archive
            .follow(&run(), start)
            .try_collect::<Vec<_>>()
            .await
            .unwrap();
        assert_eq!(read.concat().len(), count);
    }
    assert_eq!(archive.runs(&run().box_uid).await.unwrap(), [run()]);
    archive.delete(&run().box_uid).await.unwrap();
    assert_eq!(archive.boxes().await.unwrap(), []);
    assert_eq!(archive.manifest(&run()).await.unwrap(), None);
}

#[tokio::test]
async fn what_is_wrong_with_a_server_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("boxes")).unwrap();
    let address = serve(folder.path()).await;
    let refused = open(address, &[("aws_secret_access_key", "wrong")]);
    let error = refused.boxes().await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");

    let nobody = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let error = open(nobody, &[]).boxes().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
}
