//! What a `tokenizer.json` is made of, read without building it: to name its parts, and to say as text why a file is
//! none. The library's own errors on such files speak of Rust types.

use serde::Deserialize;

/// Models that the library can build.
const MODELS: [&str; 4] = ["BPE", "Unigram", "WordLevel", "WordPiece"];
/// Names of a part's steps that are shown.
const MAX_STEPS: usize = 16;

/// The parts.
#[derive(Debug, Deserialize)]
pub(crate) struct Head {
    normalizer: Option<Part>,
    pre_tokenizer: Option<Part>,
    post_processor: Option<Part>,
    model: Option<Part>,
    tokenizer_class: Option<serde::de::IgnoredAny>,
}

/// A part, or a sequence of them.
#[derive(Debug, Deserialize)]
struct Part {
    r#type: Option<String>,
    #[serde(default, alias = "normalizers", alias = "pretokenizers", alias = "processors")]
    steps: Vec<Part>,
}

impl Head {
    /// Reads the parts' names.
    ///
    /// # Errors
    /// As text, if this is no `tokenizer.json` or one with a model that is not known.
    pub(crate) fn read(file: &[u8]) -> Result<Self, String> {
        let head: Self = serde_json::from_slice(file).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => "This JSON file is not a tokenizer.json.".to_owned(),
            _ => format!("This is not a tokenizer.json: it cannot be read as JSON: {error}."),
        })?;
        let Some(model) = &head.model else {
            return Err(match head.tokenizer_class {
                Some(_) => "This is a tokenizer_config.json; the tokenizer.json lies beside it.",
                None => "This JSON file is not a tokenizer.json: it has no \"model\".",
            }
            .to_owned());
        };
        match &model.r#type {
            Some(model) if !MODELS.contains(&model.as_str()) => Err(format!(
                "The model type \"{}\" is not known; known are {}.",
                crate::shown(model),
                MODELS.join(", ")
            )),
            // Old files do not name it; the library finds out.
            _ => Ok(head),
        }
    }

    pub(crate) fn normalizer(&self) -> Option<String> {
        self.normalizer.as_ref().map(Part::name)
    }

    pub(crate) fn pre_tokenizer(&self) -> Option<String> {
        self.pre_tokenizer.as_ref().map(Part::name)
    }

    pub(crate) fn post_processor(&self) -> Option<String> {
        self.post_processor.as_ref().map(Part::name)
    }
}

impl Part {
    /// Its type, or those of its steps. A sequence within a sequence is named as one.
    fn name(&self) -> String {
        let own = |part: &Self| crate::shown(part.r#type.as_deref().unwrap_or("without a type"));
        if self.steps.is_empty() {
            return own(self);
        }
        let mut steps: Vec<_> = self.steps.iter().take(MAX_STEPS).map(own).collect();
        if self.steps.len() > MAX_STEPS {
            steps.push("…".to_owned());
        }
        steps.join(" + ")
    }
}
