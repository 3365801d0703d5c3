//! Functions that a worker executes.

use std::fmt::Display;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tripod_proto::ray::Obj;

use crate::context::Context;
use crate::reference::{ObjectRef, collecting};
use crate::value::{from_obj, to_obj};

/// One result of a task.
pub enum Output {
    Value(Box<Obj>),
    /// A value with references inside, which are kept until the object that it becomes has its own.
    Containing(Box<Obj>, Vec<ObjectRef>),
    /// Another object, which the result is to mean.
    Object(ObjectRef),
}

impl Output {
    /// A value, with the references inside of it. Objects of which only ids are inside may be gone before it is written.
    ///
    /// # Errors
    /// Why it is no object.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, String> {
        let (value, inside) = collecting(|| to_obj(value));
        let value = Box::new(value.map_err(|error| error.to_string())?);
        Ok(if inside.is_empty() { Self::Value(value) } else { Self::Containing(value, inside) })
    }
}

/// Takes the arguments and gives the results, or why there are none.
pub(crate) type Body = Arc<dyn Fn(&Context, &[Obj]) -> Result<Vec<Output>, String> + Send + Sync>;

/// A function under its name.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) name: String,
    pub(crate) results: u64,
    pub(crate) body: Body,
}

/// A function of Rust that takes values and gives one. Implemented for functions of up to six arguments.
pub trait Plain<Arguments>: Send + Sync + 'static {
    type Result;

    /// Reads the arguments and calls it.
    ///
    /// # Errors
    /// The arguments are others than it takes.
    fn call(&self, arguments: &[Obj]) -> Result<Self::Result, String>;
}

macro_rules! plain {
    ($($argument:ident),*) => {
        impl<F, R, $($argument: DeserializeOwned),*> Plain<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
        {
            type Result = R;

            #[allow(unused_assignments, unused_mut, unused_variables, reason = "a function may take no argument")]
            fn call(&self, arguments: &[Obj]) -> Result<R, String> {
                let takes = <[&str]>::len(&[$(stringify!($argument)),*]);
                if arguments.len() != takes {
                    return Err(format!("it takes {takes} arguments, not {}", arguments.len()));
                }
                let mut place = 0;
                Ok(self($({
                    let argument: $argument = read(arguments, place)?;
                    place += 1;
                    argument
                }),*))
            }
        }
    };
}

plain!();
plain!(A);
plain!(A, B);
plain!(A, B, C);
plain!(A, B, C, D);
plain!(A, B, C, D, E);
plain!(A, B, C, D, E, G);

fn read<T: DeserializeOwned>(arguments: &[Obj], place: usize) -> Result<T, String> {
    from_obj(&arguments[place]).map_err(|error| format!("argument {place}: {error}"))
}

/// The body of a function that gives a value.
pub(crate) fn of_plain<A, F: Plain<A, Result: Serialize>>(function: F) -> Body {
    Arc::new(move |_, arguments| Ok(vec![Output::of(&function.call(arguments)?)?]))
}

/// The body of a function that gives a value or an error.
pub(crate) fn of_fallible<A, R: Serialize, E: Display, F: Plain<A, Result = Result<R, E>>>(
    function: F,
) -> Body {
    Arc::new(move |_, arguments| match function.call(arguments)? {
        Ok(value) => Ok(vec![Output::of(&value)?]),
        Err(error) => Err(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(left: i64, right: i64) -> i64 {
        left + right
    }

    #[test]
    fn arguments_are_read_by_their_place_and_others_are_refused() {
        let objects = [to_obj(&2).unwrap(), to_obj(&3).unwrap()];
        assert_eq!(Plain::call(&add, &objects), Ok(5));
        let few = Plain::call(&add, &objects[..1]).unwrap_err();
        assert!(few.contains("takes 2 arguments, not 1"), "{few}");
        let wrong = Plain::call(&add, &[to_obj(&2).unwrap(), to_obj("x").unwrap()]).unwrap_err();
        assert!(wrong.starts_with("argument 1: "), "{wrong}");
        assert_eq!(Plain::call(&|| 7, &[]), Ok(7));
    }
}
