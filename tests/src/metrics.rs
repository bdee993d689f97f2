//! Reads metrics as strictly as Prometheus does, OpenMetrics with its end mark and the older text format without: declared
//! families, counters that end in `_total`.

use std::collections::HashMap;

/// One sample.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Name with its suffix.
    pub name: String,
    /// Labels in order.
    pub labels: Vec<(String, String)>,
    /// Value.
    pub value: f64,
}

/// All samples, or what is wrong with the text.
pub fn parse(text: &str) -> Result<Vec<Sample>, String> {
    let (body, is_open) = text.strip_suffix("# EOF\n").map_or((text, false), |body| (body, true));
    let mut types: HashMap<&str, &str> = HashMap::new();
    let mut samples: Vec<Sample> = Vec::new();
    for line in body.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').ok_or_else(|| format!("no type in {line:?}"))?;
            if types.insert(name, kind).is_some() {
                return Err(format!("{name} is declared twice"));
            }
        } else if !line.starts_with("# HELP ") && !line.starts_with("# UNIT ") {
            let sample = sample(line).ok_or_else(|| format!("not a sample: {line:?}"))?;
            // In OpenMetrics the family of a counter is named without `_total`, in the older format as its samples.
            let family = match sample.name.strip_suffix("_total") {
                Some(family) if is_open && types.get(family) == Some(&"counter") => family,
                _ => &sample.name,
            };
            let lacks_total = family == sample.name && (is_open || !family.ends_with("_total"));
            match types.get(family) {
                Some(&"counter") if lacks_total => return Err(format!("{family} lacks _total")),
                Some(_) => {}
                None => return Err(format!("{} has no type", sample.name)),
            }
            if samples.iter().any(|s| s.name == sample.name && s.labels == sample.labels) {
                return Err(format!("{line:?} comes twice"));
            }
            samples.push(sample);
        }
    }
    Ok(samples)
}

/// Value of the first sample of this name that has at least these labels.
pub fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let has = |sample: &Sample, (key, value): &(&str, &str)| {
        sample.labels.iter().any(|(k, v)| k == key && v == value)
    };
    let found = samples.iter().find(|s| s.name == name && labels.iter().all(|label| has(s, label)));
    found.map(|sample| sample.value)
}

fn sample(line: &str) -> Option<Sample> {
    let name_end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_end);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    if name.is_empty() || !name.chars().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, after) = rest.split_once("=\"")?;
            let (value, after) = label_value(after)?;
            labels.push((key.to_owned(), value));
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ')?.parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// A label's value up to its closing quote, unescaped, and the text after it.
fn label_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('"' | '\\') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{parse, value};

    #[test]
    fn samples_are_read_and_rule_breakers_refused() {
        let good = "# HELP a_b Words.\n# TYPE a_b counter\na_b_total{x=\"1\",y=\"q\\\"\"} 3\n# EOF\n";
        let samples = parse(good).unwrap();
        assert_eq!(value(&samples, "a_b_total", &[("y", "q\"")]), Some(3.0));
        let classic = "# HELP a_b_total Words.\n# TYPE a_b_total counter\na_b_total 3\n";
        assert_eq!(value(&parse(classic).unwrap(), "a_b_total", &[]), Some(3.0));
        for bad in [
            "# TYPE a counter\na_total 1\n",
            "# TYPE a_total counter\na_total 1\n# EOF\n",
            "a 1\n# EOF\n",
            "# TYPE a counter\na 1\n# EOF\n",
            "# TYPE a gauge\na one\n# EOF\n",
            "# TYPE a gauge\na 1\na 2\n# EOF\n",
            "# TYPE a gauge\n# TYPE a gauge\n# EOF\n",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
