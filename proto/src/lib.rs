//! Messages and services on the wire, generated from the `.proto` files beside this crate. Field
//! numbers are facts of the protocols. There is no logic here, and no type of the domain.
//!
//! [`metadata`] names what of ours travels beside the messages, [`code`] what may go wrong;
//! [`bounds`] how large a message may be; [`raw`] is for those that pass messages on, [`wide`] for ids of two fields.

#![allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    reason = "generated; the .proto files carry the words"
)]

pub mod bounds;
pub mod code;
pub mod metadata;
pub mod raw;
pub mod wide;

// Where generated code of other packages looks for messages without one.
use ray::{
    AddContainedObjectIDsRequest, AliasObjectIDsRequest, DeallocateObjectRequest, DecrementRefCountRequest,
    DieRequest, ExecuteTaskRequest, ImportFunctionRequest, ImportReusableVariableRequest,
    IncrementRefCountRequest, NotifyAliasRequest, ObjReadyRequest, PutObjReply, PutObjRequest,
    ReadyForNewTaskRequest, RegisterFunctionRequest, RequestObjRequest, StartDeliveryRequest,
    SubmitTaskReply, SubmitTaskRequest,
};

/// Our own API for the command line, SDK and agents.
pub mod tripod {
    pub mod v1 {
        tonic::include_proto!("tripod.v1");
    }
    /// Between the nodes of a cluster.
    pub mod peer {
        pub mod v1 {
            tonic::include_proto!("tripod.peer.v1");
        }
    }
}

/// Dialect L, `xla.DistributedRuntimeService`: jaxlib before 0.4.14 without the coordination service.
pub mod xla {
    tonic::include_proto!("xla");

    /// Dialect N: jaxlib 0.10.0 and later.
    pub mod coordination {
        tonic::include_proto!("xla.coordination");
    }
}

/// Dialect T: jaxlib up to 0.9.2, and TensorFlow.
pub mod tensorflow {
    tonic::include_proto!("tensorflow");

    pub mod distributed_runtime {
        tonic::include_proto!("tensorflow.distributed_runtime");
    }

    pub mod eager {
        tonic::include_proto!("tensorflow.eager");
    }
}

/// The scheduler, object stores and workers of the Ray of August 2016. Its messages have no package, and some
/// have the names of Rust's own types.
pub mod ray {
    tonic::include_proto!("_");
}

/// The two protocols of MindSpore's schedulers. Neither has services: both frame their messages themselves.
pub mod mindspore {
    /// The parameter server of MindSpore 1.2 to 2.2.
    pub mod ps_core {
        tonic::include_proto!("mindspore.ps.core");
    }

    /// The dynamic cluster of MindSpore 1.8 and later.
    pub mod topology {
        tonic::include_proto!("mindspore.distributed.cluster.topology");
    }
}

/// Sessions, graphs of tensors and their chunks.
pub mod mars {
    pub mod v1 {
        tonic::include_proto!("mars.v1");
    }
}

/// The part of etcd's API that the benchmarks drive it with.
pub mod etcdserverpb {
    tonic::include_proto!("etcdserverpb");
}

/// Every file's descriptor, for tests that compare services with their documentation.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
