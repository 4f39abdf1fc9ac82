//! The language of mysqltest files, as far as the runner understands it: SQL between delimiters,
//! commands, blocks.
//!
//! A file is read into a tree first; variables, conditions and included files are the matter of
//! `run.rs`. Written from the descriptions of the language in both servers' documentation and from
//! the files themselves.

/// A piece of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A statement for the server, without its delimiter.
    Query(String),
    /// A command of mysqltest: its name in lower case, and the rest of it.
    Command(String, String),
    /// `if` and `while`: the text between the parentheses, and what stands between the braces.
    Block {
        repeats: bool,
        condition: String,
        body: Vec<Node>,
    },
    /// A statement that is not UTF-8, which the client library cannot send.
    NotUtf8,
}

/// Commands; what begins with another word is SQL.
const COMMANDS: &[&str] = &[
    "perl",
    "write_file",
    "append_file",
    "assert",
    "cat_file",
    "change_user",
    "character_set",
    "chmod",
    "connect",
    "connection",
    "copy_file",
    "copy_files_wildcard",
    "dec",
    "delimiter",
    "die",
    "diff_files",
    "dirty_close",
    "disable_abort_on_error",
    "disable_async_client",
    "disable_column_names",
    "disable_connect_log",
    "disable_cursor_protocol",
    "disable_info",
    "disable_metadata",
    "disable_non_blocking_api",
    "disable_parsing",
    "disable_prepare_warnings",
    "disable_ps2_protocol",
    "disable_ps_protocol",
    "disable_query_log",
    "disable_reconnect",
    "disable_result_log",
    "disable_rpl_parse",
    "disable_service_connection",
    "disable_session_track_info",
    "disable_testcase",
    "disable_view_protocol",
    "disable_warnings",
    "disconnect",
    "echo",
    "enable_abort_on_error",
    "enable_async_client",
    "enable_column_names",
    "enable_connect_log",
    "enable_cursor_protocol",
    "enable_info",
    "enable_metadata",
    "enable_non_blocking_api",
    "enable_parsing",
    "enable_prepare_warnings",
    "enable_ps2_protocol",
    "enable_ps_protocol",
    "enable_query_log",
    "enable_reconnect",
    "enable_result_log",
    "enable_rpl_parse",
    "enable_service_connection",
    "enable_session_track_info",
    "enable_testcase",
    "enable_view_protocol",
    "enable_warnings",
    "end_timer",
    "error",
    "eval",
    "evalp",
    "exec",
    "exec_in_background",
    "execw",
    "exit",
    "expr",
    "file_exists",
    "force-cpdir",
    "force-rmdir",
    "horizontal_results",
    "inc",
    "let",
    "list_files",
    "list_files_append_file",
    "list_files_write_file",
    "lowercase_result",
    "mkdir",
    "move_file",
    "output",
    "partially_sorted_result",
    "ping",
    "ps_execute",
    "query",
    "query_attributes",
    "query_horizontal",
    "query_vertical",
    "real_sleep",
    "reap",
    "remove_file",
    "remove_files_wildcard",
    "replace_column",
    "replace_numeric_round",
    "replace_regex",
    "replace_result",
    "reset_connection",
    "result_format",
    "rmdir",
    "save_master_pos",
    "send",
    "send_eval",
    "send_quit",
    "send_shutdown",
    "shutdown_server",
    "skip",
    "skip_if_hypergraph",
    "sleep",
    "sorted_result",
    "source",
    "start_timer",
    "sync_slave_with_master",
    "sync_with_master",
    "system",
    "vertical_results",
];

/// Reads a file. Blocks that are not closed end with it.
pub fn read(text: &[u8]) -> Vec<Node> {
    let mut reader = Reader {
        text,
        at: 0,
        delimiter: b";".to_vec(),
    };
    let mut nodes = Vec::new();
    while reader.block(&mut nodes) {}
    nodes
}

/// Number of statements, each counted once however often its block may run.
pub fn statements(nodes: &[Node]) -> usize {
    let of = |node: &Node| match node {
        Node::Query(_) | Node::NotUtf8 => 1,
        Node::Command(name, _) => usize::from(sends_statement(name)),
        Node::Block { body, .. } => statements(body),
    };
    nodes.iter().map(of).sum()
}

/// Whether the command's argument is a statement.
pub fn sends_statement(name: &str) -> bool {
    matches!(
        name,
        "eval"
            | "evalp"
            | "query"
            | "query_vertical"
            | "query_horizontal"
            | "send"
            | "send_eval"
            | "ps_execute"
    )
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    delimiter: Vec<u8>,
}

/// What ended a piece of text.
enum End {
    Delimiter,
    Brace,
}

