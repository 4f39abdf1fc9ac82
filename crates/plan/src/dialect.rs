//! SQL as the servers read it, where the parser's MySQL dialect reads it otherwise.
//!
//! The dialect of `sqlparser` has the operators of PostgreSQL in their order: to it, XOR binds more
//! tightly than `=`, and BINARY stands before all that follows. Where a condition is taken apart at
//! AND and OR, that loses rows. Here operators bind as in the servers' grammar (`sql_yacc.yy`,
//! rules `expr` to `simple_expr`). `tests/associations.txt` has pairs of operators with what real
//! servers make of them.
//!
//! `||` is OR, or joins strings under PIPES_AS_CONCAT. It binds as OR here, and is an operator that
//! nobody takes apart.

use std::any::TypeId;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectNamePart, Statement, UnaryOperator,
};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::native::is_reserved;
use crate::visit::{Visit, visit_expressions};

/// How tightly operators bind; more is tighter.
mod binds {
    pub const OR: u8 = 5;
    pub const XOR: u8 = 7;
    pub const AND: u8 = 10;
    pub const NOT: u8 = 15;
    /// `IS NULL` as well.
    pub const COMPARISON: u8 = 17;
    /// IN, BETWEEN, LIKE, REGEXP.
    pub const PREDICATE: u8 = 20;
    pub const BIT_OR: u8 = 21;
    pub const BIT_AND: u8 = 23;
    pub const SHIFT: u8 = 25;
    pub const SUM: u8 = 30;
    pub const PRODUCT: u8 = 40;
    pub const BIT_XOR: u8 = 45;
    /// `-a`, `!a`, `BINARY a`, `a -> b`, `@a :=`.
    pub const OPERAND: u8 = 60;
    pub const ALL: u8 = 0;
}

/// The dialect of both servers.
#[derive(Debug)]
pub(crate) struct Servers;

const BASE: MySqlDialect = MySqlDialect {};

impl Servers {
    fn operand(parser: &mut Parser) -> Result<Box<Expr>, ParserError> {
        parser.parse_subexpr(binds::OPERAND).map(Box::new)
    }
}

/// Whether servers read a tree as the parser does. They know no function IN. Of
/// `a LIKE b NOT LIKE c` and `a BETWEEN b AND c LIKE d` they take what stands right as one operand,
/// or left, or neither.
pub(crate) fn is_clear(tree: &impl Visit) -> bool {
    let is_predicate = |e: &Expr| {
        matches!(
            e,
            Expr::Like { .. }
                | Expr::RLike { .. }
                | Expr::InList { .. }
                | Expr::InSubquery { .. }
                | Expr::Between { .. }
        )
    };
    visit_expressions(tree, |expr| match expr {
        Expr::Function(call) if is_no_function(call) => ControlFlow::Break(()),
        Expr::Like { expr, .. }
        | Expr::RLike { expr, .. }
        | Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::Between { expr, .. }
            if is_predicate(expr) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_continue()
}

/// Whether no server has a function of the name, because the word is another part of its language:
/// the parser takes `IN ('x')`, before which a column was forgotten, for a call.
fn is_no_function(call: &Function) -> bool {
    /// Words of the language that are functions as well.
    const FUNCTIONS: [&str; 8] = [
        "character",
        "default",
        "if",
        "insert",
        "left",
        "replace",
        "right",
        "values",
    ];
    /// Operators that are no reserved words of both servers.
    const OPERATORS: [&str; 6] = ["div", "escape", "regexp", "rlike", "sounds", "xor"];
    let [ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else {
        return false;
    };
    let is_one_of = |words: &[&str]| words.iter().any(|w| w.eq_ignore_ascii_case(&name.value));
    if name.quote_style.is_some() {
        return false;
    }
    if name.value.eq_ignore_ascii_case("values") {
        // of a column: `VALUES('x')` is none
        return !matches!(&call.args, FunctionArguments::List(list) if list.args.iter().all(is_column));
    }
    is_one_of(&OPERATORS) || is_reserved(&name.value) && !is_one_of(&FUNCTIONS)
}

fn is_column(argument: &FunctionArg) -> bool {
    matches!(
        argument,
        FunctionArg::Unnamed(FunctionArgExpr::Expr(
            Expr::Identifier(_) | Expr::CompoundIdentifier(_)
        ))
    )
}

/// Methods that are the base dialect's.
macro_rules! as_in_mysql {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            BASE.$name()
        })*
    };
}

