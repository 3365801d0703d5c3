//! Who gives a command, for other people who find what it began.

use std::fs;

use nix::unistd::{Uid, User};

/// What a shell or a login sets, the better known first; cron and containers often set neither.
const VARIABLES: [&str; 2] = ["USER", "LOGNAME"];

/// `USER@HOST`, as far as it is known.
pub(crate) fn who() -> String {
    let named = VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
    let uid = Uid::effective();
    let account = || User::from_uid(uid).ok().flatten().map(|user| user.name);
    let user = name(named, account, uid.as_raw());
    match host() {
        Some(host) => format!("{user}@{host}"),
        None => user,
    }
}

/// This machine's name, if it has one.
pub(crate) fn host() -> Option<String> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    (!host.is_empty()).then(|| host.to_owned())
}

/// The first name that is not empty, the name of the account, or the number of the user.
fn name(
    mut named: impl Iterator<Item = String>,
    account: impl FnOnce() -> Option<String>,
    uid: u32,
) -> String {
    let named = named.find(|name| !name.is_empty());
    named.or_else(account).unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n36_a_user_without_variables_has_the_name_of_the_account_or_a_number() {
        let told = |variables: &[&str], account: Option<&str>| {
            let variables = variables.iter().map(|name| (*name).to_owned());
            name(variables, || account.map(str::to_owned), 1000)
        };
        assert_eq!(told(&["ada", "grace"], None), "ada");
        assert_eq!(told(&["", "grace"], Some("alan")), "grace");
        assert_eq!(told(&[], Some("alan")), "alan");
        assert_eq!(told(&[], None), "uid 1000");
    }
}