impl Reader<'_> {
    /// Reads up to a closing brace, which it consumes, or to the end of the file, for which it
    /// returns false.
    fn block(&mut self, nodes: &mut Vec<Node>) -> bool {
        let mut parsing = true;
        loop {
            while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
                self.at += 1;
            }
            let Some(first) = self.peek() else {
                return false;
            };
            if self.rest().starts_with(&self.delimiter) {
                self.at += self.delimiter.len();
            } else if first == b'#' {
                self.line();
            } else if self.rest().starts_with(b"--") {
                let line = self.line();
                let line = String::from_utf8_lossy(&line[2..]).trim().to_owned();
                if let Some((name, rest)) = command(&line) {
                    let rest = match name.as_str() {
                        "delimiter" => rest,
                        _ => rest.trim_end_matches(';'),
                    };
                    self.command(name, rest, nodes, &mut parsing);
                }
            } else if first == b'}' {
                self.at += 1;
                return true;
            } else {
                let (piece, end) = self.piece();
                let Ok(piece) = String::from_utf8(piece) else {
                    if parsing {
                        nodes.push(Node::NotUtf8);
                    }
                    continue;
                };
                let piece = piece.trim();
                match end {
                    End::Brace => {
                        let mut body = Vec::new();
                        self.block(&mut body);
                        let repeats = piece
                            .get(..5)
                            .is_some_and(|w| w.eq_ignore_ascii_case("while"));
                        let open = piece.find('(').map_or(piece.len(), |at| at + 1);
                        let close = piece.rfind(')').unwrap_or(piece.len()).max(open);
                        if parsing {
                            nodes.push(Node::Block {
                                repeats,
                                condition: piece[open..close].trim().to_owned(),
                                body,
                            });
                        }
                    }
                    End::Delimiter => match command(piece) {
                        Some((name, rest)) => self.command(name, rest, nodes, &mut parsing),
                        None if parsing && !piece.is_empty() => {
                            nodes.push(Node::Query(piece.to_owned()))
                        }
                        None => {}
                    },
                }
            }
        }
    }

    fn command(&mut self, name: String, rest: &str, nodes: &mut Vec<Node>, parsing: &mut bool) {
        match name.as_str() {
            "enable_parsing" | "enable_testcase" => *parsing = true,
            "disable_parsing" | "disable_testcase" => *parsing = false,
            "delimiter" if !rest.is_empty() => self.delimiter = rest.as_bytes().to_vec(),
            "perl" | "write_file" | "append_file" => {
                self.line();
                let words: Vec<&str> = rest.split_whitespace().collect();
                let last = match (name.as_str(), words.as_slice()) {
                    ("perl", [end]) | (_, [_, end]) => *end,
                    _ => "EOF",
                };
                let last = last.trim_end_matches(';').as_bytes();
                while self.peek().is_some() && self.line().trim_ascii() != last {}
            }
            _ => {}
        }
        if *parsing {
            nodes.push(Node::Command(name, rest.to_owned()));
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn line(&mut self) -> Vec<u8> {
        let rest = self.rest();
        let length = rest.iter().position(|&c| c == b'\n').unwrap_or(rest.len());
        let line = rest[..length].to_vec();
        self.at = (self.at + length + 1).min(self.text.len());
        line
    }

    /// Up to the delimiter outside of quotes, or to the brace that opens the block of `if` and
    /// `while`.
    fn piece(&mut self) -> (Vec<u8>, End) {
        let start = self.at;
        let head = self.rest();
        let begins = |word: &str| {
            head.get(..word.len())
                .is_some_and(|w| w.eq_ignore_ascii_case(word.as_bytes()))
        };
        let may_open = begins("while") || begins("if");
        let mut quote = None;
        while let Some(c) = self.peek() {
            match quote {
                Some(_) if c == b'\\' => self.at += 1,
                Some(q) if c == q => quote = None,
                Some(_) => {}
                None if self.rest().starts_with(&self.delimiter) => {
                    let piece = self.text[start..self.at].to_vec();
                    self.at += self.delimiter.len();
                    return (piece, End::Delimiter);
                }
                None if c == b'{' && may_open => {
                    let piece = self.text[start..self.at].to_vec();
                    self.at += 1;
                    return (piece, End::Brace);
                }
                None if matches!(c, b'\'' | b'"' | b'`') => quote = Some(c),
                None => {}
            }
            self.at = (self.at + 1).min(self.text.len());
        }
        (self.text[start..].to_vec(), End::Delimiter)
    }
}

/// The command that a text begins with, and its argument.
fn command(text: &str) -> Option<(String, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .unwrap_or(text.len());
    let name = text[..end].to_ascii_lowercase();
    COMMANDS
        .contains(&name.as_str())
        .then(|| (name, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(sql: &str) -> Node {
        Node::Query(sql.into())
    }

    fn command(name: &str, rest: &str) -> Node {
        Node::Command(name.into(), rest.into())
    }

    #[test]
    fn statements_commands_and_blocks() {
        let text = b"# a comment; with 'quotes\n--error ER_X, 0\nselect ';' as a,\n  \"it's\" ;\n--echo it's\n\
            let $i = 3;\nwhile ($i)\n{\n  eval insert t values ($i, '}');\n  dec $i;\n}\n\
            delimiter |;\ncreate procedure p() begin select 1; end|\ndelimiter ;|\nselect 2;\nselect 3";
        let nodes = read(text);
        let expected = vec![
            command("error", "ER_X, 0"),
            query("select ';' as a,\n  \"it's\""),
            command("echo", "it's"),
            command("let", "$i = 3"),
            Node::Block {
                repeats: true,
                condition: "$i".into(),
                body: vec![
                    command("eval", "insert t values ($i, '}')"),
                    command("dec", "$i"),
                ],
            },
            command("delimiter", "|"),
            query("create procedure p() begin select 1; end"),
            command("delimiter", ";"),
            query("select 2"),
            query("select 3"),
        ];
        assert_eq!(nodes, expected);
        assert_eq!(statements(&nodes), 5);
    }

    #[test]
    fn what_is_left_out() {
        let text = b"--perl\nprint 'x;\nEOF\nselect 1;\nwrite_file f END;\nselect 9;\nEND\n--disable_parsing\nselect 8;\n\
            --enable_parsing\nselect '\xff';\nif (!$x) { select 2; }\nreplace into t values (1);";
        let expected = vec![
            command("perl", ""),
            query("select 1"),
            command("write_file", "f END"),
            command("enable_parsing", ""),
            Node::NotUtf8,
            Node::Block {
                repeats: false,
                condition: "!$x".into(),
                body: vec![query("select 2")],
            },
            query("replace into t values (1)"),
        ];
        assert_eq!(read(text), expected);
    }
}
