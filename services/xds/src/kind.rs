//! The types of resources that a client asks for, and how a job is named in each.

/// What a resource is. In this order a client is told of changes, so that nothing is named to it that it
/// could not find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// How a cluster is balanced over its endpoints.
    Cluster,
    /// Where a cluster is.
    Endpoints,
    /// What a client asks first: which cluster takes the calls, and which of them are made again.
    Listener,
}

impl Kind {
    /// The kind of that type; `None` for types that are not served.
    pub(crate) fn of(type_url: &str) -> Option<Self> {
        match type_url {
            "type.googleapis.com/envoy.config.cluster.v3.Cluster" => Some(Self::Cluster),
            "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment" => Some(Self::Endpoints),
            "type.googleapis.com/envoy.config.listener.v3.Listener" => Some(Self::Listener),
            _ => None,
        }
    }

    /// Its type, as messages name it.
    pub(crate) fn type_url(self) -> &'static str {
        match self {
            Self::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Self::Endpoints => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Self::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
        }
    }

    /// The name of the job that a resource belongs to. Clusters and endpoints are named by us, listeners
    /// by clients: some of these cannot do without a port, which means nothing here.
    pub(crate) fn job(self, resource: &str) -> &str {
        match self {
            Self::Cluster | Self::Endpoints => resource,
            Self::Listener => match resource.split_once(':') {
                Some((job, port)) if port.parse::<u16>().is_ok() => job,
                _ => resource,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_type() {
        for kind in [Kind::Cluster, Kind::Endpoints, Kind::Listener] {
            assert_eq!(Kind::of(kind.type_url()), Some(kind));
        }
        assert_eq!(Kind::of("type.googleapis.com/envoy.config.route.v3.RouteConfiguration"), None);
    }

    #[test]
    fn the_port_of_a_listener_means_nothing() {
        for (asked, job) in [
            ("train:1", "train"),
            ("train", "train"),
            ("a.b:65535", "a.b"),
            ("a:b", "a:b"),
            ("a:1:2", "a:1:2"),
        ] {
            assert_eq!(Kind::Listener.job(asked), job);
        }
        assert_eq!(Kind::Cluster.job("train:1"), "train:1");
    }
}
