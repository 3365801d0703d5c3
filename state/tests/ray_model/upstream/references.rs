//! Who holds what, and what happens when nobody does.

use tripod_state::ray::Answer;
use tripod_state::ray::ids::{ObjectId, WorkerId};

use crate::upstream::{Object, Owner, Sent, Upstream, Verdict};

impl Upstream {
    /// Whose the references are that a process has.
    pub(super) fn client(&self, process: Option<WorkerId>) -> Owner {
        match process {
            Some(id) if self.worker(id).attributed => Owner::Process(id),
            _ => Owner::Nobody,
        }
    }

    pub(super) fn new_object(&mut self) -> ObjectId {
        let id = ObjectId(self.objects.len() as u64);
        self.objects.push(Object::default());
        self.hold(id, Owner::Creation, 1);
        id
    }

    pub(super) fn hold(&mut self, id: ObjectId, owner: Owner, times: u64) {
        if times > 0 {
            *self.object_mut(id).holds.entry(owner).or_default() += times;
        }
    }

    fn unhold(&mut self, id: ObjectId, owner: Owner) {
        let holds = &mut self.object_mut(id).holds;
        let held = holds.get_mut(&owner).expect("what is released is held");
        *held -= 1;
        if *held == 0 {
            holds.remove(&owner);
        }
    }

    /// Gives a reference away, if the owner has one.
    pub(super) fn give(&mut self, id: ObjectId, from: Owner, to: Owner) -> bool {
        let has = self.object(id).held_by(from) > 0;
        if has {
            self.unhold(id, from);
            self.hold(id, to, 1);
        }
        has
    }

    /// Takes one reference, and deallocates what nothing refers to then, with what was inside.
    pub(super) fn release(&mut self, id: ObjectId, owner: Owner) {
        let mut due = vec![(id, owner)];
        while let Some((id, owner)) = due.pop() {
            self.unhold(id, owner);
            let Some(tree) = self.unreferenced_tree(id) else { continue };
            let canonical = tree[0];
            assert_eq!(self.object(canonical).target, Some(canonical), "what is not there yet is held");
            for store in std::mem::take(&mut self.object_mut(canonical).locations) {
                self.sent.push(Sent::Deallocate(store, canonical));
            }
            let contained = std::mem::take(&mut self.object_mut(canonical).contained);
            due.extend(contained.into_iter().map(|inside| (inside, Owner::Container(canonical))));
            for id in &tree {
                self.object_mut(*id).deallocated = true;
            }
            // They would wait for ever.
            self.gets.retain(|(_, object)| !tree.contains(object));
            self.notices.retain(|(_, alias, _)| !tree.contains(alias));
        }
    }

    /// All ids that mean the same, if nothing refers to any of them; first the one at the end of the pointers.
    fn unreferenced_tree(&self, id: ObjectId) -> Option<Vec<ObjectId>> {
        let mut end = id;
        while let Some(target) = self.object(end).target
            && target != end
        {
            end = target;
        }
        let mut tree = vec![end];
        let mut next = 0;
        while next < tree.len() {
            if self.object(tree[next]).count() > 0 {
                return None;
            }
            tree.extend(self.object(tree[next]).reverse.iter().copied());
            next += 1;
        }
        Some(tree)
    }

    /// What is wrong with naming an object.
    pub(super) fn faults_of(&self, id: ObjectId) -> Vec<&'static str> {
        match self.objects.get(id.0 as usize) {
            None => vec!["ObjectUnknown"],
            Some(object) if object.deallocated => vec!["ObjectDeallocated"],
            Some(_) => Vec::new(),
        }
    }

    /// What is wrong with giving away a reference for each occurrence. Nobody in particular gives what there is.
    pub(super) fn faults_of_giving(&self, client: Owner, objects: &[ObjectId]) -> Vec<&'static str> {
        let known = |id: &&ObjectId| self.faults_of(**id).is_empty();
        let short = |id: &ObjectId| {
            let times = objects.iter().filter(|other| *other == id).count() as u64;
            self.object(*id).held_by(client) < times
        };
        let refused = client != Owner::Nobody && objects.iter().filter(known).any(short);
        if refused { vec!["NotOwned"] } else { Vec::new() }
    }

    pub(super) fn add_references(&mut self, client: Owner, objects: &[ObjectId]) -> Verdict {
        let mut faults: Vec<_> = objects.iter().flat_map(|id| self.faults_of(*id)).collect();
        if objects.is_empty() {
            faults.push("Invalid");
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        for id in objects {
            self.hold(*id, client, 1);
        }
        Ok(Answer::Done)
    }

    pub(super) fn drop_references(&mut self, client: Owner, objects: &[ObjectId]) -> Verdict {
        let mut faults: Vec<_> = objects.iter().flat_map(|id| self.faults_of(*id)).collect();
        if objects.is_empty() {
            faults.push("Invalid");
        }
        for id in objects {
            let times = objects.iter().filter(|other| *other == id).count() as u64;
            if self.objects.get(id.0 as usize).is_some_and(|object| object.held_by(client) < times) {
                faults.extend(["TooFewReferences", "NotOwned"]);
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        for id in objects {
            self.release(*id, client);
        }
        Ok(Answer::Done)
    }

    pub(super) fn contain(&mut self, client: Owner, object: ObjectId, inside: &[ObjectId]) -> Verdict {
        if let Some(listed) = self.objects.get(object.0 as usize).and_then(|object| object.listed.as_deref())
        {
            let same = listed == inside;
            if client == Owner::Nobody {
                return if same { Ok(Answer::Done) } else { Err(vec!["ContainedAlready"]) };
            }
            return self.contain_again(client, object, inside, same);
        }
        let mut faults: Vec<_> = inside.iter().flat_map(|id| self.faults_of(*id)).collect();
        if object.0 >= self.objects.len() as u64 {
            faults.push("ObjectUnknown");
        }
        faults.extend(self.faults_of_giving(client, inside));
        if !faults.is_empty() {
            return Err(faults);
        }
        self.object_mut(object).listed = Some(inside.to_vec());
        let given: Vec<_> =
            inside.iter().filter(|id| self.give(**id, client, Owner::Container(object))).copied().collect();
        if self.object(object).deallocated {
            for id in given {
                self.release(id, Owner::Container(object));
            }
        } else {
            self.object_mut(object).contained = given;
        }
        Ok(Answer::Done)
    }

    /// A later attempt of a process that says who it is gives its references away once more; the object keeps what it
    /// does not have yet.
    fn contain_again(&mut self, client: Owner, object: ObjectId, inside: &[ObjectId], same: bool) -> Verdict {
        let mut faults: Vec<_> = inside.iter().flat_map(|id| self.faults_of(*id)).collect();
        faults.extend(self.faults_of_giving(client, inside));
        if !faults.is_empty() {
            return if same { Ok(Answer::Done) } else { Err(faults) };
        }
        for id in inside {
            if self.object(object).contained.contains(id) || self.object(object).deallocated {
                self.release(*id, client);
            } else {
                self.give(*id, client, Owner::Container(object));
                self.object_mut(object).contained.push(*id);
                self.object_mut(object).listed.get_or_insert_default().push(*id);
            }
        }
        Ok(Answer::Done)
    }
}
