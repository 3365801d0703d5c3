//! What the page is told, over nodes in memory.

mod common;

use axum::http::StatusCode;
use axum::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, LOCATION};
use common::{Node, Viewer, request, text};
use serde_json::Value;
use tower::ServiceExt as _;
use tripod_state::ids::TaskId;
use tripod_state::ray::Role;
use tripod_state::{Command, job, task};

async fn json(node: &Node, path: &str) -> Value {
    let answer = tripod_web::router(node.gateway.clone()).oneshot(request(path)).await.expect("it answers");
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    serde_json::from_str(&text(answer).await).expect("JSON")
}

#[tokio::test]
async fn who_is_waited_for_is_told_in_a_sentence_and_in_letters() {
    let node = Node::with_job(4).await;
    let told = json(&node, "/ui/api/v1/jobs/train").await;
    assert_eq!(told["states"], "o4");
    assert_eq!(told["headline"]["kind"], "empty");
    node.register(0..3).await;
    let told = json(&node, "/ui/api/v1/jobs/train").await;
    assert_eq!(told["states"], "g3o1");
    assert_eq!(told["headline"]["text"], "task 3 has not come to the registration; 3 wait for it");
    node.register(3..4).await;
    node.say_hosts(0..4).await;
    node.arrive("sync_7", [0, 1, 3]).await;
    let told = json(&node, "/ui/api/v1/jobs/train").await;
    assert_eq!(told["states"], "=bbmb");
    assert_eq!(told["hosts"], serde_json::json!({"names": ["a3-0"], "runs": [[0, 1, 4]]}));
    assert_eq!(told["headline"]["text"], "task 2 has not come to barrier `sync_7`; 3 wait for it");
    let barrier = &told["barriers"][0];
    assert_eq!((&barrier["arrived"], &barrier["missing_tasks"]), (&3.into(), &"2".into()));
    assert!(told.get("findings").is_none() && told.get("events").is_none(), "nobody has found them");
    node.arrive("sync_7", [2]).await;
    let told = json(&node, "/ui/api/v1/jobs/train").await;
    assert_eq!((&told["states"], &told["headline"]["kind"]), (&"c4".into(), &"runs".into()));
}

#[tokio::test]
async fn a_task_is_told_with_what_it_waits_for_and_with_its_error() {
    let node = Node::with_job(2).await;
    node.register(0..2).await;
    node.arrive("s", [0]).await;
    let told = json(&node, "/ui/api/v1/jobs/train/tasks/0").await;
    assert_eq!((&told["standing"], &told["waits_at"][0]), (&"connected".into(), &"barrier `s`".into()));
    let told = json(&node, "/ui/api/v1/jobs/train/tasks/1").await;
    assert_eq!((&told["awaited_at"][0], &told["incarnation"]), (&"barrier `s`".into(), &"101".into()));
    let error = task::Command::ReportError {
        scope: node.scope(),
        task: TaskId(1),
        code: 13,
        message: "no <b>memory</b>".to_owned(),
    };
    node.apply(Command::Task(error)).await;
    let told = json(&node, "/ui/api/v1/jobs/train").await;
    assert!(told["states"].as_str().is_some_and(|states| states.contains('f')), "{told}");
    assert!(told["troubles"].to_string().contains("no <b>memory</b>"), "{told}");
}

#[tokio::test]
async fn a_task_of_a_job_that_is_watched_is_told_without_asking_the_leader_again() {
    let node = Node::with_job(2).await;
    node.register(0..2).await;
    let router = tripod_web::router(node.gateway.clone());
    let stream = request("/ui/api/v1/jobs/train/stream");
    let mut viewer = Viewer::of(router.clone().oneshot(stream).await.expect("it answers"));
    viewer.until(|frame| frame["fields"]["beats_told"] == true).await;
    node.backend.depose();
    let told = router.oneshot(request("/ui/api/v1/jobs/train/tasks/0")).await.expect("it answers");
    let told: Value = serde_json::from_str(&text(told).await).expect("JSON");
    assert_eq!(told["heard_told"], true, "the viewer's answer serves: {told}");
}

#[tokio::test]
async fn the_overview_has_every_job_and_no_key_has_its_value_shown() {
    let node = Node::with_job(4).await;
    node.register(0..1).await;
    let put = tripod_state::kv::Command::Insert {
        scope: node.scope(),
        key: "weights/secret".into(),
        value: "do-not-show".into(),
        overwrite: true,
    };
    node.apply(Command::Kv(put)).await;
    let told = json(&node, "/ui/api/v1/overview").await;
    let line = &told["jobs"][0];
    assert_eq!((&line["name"], &line["strip"], &line["keys"]), (&"train".into(), &"g1o3".into(), &1.into()));
    assert_eq!(told["cluster"]["role"], "leader");
    let job = json(&node, "/ui/api/v1/jobs/train").await;
    assert!(!format!("{told}{job}").contains("do-not-show"));
}

