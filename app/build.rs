//! Links the page's program so that it can be cut into chunks (`xtask/bundle`): the splitter reads relocations.
#![forbid(unsafe_code)]

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32") {
        println!("cargo:rustc-link-arg-bin=page=--emit-relocs");
    }
}
