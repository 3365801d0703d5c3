//! Makes the list of all RPCs from the files of `proto/`, and of the few services whose messages come from elsewhere.
//!
//! Every file is taken, so no list of files can forget one; a test compares the outcome with the descriptors of `tripod-proto`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const ROOT: &str = "../../proto";

/// What begins the names of a package's services here. A package that is not among them does not build: say here what begins them.
const PACKAGES: &[(&str, &str)] = &[
    ("", "Ray"),
    ("mars.v1", "Mars"),
    ("tensorflow", "Tensorflow"),
    ("tensorflow.eager", "Tensorflow"),
    ("tripod.peer.v1", "Peer"),
    ("tripod.v1", ""),
    ("xla", "Xla"),
    ("xla.coordination", "Xla"),
];

/// Packages that no port of ours serves: benchmarks call them at others.
const NOT_SERVED: &[&str] = &["etcdserverpb"];

/// Services whose messages come with a library: as it is called here, as in its paths, its methods.
const OTHERS: &[(&str, &str, &[&str])] = &[
    (
        "AggregatedDiscovery",
        "envoy.service.discovery.v3.AggregatedDiscoveryService",
        &["StreamAggregatedResources", "DeltaAggregatedResources"],
    ),
    ("Health", "grpc.health.v1.Health", &["Check", "Watch"]),
];

struct Service {
    /// As in its paths.
    path: String,
    methods: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={ROOT}");
    // A test compiles what is made here once more, with an RPC too many.
    println!("cargo:rustc-env=RUSTC_OF_GATE={}", std::env::var("RUSTC")?);
    let code = code(&services()?)?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("rpc.rs");
    println!("cargo:rustc-env=RPC_OF_GATE={}", out.display());
    std::fs::write(out, code)?;
    Ok(())
}

/// All of them by the names that they have here.
fn services() -> Result<BTreeMap<String, Service>, Box<dyn Error>> {
    let mut files = Vec::new();
    find(Path::new(ROOT), &mut files)?;
    files.sort();
    let mut services = BTreeMap::new();
    for file in protox::compile(&files, [ROOT])?.file {
        let package = file.package();
        if NOT_SERVED.contains(&package) {
            continue;
        }
        for service in &file.service {
            let named = PACKAGES.iter().find(|(known, _)| *known == package);
            let (_, begin) =
                named.ok_or_else(|| format!("{package}: say in PACKAGES what begins its services"))?;
            let dot = if package.is_empty() { "" } else { "." };
            let path = format!("{package}{dot}{}", service.name());
            let methods = service.method.iter().map(|method| method.name().to_owned()).collect();
            add(&mut services, &format!("{begin}{}", service.name()), Service { path, methods })?;
        }
    }
    for (name, path, methods) in OTHERS {
        let methods = methods.iter().map(|method| (*method).to_owned()).collect();
        add(&mut services, name, Service { path: (*path).to_owned(), methods })?;
    }
    Ok(services)
}

fn add(all: &mut BTreeMap<String, Service>, name: &str, service: Service) -> Result<(), Box<dyn Error>> {
    match all.insert(name.to_owned(), service) {
        None => Ok(()),
        Some(_) => Err(format!("two services would be called {name}: change PACKAGES").into()),
    }
}

/// Every `.proto` file below a directory, tests apart.
fn find(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                find(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    Ok(())
}

fn code(services: &BTreeMap<String, Service>) -> Result<String, std::fmt::Error> {
    const DERIVE: &str = "#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]\n";
    let mut out = String::new();
    let (mut variants, mut all, mut names, mut by_method, mut by_path) =
        (String::new(), String::new(), String::new(), String::new(), String::new());
    for (name, Service { path, methods }) in services {
        writeln!(out, "/// The methods of `{path}`.\n{DERIVE}pub enum {name} {{")?;
        writeln!(variants, "    /// Of `{path}`.\n    {name}({name}),")?;
        writeln!(names, "            Self::{name}(_) => {path:?},")?;
        writeln!(by_path, "            {path:?} => match method {{")?;
        for method in methods {
            writeln!(out, "    /// `/{path}/{method}`.\n    {method},")?;
            writeln!(all, "        Self::{name}({name}::{method}),")?;
            writeln!(by_method, "            Self::{name}({name}::{method}) => {method:?},")?;
            writeln!(by_path, "                {method:?} => Some(Self::{name}({name}::{method})),")?;
        }
        writeln!(by_path, "                _ => None,\n            }},")?;
        writeln!(out, "}}\n")?;
    }
    writeln!(
        out,
        "/// Everything that can be called on a gRPC port.\n{DERIVE}pub enum Rpc {{\n{variants}}}\n"
    )?;
    writeln!(out, "#[allow(clippy::too_many_lines, reason = \"generated\")]\nimpl Rpc {{")?;
    writeln!(
        out,
        "    /// All of them, by services.\n    pub const ALL: &'static [Self] = &[\n{all}    ];\n"
    )?;
    writeln!(
        out,
        "    /// Its service, as in its path.\n    #[must_use]\n    pub fn service(self) -> &'static str {{"
    )?;
    writeln!(out, "        match self {{\n{names}        }}\n    }}\n")?;
    writeln!(
        out,
        "    /// Its method, as in its path.\n    #[must_use]\n    pub fn method(self) -> &'static str {{"
    )?;
    writeln!(out, "        match self {{\n{by_method}        }}\n    }}\n")?;
    writeln!(out, "    /// The method of a service, if that is one.\n    #[must_use]")?;
    writeln!(out, "    pub fn find(service: &str, method: &str) -> Option<Self> {{")?;
    writeln!(out, "        match service {{\n{by_path}            _ => None,\n        }}\n    }}\n}}")?;
    Ok(out)
}
