//! How a variable is made, and made anew after a task has used it.

use std::any::{Any, TypeId, type_name};
use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tripod_proto::ray::Obj;

use crate::caught::caught;
use crate::value::from_obj;

/// A variable's value, of whatever type was declared.
pub(crate) type Instance = Box<dyn Any + Send>;

type Make = Arc<dyn Fn() -> Result<Instance, String> + Send + Sync>;
type Read = Arc<dyn Fn(&Obj) -> Result<Instance, String> + Send + Sync>;
type Renew = Arc<dyn Fn(&mut Instance) -> Result<(), String> + Send + Sync>;

/// How a worker makes a reusable variable, and makes it anew after a task has used it. No task sees what an earlier
/// one did to it.
///
/// Functions do not travel, so how a variable is made is declared by every worker program ([`crate::Worker::reusable`]),
/// as functions are. Its value may travel: a driver exports it ([`crate::Driver::export`]).
///
/// ```no_run
/// use std::collections::BTreeSet;
/// use tripod_worker::value::from_obj;
/// use tripod_worker::{Config, Driver, Output, Reusable, Task, Worker};
///
/// # async fn example(config: Config) -> Result<(), Box<dyn std::error::Error>> {
/// let worker = Worker::new(config.clone())
///     // The value that a driver exports; every task finds it as it was exported.
///     .reusable("stop_words", Reusable::<BTreeSet<String>>::exported())
///     // Made by each worker itself; repaired after a task, since that is cheaper than a new one.
///     .reusable("buffer", Reusable::made_by(|| Vec::<u8>::with_capacity(1 << 20)).renewed_by(Vec::clear))
///     .full("text.is_stop_word", 1, |context, arguments| {
///         let words = context.reusable::<BTreeSet<String>>("stop_words").map_err(|why| why.to_string())?;
///         let [word] = arguments else { return Err("it takes 1 argument".to_owned()) };
///         let word: String = from_obj(word).map_err(|why| why.to_string())?;
///         Ok(vec![Output::of(&words.contains(&word))?])
///     });
/// tokio::spawn(worker.run(std::future::pending()));
///
/// let driver = Driver::begin(&config).await?;
/// driver.export("stop_words", &["a", "the"]).await?;
/// let results = driver.submit(&Task::of("text.is_stop_word").arg("the")?).await?;
/// assert!(driver.get::<bool>(&results[0]).await?);
/// # Ok(())
/// # }
/// ```
pub struct Reusable<T> {
    source: Source,
    renew: Option<Renew>,
    of: PhantomData<fn() -> T>,
}

#[derive(Clone)]
enum Source {
    /// A function of the worker's program.
    Own(Make),
    /// The value that a driver exports.
    Exported(Read),
}

impl<T: Send + 'static> Reusable<T> {
    /// A variable that every worker makes by this function, before it is given tasks.
    #[must_use]
    pub fn made_by(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self::of(Source::Own(Arc::new(move || Ok(Box::new(make()) as Instance))))
    }

    /// A variable that every worker makes by this function, which may fail: then the tasks that use the variable fail,
    /// and it is tried again after each of them.
    #[must_use]
    pub fn try_made_by<E: Display>(make: impl Fn() -> Result<T, E> + Send + Sync + 'static) -> Self {
        let make = move || match make() {
            Ok(value) => Ok(Box::new(value) as Instance),
            Err(error) => Err(error.to_string()),
        };
        Self::of(Source::Own(Arc::new(make)))
    }

    /// A variable whose value a driver exports, as often as it likes: the last value counts, from the next task on.
    #[must_use]
    pub fn exported() -> Self
    where
        T: DeserializeOwned,
    {
        let read = |value: &Obj| match from_obj::<T>(value) {
            Ok(value) => Ok(Box::new(value) as Instance),
            Err(error) => Err(error.to_string()),
        };
        Self::of(Source::Exported(Arc::new(read)))
    }

    /// Repairs the value after a task has used it, instead of making it from the beginning. After a panic while the
    /// value was in use it is made from the beginning nevertheless.
    #[must_use]
    pub fn renewed_by(self, renew: impl Fn(&mut T) + Send + Sync + 'static) -> Self {
        self.try_renewed_by(move |value| {
            renew(value);
            Ok::<(), String>(())
        })
    }

    /// [`Self::renewed_by`] a function that may fail: then the next task that uses the variable fails with its error, and
    /// the one after that finds it made from the beginning.
    #[must_use]
    pub fn try_renewed_by<E: Display>(
        mut self,
        renew: impl Fn(&mut T) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.renew = Some(Arc::new(move |instance: &mut Instance| {
            let value = instance.downcast_mut().expect("an instance is of the type that was declared");
            renew(value).map_err(|error| error.to_string())
        }));
        self
    }

    fn of(source: Source) -> Self {
        Self { source, renew: None, of: PhantomData }
    }

    pub(crate) fn named(self, name: &str) -> Declared {
        let Self { source, renew, .. } = self;
        Declared {
            name: name.to_owned(),
            type_id: TypeId::of::<T>(),
            type_name: type_name::<T>(),
            source,
            renew,
        }
    }
}

/// A variable under its name.
#[derive(Clone)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) type_id: TypeId,
    pub(crate) type_name: &'static str,
    source: Source,
    renew: Option<Renew>,
}

impl Declared {
    /// Whether its value comes from drivers.
    pub(crate) fn is_exported(&self) -> bool {
        matches!(self.source, Source::Exported(_))
    }

    pub(crate) fn is_renewed(&self) -> bool {
        self.renew.is_some()
    }

    /// Makes an instance; `exported` is what came from drivers, or why it is no value.
    pub(crate) fn make(&self, exported: Option<&Result<Obj, String>>) -> Result<Instance, String> {
        match (&self.source, exported) {
            (Source::Own(make), _) => caught(|| make()),
            (Source::Exported(_), None) => Err("no driver has exported it yet".to_owned()),
            (Source::Exported(_), Some(Err(why))) => Err(why.clone()),
            (Source::Exported(read), Some(Ok(value))) => caught(|| read(value)),
        }
    }

    /// Makes an instance anew that a task has used.
    pub(crate) fn renew(&self, mut instance: Instance) -> Result<Instance, String> {
        if let Some(renew) = &self.renew {
            caught(|| renew(&mut instance))?;
        }
        Ok(instance)
    }
}
