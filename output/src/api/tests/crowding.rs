//! Clients that are nobody, and many.

use std::time::Duration;

use http::StatusCode;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::serve::Limits;
use super::client::open;
use super::server::TestServer;

const DISCOVERY: &str = "/apis/output.boxes.run/v1alpha1";

fn tight() -> Limits {
    Limits {
        handshakes: 8,
        connections: 2,
        strangers: 2,
        stranger: Duration::from_millis(300),
        ..Limits::default()
    }
}

#[tokio::test]
async fn silent_clients_do_not_keep_the_api_server_out() {
    let long = Limits {
        stranger: Duration::from_mins(1),
        ..tight()
    };
    let server = TestServer::start_with(long).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    let mut strangers = Vec::new();
    for two in [true, false, true, false, true] {
        strangers.push(open(server.address, &server.root, None, two).await);
    }
    assert_eq!(server.get(DISCOVERY).await.code, StatusCode::OK);
}

#[rstest::rstest]
#[case(true)]
#[case(false)]
#[tokio::test]
async fn a_stranger_does_not_stay(#[case] two: bool) {
    let server = TestServer::start_with(tight()).await;
    let mut stranger = open(server.address, &server.root, None, two).await.unwrap();
    let mut said = Vec::new();
    let end = timeout(Duration::from_secs(30), stranger.read_to_end(&mut said));
    assert!(end.await.is_ok(), "it is still there");
}

#[tokio::test]
async fn the_api_server_stays() {
    let server = TestServer::start_with(tight()).await;
    let mut client = server.connect(Some(server.proxy())).await;
    tokio::time::sleep(tight().stranger * 2).await;
    let ann = [("X-Remote-User", "ann")];
    assert_eq!(client.get(DISCOVERY, &ann).await.code, StatusCode::OK);
}
