//! Services that are called past the router of their port.
//!
//! A router finds a service by its path, which a comparison of names does as well, and boxes each call, its request's body
//! and its answer's body for it twice: a tenth of what a small call costs.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic::service::Routes;

use crate::bodies::{AnswerBody, RequestBody};
use crate::call_context::CallContext;
use crate::holding::Received;

/// A call's request, as a port hands it to a service.
pub type DirectRequest = Request<Received<RequestBody>>;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A service that is called past the router.
pub trait DirectService: Send + Sync + 'static {
    /// `package.Service`, as in its paths.
    fn name(&self) -> &'static str;

    /// Begins a call of one of its methods, of which nothing may run before the future is polled. `context` is not among the
    /// request's extensions; whoever needs it there [puts](CallContext::put) it.
    fn call(&self, request: DirectRequest, context: CallContext) -> DirectAnswer;
}

/// The answer to a call, to be waited for.
pub enum DirectAnswer {
    /// Of a service that makes its answers' bodies itself.
    Own(Boxed<Response<AnswerBody>>),
    /// Of a service that was generated.
    Generated(Boxed<Result<Response<Body>, Infallible>>),
    /// Of the router. It is much larger than the others, and as large as it every call would be.
    Routed(Box<<Routes as Service<DirectRequest>>::Future>),
}

/// A service, and what a port does around its calls. Cheap to clone.
#[derive(Clone)]
pub struct Direct {
    service: Arc<dyn DirectService>,
    is_dialect: bool,
}

/// Those of a port. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirectServices(Arc<[Direct]>);

/// One that was generated.
struct Generated<S>(S);

impl Direct {
    /// A service, with nothing around its calls.
    #[must_use]
    pub fn of(service: impl DirectService) -> Self {
        Self { service: Arc::new(service), is_dialect: false }
    }

    /// One that was generated.
    #[must_use]
    pub fn generated<S>(service: S) -> Self
    where
        S: Service<
                DirectRequest,
                Response = Response<Body>,
                Error = Infallible,
                Future = Boxed<Result<Response<Body>, Infallible>>,
            > + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
    {
        Self::of(Generated(service))
    }

    /// The same whose clients are those of others, with their codes: a label of the host is read, a call ends in time
    /// with the code that means so ([`crate::deadline`]), and so does one whose message is too long ([`crate::overlong`]).
    #[must_use]
    pub fn of_dialect(self) -> Self {
        Self { is_dialect: true, ..self }
    }

    pub(crate) fn is_dialect(&self) -> bool {
        self.is_dialect
    }

    pub(crate) fn call(&self, request: DirectRequest, context: CallContext) -> DirectAnswer {
        self.service.call(request, context)
    }
}

impl DirectServices {
    pub(crate) fn of(services: Vec<Direct>) -> Self {
        Self(services.into())
    }

    /// The one of a path such as `/package.Service/Method`.
    pub(crate) fn find(&self, path: &str) -> Option<&Direct> {
        let (service, method) = path.strip_prefix('/')?.split_once('/')?;
        // Without a method it is no path of the service, and the router says so.
        let is_call = !method.is_empty();
        self.0.iter().find(|direct| is_call && direct.service.name() == service)
    }
}

impl<S> DirectService for Generated<S>
where
    S: Service<
            DirectRequest,
            Response = Response<Body>,
            Error = Infallible,
            Future = Boxed<Result<Response<Body>, Infallible>>,
        > + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
{
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn call(&self, mut request: DirectRequest, context: CallContext) -> DirectAnswer {
        context.put(request.extensions_mut());
        DirectAnswer::Generated(self.0.clone().call(request))
    }
}

impl Future for DirectAnswer {
    type Output = Response<AnswerBody>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = match self.get_mut() {
            Self::Own(answer) => return answer.as_mut().poll(context),
            Self::Generated(answer) => ready!(answer.as_mut().poll(context)),
            Self::Routed(answer) => ready!(Pin::new(answer).poll(context)),
        };
        match answer {
            Ok(answer) => Poll::Ready(answer.map(AnswerBody::Other)),
            Err(never) => match never {},
        }
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.service.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl DirectService for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn call(&self, _: DirectRequest, _: CallContext) -> DirectAnswer {
            DirectAnswer::Own(Box::pin(std::future::ready(Response::default())))
        }
    }

    #[test]
    fn a_service_has_the_paths_with_its_name_and_a_method() {
        let services =
            DirectServices::of(vec![Direct::of(Named("a.B")), Direct::of(Named("a.BC")).of_dialect()]);
        let found = |path| services.find(path).map(|direct| (direct.service.name(), direct.is_dialect()));
        assert_eq!(found("/a.B/Look"), Some(("a.B", false)));
        assert_eq!(found("/a.BC/Look/More"), Some(("a.BC", true)));
        for path in ["/a.B/", "/a.B", "a.B/Look", "/a/B/Look", "//Look", ""] {
            assert_eq!(found(path), None, "{path:?}");
        }
    }
}
