//! Creating, showing and deleting jobs.

use tonic::Code;
use tripod_calls::Way;
use tripod_proto::bounds::ANSWER_ENCODED_BYTES_MAX;

use crate::call::Repeat;
use crate::client::Client;
use crate::error::Error;
use crate::wire;
use crate::wire::jobs_client::JobsClient;

/// The jobs of a cluster.
#[derive(Debug, Clone)]
pub struct Jobs {
    client: Client,
}

impl Jobs {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Creates a job.
    ///
    /// # Errors
    /// [`Error::Refused`] when the name is taken or illegal, or a parameter is out of bounds, else as
    /// any call. [`Error::OutcomeUnknown`] when the job may exist now.
    pub async fn create(&self, name: &str, spec: &wire::JobSpec) -> Result<wire::Job, Error> {
        let request = wire::CreateJobRequest { name: name.to_owned(), spec: Some(spec.to_owned()) };
        let create = |way: Way| {
            let request = request.clone();
            async move { JobsClient::new(way).create(request).await }
        };
        self.client.caller().call("job create", Repeat::IfNotExecuted, create).await
    }

    /// A job with its tasks and the barriers at which they wait, or `None` if there is none of that name.
    ///
    /// # Errors
    /// As any call.
    pub async fn get(&self, name: &str) -> Result<Option<wire::Job>, Error> {
        self.look(wire::GetJobRequest { name: name.to_owned(), or_from_memory: false }).await
    }

    /// The same; while nobody leads, what one node remembers of it, which says so by `as_of`.
    ///
    /// # Errors
    /// As any call.
    pub async fn get_or_remembered(&self, name: &str) -> Result<Option<wire::Job>, Error> {
        self.look(wire::GetJobRequest { name: name.to_owned(), or_from_memory: true }).await
    }

    async fn look(&self, request: wire::GetJobRequest) -> Result<Option<wire::Job>, Error> {
        let get = |way: Way| {
            let request = request.clone();
            async move {
                JobsClient::new(way).max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX).get(request).await
            }
        };
        match self.client.caller().call("job show", Repeat::Freely, get).await {
            Ok(job) => Ok(Some(job)),
            Err(Error::Refused { code: Code::NotFound, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every job, without its tasks and barriers.
    ///
    /// # Errors
    /// As any call.
    pub async fn list(&self) -> Result<Vec<wire::Job>, Error> {
        let list = |way: Way| async move {
            JobsClient::new(way)
                .max_decoding_message_size(ANSWER_ENCODED_BYTES_MAX)
                .list(wire::ListJobsRequest {})
                .await
        };
        Ok(self.client.caller().call("job list", Repeat::Freely, list).await?.jobs)
    }

    /// Writes a note about a job, for people; an empty one takes it away.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such job, or the cluster's feature level does not allow it, else as any
    /// call.
    pub async fn note(&self, name: &str, note: &str) -> Result<(), Error> {
        let request = wire::NoteJobRequest { name: name.to_owned(), note: note.to_owned() };
        let write = |way: Way| {
            let request = request.clone();
            async move { JobsClient::new(way).note(request).await }
        };
        self.client.caller().call("job note", Repeat::Freely, write).await.map(|_| ())
    }

    /// Says that the process that was this life of a task is no more: the task is lost at once, and not only when it has been
    /// silent for too long. If another life is there by now, nothing happens. `end`: how it ended, if that is known; the others
    /// are told so from feature level 11 on.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such job, else as any call.
    pub async fn end_task(
        &self,
        name: &str,
        task_id: i32,
        incarnation: u64,
        end: Option<wire::ProcessEnd>,
    ) -> Result<(), Error> {
        let request = wire::EndTaskRequest { name: name.to_owned(), task_id, incarnation, end };
        let end = |way: Way| {
            let request = request.clone();
            async move { JobsClient::new(way).end_task(request).await }
        };
        self.client.caller().call("job end-task", Repeat::Freely, end).await.map(|_| ())
    }

    /// Says on which host this life of a task runs, for people who look at the job. If another life is connected, nothing
    /// happens. `host`: 1 to 255 bytes.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such job, or the cluster's feature level does not allow it, else as any call.
    pub async fn note_host(
        &self,
        name: &str,
        task_id: i32,
        incarnation: u64,
        host: &str,
    ) -> Result<(), Error> {
        let origin = wire::TaskOrigin { host: host.to_owned(), ..Default::default() };
        self.note_origin(name, task_id, incarnation, &origin).await
    }

    /// [`Self::note_host`] with what else whoever started the process knows: host, `pid` and `launcher` of `origin` are told,
    /// the last two from feature level 11 on.
    ///
    /// # Errors
    /// As [`Self::note_host`].
    pub async fn note_origin(
        &self,
        name: &str,
        task_id: i32,
        incarnation: u64,
        origin: &wire::TaskOrigin,
    ) -> Result<(), Error> {
        let request = wire::NoteHostRequest {
            name: name.to_owned(),
            task_id,
            incarnation,
            host: origin.host.clone(),
            pid: origin.pid,
            launcher: origin.launcher.clone(),
            process: None,
        };
        self.tell(request).await
    }

    /// Says that the process which is this life of a task does not run just now, and why not, or with an empty state that it
    /// runs again, for people who ask who is missing. The node that is asked remembers it for 15 s. `host`: as for
    /// [`Self::note_host`].
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such job, else as any call.
    pub async fn note_process(
        &self,
        (name, host): (&str, &str),
        task_id: i32,
        incarnation: u64,
        process: wire::ProcessState,
    ) -> Result<(), Error> {
        let (name, host, process) = (name.to_owned(), host.to_owned(), Some(process));
        let request =
            wire::NoteHostRequest { name, task_id, incarnation, host, process, ..Default::default() };
        self.tell(request).await
    }

    async fn tell(&self, request: wire::NoteHostRequest) -> Result<(), Error> {
        let note = |way: Way| {
            let request = request.clone();
            async move { JobsClient::new(way).note_host(request).await }
        };
        self.client.caller().call("job note-host", Repeat::Freely, note).await.map(|_| ())
    }

    /// Deletes a job and everything in it.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such job, else as any call. [`Error::OutcomeUnknown`] when
    /// the job may be gone now.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        let request = wire::DeleteJobRequest { name: name.to_owned() };
        let delete = |way: Way| {
            let request = request.clone();
            async move { JobsClient::new(way).delete(request).await }
        };
        self.client.caller().call("job delete", Repeat::IfNotExecuted, delete).await.map(|_| ())
    }
}