#[tokio::test]
async fn what_changes_is_streamed_and_only_that() {
    let node = Node::with_job(4).await;
    node.register(0..4).await;
    let router = tripod_web::router(node.gateway.clone());
    let stream = request("/ui/api/v1/jobs/train/stream");
    let mut viewer = Viewer::of(router.clone().oneshot(stream).await.expect("it answers"));
    let first = viewer.until(|frame| frame["states"] == "c4").await;
    assert_eq!(first["fields"]["headline"]["kind"], "runs");
    assert_eq!(first["fields"]["as_of"]["behind_ms"], 0, "all that is committed is in it: {first}");
    node.arrive("s", [0, 1, 3]).await;
    let next = viewer.until(|frame| frame["states"] == "=bbmb").await;
    assert!(next["fields"].get("job").is_none(), "it has not changed: {next}");
    let has_curve = |frame: &Value| frame["fields"]["curves"][0].is_array();
    if !has_curve(&next) {
        // Whole lists come seldom.
        viewer.until(has_curve).await;
    }
    node.arrive("s", [2]).await;
    let next = viewer.until(|frame| frame["states"] == "c4").await;
    let has_ended = |frame: &Value| frame["fields"]["past"][0].is_object();
    let next = if has_ended(&next) { next } else { viewer.until(has_ended).await };
    assert_eq!(next["fields"]["past"][0]["last"], "2", "who was waited for when somebody last looked");
    // Whoever comes now gets all of it at once.
    let stream = request("/ui/api/v1/jobs/train/stream");
    let mut later = Viewer::of(router.oneshot(stream).await.expect("it answers"));
    let whole = later.next().await.expect("a frame");
    assert_eq!((&whole["whole"], &whole["states"]), (&true.into(), &"c4".into()));
    node.apply(Command::Job(job::Command::Delete { name: "train".to_owned() })).await;
    viewer.until(|frame| frame["fields"]["gone"] == true).await;
}

#[tokio::test]
async fn more_open_barriers_than_are_shown_do_not_end_the_others() {
    let node = Node::with_job(2).await;
    node.register(0..2).await;
    node.arrive("z", [0]).await;
    let router = tripod_web::router(node.gateway.clone());
    let stream = request("/ui/api/v1/jobs/train/stream");
    let mut viewer = Viewer::of(router.clone().oneshot(stream).await.expect("it answers"));
    viewer.until(|frame| frame["fields"]["barriers"][0]["name"] == "barrier `z`").await;
    for number in 0..32 {
        node.arrive(&format!("b{number:02}"), [0]).await;
    }
    // What its maker has seen, and has seen together.
    let shown = tripod_wait::until_async("a curve of each that is shown", || async {
        let asked = request("/ui/api/v1/jobs/train");
        let told = text(router.clone().oneshot(asked).await.expect("it answers")).await;
        let told: Value = serde_json::from_str(&told).expect("JSON");
        (told["curves"].as_array()?.len() == 32).then_some(told)
    });
    assert_eq!(shown.await["past"], serde_json::json!([]), "all 33 are open");
}

#[tokio::test]
async fn viewers_share_a_maker_and_beyond_the_bound_are_turned_away_with_a_word() {
    let node = Node::with_job(2).await;
    let router = tripod_web::router(node.gateway.clone());
    let mut viewers = Vec::new();
    for _ in 0..8 {
        let stream = request("/ui/api/v1/jobs/train/stream");
        viewers.push(Viewer::of(router.clone().oneshot(stream).await.expect("it answers")));
    }
    let refused = router.clone().oneshot(request("/ui/api/v1/overview/stream")).await.expect("it answers");
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let why = text(refused).await;
    assert_eq!(why, "T7503 ui-full: 8 viewers watch this node already; open the page of another node\n");
    let figures = text(router.clone().oneshot(request("/metrics")).await.expect("it answers")).await;
    assert!(figures.contains("\ntripod_ui_viewers 8\n"), "{figures}");
    let mut frames = Vec::new();
    for viewer in &mut viewers {
        frames.push(viewer.until(|frame| frame["states"] == "o2").await);
    }
    assert!(frames.windows(2).all(|pair| pair[0]["fields"] == pair[1]["fields"]));
    drop(viewers);
    let stream = request("/ui/api/v1/overview/stream");
    let _ = Viewer::of(router.oneshot(stream).await.expect("it answers"));
}

