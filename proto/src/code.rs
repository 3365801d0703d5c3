//! The catalogue of errors: everything that an operator may be told has a code `Tnnnn`, the same in each
//! version, and a page `docs/errors/Tnnnn.md`.
//!
//! A code is printed in front of a text, as `T3101 log-damaged: ...`. Its number is a contract and never
//! means anything else; the word beside it is for people. The first digit tells what it is about: 1 the command
//! line and configuration, 2 calls to the cluster, 3 data and disks, 4 members and identity, 5 backups,
//! recovery and the doctor, 6 jobs, keys and programs, 7 what is seen of a running cluster, and what was found wrong
//! with it or with a job that runs.

use std::fmt;

/// Between the code and the text that it stands before.
const END: char = ':';

macro_rules! catalogue {
    ($($code:ident = $number:literal, $slug:literal, $title:literal;)*) => {
        /// What went wrong, for operators and their scripts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $code = $number,)*
        }

        impl Code {
            /// All of them, in ascending order.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// The word beside the number, in lower case with hyphens.
            #[must_use]
            pub fn slug(self) -> &'static str {
                match self { $(Self::$code => $slug,)* }
            }

            /// What it means, in one line without a full stop.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$code => $title,)* }
            }

            /// The name of the variant, for whoever looks for it in the source.
            #[must_use]
            pub fn variant(self) -> &'static str {
                match self { $(Self::$code => stringify!($code),)* }
            }
        }
    };
}

