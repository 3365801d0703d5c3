//! Sessions begin and end.

use std::sync::Arc;

use crate::limits::within;
use crate::mars::act::Act;
use crate::mars::answer::Answer;
use crate::mars::apply::Answered;
use crate::mars::command::Labels;
use crate::mars::ids::{GraphNo, MutableNo, Name, SessionNo};
use crate::mars::limits::{LABEL_BYTES_MAX, LABELS_MAX, SESSIONS_MAX, check_id};
use crate::mars::refusal::Refusal;
use crate::mars::session::{Session, Tally};
use crate::mars::upload::UploadKey;

impl Act<'_> {
    pub(super) fn create_session(&mut self, id: &str, if_not_exist: bool, labels: Labels) -> Answered {
        check_id("a session's id", id)?;
        let session = Name::from(id);
        if self.mars.session_names.contains_key(id) {
            if if_not_exist {
                return Ok(Answer::Session { session, created: false });
            }
            return Err(Refusal::SessionExists { session }.into());
        }
        within("labels of a session", labels.len() as u64, LABELS_MAX as u64)?;
        for (name, value) in &labels {
            let longest = name.len().max(value.len());
            within("bytes of a label", longest as u64, LABEL_BYTES_MAX as u64)?;
        }
        within("sessions of a job", self.mars.sessions.len() as u64 + 1, SESSIONS_MAX)?;
        let number = SessionNo(self.index);
        let (created, tally) = (self.now, Tally::default());
        let record = Session { name: session.clone(), labels, created, last_idle: created, tally };
        self.mars.session_names.insert(session.clone(), number);
        self.mars.sessions.insert(number, Arc::new(record));
        Ok(Answer::Session { session, created: true })
    }

    /// Its graphs are stopped, and all that it has is forgotten.
    pub(super) fn delete_session(&mut self, id: &str, if_exist: bool) -> Answered {
        let Ok(session) = self.mars.session(id) else {
            if if_exist {
                return Ok(Answer::Deleted { deleted: false });
            }
            return Err(Refusal::SessionUnknown { session: id.to_owned() }.into());
        };
        let graphs = self.mars.graphs.iter().filter(|(_, graph)| graph.head.session == session);
        let graphs: Vec<GraphNo> = graphs.map(|(number, _)| *number).collect();
        for graph in graphs {
            self.forget_graph(graph);
        }
        let mutables = self.mars.mutables.iter().filter(|(_, mutable)| mutable.session == session);
        let mutables: Vec<MutableNo> = mutables.map(|(number, _)| *number).collect();
        for mutable in mutables {
            self.forget_mutable(mutable);
        }
        let uploads = self.mars.uploads.keys().filter(|(of, _, _)| *of == session);
        let uploads: Vec<UploadKey> = uploads.cloned().collect();
        for upload in uploads {
            self.mars.take_upload(&upload);
        }
        self.mars.session_names.remove(id);
        self.mars.sessions.remove(&session);
        Ok(Answer::Deleted { deleted: true })
    }
}
