//! Which path is what.

use tripod_state::mindspore::cluster::Switch;

/// What an operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    ScaleOut,
    ScaleIn,
    Rollback,
    Nodes,
    State,
    Switch(Switch),
    QueryInstance,
}

const ROUTES: &[(&str, Route)] = &[
    ("/scaleout", Route::ScaleOut),
    ("/scalein", Route::ScaleIn),
    ("/scaleoutRollback", Route::Rollback),
    ("/nodes", Route::Nodes),
    ("/state", Route::State),
    ("/newInstance", Route::Switch(Switch::NewInstance)),
    ("/enableFLS", Route::Switch(Switch::EnableFls)),
    ("/disableFLS", Route::Switch(Switch::DisableFls)),
    ("/queryInstance", Route::QueryInstance),
];

impl Route {
    /// What a path asks for.
    pub(super) fn of(path: &str) -> Option<Self> {
        ROUTES.iter().find(|(known, _)| *known == path).map(|(_, route)| *route)
    }

    /// All paths, as a person reads them.
    pub(super) fn all() -> String {
        let paths: Vec<&str> = ROUTES.iter().map(|(path, _)| *path).collect();
        paths.join(", ")
    }
}
