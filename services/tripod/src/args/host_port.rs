//! `HOST:PORT`, checked for its form only: the name is resolved when it is used.

/// Checks the form.
///
/// # Errors
/// It has no host, no port, or a port above 65535.
pub(crate) fn host_port(text: &str) -> Result<String, String> {
    let parts = text.rsplit_once(':');
    let valid = parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if valid { Ok(text.to_owned()) } else { Err(format!("`{text}` is not HOST:PORT")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_a_host_and_a_port() {
        for good in ["10.0.0.1:7700", "node-1.example:7700", "[::1]:7700", "localhost:0"] {
            assert_eq!(host_port(good).as_deref(), Ok(good));
        }
        for bad in ["", "7700", "10.0.0.1", ":7700", "a:b", "a:-1", "a:65536"] {
            assert_eq!(host_port(bad), Err(format!("`{bad}` is not HOST:PORT")));
        }
    }
}
