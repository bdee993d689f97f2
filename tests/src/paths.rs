//! Where the programs under test are, and where tests leave what people may want to look at.

use std::env;
use std::path::PathBuf;

/// The folder the running test was built into, `target/<profile>`.
pub fn profile_dir() -> PathBuf {
    let exe = env::current_exe().expect("the system knows the running program");
    let dir = exe.parent().expect("a program is in a folder");
    // Tests are in `deps`, programs beside it.
    if dir.ends_with("deps") { dir.parent().expect("deps is in a folder").to_owned() } else { dir.to_owned() }
}

/// Cargo's target directory.
pub fn target_dir() -> PathBuf {
    profile_dir().parent().expect("a profile's folder is in the target directory").to_owned()
}

/// The `radixscope` binary: `RADIXSCOPE_BIN`, else the one beside the running test.
pub fn radixscope() -> PathBuf {
    let path = env::var_os("RADIXSCOPE_BIN").map_or_else(|| profile_dir().join("radixscope"), PathBuf::from);
    assert!(path.is_file(), "{} is missing; `cargo build -p radixscope` makes it", path.display());
    path
}

/// The NATS server: `RADIXSCOPE_NATS_SERVER`, else where set-up puts it.
pub fn nats_server() -> PathBuf {
    let usual = || target_dir().join("tools/bin/nats-server");
    let path = env::var_os("RADIXSCOPE_NATS_SERVER").map_or_else(usual, PathBuf::from);
    assert!(path.is_file(), "{} is missing; `cargo xtask setup test` installs it", path.display());
    path
}

/// Where Python finds libzmq: `RADIXSCOPE_PYZMQ`, else where set-up puts it.
pub fn pyzmq() -> PathBuf {
    let usual = || target_dir().join("tools/pyzmq");
    let path = env::var_os("RADIXSCOPE_PYZMQ").map_or_else(usual, PathBuf::from);
    assert!(path.is_dir(), "{} is missing; `cargo xtask setup test` installs it", path.display());
    path
}

/// Where Python finds Grafana's schema of dashboards: where set-up puts it.
pub fn grafana_schema() -> PathBuf {
    let path = target_dir().join("tools/grafana");
    assert!(path.is_dir(), "{} is missing; `cargo xtask setup test` installs it", path.display());
    path
}

/// Where Python finds DuckDB, and DuckDB's extension for S3: where set-up puts them.
pub fn duckdb() -> (PathBuf, PathBuf) {
    let tools = target_dir().join("tools");
    let (library, extensions) =
        (tools.join("duckdb"), tools.join("duckdb-httpfs/duckdb_extension_httpfs/extensions"));
    let versions = std::fs::read_dir(&extensions);
    let extension =
        versions.ok().and_then(|mut found| Some(found.next()?.ok()?.path().join("httpfs.duckdb_extension")));
    let extension = extension.filter(|path| library.is_dir() && path.is_file());
    (library, extension.expect("DuckDB is missing; `cargo xtask test duckdb` installs it"))
}

/// etcd: `RADIXSCOPE_ETCD`, else where set-up puts it.
pub fn etcd() -> PathBuf {
    let usual = || target_dir().join("tools/bin/etcd");
    let path = env::var_os("RADIXSCOPE_ETCD").map_or_else(usual, PathBuf::from);
    assert!(path.is_file(), "{} is missing; `cargo xtask setup test` installs it", path.display());
    path
}

/// The server that speaks S3: `RADIXSCOPE_WEED`, else where set-up puts it.
pub fn weed() -> PathBuf {
    let usual = || target_dir().join("tools/bin/weed");
    let path = env::var_os("RADIXSCOPE_WEED").map_or_else(usual, PathBuf::from);
    assert!(path.is_file(), "{} is missing; `cargo xtask setup test` installs it", path.display());
    path
}

/// A program that set-up builds among our tools, else one of the same name on `PATH`.
pub fn tool(program: &str) -> PathBuf {
    let own = target_dir().join("tools/bin").join(program);
    if own.is_file() { own } else { on_path(program) }
}

/// A program on `PATH` that set-up installs.
pub fn on_path(program: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("{program} is missing; `cargo xtask setup test` installs it"))
}

/// Folder of the screenshots that tests make, created if need be.
pub fn screens() -> PathBuf {
    let dir = target_dir().join("screens");
    std::fs::create_dir_all(&dir).expect("the target directory is writable");
    dir
}

/// A fixture.
pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The checkout that the tests were built from.
pub fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the checkout").to_owned()
}
