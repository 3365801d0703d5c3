//! `tripod pki`: certificates for clusters that have no issuer of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use tripod_identity::{Identity, Realm};
use tripod_proto::code::Code;
use tripod_tls::Tls;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::pki::{Authority, Issued, Line, Request, Wanted};
use crate::view::count;

const EXAMPLES: &str = "\
Examples, for three nodes and one operator:
  tripod pki init ca --cluster prod
  tripod pki node n1 --ca ca --host 10.0.0.1,n1.example.org --out n1
  tripod pki node n2 --ca ca --host 10.0.0.2,n2.example.org --out n2
  tripod pki node n3 --ca ca --host 10.0.0.3,n3.example.org --out n3
  tripod pki operator ann --ca ca --out ann
  tripod pki status n1

Copy each directory to its machine, and name it there: `tripod server --tls-dir n1 ...` on a node,
TRIPOD_TLS_DIR=ann for the operator's commands. Keep `ca` off the nodes: whoever reads its keys can be anybody.

With --csr a key stays on its machine, and the issuers on theirs:
  tripod pki node n1 --host 10.0.0.1 --out n1 --csr n1.csr                       on the node
  tripod pki node n1 --host 10.0.0.1 --out signed --csr n1.csr --ca ca           where the issuers are
Who is not to be believed any more:
  tripod pki crl --ca ca --revoke operator/ann

A node takes new files within a minute, or at once on SIGHUP, so certificates are made anew by the same command.
Certificates from another issuer serve as well: a node's has the URI spiffe://TRUST/tripod/CLUSTER/node/NAME, its hosts,
and both usages, server and client; everybody else's has its URI and the usage client.";

/// Makes certificates, and looks at them.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum PkiCommand {
    /// Make the issuers of a cluster: one that signs nodes and one that signs everybody else
    Init(InitArgs),
    /// Make the certificate of a node
    Node(NodeArgs),
    /// Make the certificate of an operator or a viewer
    Operator(OperatorArgs),
    /// Make the certificate of a program of one job
    Job(JobArgs),
    /// Revoke certificates, and make the lists by which nodes know
    Crl(CrlArgs),
    /// Check the files of a directory, and show who they are of and until when
    Status {
        /// The directory that `--tls-dir` is to name
        dir: PathBuf,
    },
}

/// Flags of `pki init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The directory for the issuers and their keys, made if it is missing
    dir: PathBuf,

    /// Name of the cluster, which all its certificates have
    #[arg(long, value_name = "NAME")]
    cluster: String,

    /// Trust domain: whose certificates these are
    #[arg(long, value_name = "DOMAIN", default_value = "tripod.internal")]
    trust: String,

    /// Make one issuer for nodes and clients. With two, whoever can have clients signed can make no node
    #[arg(long)]
    one_ca: bool,

    /// How long the issuers last
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
}

/// Where certificates come from and go.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The directory of the issuers, from `tripod pki init`
    #[arg(long, value_name = "DIR", required_unless_present = "csr")]
    ca: Option<PathBuf>,

    /// The directory for tls.crt, tls.key and ca.crt, made if it is missing; files that are there are replaced
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// A request for the certificate, so that its key and those of the issuers never meet. Without --ca: make the key in
    /// --out, and write the request to this file. With --ca: sign the request in this file, and make no key
    #[arg(long, value_name = "FILE")]
    csr: Option<PathBuf>,
}

/// Flags of `pki crl`.
#[derive(Debug, Args)]
pub(crate) struct CrlArgs {
    /// The directory of the issuers, from `tripod pki init`
    #[arg(long, value_name = "DIR")]
    ca: PathBuf,

    /// Revoke somebody: operator/ann, node/n2, job/train/agent means every certificate of that name which these issuers
    /// have made; a file means the certificate in it
    #[arg(long, value_name = "NAME|FILE,...", value_delimiter = ',')]
    revoke: Vec<String>,

    /// Write the lists to these files, too: crl.pem in the directory of each node
    #[arg(long, value_name = "FILE,...", value_delimiter = ',')]
    out: Vec<PathBuf>,

    /// When a newer list is due. Nodes go on with an older one: who was revoked stays so
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=397))]
    days: u32,
}

