//! Work that would hold up a worker of the runtime.

use tripod_raft::Chance;

/// Does work that takes long without giving way, on a thread of its own. In a simulation, which has one thread, the
/// caller does it. `None` if it panicked, or if the runtime is ending.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if Chance::is_seeded() {
        return Some(work());
    }
    tokio::task::spawn_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_simulation_does_it_itself() {
        let here = std::thread::current().id();
        let id = || std::thread::current().id();
        assert_ne!(aside(id).await, Some(here));
        let _seeded = Chance::seed(1);
        assert_eq!(aside(id).await, Some(here));
    }
}
