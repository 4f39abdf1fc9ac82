//! The cheapest matching that keeps an order: dynamic programming over two sorted lists.

use super::Guesses;

/// Most pairs that are looked at: each takes a byte.
pub const MAX_PAIRS: usize = 32 << 20;

/// Matches two sorted lists without crossings, so that the sum of the costs is least. Every member
/// of the shorter list gets a partner; what a member of the longer one costs without says `alone`.
/// `None` beyond [`MAX_PAIRS`].
pub fn cheapest(
    rows: usize,
    columns: usize,
    cost: impl Fn(usize, usize) -> f64,
    alone: impl Fn(usize) -> f64,
) -> Option<Guesses> {
    if rows.checked_mul(columns)? > MAX_PAIRS {
        return None;
    }
    if rows <= columns {
        let chosen = chosen(rows, columns, cost, alone);
        return Some(chosen.into_iter().map(Some).collect());
    }
    let mut guesses = vec![None; rows];
    let chosen = chosen(columns, rows, |column, row| cost(row, column), alone);
    for (column, row) in chosen.into_iter().enumerate() {
        guesses[row] = Some(column);
    }
    Some(guesses)
}

/// For `few <= many`: the partner of each.
fn chosen(
    few: usize,
    many: usize,
    cost: impl Fn(usize, usize) -> f64,
    alone: impl Fn(usize) -> f64,
) -> Vec<usize> {
    // best[j]: the least cost of the first i of the few and the first j of the many
    let mut best = vec![0.0; many + 1];
    for j in 0..many {
        best[j + 1] = best[j] + alone(j);
    }
    let mut is_matched = vec![false; few * many];
    for i in 0..few {
        let mut next = vec![f64::INFINITY; many + 1];
        for j in i..many {
            let with = best[j] + cost(i, j);
            let without = next[j] + alone(j);
            is_matched[i * many + j] = with < without;
            next[j + 1] = with.min(without);
        }
        best = next;
    }
    let mut partners = vec![0; few];
    let mut end = many;
    for i in (0..few).rev() {
        while !is_matched[i * many + end - 1] {
            end -= 1;
        }
        end -= 1;
        partners[i] = end;
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_keep_the_order_and_cost_least() {
        let known: [f64; 4] = [0.1, 0.2, 0.5, 0.9];
        let seen: [f64; 2] = [0.19, 0.88];
        let cost = |i: usize, j: usize| (seen[i] - known[j]).powi(2);
        assert_eq!(cheapest(2, 4, cost, |_| 0.0), Some(vec![Some(1), Some(3)]));
        let turned = cheapest(4, 2, |i, j| cost(j, i), |_| 0.0);
        assert_eq!(turned, Some(vec![None, Some(0), None, Some(1)]));
        assert_eq!(cheapest(0, 3, |_, _| 0.0, |_| 0.0), Some(vec![]));
        assert_eq!(cheapest(1 << 16, 1 << 16, |_, _| 0.0, |_| 0.0), None);
    }

    #[test]
    fn whoever_costs_most_alone_is_not_left_alone() {
        let alone = [1.0, 0.1, 1.0];
        let guesses = cheapest(2, 3, |_, _| 0.0, |j| alone[j]);
        assert_eq!(guesses, Some(vec![Some(0), Some(2)]));
    }
}
