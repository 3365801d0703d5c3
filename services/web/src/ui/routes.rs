//! The paths of the page and their answers.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use serde_json::{Value, json};
use tripod_gateway::{Consistency, HeartbeatAges};
use tripod_proto::code::Code;
use tripod_state::State as Replicated;
use tripod_state::ids::{JobId, TaskId};

use crate::ui::facts::{graph, job, task};
use crate::ui::frames::Shown;
use crate::ui::guard::{check, refuse};
use crate::ui::maker::{Watched, overview as look_at_all};
use crate::ui::{Page, assets, html, stream, text};

/// What comes of a question.
type Answered = Result<Response, Response>;
type Named = Result<Path<String>, PathRejection>;

/// All paths below `/ui`, guarded, and `/`, which leads there.
pub(crate) fn routes(page: Page) -> Router {
    let api = Router::new()
        .route("/overview", get(overview))
        .route("/overview/stream", get(overview_stream))
        .route("/jobs/{name}", get(one_job))
        .route("/jobs/{name}/stream", get(job_stream))
        .route("/jobs/{name}/tasks/{task}", get(one_task))
        .route("/jobs/{name}/graph", get(one_graph))
        .route("/metrics", get(metrics));
    Router::new()
        .route("/", get(|| async { Redirect::temporary("/ui/") }))
        .route("/ui", get(|| async { Redirect::temporary("/ui/") }))
        .route("/ui/", get(main_page))
        .route("/ui/jobs", get(main_page))
        .route("/ui/metrics", get(main_page))
        .route("/ui/job/{name}", get(job_page))
        .route("/ui/assets/{name}", get(asset))
        .nest("/ui/api/v1", api)
        .route("/ui/{*rest}", get(nothing))
        .layer(middleware::from_fn_with_state(page.clone(), check))
        .with_state(page)
}

fn unknown(why: &str) -> Response {
    refuse(StatusCode::NOT_FOUND, Code::UiRequest, why)
}

fn illegal(why: &str) -> Response {
    refuse(StatusCode::BAD_REQUEST, Code::UiRequest, why)
}

fn overloaded() -> Response {
    refuse(StatusCode::SERVICE_UNAVAILABLE, Code::Overloaded, "too many look at the state just now")
}

async fn nothing() -> Response {
    unknown("the page has no such path")
}

fn name(named: Named) -> Result<String, Response> {
    named.map(|Path(name)| name).map_err(|_| illegal("the path has a name that cannot be read"))
}

/// What the page shows is asked for by its path alone; a browser's own parameters are its own.
fn no_query(RawQuery(query): &RawQuery) -> Result<(), Response> {
    match query {
        None => Ok(()),
        Some(_) => Err(illegal("this path takes no parameters")),
    }
}

async fn everything(page: &Page) -> Result<Shown, Response> {
    let working = page.working(&Watched::Overview).and_then(|maker| maker.shown());
    match working {
        Some(shown) => Ok(shown),
        None => look_at_all(page.gateway()).await.map(|looked| looked.shown).ok_or_else(overloaded),
    }
}

/// The job as its maker last saw it, or as it is.
async fn job_of(page: &Page, name: String) -> Result<Shown, Response> {
    let working = page.working(&Watched::Job(name.clone())).and_then(|maker| maker.shown());
    if let Some(shown) = working.filter(|shown| !shown.fields.contains_key("gone")) {
        return Ok(shown);
    }
    let wanted = name.clone();
    let nobody_asked: Option<&HeartbeatAges> = None;
    let look =
        move |_, state: &Replicated| job::look(state, &wanted, nobody_asked, true).map(|seen| seen.shown);
    let seen = page.gateway().read_aside(Consistency::Local, look).await.map_err(|_| overloaded())?;
    seen.ok_or_else(|| unknown(&format!("there is no job `{name}`")))
}

async fn main_page(State(page): State<Page>, headers: HeaderMap) -> Answered {
    let shown = everything(&page).await?;
    let words = text::overview(&shown);
    Ok(in_words(&headers, &words).unwrap_or_else(|| in_html(&page, "overview", shown, &words)))
}

async fn job_page(State(page): State<Page>, named: Named, headers: HeaderMap) -> Answered {
    let name = name(named)?;
    let shown = job_of(&page, name.clone()).await?;
    let words = text::job(&shown);
    let watched = format!("job/{name}");
    Ok(in_words(&headers, &words).unwrap_or_else(|| in_html(&page, &watched, shown, &words)))
}

fn in_html(page: &Page, watched: &str, shown: Shown, words: &str) -> Response {
    Html(html::page(watched, &shown.into_json(), words, page.is_announced())).into_response()
}

