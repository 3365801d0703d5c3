//! The bytes of graphs that come in parts.

use std::sync::Arc;

use bytes::Bytes;

use crate::limits::within;
use crate::mars::act::Act;
use crate::mars::answer::Answer;
use crate::mars::apply::Answered;
use crate::mars::ids::{GraphKind, GraphName};
use crate::mars::limits::{
    JOB_UPLOAD_BYTES_MAX, SESSION_UPLOAD_BYTES_MAX, UPLOAD_BYTES_MAX, UPLOAD_IDLE_MS, UPLOAD_PART_BYTES_MAX,
    UPLOAD_PARTS_MAX, UPLOADS_MAX, check_key, invalid,
};
use crate::mars::refusal::Refusal;
use crate::mars::upload::Upload;

impl Act<'_> {
    /// Parts come in their order. One that is there already is not added again, and the first one begins anew.
    pub(super) fn upload(&mut self, name: &GraphName, offset: u64, bytes: Bytes, is_last: bool) -> Answered {
        let session = self.mars.session(&name.session)?;
        check_key("a graph's key", &name.key)?;
        let length = bytes.len() as u64;
        within("bytes of a part of a graph", length, UPLOAD_PART_BYTES_MAX)?;
        if length == 0 && !is_last {
            return Err(invalid("a part of a graph", "must not be empty, unless it is the last"));
        }
        let key = (session, name.kind, name.key.as_str().into());
        let before = self.mars.uploads.get(&key).map(Arc::clone);
        let held = before.as_ref().map_or(0, |upload| upload.bytes);
        let expected = before.as_ref().filter(|upload| !upload.is_complete).map_or(0, |upload| upload.bytes);
        let end = offset.saturating_add(length);
        if let Some(upload) = before.as_ref().filter(|upload| offset > 0 && end <= upload.bytes && length > 0)
        {
            return Ok(Answer::Uploaded { bytes: upload.bytes, complete: upload.is_complete });
        }
        if offset != expected && offset != 0 {
            let (kind, key) = (name.kind, name.key.clone());
            return Err(Refusal::NotNext { kind, key, expected, got: offset }.into());
        }
        let begins = offset == 0;
        within("bytes of a graph", end, UPLOAD_BYTES_MAX)?;
        let tally = self.mars.sessions.get(&session).map(|session| session.tally).unwrap_or_default();
        let replaced = if begins { held } else { 0 };
        let grown = |all: u64| all.saturating_sub(replaced).saturating_add(length);
        within("bytes of a session's uploads", grown(tally.upload_bytes), SESSION_UPLOAD_BYTES_MAX)?;
        within("bytes of a job's uploads", grown(self.mars.tally.upload_bytes), JOB_UPLOAD_BYTES_MAX)?;
        if before.is_none() {
            within("uploads of a session", tally.uploads + 1, UPLOADS_MAX)?;
        }
        let mut upload = match before {
            Some(upload) if !begins => upload.as_ref().clone(),
            Some(_) | None => Upload::new(self.now),
        };
        within("parts of a graph", upload.parts.len() as u64 + 1, UPLOAD_PARTS_MAX)?;
        upload.add(bytes);
        upload.is_complete = is_last;
        upload.touched = self.now;
        let answer = Answer::Uploaded { bytes: upload.bytes, complete: is_last };
        self.mars.put_upload(key, upload);
        Ok(answer)
    }

    pub(super) fn upload_expired(&mut self, session: &str, kind: GraphKind, key: &str) -> bool {
        let Ok(session) = self.mars.session(session) else { return false };
        let key = (session, kind, key.into());
        let found = self.mars.uploads.get(&key);
        let is_due = found.is_some_and(|upload| upload.touched.plus(UPLOAD_IDLE_MS) <= self.now);
        is_due && self.mars.take_upload(&key).is_some()
    }
}
