//! What one running task uses of the variables.

use std::any::{TypeId, type_name};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use crate::reusable::error::ReusableError;
use crate::reusable::kept::{Reusables, Taken};

/// The instances that a task has taken, by the places of the variables.
pub(crate) struct Uses {
    reusables: Arc<Reusables>,
    taken: Vec<OnceLock<Result<Mutex<Taken>, String>>>,
}

/// A reusable variable in use by a task. What the task changes, no other one sees.
pub struct ReusableGuard<'a, T> {
    taken: MutexGuard<'a, Taken>,
    of: PhantomData<T>,
}

impl Uses {
    pub(crate) fn of(reusables: &Arc<Reusables>) -> Self {
        let taken = reusables.variables().iter().map(|_| OnceLock::new()).collect();
        Self { reusables: Arc::clone(reusables), taken }
    }

    /// # Errors
    /// [`ReusableError`].
    pub(crate) fn take<T: 'static>(&self, name: &str) -> Result<ReusableGuard<'_, T>, ReusableError> {
        let owned = || name.to_owned();
        let mut places = self.reusables.variables().iter().zip(&self.taken);
        let place = places.find(|(variable, _)| variable.declared.name == name);
        let (variable, taken) = place.ok_or_else(|| ReusableError::Undeclared { name: owned() })?;
        if variable.declared.type_id != TypeId::of::<T>() {
            let (declared, asked) = (variable.declared.type_name, type_name::<T>());
            return Err(ReusableError::OtherType { name: owned(), declared, asked });
        }
        match taken.get_or_init(|| variable.take().map(Mutex::new)) {
            Ok(taken) => {
                let taken = taken.try_lock().ok_or_else(|| ReusableError::InUse { name: owned() })?;
                Ok(ReusableGuard { taken, of: PhantomData })
            }
            Err(why) => Err(ReusableError::NotMade { name: owned(), why: why.clone() }),
        }
    }

    /// Whether the task has used none.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.iter().all(|taken| taken.get().is_none())
    }

    /// Makes anew what the task has used.
    pub(crate) fn renew(self) {
        for (variable, taken) in self.reusables.variables().iter().zip(self.taken) {
            if let Some(taken) = taken.into_inner() {
                variable.renew(taken.ok().map(Mutex::into_inner));
            }
        }
    }
}

impl<T: 'static> Deref for ReusableGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.taken.instance.downcast_ref().expect("its type was looked at when it was taken")
    }
}

impl<T: 'static> DerefMut for ReusableGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.taken.instance.downcast_mut().expect("its type was looked at when it was taken")
    }
}

