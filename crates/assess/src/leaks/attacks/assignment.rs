//! The cheapest matching of tokens and values: the linear assignment problem.

use pathfinding::prelude::{Matrix, kuhn_munkres_min};

use super::Guesses;

/// Costs become whole numbers, so that the solver's comparisons are exact.
const UNITS: f64 = 1e12;

/// One column for each row so that the sum of the costs is least. Where there are more rows than
/// columns, some rows have none. All rows of `costs` have one length.
pub fn cheapest(costs: &[Vec<f64>]) -> Guesses {
    let (rows, columns) = (costs.len(), costs.first().map_or(0, Vec::len));
    if rows == 0 || columns == 0 {
        return vec![None; rows];
    }
    let whole = |cost: f64| (cost * UNITS) as i64;
    if rows <= columns {
        let matrix = Matrix::from_fn(rows, columns, |(r, c)| whole(costs[r][c]));
        let (_, chosen) = kuhn_munkres_min(&matrix);
        return chosen.into_iter().map(Some).collect();
    }
    let matrix = Matrix::from_fn(columns, rows, |(c, r)| whole(costs[r][c]));
    let (_, chosen) = kuhn_munkres_min(&matrix);
    let mut guesses = vec![None; rows];
    for (column, row) in chosen.into_iter().enumerate() {
        guesses[row] = Some(column);
    }
    guesses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_counts_and_not_each_ones_best() {
        // Greedy takes (0, 0) and pays 9 for the rest.
        let costs = [vec![0.0, 0.1], vec![0.2, 0.9]];
        assert_eq!(cheapest(&costs), [Some(1), Some(0)]);
    }

    #[test]
    fn more_rows_than_columns_leave_some_out() {
        let costs = [vec![0.5], vec![0.1], vec![0.3]];
        assert_eq!(cheapest(&costs), [None, Some(0), None]);
        assert_eq!(cheapest(&[]), Guesses::new());
        assert_eq!(cheapest(&[vec![]]), [None]);
    }
}