/// For who asks for plain text and not for a page.
fn in_words(headers: &HeaderMap, words: &str) -> Option<Response> {
    let asked = headers.get(ACCEPT)?.to_str().ok()?;
    let wanted = asked.contains("text/plain") && !asked.contains("text/html");
    wanted.then(|| ([(CONTENT_TYPE, "text/plain; charset=utf-8")], words.to_owned()).into_response())
}

async fn asset(named: Named, headers: HeaderMap) -> Answered {
    Ok(assets::answer(&name(named)?, &headers))
}

async fn overview(State(page): State<Page>, query: RawQuery) -> Answered {
    no_query(&query)?;
    Ok(Json(everything(&page).await?.into_json()).into_response())
}

async fn one_job(State(page): State<Page>, named: Named, query: RawQuery) -> Answered {
    no_query(&query)?;
    Ok(Json(job_of(&page, name(named)?).await?.into_json()).into_response())
}

async fn overview_stream(State(page): State<Page>, query: RawQuery) -> Answered {
    no_query(&query)?;
    viewer(&page, Watched::Overview)
}

async fn job_stream(State(page): State<Page>, named: Named, query: RawQuery) -> Answered {
    no_query(&query)?;
    let name = name(named)?;
    id_of(&page, &name).await?;
    viewer(&page, Watched::Job(name))
}

fn viewer(page: &Page, watched: Watched) -> Answered {
    let Some(place) = page.place() else {
        let why =
            format!("{} viewers watch this node already; open the page of another node", page.viewers_max());
        return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, Code::UiFull, &why));
    };
    Ok(page.watch(watched, |maker| stream::response(maker, page.ending(), place)))
}

async fn id_of(page: &Page, name: &str) -> Result<(JobId, u32), Response> {
    let find = |state: &Replicated| {
        let id = state.job_named(name)?;
        Some((id, u32::try_from(state.sizes(id).1).unwrap_or(u32::MAX)))
    };
    let found = page.gateway().read(Consistency::Local, find).await.map_err(|_| overloaded())?;
    found.ok_or_else(|| unknown(&format!("there is no job `{name}`")))
}

async fn one_task(
    State(page): State<Page>,
    path: Result<Path<(String, String)>, PathRejection>,
    query: RawQuery,
) -> Answered {
    no_query(&query)?;
    let Ok(Path((name, number))) = path else {
        return Err(illegal("the path has a name that cannot be read"));
    };
    let number = number.parse().map_err(|_| illegal("a task is a number"))?;
    let (id, tasks) = id_of(&page, &name).await?;
    // Where the job is watched, the leader is asked for all who look at it.
    let ages = match page.working(&Watched::Job(name.clone())) {
        Some(maker) => maker.ages(),
        None => page.gateway().heartbeat_ages(id, tasks).await.map(Arc::new),
    };
    let wanted = name.clone();
    let look = move |_, state: &Replicated| task::look(state, &wanted, TaskId(number), ages.as_deref());
    let seen = page.gateway().read_aside(Consistency::Local, look).await.map_err(|_| overloaded())?;
    let seen = seen.ok_or_else(|| unknown(&format!("job `{name}` has no task {number}")))?;
    Ok(Json(seen).into_response())
}

async fn one_graph(State(page): State<Page>, named: Named, RawQuery(query): RawQuery) -> Answered {
    let name = name(named)?;
    let function = match query.as_deref() {
        None | Some("") => None,
        Some(query) => match query.strip_prefix("function=").filter(|value| !value.contains('&')) {
            Some(value) => {
                Some(decoded(value).ok_or_else(|| illegal("`function` is not UTF-8, escaped by %"))?)
            }
            None => return Err(illegal("the graph takes `function=NAME` and nothing else")),
        },
    };
    let wanted = name.clone();
    let look = move |_, state: &Replicated| {
        let id = state.job_named(&wanted)?;
        Some(state.ray(id).map(|ray| graph::look(ray, function.as_deref())))
    };
    let seen = page.gateway().read_aside(Consistency::Local, look).await.map_err(|_| overloaded())?;
    let none = json!({"by": "operation", "total": 0, "left_out": 0, "nodes": [], "edges": []});
    let seen: Value = seen.ok_or_else(|| unknown(&format!("there is no job `{name}`")))?.unwrap_or(none);
    Ok(Json(seen).into_response())
}

/// A value of a query, of which `%41` is `A` and `+` a space.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

async fn metrics(State(page): State<Page>, query: RawQuery) -> Answered {
    no_query(&query)?;
    Ok(Json(page.history().to_json()).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_query_are_read_or_refused() {
        assert_eq!(decoded("a%2Fb+c").as_deref(), Some("a/b c"));
        for broken in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(broken), None, "{broken}");
        }
    }
}
