//! What `--dry-run` prints: statements on lines of their own, a definition with a line for each of
//! its elements.

/// The text of what a dry run gives back: statements, and comments that begin with `--`.
pub fn readable(lines: &[String]) -> String {
    lines
        .iter()
        .fold(String::new(), |text, line| match line.starts_with("--") {
            true => text + line + "\n",
            false => text + &elements(line) + ";\n",
        })
}

/// A CREATE TABLE with its elements on lines of their own; other statements as they are.
fn elements(sql: &str) -> String {
    if !sql.starts_with("CREATE TABLE") {
        return sql.to_owned();
    }
    let mut text = String::with_capacity(sql.len() + 200);
    let mut depth = 0;
    let mut chars = sql.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' | '\'' | '"' => {
                text.push(c);
                while let Some(inside) = chars.next() {
                    text.push(inside);
                    match inside {
                        '\\' if c != '`' => text.extend(chars.next()),
                        // A doubled quote opens the next piece at once.
                        _ if inside == c => break,
                        _ => {}
                    }
                }
                continue;
            }
            '(' => {
                depth += 1;
                text.push(c);
                if depth == 1 {
                    text.push_str("\n  ");
                    while chars.next_if(|c| c.is_whitespace()).is_some() {}
                }
                continue;
            }
            ')' => {
                depth -= 1;
                if depth == 0 {
                    text.truncate(text.trim_end().len());
                    text.push('\n');
                }
            }
            _ => {}
        }
        text.push(c);
        if c == ',' && depth == 1 {
            text.push_str("\n  ");
            while chars.next_if(|c| c.is_whitespace()).is_some() {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_of_a_definition_has_a_line() {
        let sql = "CREATE TABLE `a(b` (`x,` decimal(5,2) COMMENT 'it''s \\', (', `y` int, KEY (`x,`, `y`)\n) ENGINE=InnoDB";
        let lines = [
            "-- first".to_owned(),
            sql.to_owned(),
            "DROP TABLE x".to_owned(),
        ];
        assert_eq!(
            readable(&lines),
            "-- first\nCREATE TABLE `a(b` (\n  `x,` decimal(5,2) COMMENT 'it''s \\', (',\n  `y` int,\n  KEY (`x,`, `y`)\n) ENGINE=InnoDB;\nDROP TABLE x;\n"
        );
        let long = "CREATE TABLE `t` LIKE `u`".to_owned();
        assert_eq!(readable(&[long]), "CREATE TABLE `t` LIKE `u`;\n");
    }
}
