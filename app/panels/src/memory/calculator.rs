//! The calculator's form. What is typed is in the address; each fault stands at its field.

use radixscope_insight::capacity::{Capacity, CapacityForm, Convention, Field, FieldFault, Input, Inputs};
use radixscope_insight::memory::Facts;
use radixscope_insight::recent_window::Lengths;

use crate::format;
use crate::url::Address;

/// The calculator's keys in the address begin so.
const KEY_PREFIX: &str = "cap.";

/// What is typed and chosen, and what follows from it.
#[derive(Clone, PartialEq, Debug)]
pub struct Calculator {
    /// What is typed and chosen.
    pub form: CapacityForm,
    /// What fits; what keeps it from being computed.
    result: Result<(Inputs, Capacity), Vec<FieldFault>>,
    /// The address has it: the preset of an untouched form is not the reader's model.
    is_touched: bool,
}

impl Calculator {
    /// As the address has it; untouched it begins with what the deployment reports.
    pub fn of(address: &Address, facts: &Facts) -> Self {
        let get = |key: &str| address.other(&format!("{KEY_PREFIX}{key}"));
        let mut form = CapacityForm::from_address(get);
        let is_touched = get("preset").is_some();
        if !is_touched {
            begin_with(&mut form, facts);
        }
        let result = form.read().and_then(|inputs| match inputs.capacity() {
            Ok(capacity) => Ok((inputs, capacity)),
            Err(error) => Err(vec![FieldFault { input: error.input(), message: error.to_string() }]),
        });
        Self { form, result, is_touched }
    }

    /// Writes what is typed and chosen into the address.
    pub fn write(form: &CapacityForm, address: &mut Address) {
        for (key, value) in form.to_address() {
            address.set_other(&format!("{KEY_PREFIX}{key}"), value.as_deref());
        }
    }

    /// Inputs and what fits; `None`: a field has a fault.
    pub fn computed(&self) -> Option<&(Inputs, Capacity)> {
        self.result.as_ref().ok()
    }

    /// What is wrong with the fields.
    pub fn faults(&self) -> &[FieldFault] {
        self.result.as_ref().err().map_or(&[], Vec::as_slice)
    }

    /// What is wrong with one of them.
    pub fn fault(&self, input: Input) -> Option<String> {
        self.faults().iter().find(|fault| fault.input == input).map(|fault| fault.message.clone())
    }

    /// Bytes of KV cache that a token takes, if the address says what the model is.
    pub fn bytes_per_token(&self) -> Option<u64> {
        self.computed().filter(|_| self.is_touched).map(|(_, capacity)| capacity.kv_bytes_per_token)
    }

    /// That the engine counts its fraction otherwise than the form.
    pub fn other_convention(&self) -> Option<String> {
        let of_engine = Convention::of(self.form.engine);
        (of_engine != self.form.convention).then(|| {
            format!("{} itself counts the other way: {}.", self.form.engine.label(), of_engine.formula())
        })
    }
}

/// An untouched form begins with what the deployment reports.
fn begin_with(form: &mut CapacityForm, facts: &Facts) {
    // Workers that differ are no single number: the smallest is what every worker has.
    let blocks = facts.blocks_per_worker.map(|(least, _)| least);
    let Some(blocks) = blocks.filter(|_| facts.block_size_tokens.is_some()) else { return };
    let reported = [
        (Input::Blocks, Some(blocks)),
        (Input::BlockSize, facts.block_size_tokens.map(u64::from)),
        (Input::Workers, facts.workers),
        (Input::MaxNumSeqs, facts.max_num_seqs),
    ];
    for (input, value) in reported {
        if let Some(value) = value {
            form.set(input, value.to_string());
        }
    }
}

/// Fields that stand together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldGroup {
    /// Memory, blocks and workers.
    Memory,
    /// The shape that the bytes per token follow from.
    Shape,
    /// The bytes per token as given.
    BytesPerToken,
    /// What depends on the requests; may be left empty.
    Traffic,
}

impl FieldGroup {
    /// Its fields, in their order.
    pub fn fields(self) -> impl Iterator<Item = Field> {
        Field::ALL.into_iter().filter(move |&field| Self::of(field) == self)
    }

    fn of(field: Field) -> Self {
        match field.input {
            Input::KvBytesPerToken => Self::BytesPerToken,
            _ if field.is_shape() => Self::Shape,
            Input::Blocks => Self::Memory,
            _ if field.is_optional => Self::Traffic,
            _ => Self::Memory,
        }
    }
}

/// What stands at a field whatever is typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldLabels {
    /// Its name in the page's document.
    pub id: String,
    /// Its name and unit.
    pub label: String,
    /// What an empty field means.
    pub placeholder: &'static str,
}

impl FieldLabels {
    /// Of a field.
    pub fn of(field: Field) -> Self {
        let (label, unit) = (field.input.label(), field.input.unit());
        Self {
            id: format!("cap-{}", field.key),
            label: if unit.is_empty() { label.to_owned() } else { format!("{label}, {unit}") },
            placeholder: match field.input {
                Input::Blocks => "computed from memory",
                _ if field.is_optional => "unknown",
                _ => "",
            },
        }
    }
}

/// Puts what the deployment reports into the form; says what, and what it does not report.
pub fn fill_from_live(form: &mut CapacityForm, facts: &Facts, lengths: Option<Lengths>) -> String {
    let mut filled = Vec::new();
    let mut absent = Vec::new();
    let mut put = |input: Input, value: Option<u64>| match value {
        Some(value) => {
            form.set(input, value.to_string());
            filled.push(format!("{} {}", input.label().to_ascii_lowercase(), format::count(value)));
        }
        None => absent.push(input.label().to_ascii_lowercase()),
    };
    put(Input::BlockSize, facts.block_size_tokens.map(u64::from));
    put(Input::Blocks, facts.blocks_per_worker.map(|(least, _)| least));
    put(Input::Workers, facts.workers);
    put(Input::MaxNumSeqs, facts.max_num_seqs);
    put(Input::P50, lengths.map(|lengths| lengths.p50));
    put(Input::P95, lengths.map(|lengths| lengths.p95));
    let mut status = match filled.is_empty() {
        true => "Not reported".to_owned(),
        false => format!("Taken: {}", filled.join(", ")),
    };
    if let Some(lengths) = lengths {
        status.push_str(&format!(
            " (lengths of {} by {})",
            format::plural(lengths.samples, "sequence", "sequences"),
            lengths.source.label()
        ));
    }
    if !absent.is_empty() {
        status.push_str(&format!(
            ". Unchanged: {}; --prometheus frontend=http://HOST:8000/metrics reports it",
            absent.join(", ")
        ));
    }
    status.push('.');
    status
}