catalogue! {
    Usage = 1101, "usage", "the command line is wrong";
    FlagsConflict = 1102, "flags-conflict", "flags or settings contradict each other";
    ValueIllegal = 1103, "value-illegal", "a value is not legal";
    NotConfirmed = 1104, "not-confirmed", "a command that destroys something was not confirmed";
    TaskUnnamed = 1105, "task-unnamed", "nothing says which job or which task a program is";
    TfConfig = 1106, "tf-config", "TF_CONFIG cannot be used as it is";
    CodeUnknown = 1107, "code-unknown", "there is no such error code";
    ConfigUnreadable = 1201, "config-unreadable", "the configuration file cannot be read";
    ConfigSyntax = 1202, "config-syntax", "the configuration file is not valid TOML";
    ConfigKey = 1203, "config-key", "there is no setting of that name";
    ConfigValue = 1204, "config-value", "a setting has a value that is not legal";
    ConfigMissing = 1205, "config-missing", "a setting is missing";
    ConfigVariable = 1206, "config-variable", "an environment variable names no setting";
    OutputFailed = 1301, "output-failed", "the output cannot be written";
    InputFailed = 1302, "input-failed", "standard input cannot be read";
    ProcessLimits = 1303, "process-limits", "the operating system refused threads or signals";
    Defect = 1304, "defect", "the program itself is at fault";
    ListenFailed = 1401, "listen-failed", "an address cannot be listened on";
    NotPrivate = 1402, "not-private", "other users of the machine could read, enter or replace it";
    DevDirectory = 1501, "dev-directory", "the directory of a local cluster cannot be used";
    DevNotReady = 1502, "dev-not-ready", "a local cluster did not become ready";
    DevNodeEnded = 1503, "dev-node-ended", "nodes of a local cluster ended";
    TlsFile = 1511, "tls-file", "a certificate, a key or a list of roots cannot be used";
    TlsExpired = 1512, "tls-expired", "a certificate has expired, or is not valid yet";
    TlsRefused = 1513, "tls-refused", "a connection was refused for a certificate";
    TlsReload = 1514, "tls-reload", "new certificates were not taken";
    TlsHandshake = 1515, "tls-handshake", "a connection to a port was not made by TLS";
    PkiFailed = 1516, "pki-failed", "certificates could not be made";
    NotAuthorised = 1521, "not-authorised", "whoever called may not make that call";
    EnforceOpen = 1522, "enforce-open", "calls cannot be authorised on ports that take plain text";
    BelowFloor = 1523, "below-floor", "a node is less protected than the cluster wants";
    TokenFile = 1531, "token-file", "a file of a token cannot be used";
    TokenRefused = 1532, "token-refused", "a token does not allow it";
    TokenUnknown = 1533, "token-unknown", "there is no such token";
    TokenPlain = 1534, "token-plain", "a token would be seen by others on the way";
    TokenBootstrap = 1535, "token-bootstrap", "no operator's token was made on a node's machine";
    AuditLost = 1536, "audit-lost", "lines of the audit log are lost";
    AuditRequired = 1537, "audit-required", "a call was refused because nothing has written it down";
    AuditBroken = 1538, "audit-broken", "an audit log is not what its node wrote";
    AuditFile = 1539, "audit-file", "files of an audit log cannot be used";
    PlainText = 1541, "plain-text", "a port would be open to other machines in plain text";
    PreflightFailed = 1601, "preflight-failed", "this machine is not fit for a node";
    BenchFailed = 1602, "bench-failed", "a measurement could not be made";

    NameUnresolved = 2101, "name-unresolved", "the name of a node cannot be resolved";
    NotConnected = 2102, "not-connected", "no node accepts a connection";
    NoAnswer = 2103, "no-answer", "nodes accept the call and do not answer";
    NoLeader = 2104, "no-leader", "no node leads";
    OutcomeUnknown = 2105, "outcome-unknown", "the call may or may not have taken effect";
    Refused = 2201, "refused", "the cluster refused the call";
    Overloaded = 2202, "overloaded", "a node has too much to do";
    CallUnknown = 2203, "call-unknown", "the node does not know this call";
    LeaderUnaddressed = 2204, "leader-unaddressed", "the leader's address is not known";
    LeaderStayed = 2205, "leader-stayed", "leadership was not handed over";
    ConnectionsFull = 2206, "connections-full", "a node has as many connections as it may have";
    SavesFull = 2207, "saves-full", "a node sends as many snapshots as it may";
    ClientMemoryFull = 2208, "client-memory-full", "a node holds as many bytes for its clients as it may";
    ConnectionMemoryFull = 2209, "connection-memory-full", "a node holds as many bytes for a connection as it may";
    LeftUnfinished = 2210, "left-unfinished", "a client left an answer unread or a request unfinished";
    JobFull = 2211, "job-full", "a job takes as much memory as it may";
    StateFull = 2212, "state-full", "all jobs together take as much memory as they may";
    CallsMisused = 2213, "calls-misused", "a client broke the rules of a stream of calls";
    IdentityMemoryFull = 2214, "identity-memory-full", "a node holds as many bytes for an identity as it may";

    LogDamaged = 3101, "log-damaged", "the log is damaged";
    LogIo = 3102, "log-io", "the log cannot be read or written";
    LogMissing = 3103, "log-missing", "a node has its identity and has lost its log";
    LogLocked = 3104, "log-locked", "another process uses the log";
    SnapshotDamaged = 3105, "snapshot-damaged", "log and snapshots leave a hole";
    SnapshotIo = 3106, "snapshot-io", "the snapshots cannot be opened";
    DataFull = 3107, "data-full", "there is no room to start in the data directory";
    DataReadonly = 3108, "data-readonly", "the data directory cannot be written";
    DataParent = 3109, "data-parent", "the parent of the data directory does not exist";
    DataCreate = 3110, "data-create", "the data directory cannot be made";
    DataLost = 3111, "data-lost", "a node starts without the data that it had";
    StateDiverged = 3112, "state-diverged", "a node's state is not that of the majority";
    Recovery = 3113, "recovery", "a node's state cannot be rebuilt from its directory";
    ApplyUnknown = 3114, "apply-unknown", "the log has a command that this version does not know";
    DataOlder = 3115, "data-older", "the data directory is an older copy";
    PeerNonsense = 3116, "peer-nonsense", "a peer said what no node can mean";
    VoteAbsurd = 3117, "vote-absurd", "a node's vote is of a term that no election can have reached";
    ApplyPanicked = 3118, "apply-panicked", "a committed command cannot be applied by this build";
    FilesExhausted = 3119, "files-exhausted", "a node has no open file to spare";
    DiskFull = 3201, "disk-full", "a disk is nearly full, and nothing that grows is accepted";
    LeaderStalled = 3202, "leader-stalled", "the leader's disk did not answer, and it gave up leading";
    LeaderUnheard = 3203, "leader-unheard", "no quorum answered the leader, and it gave up leading";
    ClockSet = 3204, "clock-set", "a machine's clock was set while its node runs";
    ClockBehind = 3205, "clock-behind", "a machine's clock was behind the cluster's time";
    LeaderLives = 3301, "leader-lives", "connections to a leader were reset and refused while it led";

    IdentityUnreadable = 4101, "identity-unreadable", "identity.json cannot be read";
    IdentityFormat = 4102, "identity-format", "a newer version wrote the data directory";
    IdentityCluster = 4103, "identity-cluster", "the data directory belongs to another cluster";
    IdentityNode = 4104, "identity-node", "the data directory belongs to another node";
    NodeRemoved = 4201, "node-removed", "the node was removed, and its id never comes back";
    JoinLost = 4202, "join-lost", "a member came back without its data and asks to join";
    JoinNote = 4203, "join-note", "a joining node cannot write down that it joins";
    PeerPort = 4204, "peer-port", "the peer address cannot be listened on";
    JoinRefused = 4205, "join-refused", "the cluster does not let a node join";
    NodeEnded = 4206, "node-ended", "a node did not start, or cannot go on";
    NodeName = 4207, "node-name", "a node's certificate is not the one by which the cluster knows it";
    ChangeInProgress = 4301, "change-in-progress", "another change of the members is under way";
    MemberUnknown = 4302, "member-unknown", "there is no such member";
    AddressRefused = 4303, "address-refused", "a member cannot have that peer address";
    NothingToChange = 4304, "nothing-to-change", "the members are so already";
    MemberSilent = 4305, "member-silent", "the member does not answer the leader";
    MemberLagging = 4306, "member-lagging", "the member has not caught up";
    LastVoter = 4307, "last-voter", "the only voter cannot go";
    QuorumLost = 4308, "quorum-lost", "the change would lose the quorum";
    ChangeNotOpen = 4309, "change-not-open", "that change is not in progress";
    ChangeFailed = 4310, "change-failed", "the change of the members was not made";
    ChangeGoesOn = 4311, "change-goes-on", "the change of the members has begun and not ended yet";
    IdUnexpected = 4312, "id-unexpected", "the new node would get another id";
    NobodyElse = 4313, "nobody-else", "nobody else could lead";
    LevelLow = 4401, "level-low", "a command needs a feature level that is not in force";
    LevelOld = 4402, "level-old", "a build does not support the feature level in force";
    LevelData = 4403, "level-data", "a data directory is of a higher feature level than the build supports";
    LevelSnapshot = 4404, "level-snapshot", "a snapshot is of a higher feature level than the build supports";
    LevelHeld = 4405, "level-held", "the state needs the higher feature level";
    LevelMember = 4406, "level-member", "a member does not support the feature level";
    LevelSilent = 4407, "level-silent", "a member does not say what it supports";
    LevelWait = 4408, "level-wait", "the feature level is changed, and a node has not followed yet";
    LevelPinRange = 4409, "level-pin-range", "the feature level cannot be pinned there";
    LevelPin = 4410, "level-pin", "a node cannot read at which feature level it is pinned";

    BackupDamaged = 5101, "backup-damaged", "a snapshot file is not what was saved";
    BackupFormat = 5102, "backup-format", "another version wrote the snapshot file";
    BackupExists = 5103, "backup-exists", "the file to be written exists";
    BackupIo = 5104, "backup-io", "a snapshot file cannot be read or written";
    BackupElsewhere = 5105, "backup-elsewhere", "the backup directory belongs to another cluster";
    BackupSealed = 5106, "backup-sealed", "a snapshot file is sealed, and no identity was given";
    BackupIdentity = 5107, "backup-identity", "no identity that was given opens a sealed snapshot file";
    RestoreUsed = 5201, "restore-used", "the directory to restore into is in use";
    RestorePlan = 5202, "restore-plan", "what is to be restored contradicts itself";
    RestoreIo = 5203, "restore-io", "the directory to restore into cannot be written";
    DoctorRunning = 5301, "doctor-running", "a node uses the data directory";
    DoctorNoData = 5302, "doctor-no-data", "the directory holds no log";
    DoctorIo = 5303, "doctor-io", "the data directory cannot be examined";
    DoctorFound = 5304, "doctor-found", "something is wrong in the data directory";
    EntriesMissing = 5305, "entries-missing", "the log does not hold the entries that were asked for";
    RecoverQuorum = 5401, "recover-quorum", "a majority answers, so there is nothing to recover";
    RecoverBehind = 5402, "recover-behind", "another survivor is further";
    RecoverDamaged = 5403, "recover-damaged", "no backup can be made of this directory";
    RecoverStranger = 5404, "recover-stranger", "a directory to compare with is not another node's of the cluster";

    RepairRefused = 5501, "repair-refused", "there is nothing to repair so";

    JobUnknown = 6101, "job-unknown", "there is no such job";
    JobExists = 6102, "job-exists", "there is a job of that name";
    JobIllegal = 6103, "job-illegal", "a job's name or parameter is not legal";
    JobPortsTaken = 6104, "job-ports-taken", "every job port is taken";
    JobReplaced = 6105, "job-replaced", "the job was replaced while the call was under way";
    JobDiffers = 6106, "job-differs", "the job has another number of tasks";
    TaskUnknown = 6107, "task-unknown", "the job has no such task";
    TaskTaken = 6108, "task-taken", "another process is the task";
    MindsporeUnserved = 6109, "mindspore-unserved", "a node does not serve the job to MindSpore";
    KeyUnknown = 6201, "key-unknown", "there is no such key";
    KeyExists = 6202, "key-exists", "the key exists";
    KeyVersion = 6203, "key-version", "the key has another version";
    LimitExceeded = 6204, "limit-exceeded", "something is larger than the cluster accepts";
    SessionEnded = 6205, "session-ended", "the session of a write has ended";
    AgentFailed = 6301, "agent-failed", "an agent cannot serve";
    ProgramFailed = 6302, "program-failed", "a program cannot be started or waited for";
    WorkerFailed = 6303, "worker-failed", "a worker cannot execute tasks";
    StoreFailed = 6304, "objstore-failed", "an object store cannot serve";
    DialRefused = 6305, "dial-refused", "an address is not connected to, or its orders are not taken";
    FrameBroken = 6401, "frame-broken", "a client sent bytes that are no frame of its protocol";
    MessageUnknown = 6402, "message-unknown", "a client sent a message that nobody handles";
    MessageRefused = 6403, "message-refused", "a client's message was refused and changed nothing";
    NodeUntold = 6404, "node-untold", "a node of a cluster cannot be told what there is to tell";
    ClusterNotReady = 6501, "cluster-not-ready", "a MindSpore cluster is not in the state for that";
    ScaleRefused = 6502, "scale-refused", "a MindSpore cluster cannot be scaled so";
    PlanOutdated = 6503, "plan-outdated", "a MindSpore cluster has changed since it was looked at";
    NothingToAbort = 6504, "nothing-to-abort", "a MindSpore cluster does nothing that can be taken back";
    RecordsDamaged = 6651, "records-damaged", "records of a mutable chunk are damaged on disk";

    NeverCame = 7101, "never-came", "a task has not registered, and others wait for it";
    CameAndGone = 7102, "came-and-gone", "a task came to a place where others wait, and is gone";
    Elsewhere = 7103, "elsewhere", "tasks wait for each other at different places";
    WaitsForKey = 7104, "waits-for-key", "a task waits for a key that nobody has written";
    Busy = 7105, "busy", "a task is alive and has not come to where others wait";
    Late = 7106, "late", "a task has not been heard for longer than its heartbeats take";
    Frozen = 7107, "frozen", "the process of a task does not run";
    HostSilent = 7108, "host-silent", "all tasks of a host have not been heard";
    Ended = 7109, "ended", "the process of a task has ended";
    Gone = 7110, "gone", "a task was given up";
    Timeouts = 7111, "timeouts", "a job and its clients disagree about time-outs";
    InError = 7113, "in-error", "a task is in error";
    NoQuorum = 7201, "no-quorum", "too few voters answer";
    Leaderless = 7202, "leaderless", "enough voters answer, and none of them leads";
    NodeCut = 7203, "node-cut", "a node is cut off from its peers";
    DiskSlow = 7204, "disk-slow", "the disk of the leader is slow";
    LeaderPaused = 7205, "leader-paused", "the process of the leader did not run for a while";
    ApplyBacklog = 7206, "apply-backlog", "a node is behind with what is committed";
    EventsUnknown = 7301, "events-unknown", "nothing is known of a job of that name";
    EventsNotTold = 7302, "events-not-told", "the feature level does not let events be told";
    UiHost = 7501, "ui-host", "a page was asked for by a name that is none of the cluster's";
    UiRequest = 7502, "ui-request", "what was asked of the page is not served";
    UiFull = 7503, "ui-full", "as many viewers watch a node's page as may";
}

