//! The documents: every link and anchor leads somewhere, every page stands in the table of
//! contents, README is two screens long, lines can be read, those of comments in the code, too, and
//! pages for users name no tests. No server is needed.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// Beside everything in docs/.
const AT_THE_TOP: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
const CONTENTS: &str = "docs/SUMMARY.md";

const MAX_README_WORDS: usize = 1_499;
const MAX_LINE_CHARS: usize = 100;

/// Pages with lines of any length, and why.
const LONG_LINES: [(&str, &str); 1] = [("docs/performance.md", "made by make performance")];

/// Pages that may name tests, and why. The others are for users.
const NAMES_TESTS: [(&str, &str); 5] = [
    ("ARCHITECTURE.md", "for those who change the code"),
    ("CONTRIBUTING.md", "for those who change the code"),
    (
        "docs/formats.md",
        "vectors and second implementations belong to a format",
    ),
    ("docs/hot-path.md", "what is measured is counted by a test"),
    (
        "docs/threat-model.md",
        "each attack has a test that shows that it fails",
    ),
];

struct Link {
    to: String,
    line: usize,
}

struct Page {
    /// From the top of the checkout, with slashes.
    name: String,
    text: String,
    anchors: BTreeSet<String>,
    links: Vec<Link>,
    /// Lines in tables, code blocks and headings, counted from 1.
    unwrapped: BTreeSet<usize>,
    /// Lines between the marks of a part that a test or a command makes, counted from 1.
    made: BTreeSet<usize>,
}

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The name that a heading has in links, as code hosts and mdBook make it.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            c if c.is_whitespace() => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

fn made_lines(text: &str) -> BTreeSet<usize> {
    let mut made = BTreeSet::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        inside |= line.starts_with("<!-- made ");
        if inside {
            made.insert(at + 1);
        }
        inside &= !line.starts_with("<!-- end of what is made ");
    }
    assert!(!inside, "a part that is made has no end");
    made
}

impl Page {
    fn read(name: &str) -> Page {
        let text = fs::read_to_string(checkout().join(name)).expect(name);
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        let lines_of = |range: &Range<usize>| {
            line_of(range.start)..=line_of(range.end.saturating_sub(1).max(range.start))
        };
        let mut page = Page {
            name: name.to_owned(),
            text: String::new(),
            anchors: BTreeSet::new(),
            links: Vec::new(),
            unwrapped: BTreeSet::new(),
            made: made_lines(&text),
        };
        let mut heading: Option<String> = None;
        let options = Options::ENABLE_TABLES;
        for (event, range) in Parser::new_ext(&text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => {
                    page.unwrapped.extend(lines_of(&range));
                    heading = Some(String::new());
                }
                Event::End(TagEnd::Heading(_)) => {
                    page.add_anchor(&heading.take().unwrap_or_default());
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                Event::Start(Tag::Table(_) | Tag::CodeBlock(_)) => {
                    page.unwrapped.extend(lines_of(&range));
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(Link {
                        to: dest_url.into_string(),
                        line: line_of(range.start),
                    });
                }
                _ => {}
            }
        }
        page.text = text;
        page
    }

    /// A heading that stands on the page already gets a number.
    fn add_anchor(&mut self, heading: &str) {
        let first = anchor(heading);
        let mut name = first.clone();
        let mut number = 0;
        while !self.anchors.insert(name) {
            number += 1;
            name = format!("{first}-{number}");
        }
    }

    /// Where a link of this page leads, from the top of the checkout.
    fn resolve(&self, path: &str) -> String {
        if path.is_empty() {
            return self.name.clone();
        }
        let folder = Path::new(&self.name).parent().expect("a folder");
        let mut parts: Vec<String> = Vec::new();
        for part in folder.join(path).components() {
            match part {
                Component::ParentDir => {
                    parts.pop();
                }
                Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
                _ => {}
            }
        }
        parts.join("/")
    }
}

fn add_pages(folder: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(checkout().join(folder)).expect(folder) {
        let entry = entry.expect("an entry");
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a type").is_dir() {
            add_pages(&name, names);
        } else if name.ends_with(".md") {
            names.push(name);
        }
    }
}

