//! Whether a worker or a store may be where it says that it is: the leader connects to it, and so do other stores.
//!
//! It is judged by the node that the caller is connected to, which alone sees where it comes from. What is noted is the
//! address that was judged, also if a name was given.

use tonic::{Extensions, Request, Status};
use tripod_dial::Dialler;
use tripod_port::{CallContext, CallerAddress};
use tripod_proto::ray as pb;

use crate::status;

/// The request with an address in the place of the worker's host.
///
/// # Errors
/// `PERMISSION_DENIED` with T6305.
pub(crate) async fn worker(
    dialler: &Dialler,
    extensions: &Extensions,
    message: pb::RegisterWorkerRequest,
) -> Result<pb::RegisterWorkerRequest, Status> {
    let mut message = message;
    // What has no bytes at all the domain refuses.
    if !message.node_ip_address.is_empty() {
        let CallerAddress(from) = CallContext::address(extensions);
        let admitted = dialler.admit_host(&message.node_ip_address, from).await;
        message.node_ip_address = admitted.map_err(|refused| status::not_dialled(&refused))?;
        // Nobody is connected to for this one: it names a store, as it was noted when that one came.
        if let Ok(noted) = dialler.admit(&message.objstore_address, from).await {
            message.objstore_address = noted;
        }
    }
    Ok(message)
}

/// The request with an address in the place of the store's name.
///
/// # Errors
/// As [`worker`].
pub(crate) async fn store(
    dialler: &Dialler,
    request: Request<pb::RegisterObjStoreRequest>,
) -> Result<Request<pb::RegisterObjStoreRequest>, Status> {
    let mut request = request;
    if !request.get_ref().objstore_address.is_empty() {
        let CallerAddress(from) = CallContext::address(request.extensions());
        let admitted = dialler.admit(&request.get_ref().objstore_address, from).await;
        request.get_mut().objstore_address = admitted.map_err(|refused| status::not_dialled(&refused))?;
    }
    Ok(request)
}
