//! The flags of a node by which its connections are protected.

use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, ValueEnum};
use tripod_gate::Mode as Authorise;
use tripod_identity::Kind;
use tripod_proto::code::Code;
use tripod_state::identity::Mode as Protection;
use tripod_tls::{CERTIFICATE_FILE, ClientTls, Mode, PeerTls, Port, ServerTls, Tls};

use crate::failure::Failure;
use crate::plain_text::{self, Names, PlainPort};

/// Flags of TLS.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TlsFlags {
    /// Directory of this node's certificate, key and roots: tls.crt, tls.key, ca.crt, and where clients have an issuer of
    /// their own client-ca.crt; `tripod pki --help` makes them. New files are taken within a minute, or on SIGHUP
    /// [default: none, and every port is in plain text]
    #[arg(long, value_name = "DIR")]
    tls_dir: Option<PathBuf>,

    /// What the peer port takes: off (plain text), permissive (TLS, and plain text from nodes that do not know it yet), or
    /// strict (TLS) [default: strict with --tls-dir, else off]
    #[arg(long, value_name = "MODE")]
    peer_tls: Option<Mode>,

    /// The same for the client port and the job ports
    #[arg(long, value_name = "MODE")]
    client_tls: Option<Mode>,

    /// The same for the http port, which asks for no certificate and judges one that it is shown
    #[arg(long, value_name = "MODE")]
    http_tls: Option<Mode>,

    /// How this node connects to the ports of workers and object stores: off (plain text) or strict (TLS, and they must
    /// prove to be such of a job) [default: off]
    #[arg(long, value_name = "MODE")]
    worker_tls: Option<Mode>,

    /// The oldest version of TLS that clients may speak
    #[arg(long, value_enum, value_name = "VERSION", default_value_t)]
    tls_min: TlsMin,

    /// What becomes of a call that its caller may not make: off (nobody asks), log (it is made, counted and logged), or
    /// enforce (it is refused; needs --peer-tls and --client-tls strict). docs/security/who-may-call-what.md has the table
    #[arg(long, value_name = "MODE", default_value_t)]
    authorise: Authorise,

    /// Serve other machines in plain text, too. Without it a port that takes plain text must be on loopback, because
    /// whoever reaches it may do everything
    #[arg(
        long,
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        value_name = "true|false",
        hide_default_value = true,
        hide_possible_values = true
    )]
    insecure: bool,

    /// Start although the cluster wants nodes to be protected better (`tripod auth floor`); `tripod status` shows it
    #[arg(
        long,
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        value_name = "true|false",
        hide_default_value = true,
        hide_possible_values = true
    )]
    below_floor: bool,
}

/// What to do with a node's port that other machines could reach.
const PROTECT: &str =
    "add --tls-dir, or --insecure if everybody who reaches them may do everything (docs/security.md)";

/// Versions of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TlsMin {
    #[value(name = "1.2")]
    Older,
    #[default]
    #[value(name = "1.3")]
    Newest,
}

/// How the ports of a node are protected.
#[derive(Debug, Clone)]
pub(crate) struct NodeTls {
    pub(crate) tls: Tls,
    pub(crate) peer: Option<PeerTls>,
    pub(crate) client: Option<ServerTls>,
    pub(crate) http: Option<ServerTls>,
    /// How it is a client of other nodes.
    pub(crate) as_client: Option<ClientTls>,
    /// Whether it connects to workers and stores by TLS.
    pub(crate) dials_workers: bool,
}

/// Where a node listens, as far as that is known. Job ports are on the host of the client port, and protected as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodePorts<'a> {
    pub(crate) client: Option<&'a str>,
    pub(crate) peer: Option<&'a str>,
    pub(crate) http: Option<&'a str>,
    /// Of the page, if it has a port of its own, which is protected as the http port is.
    pub(crate) ui: Option<&'a str>,
    /// Whether nodes of MindSpore find jobs on the client port's host.
    pub(crate) mindspore: bool,
}

