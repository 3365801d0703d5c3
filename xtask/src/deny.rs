//! What others have written: licences, sources, forbidden crates, and known vulnerabilities, as cargo-deny finds them.

use std::process::Stdio;

use anyhow::Result;

use crate::cargo::{cargo, run};

/// Licences, sources and forbidden crates: needs nothing but what was fetched for building.
const OFFLINE: &[&str] =
    &["deny", "--offline", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"];

/// Looks at all crates of the workspace, by `deny.toml`. Without the program nothing is looked at, and without a way to
/// its list of vulnerabilities those are not. Both is said, and is no failure: a machine from which neither is reached
/// must be able to test everything else.
///
/// # Errors
/// Something is not as `deny.toml` wants it.
pub(crate) fn check() -> Result<()> {
    if !works(&["deny", "--version"]) {
        say(
            "no cargo-deny here (cargo install --locked cargo-deny), so that licences, sources and vulnerabilities of \
             crates were not looked at",
        );
        return Ok(());
    }
    run(cargo(OFFLINE))?;
    if !works(&["deny", "fetch", "db"]) {
        say("the list of vulnerabilities is not reached from here, so that they were not looked at");
        return Ok(());
    }
    run(cargo(&["deny", "check", "--disable-fetch", "advisories"]))
}

/// Whether a command of cargo ends well; what it says is of no interest.
fn works(arguments: &[&str]) -> bool {
    let status = cargo(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn say(what: &str) {
    eprintln!("  missing: {what}");
}
