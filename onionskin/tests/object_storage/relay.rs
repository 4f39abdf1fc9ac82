//! Stands before a store and spoils some of what is said.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What is done to a request.
#[derive(Clone, Copy, Debug)]
pub enum Spoil {
    /// The store does not get it. The answer is this status and code of S3.
    Answer(u16, &'static str),
    /// The store gets it, and nobody gets the answer.
    LoseAnswer,
    /// The answer ends after so many bytes, head included.
    CutAnswer(usize),
    /// A byte of what is sent is another one.
    ChangeRequest,
    /// A byte in the middle of the answer is another one.
    ChangeAnswer,
    /// It takes so many milliseconds.
    Slow(u64),
}

/// Which requests are spoiled: those whose first line holds all of `texts`.
struct Rule {
    texts: Vec<String>,
    spoil: Spoil,
    /// So many pass before.
    after: usize,
    /// So many are spoiled.
    times: usize,
}

#[derive(Default)]
struct Inside {
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

/// See the module.
pub struct Relay {
    pub port: u16,
    inside: Arc<Inside>,
}

impl Relay {
    pub fn to(server: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listening socket");
        let port = listener.local_addr().expect("its address").port();
        let inside = Arc::<Inside>::default();
        let shared = Arc::clone(&inside);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&shared);
                // What goes wrong with one connection is the client's to notice.
                thread::spawn(move || client.and_then(|client| shared.serve(client, server)));
            }
        });
        Relay { port, inside }
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Spoils requests from now on, and counts those from now on.
    pub fn spoil(&self, texts: &[&str], spoil: Spoil, after: usize, times: usize) {
        self.inside.seen.lock().expect("whole").clear();
        self.inside.rules.lock().expect("whole").push(Rule {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            spoil,
            after,
            times,
        });
    }

    /// Spoils nothing any more.
    pub fn mend(&self) {
        self.inside.rules.lock().expect("whole").clear();
    }

    /// How many requests there were whose first line holds all of these.
    pub fn count(&self, texts: &[&str]) -> usize {
        let seen = self.inside.seen.lock().expect("whole");
        let fits = |line: &&String| texts.iter().all(|text| line.contains(text));
        seen.iter().filter(fits).count()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.inside.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Inside {
    fn rule(&self, line: &str) -> Option<Spoil> {
        self.seen.lock().expect("whole").push(line.to_owned());
        let mut rules = self.rules.lock().expect("whole");
        let fits =
            |rule: &&mut Rule| rule.times > 0 && rule.texts.iter().all(|text| line.contains(text));
        let rule = rules.iter_mut().find(fits)?;
        if rule.after > 0 {
            rule.after -= 1;
            return None;
        }
        rule.times -= 1;
        Some(rule.spoil)
    }

    /// The requests of one connection.
    fn serve(&self, client: TcpStream, server: u16) -> io::Result<()> {
        let mut reader = BufReader::new(client.try_clone()?);
        let mut client = client;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let mut head = line.clone();
            let mut length = 0;
            loop {
                let mut header = String::new();
                reader.read_line(&mut header)?;
                if header == "\r\n" || header.is_empty() {
                    break;
                }
                let lower = header.to_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
                if !lower.starts_with("connection:") {
                    head.push_str(&header);
                }
            }
            head.push_str("Connection: close\r\n\r\n");
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let spoil = self.rule(&line);
            match spoil {
                Some(Spoil::Answer(status, code)) => {
                    let text = match line.starts_with("HEAD") {
                        true => String::new(),
                        false => format!("<Error><Code>{code}</Code></Error>"),
                    };
                    // Of a store whose clock is another one.
                    let date = match code {
                        "RequestTimeTooSkewed" => "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n",
                        _ => "",
                    };
                    let length = text.len();
                    let answer = format!(
                        "HTTP/1.1 {status} X\r\n{date}Content-Length: {length}\r\n\r\n{text}"
                    );
                    client.write_all(answer.as_bytes())?;
                    continue;
                }
                Some(Spoil::ChangeRequest) => {
                    let middle = body.len() / 2;
                    body[middle] ^= 1;
                }
                Some(Spoil::Slow(millis)) => thread::sleep(Duration::from_millis(millis)),
                _ => {}
            }
            let mut upstream = TcpStream::connect(("127.0.0.1", server))?;
            upstream.write_all(head.as_bytes())?;
            upstream.write_all(&body)?;
            let mut answer = Vec::new();
            upstream.read_to_end(&mut answer)?;
            match spoil {
                Some(Spoil::LoseAnswer) => return Ok(()),
                Some(Spoil::CutAnswer(len)) => answer.truncate(len),
                Some(Spoil::ChangeAnswer) => {
                    let at = answer.len() - 60;
                    answer[at] ^= 1;
                }
                _ => {}
            }
            client.write_all(&answer)?;
            // The answer said "close".
            return Ok(());
        }
    }
}
