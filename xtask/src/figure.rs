//! A measured figure beside its budget.

use std::fmt;

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    what: String,
    value: String,
    /// The budget, and whether the figure is within it; `None` for what has none.
    budget: Option<(String, bool)>,
}

impl Figure {
    /// A figure without a budget.
    pub(crate) fn plain(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into(), budget: None }
    }

    /// The same with a budget, in words, and whether it is kept.
    pub(crate) fn budget(self, budget: impl Into<String>, is_kept: bool) -> Self {
        Self { budget: Some((budget.into(), is_kept)), ..self }
    }

    /// False for a figure that breaks its budget.
    pub(crate) fn is_within_budget(&self) -> bool {
        self.budget.as_ref().is_none_or(|(_, is_kept)| *is_kept)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<58}  {:<34}", self.what, self.value)?;
        match &self.budget {
            Some((budget, is_kept)) => {
                write!(f, "  {} (budget {budget})", if *is_kept { "ok" } else { "MISSED" })
            }
            None => Ok(()),
        }
    }
}

/// The median in front of what it is the median of, with so many digits behind the point.
pub(crate) fn spread(figures: &[f64], digits: usize, unit: &str) -> String {
    let each: Vec<String> = figures.iter().map(|figure| format!("{figure:.digits$}")).collect();
    format!("{:.digits$} {unit} ({})", median(figures.to_vec()), each.join(", "))
}

/// The middle one of these figures, which are not none; the mean of two in the middle.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    f64::midpoint(figures[(figures.len() - 1) / 2], figures[figures.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]).to_bits(), 2.0f64.to_bits());
        assert_eq!(median(vec![5.0, 1.0, 7.0, 2.0]).to_bits(), 3.5f64.to_bits());
    }

    #[test]
    fn a_spread_shows_every_round() {
        assert_eq!(spread(&[98.04, 99.5, 99.25], 1, "%"), "99.2 % (98.0, 99.5, 99.2)");
    }

    #[test]
    fn a_missed_budget_is_told() {
        let figure = Figure::plain("memory", "90 MB");
        assert!(figure.is_within_budget());
        let missed = figure.budget("80 MB", false);
        assert!(!missed.is_within_budget() && missed.to_string().ends_with("MISSED (budget 80 MB)"));
    }
}