impl TlsFlags {
    /// What the flags ask for; `None`: plain text everywhere.
    ///
    /// # Errors
    /// A mode needs files that are not named, or files cannot be used.
    pub(crate) fn read(&self) -> Result<Option<NodeTls>, Failure> {
        self.check()?;
        let Some(directory) = &self.tls_dir else { return Ok(None) };
        let [peer, client, http] = self.modes();
        let tls = Tls::read(directory).map_err(|fault| Failure::told(Code::TlsFile, fault.to_string()))?;
        if !matches!(tls.identity().kind, Kind::Node(_)) {
            let text = format!(
                "{} has the certificate of {}, which is not a node; next: `tripod pki node NAME`",
                directory.display(),
                tls.identity()
            );
            return Err(Failure::new(Code::TlsFile, text));
        }
        let server = |port, mode| {
            let server = ServerTls::new(&tls, port, mode);
            let server =
                server.map(|server| if self.tls_min == TlsMin::Older { server.also_older() } else { server });
            // Where every call is judged, a token may say who makes it; elsewhere only a certificate keeps strangers out.
            let takes_tokens = port == Port::Client && self.authorise == Authorise::Enforce;
            server.map(|server| if takes_tokens { server.also_uncertified() } else { server })
        };
        Ok(Some(NodeTls {
            peer: PeerTls::new(&tls, peer),
            client: server(Port::Client, client),
            http: server(Port::Http, http),
            as_client: (client == Mode::Strict).then(|| ClientTls::new(&tls, Port::Client)),
            dials_workers: self.worker_tls == Some(Mode::Strict),
            tls,
        }))
    }

    fn modes(&self) -> [Mode; 3] {
        let usual = if self.tls_dir.is_some() { Mode::Strict } else { Mode::Off };
        [self.peer_tls, self.client_tls, self.http_tls].map(|mode| mode.unwrap_or(usual))
    }

