//! Walks through the parser's trees.
//!
//! The parser's own `Visit` is generic: each of its visitors gets a copy of the way through every
//! type of every statement. Twenty copies were two thirds of this crate's code, and half of its
//! time to compile. Here all visitors share one.

use std::ops::ControlFlow;

use sqlparser::ast::{self, Expr, ObjectName, Query, Select, TableFactor};

pub(crate) use sqlparser::ast::Visit;

macro_rules! visitors {
    ($($method:ident($node:ty);)*) => {
        /// What is called on the way, as by the parser's trait of this name. It has the methods
        /// that are in use; another one is a line more below.
        pub(crate) trait Visitor {
            /// What it may stop with.
            type Break;

            $(fn $method(&mut self, _: &$node) -> ControlFlow<Self::Break> {
                ControlFlow::Continue(())
            })*
        }

        /// A visitor of any type.
        trait AnyVisitor {
            $(fn $method(&mut self, node: &$node) -> ControlFlow<()>;)*
        }

        impl<V: Visitor> AnyVisitor for Running<'_, V> {
            $(fn $method(&mut self, node: &$node) -> ControlFlow<()> {
                let flow = self.visitor.$method(node);
                self.noted(flow)
            })*
        }

        impl ast::Visitor for Shared<'_> {
            type Break = ();

            $(fn $method(&mut self, node: &$node) -> ControlFlow<()> {
                self.0.$method(node)
            })*
        }
    };
}

visitors! {
    pre_visit_query(Query);
    post_visit_query(Query);
    pre_visit_select(Select);
    pre_visit_table_factor(TableFactor);
    post_visit_table_factor(TableFactor);
    pre_visit_relation(ObjectName);
    pre_visit_expr(Expr);
    post_visit_expr(Expr);
}

/// The one visitor that the parser knows.
struct Shared<'a>(&'a mut dyn AnyVisitor);

/// A visitor on its way, and what it has stopped with.
struct Running<'a, V: Visitor> {
    visitor: &'a mut V,
    stopped: Option<V::Break>,
}

impl<V: Visitor> Running<'_, V> {
    fn noted(&mut self, flow: ControlFlow<V::Break>) -> ControlFlow<()> {
        match flow {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(with) => {
                self.stopped = Some(with);
                ControlFlow::Break(())
            }
        }
    }
}

/// Goes through a tree until the visitor stops.
pub(crate) fn visit<V: Visitor>(tree: &impl Visit, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut running = Running {
        visitor,
        stopped: None,
    };
    // a tree stops only where its visitor does
    let _ = tree.visit(&mut Shared(&mut running));
    match running.stopped {
        Some(with) => ControlFlow::Break(with),
        None => ControlFlow::Continue(()),
    }
}

/// Calls a function for each expression of a tree, those around others first, until it stops.
pub(crate) fn visit_expressions<B>(
    tree: &impl Visit,
    each: impl FnMut(&Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Expressions<F>(F);
    impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for Expressions<F> {
        type Break = B;

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
            self.0(expr)
        }
    }
    visit(tree, &mut Expressions(each))
}