impl Code {
    /// The number, as in the name of its page.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The code with this number.
    #[must_use]
    pub fn numbered(number: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.number() == number)
    }

    /// The first code in a text, as it stands before what it is about: `T3101 log-damaged:`.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        Self::all_in(text).next()
    }

    /// The first code in a text that names a cause: not one that is given to whatever has none of its own.
    #[must_use]
    pub fn find_cause(text: &str) -> Option<Self> {
        Self::all_in(text).find(|code| !code.is_catch_all())
    }

    /// Whether it only says where something went wrong, and the text alone says what.
    #[must_use]
    pub fn is_catch_all(self) -> bool {
        matches!(self, Self::Defect | Self::NodeEnded | Self::Refused)
    }

    fn all_in(text: &str) -> impl Iterator<Item = Self> {
        text.match_indices('T').filter_map(|(at, _)| Self::at_start(&text[at..]))
    }

    fn at_start(text: &str) -> Option<Self> {
        let (number, rest) = text.strip_prefix('T')?.split_at_checked(4)?;
        let code = Self::numbered(number.parse().ok()?)?;
        rest.strip_prefix(' ')?.strip_prefix(code.slug())?.starts_with(END).then_some(code)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{:04} {}", self.number(), self.slug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_and_words_are_unique() {
        for pair in Code::ALL.windows(2) {
            assert!(pair[0].number() < pair[1].number(), "{} {}", pair[0], pair[1]);
        }
        let mut slugs: Vec<_> = Code::ALL.iter().map(|code| code.slug()).collect();
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!((1000..8000).contains(&code.number()), "{code}");
            let legal = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(code.slug().chars().all(legal) && !code.title().ends_with('.'), "{code}");
        }
    }

    #[test]
    fn a_code_is_found_where_it_stands_before_its_text() {
        assert_eq!(Code::LogDamaged.to_string(), "T3101 log-damaged");
        let found = |text: &str| Code::find(text);
        assert_eq!(found("T3101 log-damaged: the log"), Some(Code::LogDamaged));
        assert_eq!(found("node 1 cannot go on: T3102 log-io: cannot sync"), Some(Code::LogIo));
        assert_eq!(found("The first: T3104 log-locked: and T3102 log-io: x"), Some(Code::LogLocked));
        for none in ["", "T", "T3101", "T3101 log-io: x", "T3101 log-damaged", "T9999 x: y", "Täöü: x"] {
            assert_eq!(found(none), None, "{none}");
        }
    }

    #[test]
    fn a_cause_is_no_catch_all() {
        let node_ended = "T4206 node-ended: node 1 cannot go on: something";
        assert_eq!((Code::find(node_ended), Code::find_cause(node_ended)), (Some(Code::NodeEnded), None));
        let full = format!("{node_ended}, T3201 disk-full: no room");
        assert_eq!(Code::find_cause(&full), Some(Code::DiskFull));
    }

    #[test]
    fn numbers_name_codes() {
        assert_eq!(Code::numbered(3101), Some(Code::LogDamaged));
        assert_eq!(Code::numbered(3100), None);
    }
}