impl Dialect for Servers {
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Or => binds::OR,
            Precedence::Xor => binds::XOR,
            Precedence::And => binds::AND,
            Precedence::UnaryNot => binds::NOT,
            Precedence::Is | Precedence::Eq => binds::COMPARISON,
            Precedence::Between | Precedence::Like => binds::PREDICATE,
            Precedence::Pipe => binds::BIT_OR,
            Precedence::Ampersand => binds::BIT_AND,
            Precedence::PlusMinus => binds::SUM,
            Precedence::MulDivModOp => binds::PRODUCT,
            Precedence::Caret => binds::BIT_XOR,
            Precedence::PgOther => binds::OPERAND,
            other => BASE.prec_value(other),
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        let binds = match parser.peek_token_ref().token {
            Token::StringConcat => binds::OR,
            Token::Overlap => binds::AND,
            Token::ShiftLeft | Token::ShiftRight => binds::SHIFT,
            // as tightly as can be to what stands before it, and see `parse_infix`
            Token::Assignment => binds::OPERAND,
            _ => return None,
        };
        Some(Ok(binds))
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let op = match &parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            Token::Tilde => UnaryOperator::BitwiseNot,
            Token::ExclamationMark => UnaryOperator::BangNot,
            Token::Word(word) if word.keyword == Keyword::BINARY => {
                parser.next_token();
                let operand = Self::operand(parser);
                return Some(operand.map(|expr| Expr::Cast {
                    kind: CastKind::Cast,
                    expr,
                    data_type: DataType::Binary(None),
                    format: None,
                }));
            }
            _ => return None,
        };
        parser.next_token();
        Some(Self::operand(parser).map(|expr| Expr::UnaryOp { op, expr }))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if parser.consume_token(&Token::Assignment) {
            // all that follows is assigned
            let right = parser.parse_subexpr(binds::ALL);
            return Some(right.map(|right| Expr::BinaryOp {
                left: Box::new(expr.clone()),
                op: BinaryOperator::Assignment,
                right: Box::new(right),
            }));
        }
        BASE.parse_infix(parser, expr, precedence)
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        BASE.parse_statement(parser)
    }

    fn is_identifier_start(&self, c: char) -> bool {
        BASE.is_identifier_start(c)
    }

    fn is_identifier_part(&self, c: char) -> bool {
        BASE.is_identifier_part(c)
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        BASE.is_delimited_identifier_start(c)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_table_factor_alias(&self, explicit: bool, word: &Keyword, parser: &mut Parser) -> bool {
        BASE.is_table_factor_alias(explicit, word, parser)
    }

    as_in_mysql! {
        supports_string_literal_backslash_escape,
        supports_string_literal_concatenation,
        ignores_wildcard_escapes,
        supports_numeric_prefix,
        supports_bitwise_shift_operators,
        supports_multiline_comment_hints,
        require_interval_qualifier,
        supports_limit_comma,
        supports_create_table_select,
        supports_insert_set,
        supports_user_host_grantee,
        supports_table_hints,
        requires_single_line_comment_whitespace,
        supports_match_against,
        supports_select_modifiers,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_update_order_by,
        supports_data_type_signed_suffix,
        supports_cross_join_constraint,
        supports_double_ampersand_operator,
        supports_binary_kw_as_cast,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
        supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::visit_expressions_mut;

    use super::*;

    fn parsed(text: &str) -> Expr {
        let mut expr = crate::parse::expression(text).unwrap_or_else(|r| panic!("{text}: {r:?}"));
        let _ = visit_expressions_mut(&mut expr, |e| {
            while let Expr::Nested(inner) = e {
                *e = std::mem::replace(inner, Expr::value(sqlparser::ast::Value::Null));
            }
            ControlFlow::<()>::Continue(())
        });
        expr
    }

    /// `tests/precedence.rs` of the program asks real servers whether the file is right.
    #[test]
    fn operators_bind_as_servers_bind_them() {
        let pairs = include_str!("../tests/associations.txt");
        let (mut wrong, mut unclear) = (Vec::new(), 0);
        for line in pairs.lines() {
            let (flat, nested) = line.split_once('\t').expect("two columns");
            if crate::parse::expression(flat).is_err() {
                unclear += 1;
            } else if parsed(flat) != parsed(nested) {
                wrong.push(format!("{flat}: {nested}"));
            }
        }
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(pairs.lines().count() > 700 && unclear < 50, "{unclear}");
    }

    #[test]
    fn what_is_assigned_goes_to_the_end() {
        let all = parsed("1 + @a := b = c OR d");
        assert_eq!(all, parsed("1 + (@a := ((b = c) OR d))"));
    }
}