/// Flags of `pki node`.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Name of the node
    name: String,

    /// Every host by which clients and other nodes connect to it: those of --client, --peer, --http and --advertise
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', required = true)]
    host: Vec<String>,

    #[command(flatten)]
    place: Place,

    /// How long it lasts
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=397))]
    days: u32,
}

/// Flags of `pki operator`.
#[derive(Debug, Args)]
pub(crate) struct OperatorArgs {
    /// Name of the person or of what acts for people
    name: String,

    /// One who looks on, and changes nothing
    #[arg(long)]
    viewer: bool,

    #[command(flatten)]
    place: Place,

    /// How long it lasts
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=397))]
    days: u32,
}

/// Flags of `pki job`.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Name of the job
    job: String,

    /// What it is for
    kind: JobKind,

    /// The only task that it is for
    #[arg(long, value_name = "N")]
    task: Option<u32>,

    /// Hosts by which others connect to it: a worker's or a store's
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    host: Vec<String>,

    #[command(flatten)]
    place: Place,

    /// How long it lasts
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=9528))]
    hours: u32,
}

/// The programs of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JobKind {
    Agent,
    Task,
    Driver,
    Worker,
    Store,
}

/// What was made or found. The names are a schema that scripts rely on.
#[derive(Debug, Serialize)]
struct Made {
    identity: String,
    directory: String,
    files: Vec<&'static str>,
    /// When it ends, in milliseconds since 1970.
    not_after_ms: u64,
}

pub(crate) fn run(command: PkiCommand, global: &Global) -> Result<(), Failure> {
    let day = Duration::from_hours(24);
    match command {
        PkiCommand::Init(args) => {
            let realm = realm(&args)?;
            let authority = Authority::init(&args.dir, realm, args.one_ca, day * args.days)?;
            let directory = args.dir.display().to_string();
            match global.format() {
                Format::Json => output::json(&serde_json::json!({
                    "realm": authority.realm().to_string(),
                    "directory": directory,
                }))?,
                Format::Table => output::line(&format!(
                    "issuers of {} in {directory}; next: `tripod pki node NAME --ca {directory} --host HOST --out DIR`",
                    authority.realm()
                ))?,
            }
            Ok(())
        }
        PkiCommand::Node(args) => {
            issue(&format!("node/{}", args.name), &args.host, day * args.days, &args.place, global)
        }
        PkiCommand::Operator(args) => {
            let kind = if args.viewer { "viewer" } else { "operator" };
            issue(&format!("{kind}/{}", args.name), &[], day * args.days, &args.place, global)
        }
        PkiCommand::Job(args) => {
            let path = job_path(&args)?;
            issue(&path, &args.host, Duration::from_hours(args.hours.into()), &args.place, global)
        }
        PkiCommand::Crl(args) => revoke(&args, global),
        PkiCommand::Status { dir } => status(&dir, global),
    }
}

fn realm(args: &InitArgs) -> Result<Realm, Failure> {
    let refused = |flag: &str, why: tripod_identity::Refused| {
        Failure::new(Code::ValueIllegal, format!("{flag}: {why}"))
    };
    Ok(Realm {
        trust: args.trust.parse().map_err(|why| refused("--trust", why))?,
        cluster: args.cluster.parse().map_err(|why| refused("--cluster", why))?,
    })
}

fn job_path(args: &JobArgs) -> Result<String, Failure> {
    let kind = match args.kind {
        JobKind::Agent => "agent",
        JobKind::Task => "task",
        JobKind::Driver => "driver",
        JobKind::Worker => "worker",
        JobKind::Store => "store",
    };
    match args.task {
        None => Ok(format!("job/{}/{kind}", args.job)),
        Some(task) if args.kind == JobKind::Task => Ok(format!("job/{}/task/{task}", args.job)),
        Some(_) => {
            Err(Failure::new(Code::FlagsConflict, "--task is for certificates of tasks; leave it out"))
        }
    }
}

