//! Variables of the test's language, and conditions over them.

use super::*;

impl Runner<'_> {
    pub fn variable(&self, name: &str) -> Result<String, Stop> {
        if name == "mysql_errno" {
            return Ok(self.last_error.to_string());
        }
        let known = match name {
            "MYSQL_TEST_DIR" => self.home.to_str(),
            "MYSQLTEST_VARDIR" | "MYSQL_TMP_DIR" => self.scratch.path().to_str(),
            "MASTER_MYPORT" | "MASTER_MYSOCK" => Some("1"),
            "PS_PROTOCOL" | "CURSOR_PROTOCOL" | "VIEW_PROTOCOL" | "SP_PROTOCOL" | "EMBEDDED"
            | "VALGRIND_TEST" | "BIG_TEST" | "LOW_MEMORY" => Some("0"),
            _ => None,
        };
        let own = self.variables.get(name).cloned();
        // to MySQL's test program, a variable that nothing has set is empty
        let unset = (self.suite == Suite::MySql).then(String::new);
        own.or(known.map(str::to_owned))
            .or(unset)
            .ok_or_else(|| Stop(format!("the variable ${name}")))
    }

    /// The text with its variables replaced.
    pub fn substituted(&self, text: &str) -> Result<String, Stop> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, after) = rest.split_at(at);
            let name: String = after[1..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            if let Some(before) = before.strip_suffix('\\') {
                out += before;
                out.push('$');
                rest = &after[1..];
            } else if name.is_empty() {
                out += before;
                out.push('$');
                rest = &after[1..];
            } else {
                out += before;
                out += &self.variable(&name)?;
                rest = &after[1 + name.len()..];
            }
        }
        Ok(out + rest)
    }

    pub fn assign(&mut self, rest: &str) -> Step {
        let Some((name, value)) = rest.split_once('=') else {
            return stop("a `let` without a value");
        };
        let name = name.trim().trim_start_matches('$').to_owned();
        let value = self.value(value.trim())?;
        self.variables.insert(name, value);
        Ok(())
    }

    /// A text, a query in backticks, or `query_get_value(query, column, row)`.
    pub fn value(&mut self, text: &str) -> Result<String, Stop> {
        if let Some(query) = text.strip_prefix('`').and_then(|t| t.strip_suffix('`')) {
            let query = self.substituted(query)?;
            let answer = seen::run(&mut self.lanes()?.plain, &query);
            if answer.problem.is_some() {
                return Err(Stop("a query for a variable that fails".into()));
            }
            let row = answer.sets.first().and_then(|s| s.rows.first());
            let cells: Vec<String> = row.iter().flat_map(|r| r.iter()).map(plain_text).collect();
            return Ok(cells.join("\t"));
        }
        if let Some(call) = text.strip_prefix("query_get_value") {
            return self.cell(call.trim());
        }
        self.substituted(text)
    }

    /// `(query, column, row)`: a cell of an answer; rows are counted from 1.
    fn cell(&mut self, call: &str) -> Result<String, Stop> {
        let inside = call.strip_prefix('(').and_then(|c| c.strip_suffix(')'));
        let mut parts = inside.unwrap_or_default().rsplitn(3, ',').map(str::trim);
        let (Some(row), Some(column), Some(query)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Stop("query_get_value without three arguments".into()));
        };
        let quoted = ['"', '\''].into_iter().find_map(|q| {
            let inside = query.strip_prefix(q)?;
            inside.strip_suffix(q)
        });
        let query = self.substituted(quoted.unwrap_or(query))?;
        let row: usize = self.substituted(row)?.parse().unwrap_or(1);
        let answer = seen::run(&mut self.lanes()?.plain, &query);
        let Some(set) = answer.sets.first() else {
            return Err(Stop("a query for a variable that fails".into()));
        };
        let place = set
            .columns
            .iter()
            .position(|c| c.0.eq_ignore_ascii_case(column));
        let cell = place.and_then(|at| set.rows.get(row.wrapping_sub(1))?.get(at));
        Ok(cell.map_or("No such row".into(), plain_text))
    }

    /// A condition of `if` and `while`: a value, its negation, or a comparison.
    pub fn holds(&mut self, condition: &str) -> Result<bool, Stop> {
        let condition = condition.trim();
        if !condition.starts_with('`') && !condition.starts_with("!`") {
            for sign in ["==", "!=", "<=", ">=", "<", ">"] {
                if let Some((left, right)) = condition.split_once(sign) {
                    let left = self.value(left.trim())?;
                    let right = self.value(right.trim().trim_matches(['\'', '"']))?;
                    let numbers = left
                        .trim()
                        .parse::<i64>()
                        .ok()
                        .zip(right.trim().parse::<i64>().ok());
                    let order = numbers.map_or_else(|| left.cmp(&right), |(l, r)| l.cmp(&r));
                    return Ok(match sign {
                        "==" => order.is_eq(),
                        "!=" => order.is_ne(),
                        "<=" => order.is_le(),
                        ">=" => order.is_ge(),
                        "<" => order.is_lt(),
                        _ => order.is_gt(),
                    });
                }
            }
        }
        let (negated, text) = match condition.strip_prefix('!') {
            Some(rest) => (true, rest.trim()),
            None => (false, condition),
        };
        // A variable that nothing has set is no error in a condition.
        let value = match text.strip_prefix('$') {
            Some(name) if !self.variables.contains_key(name) => {
                self.variable(name).unwrap_or_default()
            }
            _ => self.value(text)?,
        };
        let value = value.trim();
        let truth = !(value.is_empty() || value.parse::<f64>().is_ok_and(|n| n == 0.0));
        Ok(truth != negated)
    }
}