#[tokio::test]
async fn whoever_reads_too_slowly_goes_on_with_the_whole() {
    tokio::time::pause();
    let node = Node::with_job(4).await;
    let router = tripod_web::router(node.gateway.clone());
    let stream = request("/ui/api/v1/jobs/train/stream");
    let mut viewer = Viewer::of(router.oneshot(stream).await.expect("it answers"));
    assert_eq!(viewer.next().await.expect("a frame")["whole"], true);
    // Many more frames than are kept for anybody.
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let next = viewer.next().await.expect("a frame");
    assert_eq!((&next["whole"], &next["states"]), (&true.into(), &"o4".into()));
    assert!(next["number"].as_u64() > Some(8), "{next}");
}

#[tokio::test]
async fn only_what_may_be_asked_is_answered() {
    let node = Node::with_job(2).await;
    let long = format!("/ui/?find={}", "x".repeat(1_100));
    let cases: &[(&str, &str, &str, u16, &str)] = &[
        ("POST", "/ui/", "127.0.0.1", 405, "T7502 ui-request: the page only shows"),
        ("DELETE", "/ui/api/v1/jobs/train", "localhost:7900", 405, "T7502"),
        (
            "GET",
            "/ui/",
            "evil.example",
            421,
            "T7501 ui-host: no member of this cluster is called `evil.example`; open the page by the address of the node\n",
        ),
        ("GET", "/ui/api/v1/overview", "evil.example:7900", 421, "T7501"),
        ("GET", "/ui/", "[::1]:7900", 200, "<!DOCTYPE html>"),
        ("GET", "/ui/", "node.localhost", 200, "<!DOCTYPE html>"),
        ("GET", &long, "127.0.0.1", 414, "T7502"),
        ("GET", "/ui/api/v1/overview?x=1", "127.0.0.1", 400, "T7502"),
        ("GET", "/ui/api/v1/jobs/other", "127.0.0.1", 404, "T7502 ui-request: there is no job `other`"),
        (
            "GET",
            "/ui/api/v1/jobs/%1b%5b31m",
            "127.0.0.1",
            404,
            "T7502 ui-request: there is no job `\\u{1b}[31m`",
        ),
        ("GET", "/ui/api/v1/jobs/%ff", "127.0.0.1", 400, "T7502"),
        ("GET", "/ui/api/v1/jobs/train/tasks/2", "127.0.0.1", 404, "T7502"),
        ("GET", "/ui/api/v1/jobs/train/tasks/-1x", "127.0.0.1", 400, "T7502"),
        ("GET", "/ui/api/v1/jobs/train/graph?function=%zz", "127.0.0.1", 400, "T7502"),
        ("GET", "/ui/api/v1/jobs/train/graph?limit=1", "127.0.0.1", 400, "T7502"),
        ("GET", "/ui/elsewhere", "127.0.0.1", 404, "T7502"),
        ("GET", "/ui/assets/app.0.js", "127.0.0.1", 404, "T7502"),
        ("GET", "/ui/job/other", "127.0.0.1", 404, "T7502"),
    ];
    for (method, path, host, status, begins) in cases {
        let request = axum::http::Request::builder().method(*method).uri(*path).header("host", *host);
        let request = request.body(axum::body::Body::empty()).expect("a request");
        let answer = tripod_web::router(node.gateway.clone()).oneshot(request).await.expect("it answers");
        assert_eq!(answer.status().as_u16(), *status, "{method} {path} {host}");
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().expect("a text");
        assert!(policy.starts_with("default-src 'self';"), "{policy}");
        let answered = text(answer).await;
        assert!(answered.starts_with(begins), "{method} {path} {host}: {answered}");
    }
    let two =
        axum::http::Request::builder().uri("/ui/").header("host", "127.0.0.1").header("host", "evil.example");
    let two = two.body(axum::body::Body::empty()).expect("a request");
    let answer = tripod_web::router(node.gateway.clone()).oneshot(two).await.expect("it answers");
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_page_stands_in_words_for_who_has_no_script() {
    let node = Node::with_job(4).await;
    node.register(0..4).await;
    node.arrive("\u{1b}[31msync", [0, 1, 3]).await;
    let router = tripod_web::router(node.gateway.clone());
    let mut asked = request("/ui/job/train");
    asked.headers_mut().insert(ACCEPT, "text/plain".parse().expect("a value"));
    let words = text(router.clone().oneshot(asked).await.expect("it answers")).await;
    let expected = "job train   4 tasks\n\
                    task 2 has not come to barrier `\u{fffd}[31msync`; 3 wait for it\n\n\
                    \u{20}      1  awaited       2\n\
                    \u{20}      3  in a barrier  0-1,3\n\
                    open    barrier `\u{fffd}[31msync`   3 of 4 have come; missing 2\n";
    assert_eq!(words, expected);
    let page = text(router.clone().oneshot(request("/ui/job/train")).await.expect("it answers")).await;
    assert!(page.contains("task 2 has not come to barrier"), "{page}");
    let mut asked = request("/ui/");
    asked.headers_mut().insert(ACCEPT, "text/plain".parse().expect("a value"));
    let words = text(router.oneshot(asked).await.expect("it answers")).await;
    assert!(words.contains("job train   4 tasks   task 2 has not come"), "{words}");
    assert!(words.contains("barrier `\u{fffd}[31msync`"), "{words}");
    assert!(!words.contains(|letter: char| letter.is_control() && letter != '\n'), "{words:?}");
}

#[tokio::test]
async fn files_of_the_page_are_named_after_what_is_in_them_and_compressed() {
    let node = Node::with_job(1).await;
    let router = tripod_web::router(node.gateway.clone());
    let root = router.clone().oneshot(request("/")).await.expect("it answers");
    assert_eq!(root.headers()[LOCATION], "/ui/");
    let page = text(router.clone().oneshot(request("/ui/")).await.expect("it answers")).await;
    let paths: Vec<&str> = page.split('"').filter(|part| part.starts_with("/ui/assets/")).collect();
    assert_eq!(paths.len(), 4, "{page}");
    for path in paths {
        let mut asked = request(path);
        let plain = router.clone().oneshot(request(path)).await.expect("it answers");
        assert_eq!(plain.status(), StatusCode::NOT_ACCEPTABLE, "{path}");
        asked.headers_mut().insert(ACCEPT_ENCODING, "gzip, br".parse().expect("a value"));
        let answer = router.clone().oneshot(asked).await.expect("it answers");
        assert_eq!(answer.headers()[CONTENT_ENCODING], "gzip", "{path}");
        assert!(answer.headers()["cache-control"].to_str().is_ok_and(|value| value.contains("immutable")));
    }
}

#[tokio::test]
async fn ten_thousand_tasks_are_a_small_frame() {
    for in_turn in [false, true] {
        let node = Node::with_job(10_000).await;
        node.register(0..10_000).await;
        let host = |id: u32| format!("a3-{}", if in_turn { id % 1_250 } else { id / 8 });
        node.say_where(0..10_000, host).await;
        node.schedule(32, 64).await;
        node.arrive("s", (0..10_000).filter(|id| id % 97 != 0)).await;
        let router = tripod_web::router(node.gateway.clone());
        let stream = request("/ui/api/v1/jobs/train/stream");
        let mut viewer = Viewer::of(router.oneshot(stream).await.expect("it answers"));
        viewer.until(|frame| frame["states"].as_str().is_some_and(|states| states.starts_with('m'))).await;
        assert!(viewer.bytes <= 30 << 10, "{} bytes, in turn: {in_turn}", viewer.bytes);
        let (before, begun) = (viewer.bytes, std::time::Instant::now());
        for id in (97..97 * 17).step_by(97) {
            node.arrive("s", [id]).await;
            node.add_worker(Role::Worker).await;
            viewer.until(|frame| !frame["states"].is_null()).await;
        }
        let (changed, ms) = (viewer.bytes - before, begun.elapsed().as_millis());
        println!("first frame {before} bytes, then {changed} bytes in {ms} ms");
        assert!(changed as u128 * 1_000 <= (8 << 10) * ms, "{changed} bytes in {ms} ms");
    }
}

#[tokio::test]
async fn a_node_that_stops_ends_its_streams() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let node = Node::with_job(2).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let gateway = node.gateway.clone();
    let served = tokio::spawn(tripod_web::serve(listener, gateway, async {
        let _ = stopped.await;
    }));
    let mut line = tokio::net::TcpStream::connect(address).await.expect("connected");
    let head = format!("GET /ui/api/v1/overview/stream HTTP/1.1\r\nHost: {address}\r\n\r\n");
    line.write_all(head.as_bytes()).await.expect("sent");
    let mut answered = [0; 15];
    line.read_exact(&mut answered).await.expect("an answer");
    assert_eq!(&answered, b"HTTP/1.1 200 OK");
    stop.send(()).expect("it runs");
    let mut rest = Vec::new();
    line.read_to_end(&mut rest).await.expect("an end");
    served.await.expect("it ends");
}
