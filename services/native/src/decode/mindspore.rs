//! What operators ask of a MindSpore cluster.

use tonic::Status;
use tripod_proto::tripod::v1 as wire;
use tripod_state::mindspore::cluster::{Change, Request, Switch};
use tripod_state::mindspore::limits::NODES_MAX;

use super::invalid;

/// A change to be planned.
pub(crate) fn change(asked: Option<wire::mindspore_plan_request::Change>) -> Result<Change, Status> {
    use wire::mindspore_plan_request::Change as Asked;
    match asked {
        Some(Asked::AddServers(servers)) => Ok(Change::Add { servers }),
        Some(Asked::ToServers(servers)) => Ok(Change::Resize { servers }),
        Some(Asked::Leave(leave)) => Ok(Change::Leave { nodes: bounded(leave)? }),
        None => Err(missing()),
    }
}

/// A change to be made.
pub(crate) fn scale(asked: Option<wire::mindspore_scale_request::Change>) -> Result<Request, Status> {
    use wire::mindspore_scale_request::Change as Asked;
    match asked {
        Some(Asked::AddServers(servers)) => Ok(Request::ScaleOut { workers: 0, servers }),
        Some(Asked::Leave(leave)) => Ok(Request::ScaleIn { nodes: bounded(leave)? }),
        None => Err(missing()),
    }
}

/// What all servers are to be told.
pub(crate) fn switch(asked: i32) -> Result<Switch, Status> {
    match wire::MindsporeSwitch::try_from(asked) {
        Ok(wire::MindsporeSwitch::NewInstance) => Ok(Switch::NewInstance),
        Ok(wire::MindsporeSwitch::EnableFls) => Ok(Switch::EnableFls),
        Ok(wire::MindsporeSwitch::DisableFls) => Ok(Switch::DisableFls),
        Ok(wire::MindsporeSwitch::Unspecified) => Err(invalid("switch", "is missing")),
        Err(_) => Err(invalid("switch", &format!("{asked} is unknown"))),
    }
}

/// No more names than a cluster can have nodes: each is looked for.
fn bounded(leave: wire::MindsporeLeave) -> Result<Vec<String>, Status> {
    let count = leave.node_ids.len() as u64;
    if count > NODES_MAX {
        return Err(invalid(
            "leave.node_ids",
            &format!("names {count} nodes, at most {NODES_MAX} are allowed"),
        ));
    }
    Ok(leave.node_ids)
}

fn missing() -> Status {
    invalid("change", "is missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_refused_by_field_name() {
        assert_eq!(change(None).expect_err("refused").message(), "field `change`: is missing");
        assert_eq!(scale(None).expect_err("refused").message(), "field `change`: is missing");
        assert_eq!(switch(0).expect_err("refused").message(), "field `switch`: is missing");
        assert_eq!(switch(9).expect_err("refused").message(), "field `switch`: 9 is unknown");
    }

    #[test]
    fn more_names_than_there_can_be_nodes_are_refused() {
        let leave = |count: usize| wire::MindsporeLeave { node_ids: vec!["s1".into(); count] };
        let most = usize::try_from(NODES_MAX).expect("few");
        assert!(bounded(leave(most)).is_ok());
        assert!(bounded(leave(most + 1)).expect_err("refused").message().contains("leave.node_ids"));
    }
}
