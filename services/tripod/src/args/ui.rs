//! `--ui`: where a node serves its page.

use std::str::FromStr;

use crate::args::host_port::host_port;

/// Where a node serves its page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Ui {
    /// On the http port.
    #[default]
    Http,
    Off,
    /// On a port of its own, `HOST:PORT`.
    At(String),
}

impl Ui {
    /// The address of the page's own port, if it has one.
    pub(crate) fn own_address(&self) -> Option<&str> {
        match self {
            Self::Http | Self::Off => None,
            Self::At(address) => Some(address),
        }
    }
}

impl FromStr for Ui {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "http" => Ok(Self::Http),
            "off" => Ok(Self::Off),
            _ => host_port(text)
                .map(Self::At)
                .map_err(|why| format!("it is `http`, `off` or an address of the page's own: {why}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_on_the_http_port_or_off_or_elsewhere() {
        assert_eq!("http".parse(), Ok(Ui::Http));
        assert_eq!("off".parse(), Ok(Ui::Off));
        assert_eq!("127.0.0.1:7990".parse(), Ok(Ui::At("127.0.0.1:7990".to_owned())));
        assert!("on".parse::<Ui>().is_err_and(|why| why.starts_with("it is `http`, `off`")));
    }
}
