//! The legend of a chart: an entry for each series, and which of them are hidden. What is hidden is in the address, so that a link
//! shows the same.

/// A series.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LegendEntry {
    /// Its name in the address, without a comma.
    pub id: String,
    /// Its name on screen.
    pub name: String,
    /// Class of its swatch.
    pub swatch: &'static str,
    /// Colour of the swatch: a token's name.
    pub colour: String,
}

/// Which series are hidden.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hidden(Vec<String>);

impl Hidden {
    /// Those that the address names.
    pub fn parse(text: &str) -> Self {
        Self(text.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect())
    }

    /// As the address has them; `None`: all are shown.
    pub fn to_text(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(","))
    }

    /// Whether a series is.
    pub fn has(&self, id: &str) -> bool {
        self.0.iter().any(|hidden| hidden == id)
    }

    /// Hides or shows one.
    #[must_use]
    pub fn toggled(mut self, id: &str) -> Self {
        match self.0.iter().position(|hidden| hidden == id) {
            Some(at) => drop(self.0.remove(at)),
            None => self.0.push(id.to_owned()),
        }
        self
    }

    /// Shows one of `all` alone; all of them where it is alone already.
    #[must_use]
    pub fn isolated(&self, id: &str, all: &[LegendEntry]) -> Self {
        let others: Vec<String> = all.iter().map(|series| series.id.clone()).filter(|of| of != id).collect();
        let is_alone = !self.has(id) && others.iter().all(|of| self.has(of));
        Self(if is_alone { Vec::new() } else { others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(ids: &[&str]) -> Vec<LegendEntry> {
        let of = |id: &&str| LegendEntry {
            id: (*id).to_owned(),
            name: id.to_uppercase(),
            swatch: "",
            colour: "--text".to_owned(),
        };
        ids.iter().map(of).collect()
    }

    #[test]
    fn pressing_a_series_hides_it_and_pressing_it_again_shows_it() {
        let none = Hidden::parse("");
        assert_eq!(none.to_text(), None);
        let hidden = none.toggled("5/0").toggled("others");
        assert_eq!(hidden.to_text().as_deref(), Some("5/0,others"));
        assert!(hidden.has("5/0") && !hidden.has("5"));
        assert_eq!(hidden.toggled("5/0").to_text().as_deref(), Some("others"));
    }

    #[test]
    fn a_series_is_shown_alone_and_then_all_are() {
        let all = entries(&["a", "b", "c"]);
        let alone = Hidden::parse("b").isolated("b", &all);
        assert_eq!(alone.to_text().as_deref(), Some("a,c"));
        assert_eq!(alone.isolated("b", &all).to_text(), None);
        assert_eq!(alone.isolated("a", &all).to_text().as_deref(), Some("b,c"));
    }

    #[test]
    fn what_the_address_names_is_hidden_whether_there_is_such_a_series_or_not() {
        let hidden = Hidden::parse(",7/0,,gone,");
        assert!(hidden.has("7/0") && hidden.has("gone") && !hidden.has(""));
    }
}
