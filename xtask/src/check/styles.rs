//! Style sheets stay with their components: every selector of `style/NAME.css` names a class of that sheet, and none of
//! another component's. So a class like `other` in one panel's sheet cannot change another panel.
//!
//! A sheet owns the class that it is named after, the [`OWN`] classes beside it, and all that begin with one of them and
//! a hyphen. Classes of [`SHARED`] sheets and [`LENT`] ones may be refined by others within their own.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail};

/// Sheets that have no component: variables, and the page's elements.
const PAGE: [&str; 2] = ["tokens", "base"];

/// Sheets of what every panel is made of.
const SHARED: [&str; 5] = ["bar", "chart", "panel", "table", "virtual-table"];

/// Parts of components that others show too: the picture of the tree, the words beside a heading.
const LENT: [&str; 2] = ["icicle", "cf-sub"];

/// Classes that a sheet owns beside that of its own name: parts of its component, or components as small as a button.
const OWN: [(&str, &[&str]); 18] = [
    ("bar", &["mark", "nav", "menu", "state", "pool-switch", "fact", "facts", "check", "notice", "notices"]),
    ("chart", &["time"]),
    ("compare", &["cmp"]),
    ("costs", &["cost-legend", "mark-word", "stack"]),
    ("counterfactual", &["cf"]),
    ("dialog", &["help", "popover", "full"]),
    ("findings", &["finding", "cards", "evidence", "checked", "setting-line"]),
    ("latency", &["quantity", "goal", "quantiles", "standing", "reading", "numbers", "strips", "episodes"]),
    (
        "ledger",
        &["filter", "filters", "kinds", "l", "ticket", "timeline", "waterfall", "candidate", "depth-label"],
    ),
    ("memory", &["mem", "cap"]),
    (
        "panel",
        &[
            "figure",
            "figures",
            "caption",
            "empty",
            "chip",
            "chips",
            "swatch",
            "partial-note",
            "as-of",
            "all-pools",
            "copy",
            "copied",
            "check-row",
            "help-line",
            "field-fault",
            "cell-sub",
            "key",
        ],
    ),
    ("prompt", &["prompt-text", "drop", "file"]),
    (
        "table",
        &["scroll", "pick", "meter", "ask", "workers", "worker", "of-pool", "decisions", "share", "held"],
    ),
    ("tree", &["icicle", "detail", "legend", "seg", "axis-head", "showing", "minimap"]),
    ("tree-paint", &["tree-legend", "tl", "heat-bar", "lane", "lanes"]),
    (
        "tree-side",
        &[
            "side",
            "block-facts",
            "prefix",
            "prefixes",
            "copies-table",
            "search",
            "found-list",
            "found-group",
            "found-line",
        ],
    ),
    ("virtual-table", &["virtual"]),
    ("whatif", &["tab", "tabs", "setting", "versus"]),
];

/// A style rule that is in no other: where it stands, and one of its selectors.
struct Selector {
    line: usize,
    text: String,
}

/// Looks through the sheets of the checkout at `root`.
///
/// # Errors
/// A sheet cannot be read, or a selector is not its own: all of them are named.
pub(super) fn check(root: &Path) -> Result<()> {
    let mut sheets = BTreeMap::new();
    let folder = root.join("style");
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        sheets.insert(name.to_owned(), selectors(&text));
    }
    let names: Vec<&str> = sheets.keys().map(String::as_str).collect();
    let found: Vec<String> =
        sheets.iter().flat_map(|(sheet, selectors)| faults(sheet, selectors, &names)).collect();
    if found.is_empty() {
        return Ok(());
    }
    bail!("selectors beyond their component:\n{}", found.join("\n"))
}

fn faults(sheet: &str, selectors: &[Selector], sheets: &[&str]) -> Vec<String> {
    if PAGE.contains(&sheet) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for Selector { line, text } in selectors {
        let mut own = false;
        for class in classes(text) {
            let Some(owner) = owner(class, sheets) else { continue };
            let is_own = is_family(owner, sheet);
            own |= is_own;
            if !is_own && !SHARED.contains(&owner) && !LENT.iter().any(|lent| begins(class, lent)) {
                found.push(format!(
                    "style/{sheet}.css:{line}: `{text}` has the class `{class}` of style/{owner}.css"
                ));
            }
        }
        if !own {
            found.push(format!(
                "style/{sheet}.css:{line}: `{text}` has no class of its component: write `.{sheet} {text}`"
            ));
        }
    }
    found
}

