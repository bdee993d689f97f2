//! Style sheets use the sizes and distances of `style/tokens.css` and nothing beside them, so that panels look like one page.

use std::fs;
use std::path::Path;

/// Declarations of a style sheet: property, value and line.
fn declarations(css: &str) -> impl Iterator<Item = (&str, &str, usize)> {
    css.lines().zip(1..).flat_map(|(line, number)| {
        let inner = line.split('{').next_back().unwrap_or_default();
        let all = if line.contains('{') { inner } else { line };
        all.split([';', '}']).filter_map(move |declaration| {
            let (property, value) = declaration.split_once(':')?;
            Some((property.trim(), value.trim(), number))
        })
    })
}

fn is_one_of_the_sizes(value: &str) -> bool {
    let is_token = |value: &str| value.starts_with("var(--text-");
    // Of code among prose, whose letters are wider; of what has no text of its own.
    is_token(value) || matches!(value, "inherit" | "0" | "0.92em") || value.starts_with("min(var(--text-")
}

fn is_of_distances(property: &str) -> bool {
    ["margin", "padding", "gap", "row-gap", "column-gap"]
        .iter()
        .any(|of| property == *of || property.strip_prefix(of).is_some_and(|rest| rest.starts_with('-')))
}

/// Whether no length is written out, but for the width of a line.
fn is_one_of_the_distances(value: &str) -> bool {
    value.split([' ', '(', ')', ',']).all(|word| {
        let number = word.trim_end_matches(char::is_alphabetic);
        number.len() == word.len()
            || !number.ends_with(|last: char| last.is_ascii_digit())
            || word.ends_with("1px")
    })
}

#[test]
fn sizes_of_text_and_distances_are_tokens() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../style");
    let mut others = Vec::new();
    let mut seen = 0;
    for file in fs::read_dir(folder).expect("style sheets") {
        let path = file.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let is_root = |property: &str| name == "base.css" || name == "kiosk.css" && property == "font-size";
        for (property, value, line) in declarations(&fs::read_to_string(&path).expect("text")) {
            let is_token = match property {
                // The root's own, of which all others are multiples.
                "font-size" if is_root(property) && value.contains("px") => true,
                "font-size" => is_one_of_the_sizes(value),
                "font-weight" => matches!(value, "400" | "600" | "normal" | "inherit"),
                property if is_of_distances(property) => is_one_of_the_distances(value),
                _ => continue,
            };
            seen += 1;
            if !is_token {
                others.push(format!("{name}:{line}: {property}: {value}"));
            }
        }
    }
    assert!(seen > 500, "{seen} declarations");
    assert_eq!(others, Vec::<String>::new());
}
