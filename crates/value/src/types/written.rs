//! The text of a column type, taken apart: a name, numbers between parentheses, attributes.

use super::TypeError;

/// A column type as it is written, such as `decimal(10,2) unsigned`.
pub(super) struct Written<'a> {
    /// As it was given.
    given: &'a str,
    /// The same in lower case.
    pub lower: &'a str,
    /// The type's name. Names of two words stand here as the one that means the same.
    pub name: &'a str,
    /// What stands between parentheses.
    pub numbers: [Option<u32>; 2],
    /// UNSIGNED, which ZEROFILL implies.
    pub unsigned: bool,
    pub zerofill: bool,
}

impl<'a> Written<'a> {
    /// Takes a text apart; `lower` is `given` in lower case, without spaces around it.
    pub fn read(given: &'a str, lower: &'a str) -> Result<Written<'a>, TypeError> {
        let mut written = Written {
            given,
            lower,
            name: "",
            numbers: [None; 2],
            unsigned: false,
            zerofill: false,
        };
        let (head, arguments, tail) = written.around_parentheses()?;
        let words = head
            .split_ascii_whitespace()
            .chain(tail.split_ascii_whitespace());
        written.read_words(words)?;
        if let Some(arguments) = arguments {
            written.read_numbers(arguments)?;
        }
        Ok(written)
    }

    /// What stands before, between and behind the parentheses.
    fn around_parentheses(&self) -> Result<(&'a str, Option<&'a str>, &'a str), TypeError> {
        let lower = self.lower;
        let Some(open) = lower.find('(') else {
            return Ok((lower, None, ""));
        };
        let close = lower
            .find(')')
            .filter(|close| *close > open)
            .ok_or_else(|| self.malformed())?;
        Ok((
            lower[..open].trim_end(),
            Some(&lower[open + 1..close]),
            &lower[close + 1..],
        ))
    }

    /// Reads the type's name and its attributes.
    fn read_words(&mut self, words: impl Iterator<Item = &'a str>) -> Result<(), TypeError> {
        let mut words = words.peekable();
        let first = words.next().ok_or_else(|| self.malformed())?;
        let of_two_words = match (first, words.peek().copied()) {
            ("double", Some("precision")) => Some("double"),
            ("char" | "character", Some("varying")) => Some("varchar"),
            _ => None,
        };
        if of_two_words.is_some() {
            words.next();
        }
        self.name = of_two_words.unwrap_or(first);
        for word in words {
            match word {
                "unsigned" => self.unsigned = true,
                "signed" => {}
                "zerofill" => (self.unsigned, self.zerofill) = (true, true),
                _ => return Err(self.malformed()),
            }
        }
        Ok(())
    }

    /// Reads at most two numbers.
    fn read_numbers(&mut self, arguments: &str) -> Result<(), TypeError> {
        let mut texts = arguments.split(',');
        for at in 0..self.numbers.len() {
            let Some(text) = texts.next() else {
                break;
            };
            let number = text.trim().parse().map_err(|_| self.malformed())?;
            self.numbers[at] = Some(number);
        }
        match texts.next() {
            Some(_) => Err(self.malformed()),
            None => Ok(()),
        }
    }

    pub fn malformed(&self) -> TypeError {
        TypeError::Malformed(self.given.to_owned())
    }

    pub fn unsupported(&self) -> TypeError {
        TypeError::Unsupported(self.lower.to_owned())
    }

    /// The number of a type that takes one, or none.
    pub fn at_most_one_number(&self) -> Result<Option<u32>, TypeError> {
        match self.numbers {
            [first, None] => Ok(first),
            [_, Some(_)] => Err(self.malformed()),
        }
    }

    /// A type that takes no numbers.
    pub fn no_numbers(&self) -> Result<(), TypeError> {
        match self.numbers {
            [None, _] => Ok(()),
            [Some(_), _] => Err(self.malformed()),
        }
    }

    /// A number that may be as large as `most`.
    pub fn within(&self, number: u32, most: u32) -> Result<u32, TypeError> {
        match number <= most {
            true => Ok(number),
            false => Err(TypeError::Length(self.given.to_owned())),
        }
    }
}