/// The sheet that a class belongs to: the one with the longest name for it.
fn owner<'a>(class: &str, sheets: &[&'a str]) -> Option<&'a str> {
    let own = |sheet: &&str| OWN.iter().find(|(name, _)| name == sheet).map_or(&[][..], |(_, own)| own);
    let length = |sheet: &&str| {
        let names = own(sheet).iter().copied().chain([*sheet]);
        names.filter(|name| begins(class, name)).map(str::len).max()
    };
    let best = sheets.iter().filter_map(|sheet| Some((length(sheet)?, *sheet))).max()?;
    Some(best.1)
}

/// Whether a class is `name` or begins with it and a hyphen.
fn begins(class: &str, name: &str) -> bool {
    class.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether both are sheets of one component, `tree` and `tree-side`, or both of what every panel is made of.
fn is_family(one: &str, other: &str) -> bool {
    let head = |name: &str| name.split('-').next().map(str::to_owned);
    (SHARED.contains(&one) && SHARED.contains(&other)) || head(one) == head(other)
}

/// Names of the classes in a selector.
fn classes(selector: &str) -> impl Iterator<Item = &str> {
    selector.split('.').skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

/// Selectors of the rules that stand in no other rule; those within are within its component.
fn selectors(text: &str) -> Vec<Selector> {
    let mut found = Vec::new();
    // For each open brace, whether a style rule opened it.
    let mut open: Vec<bool> = Vec::new();
    let (mut head, mut head_line, mut line) = (String::new(), 1, 1);
    for letter in without_comments(text).chars() {
        match letter {
            '{' => {
                let is_rule = !head.trim_start().starts_with('@');
                if is_rule && !open.contains(&true) {
                    let parts = split_list(head.trim());
                    found.extend(parts.into_iter().map(|text| Selector { line: head_line, text }));
                }
                open.push(is_rule);
                head.clear();
            }
            '}' => {
                open.pop();
                head.clear();
            }
            ';' => head.clear(),
            _ => {
                if head.trim().is_empty() {
                    head_line = line;
                }
                head.push(letter);
            }
        }
        line += usize::from(letter == '\n');
    }
    found
}

/// Comments become blanks, lines stay.
fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        let (comment, after) = comment.split_once("*/").unwrap_or((comment, ""));
        out.push_str(before);
        out.extend(comment.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    out + rest
}

/// Splits at commas that are in no parentheses.
fn split_list(selectors: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for letter in selectors.chars() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if letter != ',' || depth > 0 => part.push(letter),
            _ => parts.push(String::new()),
        }
    }
    parts.iter().map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[cfg(test)]
mod tests {
    use super::{faults, selectors};

    const SHEETS: [&str; 4] = ["ledger", "memory", "table", "tree"];

    fn found(sheet: &str, text: &str) -> Vec<String> {
        faults(sheet, &selectors(text), &SHEETS)
    }

    #[test]
    fn the_sheets_of_this_checkout_keep_to_it() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        super::check(&root).unwrap();
    }

    #[test]
    fn a_class_of_no_component_is_found_with_its_line() {
        let found = found("ledger", "/* a\nb */\n.ledger { color: red }\n.other,\n.ledger b { margin: 0 }");
        assert_eq!(
            found,
            ["style/ledger.css:4: `.other` has no class of its component: write `.ledger .other`"]
        );
    }

    #[test]
    fn what_stands_in_a_rule_of_the_component_is_its_own() {
        assert!(
            found("ledger", ".ledger {\n.other { top: 0 }\n@media (width > 9px) { .prefill { top: 0 } }\n}")
                .is_empty()
        );
        assert_eq!(found("ledger", "@media (width > 9px) { .prefill { top: 0 } }").len(), 1);
    }

    #[test]
    fn shared_classes_may_be_refined_and_those_of_other_components_not() {
        assert!(found("memory", ".mem-row .meter, .panel .mem-row:is(.a, .b) { top: 0 }").is_empty());
        assert_eq!(found("memory", ".memory .ticket { top: 0 }").len(), 1);
        assert_eq!(found("table", ".memory .worker { top: 0 }").len(), 1, "not from a shared one either");
    }
}