impl<T> Drop for ReusableGuard<'_, T> {
    fn drop(&mut self) {
        // Nobody knows how far a change came.
        self.taken.spoiled |= std::thread::panicking();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use tripod_proto::ray::{Function, ReusableVar};

    use super::*;
    use crate::caught::caught;
    use crate::reusable::declared::Reusable;
    use crate::reusable::write;

    /// Variables of a worker that has begun.
    async fn kept<T: Send + 'static>(reusable: Reusable<T>) -> Arc<Reusables> {
        let reusables = Arc::new(Reusables::new(&[reusable.named("it")]));
        reusables.prepare().await;
        reusables
    }

    /// One task that does this with the variable.
    fn task<T: Send + 'static, R>(
        reusables: &Arc<Reusables>,
        work: impl FnOnce(&mut T) -> R,
    ) -> Result<R, String> {
        let uses = Uses::of(reusables);
        let done = caught(|| match uses.take::<T>("it") {
            Ok(mut it) => Ok(work(&mut it)),
            Err(error) => Err(error.to_string()),
        });
        assert!(!uses.is_empty());
        uses.renew();
        done
    }

    fn push(list: &mut Vec<i64>) -> Vec<i64> {
        list.push(2);
        list.clone()
    }

    fn count(counter: &mut i64) -> i64 {
        *counter
    }

    #[tokio::test]
    async fn changes_of_a_task_are_not_seen_by_the_next() {
        let own = kept(Reusable::made_by(|| vec![0_i64, 1])).await;
        let exported = kept(Reusable::<Vec<i64>>::exported()).await;
        exported.import(&write("it", &[0, 1]).unwrap());
        for reusables in [own, exported] {
            for _ in 0..3 {
                assert_eq!(task(&reusables, push).unwrap(), [0, 1, 2]);
            }
        }
    }

    #[tokio::test]
    async fn a_variable_is_repaired_by_its_own_function_and_only_after_it_was_used() {
        let reusables = kept(Reusable::made_by(|| 0_i64).renewed_by(|counter| *counter += 1)).await;
        assert_eq!([(); 3].map(|()| task(&reusables, count).unwrap()), [0, 1, 2]);
        let idle = Uses::of(&reusables);
        assert!(idle.is_empty());
        idle.renew();
        assert_eq!(task(&reusables, count), Ok(3));
    }

    #[tokio::test]
    async fn what_a_task_panicked_with_is_made_from_the_beginning() {
        let reusables = kept(Reusable::made_by(|| 0_i64).renewed_by(|counter| *counter += 1)).await;
        assert_eq!([(); 2].map(|()| task(&reusables, count).unwrap()), [0, 1]);
        let panicked = task(&reusables, |_: &mut i64| panic!("on purpose")).unwrap_err();
        assert_eq!(panicked, "panicked: on purpose");
        assert_eq!(task(&reusables, count), Ok(0));
    }

    #[tokio::test]
    async fn while_one_task_uses_a_variable_another_one_has_its_own() {
        let reusables = kept(Reusable::made_by(|| vec![0_i64, 1])).await;
        let waiting = Uses::of(&reusables);
        let mut it = waiting.take::<Vec<i64>>("it").ok().unwrap();
        it.push(7);
        assert_eq!(task(&reusables, push).unwrap(), [0, 1, 2]);
        assert_eq!(*it, [0, 1, 7]);
        let twice = waiting.take::<Vec<i64>>("it").err().unwrap();
        assert!(matches!(twice, ReusableError::InUse { .. }), "{twice}");
        drop(it);
        let again = waiting.take::<Vec<i64>>("it").ok().unwrap();
        assert_eq!(*again, [0, 1, 7], "it is the task's own until its end");
        drop(again);
        waiting.renew();
        assert_eq!(task(&reusables, push).unwrap(), [0, 1, 2]);
    }

    #[tokio::test]
    async fn the_last_export_counts_also_for_who_uses_an_earlier_one() {
        let exported = Reusable::<i64>::exported().renewed_by(|counter| *counter += 1);
        let reusables = kept(exported).await;
        let early = task(&reusables, count).unwrap_err();
        assert!(early.contains("`it`") && early.contains("no driver"), "{early}");
        reusables.import(&write("it", &10).unwrap());
        assert_eq!(task(&reusables, count), Ok(10));
        let waiting = Uses::of(&reusables);
        assert_eq!(*waiting.take::<i64>("it").ok().unwrap(), 11);
        reusables.import(&write("it", &20).unwrap());
        assert_eq!(*waiting.take::<i64>("it").ok().unwrap(), 11);
        waiting.renew();
        assert_eq!([(); 2].map(|()| task(&reusables, count).unwrap()), [20, 21]);
    }

    #[tokio::test]
    async fn what_others_export_changes_nothing() {
        let reusables = kept(Reusable::<i64>::exported()).await;
        reusables.import(&write("it", &1).unwrap());
        let python = Some(Function { implementation: b"TPV1 not a value".as_slice().into() });
        for name in ["it", "unknown"] {
            let initializer = python.clone();
            reusables.import(&ReusableVar { name: name.as_bytes().into(), initializer, reinitializer: None });
        }
        reusables.import(&write("another", &2).unwrap());
        assert_eq!(task(&reusables, count), Ok(1));
        let own = kept(Reusable::made_by(|| 5_i64)).await;
        own.import(&write("it", &2).unwrap());
        assert_eq!(task(&own, count), Ok(5), "it is made by workers");
    }

    /// U20: a worker outlives what goes wrong, and tasks are told.
    #[tokio::test]
    async fn what_cannot_be_made_fails_its_tasks_and_is_tried_again_after_each() {
        static MADE: AtomicI64 = AtomicI64::new(0);
        let make = || match MADE.fetch_add(1, Ordering::SeqCst) {
            0 => panic!("not yet"),
            1 => Err("not now"),
            made => Ok(made),
        };
        let reusables = kept(Reusable::try_made_by(make)).await;
        let mut told = [(); 3].map(|()| task::<i64, _>(&reusables, |it| *it)).into_iter();
        let text = |why: &str| Err(format!("reusable variable `it` could not be made: {why}"));
        assert_eq!(told.next(), Some(text("panicked: not yet")));
        assert_eq!(told.next(), Some(text("not now")));
        assert_eq!(told.next(), Some(Ok(2)));

        let wrong = kept(Reusable::<i64>::exported()).await;
        wrong.import(&write("it", "text").unwrap());
        let told = task(&wrong, count).unwrap_err();
        assert!(told.contains("could not be made") && told.contains("text"), "{told}");
        wrong.import(&write("it", &3).unwrap());
        assert_eq!(task(&wrong, count), Ok(3));
    }

    #[tokio::test]
    async fn what_cannot_be_repaired_fails_the_next_task_and_is_made_from_the_beginning() {
        let repair = |_: &mut i64| Err::<(), _>("cannot be renewed");
        let reusables = kept(Reusable::made_by(|| 5_i64).try_renewed_by(repair)).await;
        assert_eq!(task(&reusables, count), Ok(5));
        let told = task(&reusables, count).unwrap_err();
        assert!(told.ends_with("cannot be renewed"), "{told}");
        assert_eq!(task(&reusables, count), Ok(5));
    }

    #[tokio::test]
    async fn a_value_whose_end_panics_ends_nothing_else() {
        struct Ends(bool);

        impl Drop for Ends {
            fn drop(&mut self) {
                assert!(!self.0, "on purpose");
            }
        }

        let reusables = kept(Reusable::made_by(|| Ends(false))).await;
        task(&reusables, |it: &mut Ends| it.0 = true).unwrap();
        assert_eq!(task(&reusables, |it: &mut Ends| it.0), Ok(false));
    }

    #[tokio::test]
    async fn unknown_names_and_other_types_are_refused() {
        let uses = Uses::of(&kept(Reusable::made_by(|| 0_i64)).await);
        let unknown = uses.take::<i64>("other").err().unwrap();
        assert!(unknown.to_string().contains("`other`"), "{unknown}");
        let other = uses.take::<u8>("it").err().unwrap().to_string();
        assert!(other.contains("i64") && other.contains("u8"), "{other}");
        assert!(uses.is_empty(), "nothing was used");
    }
}