    /// Looks at the flags alone.
    ///
    /// # Errors
    /// A mode needs files, and none are named.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.check_authorise()?;
        match self.worker_tls {
            Some(Mode::Permissive) => {
                let text =
                    "--worker-tls permissive: a node connects by TLS or in plain text; write off or strict";
                return Err(Failure::new(Code::FlagsConflict, text));
            }
            Some(Mode::Strict) if self.tls_dir.is_none() => {
                let text = "--worker-tls strict says how workers and stores are connected to, and --tls-dir by which files: \
                            give that, too";
                return Err(Failure::new(Code::FlagsConflict, text));
            }
            _ => {}
        }
        if self.tls_dir.is_some() || self.modes() == [Mode::Off; 3] {
            return Ok(());
        }
        let text = "--peer-tls, --client-tls and --http-tls say what is protected, and --tls-dir by which files: give \
                    that, too";
        Err(Failure::new(Code::FlagsConflict, text))
    }

    /// What becomes of calls that their callers may not make.
    pub(crate) fn authorise(&self) -> Authorise {
        self.authorise
    }

    /// How a node with these flags is protected.
    pub(crate) fn protection(&self) -> Protection {
        let [peer, client, http] = self.modes();
        if peer == Mode::Off || client == Mode::Off {
            return Protection::Off;
        }
        match self.authorise {
            Authorise::Off => Protection::Permissive,
            Authorise::Rehearse => Protection::Rehearse,
            Authorise::Enforce if http == Mode::Strict => Protection::Strict,
            // Which needs that the others are strict.
            Authorise::Enforce => Protection::Enforce,
        }
    }

    /// Whether it is to start although the cluster wants more.
    pub(crate) fn starts_below_floor(&self) -> bool {
        self.below_floor
    }

    /// Whoever speaks plain text is nobody in particular, so calls are refused only where nobody may.
    fn check_authorise(&self) -> Result<(), Failure> {
        let [peer, client, _] = self.modes();
        let open = [("--peer-tls", peer), ("--client-tls", client)];
        let open = open.into_iter().find(|(_, mode)| *mode != Mode::Strict);
        match (self.authorise, open) {
            (Authorise::Enforce, Some((flag, mode))) => {
                let dir = if self.tls_dir.is_some() { "" } else { "--tls-dir DIR " };
                let text = format!(
                    "--authorise enforce with {flag} {mode}: that port takes plain text, by which nobody proves who calls; \
                     next: `tripod server {dir}{flag} strict --authorise enforce`, or --authorise log until then"
                );
                Err(Failure::new(Code::EnforceOpen, text))
            }
            _ => Ok(()),
        }
    }

    /// Refuses ports that other machines could use in plain text, unless that was asked for. A permissive port is one of
    /// them: it takes plain text from whoever speaks it.
    ///
    /// # Errors
    /// [`Code::PlainText`].
    pub(crate) fn check_ports(&self, ports: &NodePorts<'_>, names: Names) -> Result<(), Failure> {
        if self.insecure {
            return Ok(());
        }
        plain_text::refuse(self.plain_ports(ports), names, PROTECT)
    }

    /// The ports of a node that take plain text, whoever may reach them.
    pub(crate) fn plain_ports(&self, ports: &NodePorts<'_>) -> Vec<PlainPort> {
        let [peer, client, http] = self.modes().map(|mode| mode != Mode::Strict);
        let NodePorts { client: client_address, .. } = ports;
        let all = [
            ("--client", client, *client_address),
            ("--peer", peer, ports.peer),
            ("--http", http, ports.http),
            ("--ui", http, ports.ui),
            // Its frames are in plain text whatever the client port does.
            ("--mindspore-ports on the host of --client", ports.mindspore && !client, *client_address),
        ];
        let plain = all.into_iter().filter(|(_, plain, _)| *plain);
        plain.filter_map(|(flag, _, address)| Some(PlainPort::new(flag, address?))).collect()
    }

    /// Whether plain text was asked for, and other machines can use a port so.
    pub(crate) fn serves_others_in_plain_text(&self, ports: &NodePorts<'_>) -> bool {
        self.insecure && self.plain_ports(ports).iter().any(PlainPort::is_open_to_others)
    }

    /// Whether clients must use TLS.
    pub(crate) fn is_strict_for_clients(&self) -> bool {
        self.modes()[1] == Mode::Strict
    }
}

impl NodeTls {
    /// From now on this process is a client of nodes as it is a node.
    pub(crate) fn protect_this_process(&self) {
        if let Some(tls) = &self.as_client {
            tripod_dial::protect(tls.clone());
        }
        if self.dials_workers {
            tripod_dial::protect_workers(&self.tls, Mode::Off, true);
        }
    }
}

/// Has the port of this worker or object store take what `mode` says, and with `strict` has it connect to such ports of others by
/// TLS.
pub(crate) fn protect_port(mode: Mode, directory: Option<&Path>) -> Result<(), Failure> {
    if mode == Mode::Off {
        return Ok(());
    }
    let Some(directory) = directory else {
        let text = "--port-tls says what is protected, and --tls-dir by which files: give that, too";
        return Err(Failure::new(Code::FlagsConflict, text));
    };
    let tls = Tls::read(directory).map_err(|fault| Failure::told(Code::TlsFile, fault.to_string()))?;
    if !matches!(tls.identity().kind, Kind::Worker(_) | Kind::Store(_)) {
        let text = format!(
            "{} has the certificate of {}, which is no worker and no store; next: `tripod pki job JOB worker` or `tripod \
             pki job JOB store`",
            directory.display(),
            tls.identity()
        );
        return Err(Failure::new(Code::TlsFile, text));
    }
    tripod_dial::protect_workers(&tls, mode, mode == Mode::Strict);
    tokio::spawn(tls.keep_current());
    Ok(())
}

