//! A bucket as a store of sealed files.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use chrono::{DateTime, Utc};
use onionskin_aws::now;
use onionskin_backup::store::{Claim, Listed, Opened, Removed, Retention, Store, Unfinished};
use rusty_s3::Method;

use crate::{
    Address, Fault, Settings,
    address::SCHEME,
    client::{Answer, Ask, Client},
    object::Object,
    upload::Upload,
    xml::Element,
};

/// More than one folder has; who lists more is not to be believed.
const MOST_OBJECTS: usize = 5_000_000;
/// Objects whose ends are fetched at once.
const AT_ONCE: usize = 8;

/// What lies under one prefix of a bucket.
pub struct Bucket {
    client: Arc<Client>,
    bucket: String,
    /// Empty, or with a slash at its end.
    prefix: String,
}

/// A multipart upload that was begun.
struct Begun {
    key: String,
    id: String,
    since: Option<DateTime<Utc>>,
}

impl Bucket {
    /// The folder of an address. Nobody is asked yet.
    pub fn new(address: &Address, settings: Settings) -> Result<Self, Fault> {
        Ok(Self {
            client: Arc::new(Client::new(settings, &address.bucket)?),
            bucket: address.bucket.clone(),
            prefix: address.prefix.clone(),
        })
    }

    fn key(&self, name: &str) -> Result<String, Fault> {
        match name.is_empty() || name.contains('/') || name.chars().any(char::is_control) {
            true => Err(Fault::Address(name.to_owned(), "it is no name of a file")),
            false => Ok(format!("{}{name}", self.prefix)),
        }
    }

