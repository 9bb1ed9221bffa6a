//! What a run creates in a cluster, for review: nothing is asked of one.

use super::objects::Furnishing;
use super::{Kubernetes, Shape, hub, objects, pod_name};
use crate::{Labels, Maker, StartSpec, images};

impl Kubernetes {
    /// Everything a run with one workspace creates, in order, as it would be sent: for review.
    #[must_use]
    pub fn manifests(
        program_image: &str,
        shape: &Shape,
        maker: &Maker,
        spec: &StartSpec,
    ) -> Vec<serde_json::Value> {
        let labels = Labels {
            maker: maker.clone(),
            workspace: spec.labels.workspace,
        };
        let furnishing = Furnishing {
            workspace_image: images::in_registry(
                shape.registry.as_deref(),
                &images::workspace_image(),
            ),
            program_image: program_image.to_owned(),
            depot: "http://GATEWAY:8378".to_owned(),
            names: vec!["coder".to_owned()],
            keys: vec!["start".to_owned()],
            gateway: "GATEWAY:8377".to_owned(),
        };
        let mut all = Vec::new();
        let mut put = |value: Result<serde_json::Value, serde_json::Error>| {
            all.push(value.expect("an object is JSON"));
        };
        for policy in objects::policies(maker, &hub::PORTS) {
            put(serde_json::to_value(policy));
        }
        put(serde_json::to_value(objects::service(maker, &hub::PORTS)));
        put(serde_json::to_value(objects::gateway(maker, program_image)));
        put(serde_json::to_value(objects::trial(
            maker,
            program_image,
            "http://GATEWAY:8378",
            "http://GATEWAY:8379",
        )));
        put(serde_json::to_value(objects::claim(&labels, shape)));
        put(serde_json::to_value(objects::budget(&labels)));
        let name = pod_name(spec);
        put(serde_json::to_value(objects::workspace(
            &name,
            spec,
            shape,
            &furnishing,
        )));
        all
    }
}