/// From now on this process shows nodes the certificate of that directory, and speaks to no node in plain text. If it has a token to
/// show, the directory may have no certificate.
pub(crate) fn protect_client(directory: &Path, has_token: bool) -> Result<ClientTls, Failure> {
    let is_certified = directory.join(CERTIFICATE_FILE).exists();
    let tls = match is_certified || !has_token {
        true => Tls::read(directory).map(|tls| ClientTls::new(&tls, Port::Client)),
        false => ClientTls::uncertified(directory, Port::Client),
    };
    let tls = tls.map_err(|fault| Failure::told(Code::TlsFile, fault.to_string()))?;
    tripod_dial::protect(tls.clone());
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        tls: TlsFlags,
    }

    fn read(flags: &[&str]) -> Result<Option<NodeTls>, Failure> {
        Line::try_parse_from(["node"].iter().chain(flags)).expect("well-formed").tls.read()
    }

    #[test]
    fn calls_are_refused_only_where_everybody_proves_who_calls() {
        let refused = |flags: &[&str]| {
            let failure = read(flags).expect_err("refused");
            assert_eq!(failure.code(), Code::EnforceOpen);
            failure.to_string()
        };
        let text = refused(&["--authorise=enforce"]);
        assert!(text.starts_with("T1522 enforce-open: --authorise enforce with --peer-tls off"), "{text}");
        assert!(text.contains("next: `tripod server --tls-dir DIR --peer-tls strict"), "{text}");
        let text = refused(&["--authorise=enforce", "--tls-dir=/nowhere", "--client-tls=permissive"]);
        assert!(text.contains("next: `tripod server --client-tls strict --authorise enforce`"), "{text}");
        assert!(read(&["--authorise=log"]).expect("legal").is_none());
        let strict = read(&["--authorise=enforce", "--tls-dir=/nowhere"]);
        assert_eq!(strict.expect_err("there are no files").code(), Code::TlsFile);
        assert!(Line::try_parse_from(["node", "--authorise=on"]).is_err());
    }

    #[tokio::test]
    async fn a_port_of_a_worker_is_protected_by_files_of_a_worker() {
        assert!(protect_port(Mode::Off, None).is_ok());
        let refused = protect_port(Mode::Strict, None).expect_err("there are no files");
        assert_eq!(refused.code(), Code::FlagsConflict);
        let refused =
            protect_port(Mode::Permissive, Some(Path::new("/nowhere"))).expect_err("no files there");
        assert_eq!(refused.code(), Code::TlsFile);
    }

    #[test]
    fn a_node_is_protected_as_its_weakest_port_and_what_it_refuses() {
        let protection = |flags: &[&str]| {
            let line = Line::try_parse_from(["node"].iter().chain(flags)).expect("well-formed");
            line.tls.protection().word()
        };
        let tls = "--tls-dir=/nowhere";
        assert_eq!(protection(&[]), "off");
        assert_eq!(protection(&[tls, "--client-tls=off"]), "off");
        assert_eq!(protection(&[tls]), "permissive", "nobody asks who calls");
        assert_eq!(protection(&[tls, "--peer-tls=permissive", "--authorise=log"]), "rehearse");
        assert_eq!(protection(&[tls, "--http-tls=off", "--authorise=enforce"]), "enforce");
        assert_eq!(protection(&[tls, "--authorise=enforce"]), "strict");
    }

    #[test]
    fn nothing_is_protected_unless_that_is_asked_for() {
        assert!(read(&[]).expect("legal").is_none());
        assert!(read(&["--peer-tls=off", "--client-tls=off"]).expect("legal").is_none());
        for flag in
            ["--peer-tls=strict", "--client-tls=permissive", "--http-tls=strict", "--worker-tls=strict"]
        {
            assert_eq!(read(&[flag]).expect_err("refused").code(), Code::FlagsConflict);
        }
        assert_eq!(read(&["--tls-dir=/nowhere"]).expect_err("refused").code(), Code::TlsFile);
        assert!(Line::try_parse_from(["node", "--peer-tls=on"]).is_err());
        assert!(Line::try_parse_from(["node", "--tls-min=1.1"]).is_err());
    }
}
