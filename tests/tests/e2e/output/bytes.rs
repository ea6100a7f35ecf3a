//! Output is byte for byte what the command wrote.

use anyhow::{Result, ensure};
use boxes_crds::OutputState;
use boxes_tests::cluster::hex;
use boxes_tests::harness::{LiveBox, Reason, State, World, a_box, e2e};
use futures::AsyncReadExt;

/// Runs a line to its end, and waits until its output is saved as a whole.
async fn wrote(world: &World, name: &str, line: &str) -> Result<LiveBox> {
    let it = a_box(name).shell(line).create(world).await?;
    it.ends_as(State::Exited, Reason::Exit).with_code(0).await?;
    it.has_output(OutputState::Saved).await?;
    Ok(it)
}

async fn bytes(it: &LiveBox, expected: &[u8]) -> Result<()> {
    let saved = it.has_output(OutputState::Saved).await?;
    ensure!(usize::try_from(saved.bytes)? == expected.len(), "{saved:?}");
    for stream in ["stream=stdout", ""] {
        let read = it.output().read(stream).await?;
        ensure!(
            read.len() == expected.len(),
            "{} bytes, not {}",
            read.len(),
            expected.len()
        );
        ensure!(read == expected, "other bytes of the same length");
    }
    Ok(())
}

#[tokio::test]
async fn nothing_at_all() {
    e2e(async |world| bytes(&wrote(world, "empty", "true").await?, b"").await).await;
}

#[tokio::test]
async fn no_newline_at_the_end() {
    e2e(async |world| {
        let it = wrote(world, "no-newline", "printf 'a\\nb'").await?;
        bytes(&it, b"a\nb").await
    })
    .await;
}

#[tokio::test]
async fn a_zero_and_no_text_and_no_newline() {
    e2e(async |world| {
        let it = wrote(world, "four-bytes", "printf 'a\\000b\\377'").await?;
        bytes(&it, b"a\0b\xff").await
    })
    .await;
}

#[tokio::test]
async fn a_million_bytes_without_a_newline() {
    e2e(async |world| {
        let line = "head -c 1000000 /dev/zero | tr '\\000' x";
        let it = wrote(world, "long-line", line).await?;
        bytes(&it, &[b'x'].repeat(1_000_000)).await
    })
    .await;
}

#[tokio::test]
async fn fifty_thousand_lines_on_each_stream_in_order() {
    e2e(async |world| {
        let line = "i=0; while [ $i -lt 50000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; exit 3";
        let it = a_box("both-streams").shell(line).create(world).await?;
        it.ends_as(State::Exited, Reason::Exit).with_code(3).await?;
        it.has_output(OutputState::Saved).await?;
        for (stream, word) in [("stdout", "out"), ("stderr", "err")] {
            let text = it.output().text(&format!("stream={stream}")).await?;
            let expected = (0..50_000).map(|number| format!("{word} {number}"));
            ensure!(text.lines().eq(expected) && text.ends_with('\n'), "{stream}");
        }
        let both = it.output().text("").await?;
        ensure!(both.lines().count() == 100_000);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn one_newline_alone_and_many() {
    e2e(async |world| {
        bytes(&wrote(world, "newline", "echo").await?, b"\n").await?;
        bytes(
            &wrote(world, "newlines", "printf '\\n\\n\\nx\\n\\n'").await?,
            b"\n\n\nx\n\n",
        )
        .await
    })
    .await;
}

#[tokio::test]
async fn text_that_is_no_utf_8_and_bytes_that_are_zero() {
    e2e(async |world| {
        let it = wrote(
            world,
            "no-utf-8",
            "printf '\\377\\376\\000\\001\\n\\300\\n'",
        )
        .await?;
        bytes(&it, b"\xff\xfe\x00\x01\n\xc0\n").await
    })
    .await;
}

/// Each byte but the carriage return: the runtime's log drops one that stands before a newline
/// (`docs/decisions/0015-output-without-state.md`).
#[tokio::test]
async fn a_megabyte_of_random_bytes() {
    e2e(async |world| {
        let line = "head -c 1000000 /dev/urandom | tr -d '\\015' > /tmp/x; \
            cat /tmp/x; sha256sum < /tmp/x | cut -d' ' -f1 >&2";
        let it = wrote(world, "random", line).await?;
        let wrote = it.output().read("stream=stdout").await?;
        ensure!(wrote.len() > 900_000, "{} bytes", wrote.len());
        let told = it.output().text("stream=stderr").await?;
        ensure!(
            told.trim() == sha256(&wrote),
            "another digest than the command's own"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn lines_of_a_mebibyte() {
    e2e(async |world| {
        let line = "for c in a b; do head -c 1048576 /dev/zero | tr '\\000' $c; echo; done; \
            head -c 1048577 /dev/zero | tr '\\000' c";
        let it = wrote(world, "long-lines", line).await?;
        let mut expected = Vec::new();
        for byte in *b"ab" {
            expected.extend([byte].repeat(1 << 20));
            expected.push(b'\n');
        }
        expected.extend([b'c'].repeat((1 << 20) + 1));
        bytes(&it, &expected).await
    })
    .await;
}

/// Against the kubelet's rotation, which keeps five files of 10 MiB.
#[tokio::test]
async fn two_hundred_megabytes() {
    const SIZE: usize = 200_000_000;
    const LINE: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ\n";
    e2e(async |world| {
        let text = std::str::from_utf8(LINE)?.trim_end();
        let line = format!("yes {text} | head -c {SIZE}");
        let it = wrote(world, "large", &line).await?;
        let mut stream = it.output().open("").await?;
        let (mut at, mut buffer) = (0, vec![0; 1 << 20]);
        loop {
            let read = stream.read(&mut buffer).await?;
            let expected = LINE.iter().cycle().skip(at % LINE.len());
            ensure!(
                buffer[..read].iter().eq(expected.take(read)),
                "other bytes after {at}"
            );
            at += read;
            if read == 0 {
                break;
            }
        }
        ensure!(at == SIZE, "{at} bytes");
        Ok(())
    })
    .await;
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    hex(&Sha256::digest(bytes))
}