fn pages() -> BTreeMap<String, Page> {
    let mut names: Vec<String> = AT_THE_TOP.map(str::to_owned).to_vec();
    add_pages("docs", &mut names);
    assert!(names.len() > 30, "{names:?}");
    names
        .into_iter()
        .map(|name| (name.clone(), Page::read(&name)))
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut wrong = Vec::new();
    let mut followed = 0;
    for page in pages.values() {
        for Link { to, line } in &page.links {
            if to.contains("://") || to.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
            let target = page.resolve(path);
            if !checkout().join(&target).exists() {
                wrong.push(format!("{}:{line}: {to} does not exist", page.name));
            } else if !anchor.is_empty()
                && !pages
                    .get(&target)
                    .is_some_and(|page| page.anchors.contains(anchor))
            {
                wrong.push(format!("{}:{line}: {to} is no heading", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(followed > 200, "{followed}");
}

#[test]
fn every_page_stands_in_the_table_of_contents() {
    let pages = pages();
    let contents = &pages[CONTENTS];
    let listed: Vec<String> = contents
        .links
        .iter()
        .map(|link| contents.resolve(&link.to))
        .collect();
    let missing: Vec<&String> = pages
        .keys()
        .filter(|name| *name != CONTENTS && !listed.contains(name))
        .collect();
    assert!(missing.is_empty(), "not in {CONTENTS}: {missing:?}");
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page stands there twice");
}

#[test]
fn readme_is_two_screens() {
    let words = Page::read("README.md").text.split_whitespace().count();
    assert!(words <= MAX_README_WORDS, "{words} words");
}

#[test]
fn lines_can_be_read() {
    let mut long = Vec::new();
    for page in pages().values() {
        if LONG_LINES.iter().any(|(name, _)| *name == page.name) {
            continue;
        }
        for (at, line) in page.text.lines().enumerate() {
            let number = at + 1;
            let chars = line.chars().count();
            if chars > MAX_LINE_CHARS
                && !page.unwrapped.contains(&number)
                && !page.made.contains(&number)
            {
                long.push(format!("{}:{number}: {chars} characters", page.name));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// Files of Rust below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Tables, code and what is set in columns keep their lines.
#[test]
fn comments_can_be_read() {
    let mut files = Vec::new();
    for folder in ["crates", "onionskin", "fuzz"] {
        sources(&checkout().join(folder), &mut files);
    }
    assert!(files.len() > 500, "{} files", files.len());
    let mut long = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a text");
        let mut in_code = false;
        for (at, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                in_code = false;
                continue;
            };
            let comment = comment.trim_start_matches(['/', '!']);
            if comment.trim_start().starts_with("```") {
                in_code = !in_code;
            }
            let keeps = in_code || comment.starts_with(" |") || comment.starts_with("    ");
            if line.chars().count() > MAX_LINE_CHARS && !keeps {
                long.push(format!("{}:{}", file.display(), at + 1));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn pages_for_users_name_no_tests() {
    let mut named = Vec::new();
    for page in pages().values() {
        if NAMES_TESTS.iter().any(|(name, _)| *name == page.name)
            || page.name.starts_with("docs/decisions/")
        {
            continue;
        }
        for (at, line) in page.text.lines().enumerate() {
            if line.contains("/tests") && !page.made.contains(&(at + 1)) {
                named.push(format!("{}:{}: {line}", page.name, at + 1));
            }
        }
    }
    assert!(named.is_empty(), "{}", named.join("\n"));
}

#[test]
fn exceptions_are_needed() {
    let pages = pages();
    for (name, _) in LONG_LINES.iter().chain(&NAMES_TESTS) {
        assert!(pages.contains_key(*name), "{name} is no page any more");
    }
}

#[test]
fn anchors_are_made_as_code_hosts_make_them() {
    assert_eq!(
        anchor("MariaDB's own test files"),
        "mariadbs-own-test-files"
    );
    assert_eq!(anchor("CREATE TABLE … SELECT"), "create-table--select");
    assert_eq!(anchor("report.json"), "reportjson");
}
