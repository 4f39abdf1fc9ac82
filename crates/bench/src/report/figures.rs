//! Numbers as people read them.

use crate::stats::{Ratio, Verdict};

/// A number for people: three or four digits, thousands in groups.
pub fn figure(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".into();
    }
    if size >= 1000.0 {
        let digits = format!("{:.0}", size);
        let mut grouped = String::new();
        for (n, digit) in digits.chars().enumerate() {
            if n > 0 && (digits.len() - n).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        return format!("{}{grouped}", if value < 0.0 { "−" } else { "" });
    }
    let decimals = match size {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A ratio as a change: 0.93 is −7 %.
pub fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let shown = match percent.abs() {
        9.95.. => format!("{:.0}", percent.abs()),
        _ => format!("{:.1}", percent.abs()),
    };
    match shown.parse::<f64>() {
        Ok(0.0) => "0 %".into(),
        _ if percent < 0.0 => format!("−{shown} %"),
        _ => format!("+{shown} %"),
    }
}

/// A ratio with its interval.
pub fn ratio_text(ratio: &Ratio) -> String {
    let figures = format!("{:.2} [{:.2}, {:.2}]", ratio.ratio, ratio.low, ratio.high);
    match ratio.verdict {
        Verdict::NoDifference => format!("{figures} no difference measured"),
        Verdict::TooFewPairs => format!("{:.2} (one pair)", ratio.ratio),
        _ => figures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(figure(1234567.8), "1,234,568");
        assert_eq!(figure(123.4), "123");
        assert_eq!(figure(0.12345), "0.123");
        assert_eq!(figure(-4321.0), "−4,321");
        assert_eq!(figure(f64::NAN), "–");
        assert_eq!(change(0.93), "−7.0 %");
        assert_eq!(change(3.2), "+220 %");
        assert_eq!(change(1.0), "0 %");
        assert_eq!(change(1.0001), "0 %");
    }
}
