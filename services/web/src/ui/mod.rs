//! The page for people: what this node knows of the cluster, its jobs and their tasks, as it changes.
//!
//! | path | answers |
//! |---|---|
//! | `/ui/`, `/ui/jobs`, `/ui/job/NAME`, `/ui/metrics` | the page; with `Accept: text/plain` the same in words |
//! | `/ui/api/v1/overview` | the cluster and its jobs, as JSON |
//! | `/ui/api/v1/jobs/NAME` | a job: its tasks' states, barriers, stores |
//! | `/ui/api/v1/jobs/NAME/tasks/K` | a task |
//! | `/ui/api/v1/jobs/NAME/graph` | what its scheduler has done out of what; `?function=NAME` of one function |
//! | `/ui/api/v1/metrics` | the last quarter of an hour of this node's figures |
//! | `.../overview/stream`, `.../jobs/NAME/stream` | the same as it changes, as server-sent events |
//!
//! It is read only and never shows a key's value. What is sent is made once for all who watch the same thing.
//!
//! | module | what |
//! |---|---|
//! | `guard` | what is refused, and what every answer says of itself |
//! | `routes` | the paths and their answers |
//! | `facts` | what there is to say, out of the state |
//! | `letters` | the states of many tasks in few bytes |
//! | `frames` | what has changed since the last frame |
//! | `maker`, `makers` | one maker of frames for each thing that is watched |
//! | `pace`, `behind`, `past` | when it looks, how old what it sees is, and what it remembers of barriers |
//! | `stream`, `viewers` | a viewer, and how many there are |
//! | `history` | the figures of the last quarter of an hour |
//! | `text`, `html`, `assets` | the same in words, as a page, and the page's files |

mod assets;
mod behind;
mod facts;
mod frames;
mod guard;
mod history;
mod html;
mod letters;
mod maker;
mod makers;
mod pace;
mod past;
mod routes;
mod stream;
mod text;
mod viewers;

pub(crate) use history::LOOK_EVERY;
pub(crate) use makers::Page;
pub(crate) use routes::routes;
pub use viewers::Viewers;
