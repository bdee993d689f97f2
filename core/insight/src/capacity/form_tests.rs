//! What is typed, what the address keeps of it, and what comes of it.

use super::*;

fn via_address(form: &CapacityForm) -> CapacityForm {
    let keys: Vec<(&str, String)> =
        form.to_address().into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    CapacityForm::from_address(|wanted| {
        keys.iter().find(|(key, _)| *key == wanted).map(|(_, value)| value.clone())
    })
}

#[test]
fn every_preset_reads_as_its_own_inputs() {
    for (at, preset) in PRESETS.iter().enumerate() {
        let form = CapacityForm::of_preset(at);
        assert_eq!(
            (form.engine, form.convention),
            (preset.engine, Convention::of(preset.engine)),
            "{}",
            preset.name
        );
        assert_eq!(CapacityForm::of_preset(at).read().as_ref(), Ok(&preset.inputs), "{}", preset.name);
    }
    assert_eq!(CapacityForm::of_preset(99), CapacityForm::default());
}

#[test]
fn an_address_keeps_what_differs_from_the_preset_and_gives_it_back() {
    let untouched = CapacityForm::default().to_address();
    assert!(untouched.iter().all(|(key, value)| value.is_some() == (*key == "preset")));
    let mut form = CapacityForm::of_preset(2);
    form.engine = Engine::Sglang;
    form.by_shape = false;
    form.convention = Convention::FreeMemory;
    form.set(Input::P95, "12 700".to_owned());
    form.set(Input::Weights, "much".to_owned());
    assert_eq!(form.to_address().iter().filter(|(_, value)| value.is_some()).count(), 6);
    assert_eq!(via_address(&form), form);
}

#[test]
fn every_bad_field_is_named_with_what_is_wrong() {
    let mut form = CapacityForm::default();
    form.set(Input::HbmPerGpu, "lots".to_owned());
    form.set(Input::Fraction, "1.5".to_owned());
    form.set(Input::BlockSize, "16.5".to_owned());
    form.set(Input::Workers, " ".to_owned());
    form.set(Input::P95, String::new());
    let faults = form.read().unwrap_err();
    let inputs: Vec<Input> = faults.iter().map(|fault| fault.input).collect();
    assert_eq!(inputs, [Input::HbmPerGpu, Input::Fraction, Input::BlockSize, Input::Workers]);
    assert_eq!(faults[0].message, "HBM per GPU: \"lots\" is not a number");
    assert_eq!(faults[1].message, "Memory fraction is 1.5; it must be between 0.01 and 1");
    assert_eq!(faults[2].message, "Block size is 16.5; it must be a whole number");
    assert_eq!(faults[3].message, "Workers is needed");
}

#[test]
fn the_shape_is_not_requested_where_bytes_per_token_are_given() {
    let mut form = CapacityForm::default();
    form.by_shape = false;
    form.set(Input::Layers, "none".to_owned());
    let inputs = form.read().unwrap();
    assert_eq!(inputs.kv, KvBytes::PerToken(163_840));
    assert!(form.fields().all(|field| !field.is_shape()));
}

#[test]
fn the_reference_says_how_many_of_its_full_batch_fit() {
    let capacity = REFERENCE.capacity().unwrap();
    let sentences = fit_sentences(&REFERENCE, &capacity);
    let text = "25 of 64 sequences of 13,530 tokens (p95) fit at once on a worker, 75 on all 3; a full batch takes 27,072 of 10,738 blocks.";
    assert_eq!((sentences[0].fits, sentences[0].text.as_str()), (None, text));
    assert!(sentences.iter().all(|sentence| sentence.fits != Some(false)), "{sentences:?}");
    let long = Inputs { p95_tokens: Some(400_000), ..REFERENCE };
    assert_eq!(fit_sentences(&long, &long.capacity().unwrap())[0].fits, Some(false), "not one fits");
    let small = Inputs { max_num_seqs: Some(20), ..REFERENCE };
    assert_eq!(fit_sentences(&small, &small.capacity().unwrap())[0].fits, Some(true));
    let unknown = Inputs { max_num_seqs: None, ..REFERENCE };
    let without_batch = fit_sentences(&unknown, &unknown.capacity().unwrap());
    assert_eq!(without_batch[0].fits, None);
    let length = "25 sequences of p95 length (13,530 tokens, 423 blocks) fit on a worker; 75 on all 3.";
    assert!(without_batch.iter().any(|sentence| sentence.text == length), "{without_batch:?}");
    assert!(sentences.iter().all(|sentence| sentence.text != length), "it is said of the batch");
}

#[test]
fn blocks_that_are_reported_stand_for_those_that_memory_would_give() {
    let inputs = Inputs { blocks_per_worker: Some(9_000), weight_bytes: 141_000_000_000, ..REFERENCE };
    let capacity = inputs.capacity().unwrap();
    assert_eq!(
        (capacity.blocks_per_worker, capacity.blocks, capacity.tokens_per_worker),
        (9_000, 27_000, 288_000)
    );
    assert_eq!(capacity.kv_bytes_per_worker, 9_000 * capacity.bytes_per_block);
}

#[test]
fn the_live_capacity_stands_beside_the_computed_one() {
    let capacity = REFERENCE.capacity().unwrap();
    assert!(against_live(&capacity, 10_738).ends_with("exactly as computed."));
    assert!(against_live(&capacity, 10_000).contains("738 (7 %) fewer"));
    assert!(against_live(&capacity, 20_000).contains("9,262 (46 %) more"));
}

#[test]
fn fields_stand_in_the_order_of_the_inputs() {
    assert!(Field::ALL.iter().enumerate().all(|(at, field)| field.input as usize == at));
}
