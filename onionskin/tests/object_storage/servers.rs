//! Stores that speak S3, on this machine and in memory.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use onionskin_testkit::*;

use super::desk::alone;

/// Whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// Checks signatures and checksums.
    SeaweedFs,
    /// Has locks. Checks neither.
    Moto,
}

/// Who may do what at SeaweedFS: all; only write; only read.
const IDENTITIES: &str = r#"{"identities": [
    {"name": "all", "credentials": [{"accessKey": "KEY1", "secretKey": "SECRET1"}],
     "actions": ["Admin", "Read", "List", "Tagging", "Write"]},
    {"name": "writer", "credentials": [{"accessKey": "KEY2", "secretKey": "SECRET2"}],
     "actions": ["Write:backups"]},
    {"name": "reader", "credentials": [{"accessKey": "KEY3", "secretKey": "SECRET3"}],
     "actions": ["Read:backups", "List:backups"]}]}"#;

const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=KEY1/20261130/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0\r\n";

/// A server that runs until it is dropped.
pub struct S3 {
    which: Which,
    folder: tempfile::TempDir,
    child: Child,
    pub port: u16,
    /// Where SeaweedFS has its files.
    filer: u16,
}

impl S3 {
    /// `None` where there is none, which is told.
    pub fn start(which: Which) -> Option<S3> {
        Self::start_with(which, &[])
    }