    /// All objects right below the prefix whose names begin so.
    fn objects(&self, begin: &str, most: Option<usize>) -> Result<Vec<Listed>, Fault> {
        let prefix = format!("{}{begin}", self.prefix);
        let at_once = most.unwrap_or(1000).to_string();
        let mut objects = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let mut ask = Ask::new(Method::Get, "listing objects", None);
            ask.query = vec![
                ("delimiter", "/"),
                ("list-type", "2"),
                ("max-keys", &at_once),
                ("prefix", &prefix),
            ];
            if let Some(token) = &token {
                ask.query.insert(0, ("continuation-token", token));
            }
            let answer = self.client.ask(&ask, None)?;
            let root = self.document(&ask, &answer, "ListBucket")?;
            for found in root.all("Contents") {
                objects.extend(self.listed(found));
            }
            if most.is_some() || root.text_of("IsTruncated") != Some("true") {
                return Ok(objects);
            }
            let next = root.text_of("NextContinuationToken").map(str::to_owned);
            if next.is_none() || next == token || objects.len() > MOST_OBJECTS {
                return Err(self.client.odd(&ask, "the list has no end"));
            }
            token = next;
        }
    }

    /// `None` for what no program of ours has put there.
    fn listed(&self, found: &Element) -> Option<Listed> {
        let name = found.text_of("Key")?.strip_prefix(&self.prefix)?;
        self.key(name).ok()?;
        Some(Listed {
            name: name.to_owned(),
            len: found.text_of("Size")?.parse().ok()?,
            state: found.text_of("ETag").map(str::to_owned),
        })
    }

    /// The document whose name begins so: not all stores end it as AWS does.
    fn document(&self, ask: &Ask<'_>, answer: &Answer, name: &str) -> Result<Element, Fault> {
        let root = Element::parse(&answer.body).filter(|root| root.name.starts_with(name));
        root.ok_or_else(|| self.client.odd(ask, "it is another document"))
    }

    fn head(&self, key: &str) -> Result<Answer, Fault> {
        let ask = Ask::new(Method::Head, "looking at an object", Some(key));
        self.client.ask(&ask, None)
    }

    /// The multipart uploads below the prefix, and the server's time.
    fn begun(&self) -> Result<(Vec<Begun>, Option<DateTime<Utc>>), Fault> {
        let mut begun = Vec::new();
        let mut marker: Option<(String, String)> = None;
        loop {
            let mut ask = Ask::new(Method::Get, "listing unfinished uploads", None);
            if let Some((key, id)) = &marker {
                ask.query = vec![
                    ("key-marker", key),
                    ("prefix", &self.prefix),
                    ("upload-id-marker", id),
                    ("uploads", ""),
                ];
            } else {
                ask.query = vec![("prefix", &self.prefix), ("uploads", "")];
            }
            let answer = self.client.ask(&ask, None)?;
            let root = self.document(&ask, &answer, "ListMultipartUploads")?;
            for upload in root.all("Upload") {
                let (Some(key), Some(id)) = (upload.text_of("Key"), upload.text_of("UploadId"))
                else {
                    continue;
                };
                // What lies in folders below is not ours.
                let name = key.strip_prefix(&self.prefix).unwrap_or_default();
                if self.key(name).is_ok() {
                    begun.push(Begun {
                        key: key.to_owned(),
                        id: id.to_owned(),
                        since: upload.text_of("Initiated").and_then(time),
                    });
                }
            }
            let text = |name| root.text_of(name).unwrap_or_default().to_owned();
            let next = (text("NextKeyMarker"), text("NextUploadIdMarker"));
            if root.text_of("IsTruncated") != Some("true") {
                return Ok((begun, answer.date()));
            }
            if Some(&next) == marker.as_ref() || begun.len() > MOST_OBJECTS {
                return Err(self.client.odd(&ask, "the list has no end"));
            }
            marker = Some(next);
        }
    }

    /// When something was last stored of an upload.
    fn last_part(&self, upload: &Begun) -> Result<Option<DateTime<Utc>>, Fault> {
        let mut latest = upload.since;
        let mut marker: Option<String> = None;
        loop {
            let mut ask = Ask::new(Method::Get, "listing parts", Some(&upload.key));
            if let Some(marker) = &marker {
                ask.query.push(("part-number-marker", marker));
            }
            ask.query.push(("uploadId", &upload.id));
            let answer = self.client.ask(&ask, None)?;
            let root = self.document(&ask, &answer, "ListParts")?;
            let times = root
                .all("Part")
                .filter_map(|part| time(part.text_of("LastModified")?));
            latest = latest.max(times.max());
            let next = root.text_of("NextPartNumberMarker").map(str::to_owned);
            if root.text_of("IsTruncated") != Some("true") || next.is_none() || next == marker {
                return Ok(latest);
            }
            marker = next;
        }
    }

    fn clear(&self, idle: Duration) -> Result<usize, Fault> {
        let (begun, now) = self.begun()?;
        let mut cleared = 0;
        for upload in begun {
            // What has its object already can become none any more.
            let is_over = self.head(&upload.key).is_ok();
            let is_idle = |last: Option<DateTime<Utc>>| {
                let passed = last
                    .zip(now)
                    .map(|(last, now)| (now - last).to_std().unwrap_or_default());
                passed.is_some_and(|passed| passed >= idle)
            };
            let is_left = is_over || is_idle(upload.since) && is_idle(self.last_part(&upload)?);
            if !is_left {
                continue;
            }
            let mut ask = Ask::new(Method::Delete, "aborting an upload", Some(&upload.key));
            ask.query = vec![("uploadId", &upload.id)];
            match self.client.ask(&ask, None) {
                Ok(_) => cleared += 1,
                Err(Fault::Aborted | Fault::NoObject) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(cleared)
    }

    fn remove_object(&self, name: &str) -> Result<Removed, Fault> {
        let key = self.key(name)?;
        let ask = Ask::new(Method::Delete, "removing an object", Some(&key));
        match self.client.ask(&ask, None) {
            Ok(answer) if answer.header("x-amz-delete-marker") == Some("true") => {
                Ok(Removed::Hidden)
            }
            Ok(_) | Err(Fault::NoObject) => Ok(Removed::Gone),
            Err(fault @ Fault::Refused { .. }) => match self.retention_of(&key) {
                Ok(Some(_)) => Err(Fault::Retained),
                _ => Err(fault),
            },
            Err(fault) => Err(fault),
        }
    }

    fn retention_of(&self, key: &str) -> Result<Option<Retention>, Fault> {
        let answer = self.head(key)?;
        let held = answer.header("x-amz-object-lock-legal-hold") == Some("ON");
        let until = answer
            .header("x-amz-object-lock-retain-until-date")
            .and_then(time);
        let now = answer.date().unwrap_or_else(now);
        let until = until.filter(|until| *until > now);
        Ok((held || until.is_some()).then_some(Retention {
            until: until.map(|until| until.timestamp()),
            held,
        }))
    }
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text)
        .ok()
        .map(|time| time.to_utc())
}

