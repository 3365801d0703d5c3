//! What must be true of whoever proves by a certificate who it is.

use super::Mutant;

const TLS: &str = "-p tripod-tls";

pub(super) const ROWS: &[Mutant] = &[
    Mutant {
        name: "certificate-without-usage",
        promise: "A certificate counts only for the usage that it names: one that names none is nobody's.",
        file: "services/tls/src/chain.rs",
        original: &["let usage = KeyUsage::required(match side {"],
        replacement: &["let usage = KeyUsage::required_if_present(match side {"],
        tests: TLS,
    },
    Mutant {
        name: "certificate-of-another-cluster",
        promise: "What another cluster's certificates say means nothing, whoever has signed them.",
        file: "services/tls/src/chain.rs",
        original: &["Some(realm) => identity.within(realm),"],
        replacement: &["Some(_) => Ok::<_, tripod_identity::Refused>(identity),"],
        tests: TLS,
    },
    Mutant {
        name: "files-of-somebody-else",
        promise: "A process does not become another one because its files were replaced.",
        file: "services/tls/src/tls.rs",
        original: &["if newer.identity != current.identity {"],
        replacement: &["if newer.identity.realm != current.identity.realm {"],
        tests: TLS,
    },
];
