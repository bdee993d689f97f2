//! The inputs as a person types them and as an address keeps them: text by field, read all at once, each fault at its field.

use super::{Convention, Engine, GB, Input, Inputs, KvBytes, PRESETS, Preset};

/// A number that is typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Which input.
    pub input: Input,
    /// Name in the address, after `cap.`.
    pub key: &'static str,
    /// Whether it may be empty: then it, and what follows from it, is unknown.
    pub is_optional: bool,
}

impl Field {
    /// All, in the order of the form, which is that of [`Input`].
    pub const ALL: [Self; 16] = [
        Self::needed(Input::HbmPerGpu, "hbm"),
        Self::needed(Input::GpusPerWorker, "gpus"),
        Self::needed(Input::Weights, "weights"),
        Self::needed(Input::Fraction, "fraction"),
        Self::needed(Input::KvBytesPerToken, "kv"),
        Self::needed(Input::Layers, "layers"),
        Self::needed(Input::KvHeads, "heads"),
        Self::needed(Input::HeadDim, "dim"),
        Self::needed(Input::BytesPerElement, "element"),
        Self::needed(Input::BlockSize, "block"),
        Self::optional(Input::Blocks, "blocks"),
        Self::needed(Input::Workers, "workers"),
        Self::optional(Input::MaxNumSeqs, "seqs"),
        Self::optional(Input::P50, "p50"),
        Self::optional(Input::P95, "p95"),
        Self::optional(Input::SharedPrefix, "prefix"),
    ];

    const fn needed(input: Input, key: &'static str) -> Self {
        Self { input, key, is_optional: false }
    }

    const fn optional(input: Input, key: &'static str) -> Self {
        Self { input, key, is_optional: true }
    }

    /// Whether it belongs to the model's shape, which stands for the bytes per token.
    pub const fn is_shape(self) -> bool {
        matches!(self.input, Input::Layers | Input::KvHeads | Input::HeadDim | Input::BytesPerElement)
    }
}

/// What is wrong with what was typed, and where.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldFault {
    /// At which input.
    pub input: Input,
    /// In a sentence.
    pub message: String,
}

/// What is typed and chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct CapacityForm {
    /// Place in [`PRESETS`] that it began with.
    pub preset: usize,
    /// Whose setting the fraction is.
    pub engine: Engine,
    /// What the fraction is of.
    pub convention: Convention,
    /// Whether bytes per token follow from the model's shape.
    pub by_shape: bool,
    texts: [String; Field::ALL.len()],
}

impl Default for CapacityForm {
    fn default() -> Self {
        Self::of_preset(0)
    }
}

impl CapacityForm {
    /// One of [`PRESETS`]; the first for a place that there is not.
    pub fn of_preset(preset: usize) -> Self {
        let preset = if preset < PRESETS.len() { preset } else { 0 };
        let Preset { engine, inputs, .. } = &PRESETS[preset];
        let mut form = Self {
            preset,
            engine: *engine,
            convention: inputs.convention,
            by_shape: matches!(inputs.kv, KvBytes::Model { .. }),
            texts: Default::default(),
        };
        for field in Field::ALL {
            form.set(field.input, written(inputs, field.input));
        }
        form
    }

    /// The address's parameters: `get` gives the value of a key, `cap.` left out. What is not understood of `preset`, `engine`,
    /// `of` and `by` is taken as not given; numbers stay as they are and are judged by [`read`](Self::read).
    pub fn from_address(get: impl Fn(&str) -> Option<String>) -> Self {
        let mut form = Self::of_preset(get("preset").and_then(|text| text.parse().ok()).unwrap_or(0));
        let engine = get("engine").and_then(|text| Engine::ALL.into_iter().find(|&e| e.as_str() == text));
        form.engine = engine.unwrap_or(form.engine);
        let of = get("of").and_then(|text| Convention::ALL.into_iter().find(|&c| convention_key(c) == text));
        form.convention = of.unwrap_or(form.convention);
        form.by_shape = match get("by").as_deref() {
            Some("shape") => true,
            Some("token") => false,
            _ => form.by_shape,
        };
        for field in Field::ALL {
            if let Some(text) = get(field.key) {
                form.set(field.input, text.chars().take(MAX_TEXT_CHARS).collect());
            }
        }
        form
    }