impl Store for Bucket {
    fn path(&self, name: &str) -> PathBuf {
        format!("{SCHEME}{}/{}{name}", self.bucket, self.prefix).into()
    }

    fn list(&self) -> io::Result<Vec<Listed>> {
        Ok(self.objects("", None)?)
    }

    fn open(&self, name: &str) -> io::Result<Opened> {
        let object = Object::find(Arc::clone(&self.client), self.key(name)?)?;
        Ok(Box::new(object))
    }

    fn open_all<'a>(
        &'a self,
        files: &'a [Listed],
    ) -> Box<dyn Iterator<Item = io::Result<Opened>> + 'a> {
        Box::new(self.with_ends(files))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Unfinished>> {
        let key = self.key(name)?;
        match self.objects(name, Some(1)) {
            Ok(found) if found.iter().any(|found| found.name == name) => {
                return Err(Fault::Exists.into());
            }
            // Who may only write is told by the condition, at the end.
            Err(Fault::Refused { code, .. }) if code == "AccessDenied" => {}
            found => drop(found?),
        }
        Ok(Box::new(Upload::new(Arc::clone(&self.client), key)))
    }

    fn put(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let key = self.key(name)?;
        let mut ask = Ask::new(Method::Put, "storing an object", Some(&key));
        ask.body = content;
        self.client.ask(&ask, None)?;
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<Removed> {
        Ok(self.remove_object(name)?)
    }

    fn retention(&self, name: &str) -> io::Result<Option<Retention>> {
        Ok(self.retention_of(&self.key(name)?)?)
    }

    fn settle(&self) -> io::Result<()> {
        Ok(())
    }

    /// There is no lock: two that write the same name are told apart by the condition.
    fn claim(&self) -> io::Result<Claim> {
        Ok(Claim::new(()))
    }

    fn clear_unfinished(&self, idle: Duration, _: &dyn Fn(&str) -> bool) -> io::Result<usize> {
        match self.clear(idle) {
            // Not everybody may list them, and not every store knows how.
            Err(Fault::Refused { .. }) => Ok(0),
            Err(Fault::Failing {
                status: 400 | 405 | 501,
                ..
            }) => Ok(0),
            cleared => Ok(cleared?),
        }
    }
}

impl Bucket {
    /// Opens objects in their order, with the ends of several being fetched at once.
    fn with_ends<'a>(
        &'a self,
        files: &'a [Listed],
    ) -> impl Iterator<Item = io::Result<Opened>> + 'a {
        let mut begun: std::collections::VecDeque<mpsc::Receiver<Result<Object, Fault>>> =
            Default::default();
        let mut rest = files.iter();
        std::iter::from_fn(move || {
            while begun.len() < AT_ONCE {
                let Some(file) = rest.next() else { break };
                let (tell, told) = mpsc::channel();
                begun.push_back(told);
                let (client, key, file) =
                    (Arc::clone(&self.client), self.key(&file.name), file.clone());
                let open = move || {
                    let opened = key.and_then(|key| match file.state {
                        Some(tag) => Ok(Object::new(client, key, file.len, tag)),
                        None => Object::find(client, key),
                    });
                    let opened = opened.and_then(|mut object| object.fetch_ends().map(|()| object));
                    // Nobody may want it any more.
                    let _ = tell.send(opened);
                };
                let thread = thread::Builder::new().name("ends".into());
                // Its channel is closed then, which is told below.
                drop(thread.spawn(open));
            }
            let opened = begun.pop_front()?.recv().unwrap_or(Err(Fault::Lost));
            Some(
                opened
                    .map(|object| Box::new(object) as Opened)
                    .map_err(io::Error::from),
            )
        })
    }
}