    /// With more arguments.
    pub fn start_with(which: Which, arguments: &[&str]) -> Option<S3> {
        let name = match which {
            Which::SeaweedFs => "seaweedfs",
            Which::Moto => "moto",
        };
        let program = match which {
            Which::SeaweedFs => checkout().join(".servers/seaweedfs/weed"),
            Which::Moto => checkout().join(".servers/moto/bin/moto_server"),
        };
        if !program.exists() {
            let why = fs::read_to_string(checkout().join(format!(".servers/{name}.skipped")));
            let why = why.unwrap_or("scripts/install-deps.sh tests has not been run".into());
            announce(&format!("SKIPPED: {name}: {}", why.trim()));
            return None;
        }
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let (port, filer) = (free_port(), free_port());
        let mut command = match which {
            Which::SeaweedFs => seaweedfs(&program, folder.path(), port, filer),
            Which::Moto => moto(&program, port),
        };
        command.args(arguments);
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log);
        let child = command.spawn().expect("it starts");
        let mut s3 = S3 {
            which,
            folder,
            child,
            port,
            filer,
        };
        wait_until("the store answers", Duration::from_secs(60), || {
            s3.answers()
        });
        Some(s3)
    }

    fn answers(&mut self) -> bool {
        let ended = self.child.try_wait().expect("waited for");
        let log = || fs::read_to_string(self.folder.path().join("log"));
        assert!(ended.is_none(), "{}", log().unwrap_or_default());
        let ports = match self.which {
            Which::SeaweedFs => vec![self.filer, self.port],
            Which::Moto => vec![self.port],
        };
        ports.iter().all(|port| is_listening(*port))
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes a bucket.
    pub fn make_bucket(&self, name: &str) {
        match self.which {
            Which::Moto => drop(self.raw("PUT", &format!("/{name}"), "", b"")),
            Which::SeaweedFs => {
                let mut made = String::new();
                wait_until("a bucket can be made", Duration::from_secs(30), || {
                    made = request(self.filer, "POST", &format!("/buckets/{name}/"), "", b"");
                    made.starts_with("HTTP/1.1 20")
                });
            }
        }
    }

    /// A request that says who signed it, and is not signed, which moto lets through.
    pub fn raw(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> String {
        let headers = format!("{SIGNED}{headers}");
        let said = request(self.port, method, target, &headers, body);
        assert!(said.starts_with("HTTP/1.1 2"), "{method} {target}: {said}");
        said
    }

    /// Removes an object of SeaweedFS behind its back.
    pub fn remove(&self, bucket: &str, name: &str) {
        let said = request(
            self.filer,
            "DELETE",
            &format!("/buckets/{bucket}/{name}"),
            "",
            b"",
        );
        assert!(said.starts_with("HTTP/1.1 20"), "{said}");
    }

    /// Names in a folder of SeaweedFS, in their order, but those that begin with a dot.
    pub fn names(&self, bucket: &str, folder: &str) -> Vec<String> {
        let path = format!("/buckets/{bucket}/{folder}/?limit=1000");
        let said = request(
            self.filer,
            "GET",
            &path,
            "Accept: application/json\r\n",
            b"",
        );
        let paths = said.split("\"FullPath\":\"").skip(1);
        let names = paths.filter_map(|rest| rest.split('"').next()?.rsplit('/').next());
        names
            .filter(|name| !name.starts_with('.'))
            .map(str::to_owned)
            .collect()
    }

    /// Puts the content of one object of SeaweedFS in the place of another.
    pub fn copy_over(&self, bucket: &str, from: &str, to: &str) {
        let said = request_bytes(
            self.filer,
            "GET",
            &format!("/buckets/{bucket}/{from}"),
            "",
            b"",
        );
        let head = said
            .windows(4)
            .position(|bytes| bytes == b"\r\n\r\n")
            .expect("a head");
        let said = request(
            self.filer,
            "PUT",
            &format!("/buckets/{bucket}/{to}"),
            "",
            &said[head + 4..],
        );
        assert!(said.starts_with("HTTP/1.1 20"), "{said}");
    }

    /// Whether a multipart upload is unfinished that has a part.
    pub fn has_uploads(&self, bucket: &str) -> bool {
        match self.which {
            Which::Moto => self
                .raw("GET", &format!("/{bucket}?uploads"), "", b"")
                .contains("<Upload>"),
            Which::SeaweedFs => {
                let path = format!("/buckets/{bucket}/.uploads/?limit=10");
                let said = request(
                    self.filer,
                    "GET",
                    &path,
                    "Accept: application/json\r\n",
                    b"",
                );
                let folder = said.split("\"FullPath\":\"").nth(1);
                let Some(folder) = folder.and_then(|rest| rest.split('"').next()) else {
                    return false;
                };
                let parts = request(
                    self.filer,
                    "GET",
                    &format!("{folder}/"),
                    "Accept: application/json\r\n",
                    b"",
                );
                parts.contains(".part")
            }
        }
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn seaweedfs(program: &Path, folder: &Path, port: u16, filer: u16) -> Command {
    let data = folder.join("data");
    fs::create_dir(&data).expect("made");
    let identities: PathBuf = folder.join("identities.json");
    fs::write(&identities, IDENTITIES).expect("written");
    let mut command = tied_command(program);
    command.args([
        "-logtostderr=true",
        "server",
        "-filer",
        "-s3",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
    ]);
    command.args([
        "-volume.max=200",
        "-master.volumeSizeLimitMB=64",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]);
    let ports = [
        "master.port",
        "master.port.grpc",
        "volume.port",
        "volume.port.grpc",
        "filer.port.grpc",
        "s3.port.grpc",
    ];
    for name in ports {
        command.arg(format!("-{name}={}", free_port()));
    }
    command.args([
        format!("-filer.port={filer}"),
        format!("-s3.port={port}"),
        format!("-dir={}", data.display()),
        format!("-s3.config={}", identities.display()),
        format!("-filer.localSocket={}", folder.join("filer.sock").display()),
        format!("-s3.localSocket={}", folder.join("s3.sock").display()),
    ]);
    command.current_dir(folder);
    command
}

fn moto(program: &Path, port: u16) -> Command {
    let mut command = tied_command(program);
    alone(&mut command);
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    command
}

/// A whole answer, head and body, as far as it is text.
pub fn request(port: u16, method: &str, target: &str, headers: &str, body: &[u8]) -> String {
    let said = request_bytes(port, method, target, headers, body);
    String::from_utf8_lossy(&said).into_owned()
}

fn request_bytes(port: u16, method: &str, target: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return Vec::new();
    };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    let mut said = Vec::new();
    let sent = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body));
    let _ = sent.and_then(|()| stream.read_to_end(&mut said));
    said
}
