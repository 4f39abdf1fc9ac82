//! Signature Version 4 in the headers of a request, as every service of AWS but S3 wants it.
//!
//! The crates that do this bring tokio, or are asynchronous; `rusty-s3` signs addresses of S3
//! alone.

use aws_lc_rs::{
    digest::{SHA256, digest},
    hmac::{HMAC_SHA256, Key, Tag, sign},
};
use chrono::{DateTime, Utc};

use crate::AccessKey;

/// A POST to `/`.
pub struct Request<'a> {
    /// Such as `eu-west-1`.
    pub region: &'a str,
    /// Such as `kms`.
    pub service: &'a str,
    /// All that are signed: names in small letters, sorted; without what [`headers`] adds.
    pub headers: &'a [(&'a str, &'a str)],
    /// What is sent.
    pub body: &'a [u8],
}

/// The headers that make a request a signed one. They are no secret to whom it is sent, and who
/// listens can repeat it for some minutes.
pub fn headers(
    request: &Request<'_>,
    key: &AccessKey,
    time: DateTime<Utc>,
) -> Vec<(&'static str, String)> {
    let stamp = time.format("%Y%m%dT%H%M%SZ").to_string();
    let day = &stamp[..8];
    let mut added = vec![("x-amz-date", stamp.clone())];
    if let Some(token) = &key.token {
        added.push(("x-amz-security-token", token.to_string()));
    }
    let mut all: Vec<(&str, &str)> = request.headers.to_vec();
    all.extend(added.iter().map(|(name, value)| (*name, value.as_str())));
    all.sort_unstable();
    let lines: String = all
        .iter()
        .map(|(name, value)| format!("{name}:{}\n", value.trim()))
        .collect();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let canonical = format!(
        "POST\n/\n\n{lines}\n{names}\n{}",
        hexadecimal(digest(&SHA256, request.body).as_ref())
    );
    let Request {
        region, service, ..
    } = request;
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let text = format!(
        "AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{}",
        hexadecimal(digest(&SHA256, canonical.as_bytes()).as_ref())
    );
    let secret = zeroize::Zeroizing::new(format!("AWS4{}", *key.secret));
    let mut tag = by(secret.as_bytes(), day);
    for part in [region, service, "aws4_request", &text] {
        tag = by(tag.as_ref(), part);
    }
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={}",
        key.id,
        hexadecimal(tag.as_ref())
    );
    added.push(("authorization", authorization));
    added
}

fn by(key: &[u8], text: &str) -> Tag {
    sign(&Key::new(HMAC_SHA256, key), text.as_bytes())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    fn signed(token: Option<&str>, request: &Request<'_>) -> String {
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let key = AccessKey::fixed("AKIDEXAMPLE", secret, token);
        let time = Utc.with_ymd_and_hms(2015, 8, 30, 12, 36, 0).unwrap();
        let headers = headers(request, &key, time);
        let (name, value) = headers.last().unwrap();
        assert_eq!(*name, "authorization");
        value.clone()
    }

    /// `post-vanilla` of AWS's test suite of the signature.
    #[test]
    fn a_signature_is_that_of_the_test_suite() {
        let request = Request {
            region: "us-east-1",
            service: "service",
            headers: &[("host", "example.amazonaws.com")],
            body: b"",
        };
        assert_eq!(
            signed(None, &request),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, \
             Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        );
    }

    /// Made by botocore's `SigV4Auth`: a token, more headers, and a body.
    #[test]
    fn a_signature_is_that_of_another_implementation() {
        let request = Request {
            region: "eu-west-1",
            service: "kms",
            headers: &[
                ("content-type", "application/x-amz-json-1.1"),
                ("host", "kms.eu-west-1.amazonaws.com"),
                ("x-amz-target", "TrentService.Decrypt"),
            ],
            body: b"{\"KeyId\":\"alias/onionskin\"}",
        };
        let signed = signed(Some("a/token=="), &request);
        let (head, signature) = signed.split_once(", Signature=").unwrap();
        assert!(
            head.ends_with(
                "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
            ),
            "{head}"
        );
        assert_eq!(
            signature,
            "8361216ccd94bdfbf483619eea096eb7dc9d30bd96886275b9003ca8decef8ae"
        );
    }
}
