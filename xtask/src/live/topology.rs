//! Deployments that can be started: how many workers of which kind, what traffic they get, and what happens meanwhile.

use std::process::Command;

use clap::ValueEnum;

/// Prefill workers listen on these ports for decode workers.
const BOOTSTRAP_PORTS: [&str; 2] = ["6001", "6002"];
/// Blocks of each device, small enough that host memory is used within the traffic.
const DEVICE_BLOCKS: &str = "500";
/// Three workers more, then one killed and three stopped: two stay. A killed one is known to be gone when its lease ends.
const SCALE_STEPS: &str = "sleep 8; ev scale_up 6; for i in 4 5 6; do start_worker $i; done; sleep 14; \
    ev scale_down 2; stop ${WPID[1]} KILL; stop ${WPID[2]}; stop ${WPID[3]}; stop ${WPID[5]}; ev scaled_down";

/// What is deployed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Topology {
    /// One pool of three workers that prefill and decode
    #[default]
    Aggregated,
    /// Two workers that prefill, two that decode
    Disaggregated,
    /// Two models with two workers each behind one frontend
    TwoModels,
    /// Two workers whose caches go on in host memory
    Host,
    /// Three workers, then six, then two
    Scale,
}

impl Topology {
    /// For names of recordings.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Aggregated => "aggregated",
            Self::Disaggregated => "disaggregated",
            Self::TwoModels => "two-models",
            Self::Host => "host",
            Self::Scale => "scale",
        }
    }

    /// Seconds of traffic that show it: scaling takes 22, and a killed worker is found out about 25 later.
    pub(super) fn seconds(self) -> u32 {
        match self {
            Self::Scale => 56,
            Self::Host => 30,
            Self::Aggregated | Self::Disaggregated | Self::TwoModels => 16,
        }
    }

    /// Requests at the same time.
    fn users(self) -> &'static str {
        match self {
            Self::Aggregated | Self::Scale => "10",
            Self::Disaggregated | Self::TwoModels | Self::Host => "5",
        }
    }

    /// Tells the script that starts Dynamo.
    pub(super) fn describe(self, version: &str, command: &mut Command) {
        command.env("CONC", self.users());
        match self {
            Self::Aggregated => {}
            Self::Disaggregated => {
                command.env("WORKERS", "4");
                let [prefill, decode] = if version.starts_with("0.") {
                    ["--is-prefill-worker", "--is-decode-worker"]
                } else {
                    ["--disaggregation-mode prefill", "--disaggregation-mode decode"]
                };
                for (worker, port) in (1..).zip(BOOTSTRAP_PORTS) {
                    command.env(format!("WARGS_{worker}"), format!("{prefill} --bootstrap-ports {port}"));
                }
                command.env("WARGS_3", decode).env("WARGS_4", decode);
            }
            Self::TwoModels => {
                command.env("WORKERS", "4");
                for worker in [3, 4] {
                    command
                        .env(format!("WMODEL_{worker}"), "models/tiny-two")
                        .env(format!("WARGS_{worker}"), "--endpoint dyn://dynamo.backend2.generate");
                }
                command
                    .env("TRAFFIC_ARGS", "--model models/tiny-llama")
                    .env("TRAFFIC2_ARGS", "--model models/tiny-two");
            }
            Self::Host => {
                command
                    .env("WORKERS", "2")
                    .env("BLOCKS", DEVICE_BLOCKS)
                    .env("WORKER_ARGS", "--num-host-blocks 1500");
            }
            Self::Scale => {
                // Metrics of workers that end are no part of it.
                command.env("WORKERS", "3").env("SCRAPE_WORKERS", "0").env("STEPS", SCALE_STEPS);
            }
        }
    }
}
