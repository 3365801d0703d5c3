//! Everything that can be called on a gRPC port.

include!(concat!(env!("OUT_DIR"), "/rpc.rs"));

impl Rpc {
    /// That of a path such as `/package.Service/Method`, if there is one.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let (service, method) = path.strip_prefix('/')?.split_once('/')?;
        Self::find(service, method)
    }

    /// `/package.Service/Method`.
    #[must_use]
    pub fn path(self) -> String {
        format!("/{}/{}", self.service(), self.method())
    }
}
