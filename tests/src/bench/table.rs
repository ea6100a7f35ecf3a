//! The table: each figure, the committed one, and the goal.

use super::figures::{Figure, shown};

const HEAD: [&str; 5] = ["figure", "now", "committed", "goal", ""];

/// The lines of the table. A mark stands where a goal is missed.
pub(super) fn table(figures: &[Figure], last: &[Figure]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(figures.iter().map(|figure| row(figure, last)));
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let mut text = String::new();
    for [name, now, before, goal, mark] in &rows {
        let line = format!(
            "{name:<0$}  {now:>1$}  {before:>2$}  {goal:>3$}  {mark}",
            widths[0], widths[1], widths[2], widths[3]
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(figure: &Figure, last: &[Figure]) -> [String; 5] {
    let before = last.iter().find(|known| known.name == figure.name);
    let with_unit = |value: f64| format!("{} {}", shown(value), figure.unit);
    let goal = figure.goal.map(|goal| format!("{goal} {}", figure.unit));
    let mark = if figure.misses() { "MISSED" } else { "" };
    [
        figure.name.clone(),
        with_unit(figure.value).trim_end().to_owned(),
        before.map_or_else(|| "–".to_owned(), |known| shown(known.value)),
        goal.unwrap_or_default().trim_end().to_owned(),
        mark.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::figures::Goal;
    use super::*;

    fn figure(value: f64) -> Figure {
        Figure {
            name: "lag".to_owned(),
            unit: "ms".to_owned(),
            value,
            goal: Some(Goal::AtMost(5.0)),
        }
    }

    #[test]
    fn a_missed_goal_is_marked_beside_the_committed_figure() {
        let text = table(&[figure(7.0)], &[figure(4.0)]);
        let line = text.lines().nth(1).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(
            words,
            ["lag", "7.00", "ms", "4.00", "≤", "5", "ms", "MISSED"]
        );
    }

    #[test]
    fn a_new_figure_has_none_beside_it() {
        let text = table(&[figure(3.0)], &[]);
        assert!(text.contains('–') && !text.contains("MISSED"), "{text}");
    }
}
