//! InferencePools: which pods are engines and endpoint pickers behind an inference gateway.

use kube::api::DynamicObject;
use serde::Deserialize as _;

use super::places::Service;
use super::pods::{Labels, Selectors};

/// What is needed of an InferencePool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pool {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// What it selects: engines.
    engines: Option<Labels>,
    /// The service of its endpoint picker.
    picker: Option<String>,
}

impl Pool {
    /// `None`: it has no name.
    pub(crate) fn of(pool: DynamicObject) -> Option<Self> {
        let spec = pool.data.get("spec");
        let selector = spec.and_then(|spec| spec.get("selector"));
        // Labels by themselves before the API was stable.
        let labels = selector.map(|selector| selector.get("matchLabels").unwrap_or(selector));
        // `extensionRef` before the API was stable.
        let picker = spec.and_then(|spec| spec.get("endpointPickerRef").or_else(|| spec.get("extensionRef")));
        let picker = picker.and_then(|picker| picker.get("name")?.as_str());
        Some(Self {
            namespace: pool.metadata.namespace.unwrap_or_default(),
            name: pool.metadata.name?,
            engines: labels.and_then(|labels| Labels::deserialize(labels).ok()),
            picker: picker.map(str::to_owned),
        })
    }
}

impl Selectors {
    /// Of these pools.
    pub(crate) fn of<'a>(
        pools: impl Iterator<Item = &'a Pool> + Clone,
        services: impl Iterator<Item = &'a Service> + Clone,
    ) -> Self {
        let picker = |pool: &Pool| {
            let is_its = |service: &&Service| {
                pool.picker.as_ref() == Some(&service.name) && service.namespace == pool.namespace
            };
            services.clone().find(is_its)?.selector.clone()
        };
        Self {
            epps: pools.clone().filter_map(picker).collect(),
            engines: pools.filter_map(|pool| pool.engines.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn pools_of_both_forms_of_the_api_select_engines_and_name_their_picker() {
        let labels = |key: &str, value: &str| Labels::from([(key.to_owned(), value.to_owned())]);
        let service = json!({"metadata": {"name": "epp", "namespace": "ns"},
            "spec": {"selector": {"app": "epp"}}});
        let service = Service::of(serde_json::from_value(service).unwrap()).unwrap();
        let selectors = |spec: Value| {
            let pool = json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec});
            let pool = Pool::of(serde_json::from_value(pool).unwrap()).unwrap();
            Selectors::of([&pool].into_iter(), [&service].into_iter())
        };
        let both = Selectors { epps: vec![labels("app", "epp")], engines: vec![labels("app", "vllm")] };
        let stable =
            json!({"selector": {"matchLabels": {"app": "vllm"}}, "endpointPickerRef": {"name": "epp"}});
        assert_eq!(selectors(stable), both);
        let before = json!({"selector": {"app": "vllm"}, "extensionRef": {"name": "epp"}});
        assert_eq!(selectors(before), both);
        let other = json!({"selector": 7, "endpointPickerRef": {"name": "elsewhere"}});
        assert_eq!(selectors(other), Selectors::default());
    }
}
