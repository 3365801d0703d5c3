//! The types of resources that a client asks for, and how a job is named in them.

/// What a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// What a client asks for first: which cluster takes its calls, and which of them are made again.
    Listener,
    /// How a client chooses among the endpoints of a cluster.
    Cluster,
    /// Where a cluster is.
    Endpoints,
}

impl Kind {
    /// The kind of that type; `None` for types that are not served.
    pub(crate) fn of(type_url: &str) -> Option<Self> {
        match type_url {
            "type.googleapis.com/envoy.config.listener.v3.Listener" => Some(Self::Listener),
            "type.googleapis.com/envoy.config.cluster.v3.Cluster" => Some(Self::Cluster),
            "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment" => Some(Self::Endpoints),
            _ => None,
        }
    }

    /// Its type, as messages name it.
    pub(crate) fn type_url(self) -> &'static str {
        match self {
            Self::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
            Self::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Endpoints => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
        }
    }
}

/// The job that a listener belongs to. Clusters and endpoints are named by us, listeners by clients: some
/// of these cannot do without a port, which means nothing here.
pub(crate) fn job_of(listener: &str) -> &str {
    match listener.split_once(':') {
        Some((job, port)) if port.parse::<u16>().is_ok() => job,
        _ => listener,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_type() {
        for kind in [Kind::Listener, Kind::Cluster, Kind::Endpoints] {
            assert_eq!(Kind::of(kind.type_url()), Some(kind));
        }
        assert_eq!(Kind::of("type.googleapis.com/envoy.config.route.v3.RouteConfiguration"), None);
    }

    #[test]
    fn the_port_of_a_listener_means_nothing() {
        let names = [
            ("train:1", "train"),
            ("train", "train"),
            ("a.b:65535", "a.b"),
            ("a:b", "a:b"),
            ("a:1:2", "a:1:2"),
        ];
        for (listener, job) in names {
            assert_eq!(job_of(listener), job);
        }
    }
}