fn issue(
    path: &str,
    hosts: &[String],
    lifetime: Duration,
    place: &Place,
    global: &Global,
) -> Result<(), Failure> {
    let Some(ca) = &place.ca else { return request(path, place, global) };
    let authority = Authority::open(ca)?;
    let identity = authority.identity(path)?;
    let request = place.csr.as_ref().map(|file| Request::read(file, path)).transpose()?;
    let wanted = Wanted { identity, hosts, lifetime, request };
    let Issued { identity, files, not_after_ms } = authority.issue(&wanted, &place.out)?;
    let directory = place.out.display().to_string();
    let made = Made { identity: identity.to_string(), directory, files, not_after_ms };
    match global.format() {
        Format::Json => output::json(&made)?,
        Format::Table => output::line(&format!(
            "{}: {} in {}, for {}",
            made.identity,
            made.files.join(", "),
            made.directory,
            days(lifetime)
        ))?,
    }
    Ok(())
}

/// Makes a key and a request for its certificate.
fn request(path: &str, place: &Place, global: &Global) -> Result<(), Failure> {
    let file = place.csr.as_ref().expect("the command line wants one of both");
    // Any cluster: which it is, its issuers know.
    if let Err(why) = format!("spiffe://any/tripod/any/{path}").parse::<Identity>() {
        return Err(Failure::new(Code::ValueIllegal, format!("`{path}`: {why}")));
    }
    Request::make(path, &place.out, file)?;
    let (directory, file) = (place.out.display().to_string(), file.display().to_string());
    match global.format() {
        Format::Json => output::json(&serde_json::json!({ "request": file, "directory": directory }))?,
        Format::Table => output::line(&format!(
            "{path}: key in {directory}, request in {file}; next: take the request to the issuers, sign it there by the same \
             command with --ca DIR --csr {file}, and put what it makes beside the key"
        ))?,
    }
    Ok(())
}

/// What was revoked, and how many are. A schema, too.
#[derive(Debug, Serialize)]
struct Revoked {
    revoked: Vec<RevokedOne>,
    /// In the lists, all in all.
    listed: usize,
    files: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RevokedOne {
    path: String,
    serial: String,
}

fn revoke(args: &CrlArgs, global: &Global) -> Result<(), Failure> {
    let authority = Authority::open(&args.ca)?;
    let one = |line: Line| RevokedOne { serial: line.serial_hex(), path: line.path };
    let revoked: Vec<RevokedOne> = authority.revoke(&args.revoke)?.into_iter().map(one).collect();
    let listed = authority.write_lists(Duration::from_hours(24) * args.days, &args.out)?;
    let own = args.ca.join(tripod_tls::REVOKED_FILE);
    let files = [&own].into_iter().chain(&args.out).map(|file| file.display().to_string()).collect();
    let told = Revoked { revoked, listed, files };
    match global.format() {
        Format::Json => output::json(&told)?,
        Format::Table => {
            for one in &told.revoked {
                output::line(&format!("revoked: {}, certificate {}", one.path, one.serial))?;
            }
            output::line(&format!(
                "{} in the lists, in {}; next: put this file as crl.pem into the directory of every node",
                count(told.listed, "certificate"),
                told.files.join(", ")
            ))?;
        }
    }
    Ok(())
}

fn status(dir: &Path, global: &Global) -> Result<(), Failure> {
    let tls = Tls::read(dir).map_err(|fault| Failure::told(Code::TlsFile, fault.to_string()))?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_secs(tls.not_after()).saturating_sub(now);
    let files = [
        tripod_tls::KEY_FILE,
        tripod_tls::CERTIFICATE_FILE,
        tripod_tls::ROOTS_FILE,
        tripod_tls::CLIENT_ROOTS_FILE,
        tripod_tls::REVOKED_FILE,
    ];
    let found = Made {
        identity: tls.identity().to_string(),
        directory: dir.display().to_string(),
        files: files.into_iter().filter(|file| dir.join(file).exists()).collect(),
        not_after_ms: tls.not_after().saturating_mul(1000),
    };
    match global.format() {
        Format::Json => output::json(&found)?,
        Format::Table => output::line(&format!(
            "{}: {} hold together, for another {}",
            found.identity,
            found.files.join(", "),
            days(left)
        ))?,
    }
    Ok(())
}

fn days(time: Duration) -> String {
    let hours = time.as_secs() / 3600;
    if hours < 48 { format!("{hours} hours") } else { format!("{} days", hours / 24) }
}