    /// Every key with its value, `None` where it is the preset's own: what the address keeps. The preset itself is always
    /// there, so that a form that was touched can be distinguished from one that was not.
    pub fn to_address(&self) -> Vec<(&'static str, Option<String>)> {
        let preset = Self::of_preset(self.preset);
        let differs = |is_same: bool, text: String| (!is_same).then_some(text);
        let mut keys = vec![
            ("preset", Some(self.preset.to_string())),
            ("engine", differs(self.engine == preset.engine, self.engine.as_str().to_owned())),
            ("of", differs(self.convention == preset.convention, convention_key(self.convention).to_owned())),
            (
                "by",
                differs(
                    self.by_shape == preset.by_shape,
                    if self.by_shape { "shape" } else { "token" }.to_owned(),
                ),
            ),
        ];
        keys.extend(Field::ALL.map(|field| {
            let text = self.text(field.input);
            (field.key, differs(text == preset.text(field.input), text.to_owned()))
        }));
        keys
    }

    /// What is typed.
    pub fn text(&self, input: Input) -> &str {
        &self.texts[input as usize]
    }

    /// Types.
    pub fn set(&mut self, input: Input, text: String) {
        self.texts[input as usize] = text;
    }

    /// The fields that count: shape or bytes per token, not both.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<> {
        let by_shape = self.by_shape;
        Field::ALL.into_iter().filter(move |field| {
            if field.input == Input::KvBytesPerToken { !by_shape } else { by_shape || !field.is_shape() }
        })
    }

    /// The inputs, within their bounds each.
    ///
    /// # Errors
    /// Every field that cannot be, in the order of the form.
    pub fn read(&self) -> Result<Inputs, Vec<FieldFault>> {
        let mut faults = Vec::new();
        let mut values = [None; Field::ALL.len()];
        for field in self.fields() {
            match number(field, self.text(field.input)) {
                Ok(value) => values[field.input as usize] = value,
                Err(message) => faults.push(FieldFault { input: field.input, message }),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let of = |input: Input| values[input as usize];
        let whole = |input| of(input).map_or(0, |value| value as u32);
        let kv = if self.by_shape {
            KvBytes::Model {
                layers: whole(Input::Layers),
                kv_heads: whole(Input::KvHeads),
                head_dim: whole(Input::HeadDim),
                bytes_per_element: whole(Input::BytesPerElement),
            }
        } else {
            KvBytes::PerToken(of(Input::KvBytesPerToken).map_or(0, |value| value as u64))
        };
        let bytes = |input| of(input).map_or(0, |gb| (gb * GB as f64).round() as u64);
        Ok(Inputs {
            hbm_bytes_per_gpu: bytes(Input::HbmPerGpu),
            gpus_per_worker: whole(Input::GpusPerWorker),
            weight_bytes: bytes(Input::Weights),
            fraction: of(Input::Fraction).unwrap_or_default(),
            convention: self.convention,
            kv,
            block_size_tokens: whole(Input::BlockSize),
            blocks_per_worker: of(Input::Blocks).map(|value| value as u64),
            workers: whole(Input::Workers),
            max_num_seqs: of(Input::MaxNumSeqs).map(|value| value as u32),
            p50_tokens: of(Input::P50).map(|value| value as u64),
            p95_tokens: of(Input::P95).map(|value| value as u64),
            shared_prefix_tokens: of(Input::SharedPrefix).map(|value| value as u64),
        })
    }
}

/// Longest text of a field that an address may bring.
const MAX_TEXT_CHARS: usize = 40;

const fn convention_key(convention: Convention) -> &'static str {
    match convention {
        Convention::WholeMemory => "whole",
        Convention::FreeMemory => "free",
    }
}

/// Whether fractions make sense.
const fn is_whole(input: Input) -> bool {
    !matches!(input, Input::HbmPerGpu | Input::Weights | Input::Fraction)
}

/// A number within its field's bounds; `Ok(None)` for an empty field that may be. People write `12,700` and `12 700`.
fn number(field: Field, text: &str) -> Result<Option<f64>, String> {
    let label = field.input.label();
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != ',' && *c != '_').collect();
    if digits.is_empty() {
        return if field.is_optional { Ok(None) } else { Err(format!("{label} is needed")) };
    }
    let value = digits.parse::<f64>().ok().filter(|value| value.is_finite());
    let value = value.ok_or_else(|| format!("{label}: {text:?} is not a number"))?;
    if is_whole(field.input) && value.fract() != 0.0 {
        return Err(format!("{label} is {text}; it must be a whole number"));
    }
    field.input.check(value).map(Some).map_err(|error| error.to_string())
}

/// An input of a preset as text; empty where it has none. Bytes per token also where they follow from the shape.
fn written(inputs: &Inputs, input: Input) -> String {
    let computed = || Some(inputs.capacity().ok()?.kv_bytes_per_token as f64);
    let value = inputs.value(input).or_else(|| computed().filter(|_| input == Input::KvBytesPerToken));
    value.map_or(String::new(), |value| value.to_string())
}
