//! A protocol that a node speaks, as a value: whoever composes a node has a list of them and knows no more.

use std::sync::Arc;

use tonic::service::Routes;
use tripod_port::{Direct, Framed, Grpc, Manner, Manners, Served};

use crate::backend::Future;
use crate::job::JobBinding;

/// The ports of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortKind {
    /// The node's client port, and its unix socket.
    Client,
    /// The port of one job.
    Job,
    /// A port of the one protocol with this name, which frames its bytes itself.
    Own(&'static str),
}

/// A protocol that a node speaks.
pub trait FrontEnd: Send + Sync {
    /// Names it in logs.
    fn name(&self) -> &'static str;

    /// Whether it has services on such a port.
    fn serves(&self, port: PortKind) -> bool;

    /// Adds its services of gRPC, for the job that `binding` names, to those of a port; what it puts around its own services
    /// does not touch those of others.
    fn add_to(&self, routes: Routes, _binding: &JobBinding) -> Routes {
        routes
    }

    /// Those of the services that it [adds](Self::add_to) which are called past the router: the same, in the same words. None
    /// of them may keep anything of its own, as there are two of it.
    fn direct(&self, _binding: &JobBinding) -> Vec<Direct> {
        Vec::new()
    }

    /// How it serves the connections of a port of its own, for the job that `binding` names, if it frames its bytes itself.
    fn framed(&self, _binding: &JobBinding) -> Option<Framed> {
        None
    }

    /// How its calls may end when their port stops.
    fn manners(&self) -> &'static [Manner];

    /// What it does beside answering, for as long as it is polled: asked for once for a node. Only the leader does
    /// anything; this also waits to lead.
    fn background(&self) -> Option<Future<()>> {
        None
    }
}

/// Those of a node. Clones are the same.
#[derive(Clone)]
pub struct FrontEnds(Arc<[Box<dyn FrontEnd>]>);

impl std::fmt::Debug for FrontEnds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|front_end| front_end.name())).finish()
    }
}

impl FrontEnds {
    /// Those of a list.
    #[must_use]
    pub fn of(list: Vec<Box<dyn FrontEnd>>) -> Self {
        Self(list.into())
    }

    /// What a port serves for the job that `binding` names: all services of gRPC and how their calls end, or the one protocol
    /// whose own it is.
    #[must_use]
    pub fn served(&self, port: PortKind, binding: &JobBinding) -> Served {
        let framed =
            matches!(port, PortKind::Own(_)).then(|| self.on(port).find_map(|own| own.framed(binding)));
        if let Some(framed) = framed.flatten() {
            return Served::Framed(framed);
        }
        let manners: Vec<&[Manner]> = self.on(port).map(FrontEnd::manners).collect();
        let direct = self.on(port).flat_map(|front_end| front_end.direct(binding)).collect();
        Served::Grpc(Grpc { routes: self.routes(port, binding), direct, manners: Manners::of(&manners) })
    }

    /// The services alone, for those who serve them by a transport of their own.
    #[must_use]
    pub fn routes(&self, port: PortKind, binding: &JobBinding) -> Routes {
        self.on(port).fold(Routes::default(), |routes, front_end| front_end.add_to(routes, binding))
    }

    fn on(&self, port: PortKind) -> impl Iterator<Item = &dyn FrontEnd> {
        self.0.iter().map(AsRef::as_ref).filter(move |front_end| front_end.serves(port))
    }

    /// What they do beside answering, with their names: to be polled as long as the node lives.
    #[must_use]
    pub fn background(&self) -> Vec<(&'static str, Future<()>)> {
        self.0.iter().filter_map(|front_end| Some((front_end.name(), front_end.background()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Notes for which bindings it was asked.
    struct Noting {
        name: &'static str,
        on: PortKind,
        asked: Arc<Mutex<Vec<&'static str>>>,
    }

    impl FrontEnd for Noting {
        fn name(&self) -> &'static str {
            self.name
        }

        fn serves(&self, port: PortKind) -> bool {
            port == self.on
        }

        fn add_to(&self, routes: Routes, _binding: &JobBinding) -> Routes {
            self.asked.lock().unwrap().push(self.name);
            routes
        }

        fn manners(&self) -> &'static [Manner] {
            &[]
        }
    }

    #[test]
    fn a_port_has_the_services_of_those_who_serve_there_in_their_order() {
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let one =
            |name, on| -> Box<dyn FrontEnd> { Box::new(Noting { name, on, asked: Arc::clone(&asked) }) };
        let list = vec![one("a", PortKind::Job), one("b", PortKind::Client), one("c", PortKind::Job)];
        let front_ends = FrontEnds::of(list);
        let served = front_ends.served(PortKind::Job, &JobBinding::Named("default".into()));
        assert!(matches!(served, Served::Grpc(..)));
        assert_eq!(*asked.lock().unwrap(), ["a", "c"]);
        assert!(front_ends.background().is_empty());
        assert_eq!(format!("{front_ends:?}"), r#"["a", "b", "c"]"#);
    }
}
