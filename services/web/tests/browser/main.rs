//! The page in a real Chromium, driven by WebDriver, over nodes in memory. What is looked for is found by role and text. Where
//! there is no Chromium, each test says so and is no failure.

#[path = "../common/mod.rs"]
mod common;
mod driver;

use std::time::Instant;

use common::Node;
use driver::Browser;
use serde_json::{Value, json};
use tripod_state::ray::ids::{FunctionName, ObjectId, WorkerId};
use tripod_state::ray::{Argument, Origin, Registration, Request, Role, Task, TaskOptions};
use tripod_state::{Command, ray};

/// Enter and Tab, as WebDriver writes them.
const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";

/// A scheduler of three tasks, the last of which reads what the first two make.
async fn schedule(node: &Node) {
    let ask =
        |request| Command::Ray(ray::Command::Ask { scope: node.scope(), origin: Origin::default(), request });
    node.apply(ask(Request::RegisterStore { address: "127.0.0.1:9101".to_owned() })).await;
    let worker = |role| Registration {
        host: "127.0.0.1".to_owned(),
        store: String::new(),
        role,
        attributed: true,
        extended: false,
        slots: 1,
    };
    node.apply(ask(Request::RegisterWorker(worker(Role::Driver)))).await;
    node.apply(ask(Request::RegisterWorker(worker(Role::Worker)))).await;
    let name = |name: &'static str| FunctionName(name.into());
    for function in ["shard.load", "shard.sum"] {
        let register = Request::RegisterFunction { worker: WorkerId(1), name: name(function), results: 1 };
        node.apply(ask(register)).await;
    }
    let read = |ids: &[u64]| ids.iter().map(|id| Argument::Object(ObjectId(*id))).collect::<Vec<_>>();
    for (function, arguments) in
        [("shard.load", read(&[])), ("shard.load", read(&[])), ("shard.sum", read(&[0, 1]))]
    {
        let task = Task { name: name(function), arguments, results_given: 0 };
        let options = TaskOptions::default();
        node.apply(ask(Request::Submit { worker: WorkerId(0), task, options, child: None, hint: None }))
            .await;
    }
}

/// Four tasks, of which task 2 has not come.
async fn gang() -> Node {
    let node = Node::with_job(4).await;
    node.register(0..4).await;
    node.say_hosts(0..4).await;
    node.arrive("sync_7", [0, 1, 3]).await;
    node
}

/// Asserts that the page wrote nothing to the console and asked nobody else.
async fn asserts_quiet(browser: &Browser, address: &str, place: &str) {
    let said = browser.console().await;
    let bad: Vec<_> =
        said.iter().filter(|line| line["level"] != "INFO" && line["level"] != "DEBUG").collect();
    assert!(bad.is_empty(), "{place}: {bad:?}");
    let asked =
        browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)").await;
    for name in asked.as_array().expect("a list") {
        let name = name.as_str().expect("a name");
        assert!(name.starts_with(&format!("http://{address}/")), "{place} asked {name}");
    }
}

/// axe-core, where it is to be had.
fn axe() -> Option<String> {
    let modules = common::modules::with_modules()?;
    Some(std::fs::read_to_string(modules.join("node_modules/axe-core/axe.min.js")).expect("it is installed"))
}

async fn asserts_accessible(browser: &Browser, axe: &str, place: &str) {
    browser.run(axe).await;
    let found = browser
        .run(
            "return axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations
                .filter((one) => one.impact === 'serious' || one.impact === 'critical')
                .map((one) => one.id + ': ' + one.nodes.map((node) => node.html).join(' | ')))",
        )
        .await;
    assert_eq!(found, json!([]), "{place}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v24_every_view_is_whole_in_both_lights_and_widths() {
    let Some(browser) = Browser::start().await else { return };
    let node = gang().await;
    schedule(&node).await;
    let (address, _served) = node.serve(0).await;
    let axe = axe();
    let views = [
        ("cluster", "/ui/", "term"),
        ("jobs", "/ui/jobs", "task 2 has not come"),
        ("metrics", "/ui/metrics", "tripod_applied_index"),
        ("job", "/ui/job/train", "task 2 has not come to barrier `sync_7`; 3 wait for it"),
        ("table", "/ui/job/train?view=table", "a3-0"),
        ("task", "/ui/job/train?task=2", "Others wait for it at barrier `sync_7`"),
        ("barriers", "/ui/job/train?tab=barriers", "3 of 4"),
        ("scheduler", "/ui/job/train?tab=scheduler", "3 operations of 3"),
        ("stores", "/ui/job/train?tab=stores", "127.0.0.1:9101"),
        ("raw", "/ui/job/train?tab=raw", "headline"),
    ];
    for (width, dark) in [(1_280, false), (1_280, true), (390, false), (390, true)] {
        browser.look(width, dark).await;
        for (name, path, text) in views {
            let place = format!("{name}-{width}-{}", if dark { "dark" } else { "light" });
            browser.open(&format!("http://{address}{path}")).await;
            browser.sees(text).await;
            browser.until("live data", "return /as of \\d/.test(document.body.innerText)").await;
            if name == "scheduler" {
                browser
                    .until("the graph", "return document.querySelectorAll('svg g rect').length === 3")
                    .await;
            }
            let wide = "return document.documentElement.scrollWidth <= innerWidth";
            assert_eq!(browser.run(wide).await, true, "{place} is wider than its window");
            browser.picture(&place).await;
            if let Some(axe) = &axe {
                asserts_accessible(&browser, axe, &place).await;
            }
            asserts_quiet(&browser, &address, &place).await;
        }
    }
    browser.cdp("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    browser.open(&format!("http://{address}/ui/job/train")).await;
    // As a screen reader has it: what reads the page by script would not run.
    let tree = browser.cdp("Accessibility.getFullAXTree", json!({})).await;
    let names = names_in_order(&tree["nodes"]);
    assert!(names.iter().any(|name| name.contains("task 2 has not come")), "without script: {names:?}");
    browser.end().await;
}

/// The picture of the cell of a task, which is the `place`-th of the strip.
async fn cell(browser: &Browser, place: u32) -> Value {
    let script = format!(
        "const canvas = document.querySelector('.strip canvas'); const scale = devicePixelRatio;
         return Array.from(canvas.getContext('2d').getImageData({place} * 20 * scale, 0, 18 * scale, 18 * scale).data).join()"
    );
    browser.run(&script).await
}

/// Serves on threads of its own, which end with what is given back, as those of a process would.
fn serve_apart(node: &Node, listener: std::net::TcpListener) -> tokio::runtime::Runtime {
    let server = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    listener.set_nonblocking(true).expect("a socket");
    let (gateway, manner) =
        (node.gateway.clone(), tripod_web::Manner { parts: tripod_web::Parts::All, viewers: 0 });
    server.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
        tripod_web::serve_protected(
            listener,
            (tripod_web::NodeFigures::default(), None),
            gateway,
            manner,
            std::future::pending(),
        )
        .await;
    });
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn v25_what_happens_is_seen_without_a_reload_and_a_dead_node_is_told() {
    let Some(browser) = Browser::start().await else { return };
    let node = Node::with_job(4).await;
    node.register(0..4).await;
    schedule(&node).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let server = serve_apart(&node, listener);
    browser.open(&format!("http://{address}/ui/job/train")).await;
    browser.sees("nobody waits at a barrier").await;
    browser.sees("Scheduler").await;
    let well = cell(&browser, 2).await;
    assert_eq!(well, cell(&browser, 0).await, "all are connected");

    node.arrive("sync_7", [0, 1, 3]).await;
    let began = Instant::now();
    browser.sees("task 2 has not come to barrier `sync_7`; 3 wait for it").await;
    println!("seen {} ms after the barrier opened", began.elapsed().as_millis());
    let has_changed =
        || async { (cell(&browser, 2).await != well && cell(&browser, 0).await != well).then_some(()) };
    tripod_wait::until_async("the strip is drawn", has_changed).await;
    assert_ne!(cell(&browser, 2).await, cell(&browser, 0).await, "its shape is its own");

    node.arrive("sync_7", [2]).await;
    let began = Instant::now();
    browser.sees("nobody waits at a barrier").await;
    println!("gone {} ms after it came", began.elapsed().as_millis());
    let is_well = || async { (cell(&browser, 2).await == well).then_some(()) };
    tripod_wait::until_async("the strip is drawn", is_well).await;

    server.shutdown_background();
    let began = Instant::now();
    browser.sees("this node is gone; as of").await;
    println!("told {} ms after the node ended", began.elapsed().as_millis());
    browser.picture("gone").await;

    // A node that begins anew at its address, and has another job of that name.
    let other = Node::with_job(4).await;
    let listener = std::net::TcpListener::bind(&address).expect("it is free again");
    let server = serve_apart(&other, listener);
    browser.sees("none of 4 tasks is connected").await;
    let has_tab = "[...document.querySelectorAll('a')].some((link) => link.textContent === 'Scheduler')";
    browser.until("no scheduler that was", &format!("return !{has_tab}")).await;
    server.shutdown_background();
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v26_ten_thousand_tasks_are_shown_and_followed() {
    let Some(browser) = Browser::start().await else { return };
    let node = Node::with_job(10_000).await;
    node.register(0..10_000).await;
    node.say_hosts(0..10_000).await;
    node.arrive("sync_7", (0..10_000).filter(|id| id % 97 != 0)).await;
    let (address, _served) = node.serve(0).await;
    browser.look(1_280, false).await;
    browser.open(&format!("http://{address}/ui/job/train?view=table")).await;
    browser.sees("awaited 104").await;
    let interactive =
        "return performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart";
    println!("the page's program ran after {} ms", browser.run(interactive).await);
    let scroll = "const box = document.querySelector('[aria-label=\"Tasks, rows\"]'); const took = [];
        return (async () => { for (let row = 0; row < 60; row += 1) {
            const began = performance.now(); box.scrollTop += 26 * 30; box.dispatchEvent(new Event('scroll'));
            await new Promise((done) => requestAnimationFrame(done)); void box.offsetHeight; took.push(performance.now() - began); }
        took.sort((one, other) => one - other); return took[30]; })()";
    println!("a screenful scrolled in {} ms, median", browser.run(scroll).await);
    let rows = "return document.querySelectorAll('[aria-label=\"Tasks, rows\"] [role=row]').length";
    assert_eq!(browser.run(rows).await, 60, "rows that exist");
    let count =
        "return document.querySelector('[aria-label=Tasks][role=table]').getAttribute('aria-rowcount')";
    assert_eq!(browser.run(count).await, "10001");
    browser.open(&format!("http://{address}/ui/job/train")).await;
    browser.sees("awaited 104").await;
    browser.picture("ten-thousand").await;
    let heap = || async {
        browser.cdp("HeapProfiler.collectGarbage", json!({})).await;
        browser.run("return performance.memory.usedJSHeapSize").await.as_i64().expect("a size")
    };
    let before = heap().await;
    for id in (0..10_000).step_by(97) {
        node.arrive("sync_7", [id]).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    browser.sees("nobody waits at a barrier").await;
    let grown = heap().await - before;
    println!("the heap grew by {} KiB in {} arrivals", grown / 1024, 104);
    assert!(grown <= 5 << 20, "{grown} bytes");
    asserts_quiet(&browser, &address, "ten thousand").await;
    browser.end().await;
}

/// The names of a tree's nodes as they are read out.
fn names_in_order(nodes: &Value) -> Vec<&str> {
    let nodes = nodes.as_array().expect("nodes");
    let mut names = Vec::new();
    let mut next = vec![nodes[0]["nodeId"].clone()];
    while let Some(id) = next.pop() {
        let Some(node) = nodes.iter().find(|node| node["nodeId"] == id) else { continue };
        names.extend(node["name"]["value"].as_str());
        next.extend(node["childIds"].as_array().into_iter().flatten().rev().cloned());
    }
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn v27_everything_is_reached_by_keyboard_and_the_finding_comes_first() {
    let Some(browser) = Browser::start().await else { return };
    let node = gang().await;
    let (address, _served) = node.serve(0).await;
    browser.look(1_280, false).await;
    browser.open(&format!("http://{address}/ui/")).await;
    browser.sees("task 2 has not come").await;
    browser.press(&["g", "j"]).await;
    browser.until("the jobs", "return location.pathname === '/ui/jobs'").await;
    browser.sees("task 2 has not come").await;
    browser.press(&["j", ENTER]).await;
    browser.until("the job", "return location.pathname === '/ui/job/train'").await;
    browser.sees("3 wait for it").await;
    browser.press(&["t"]).await;
    browser.until("the table", "return location.search === '?view=table'").await;
    browser.press(&["j", "j", "j", ENTER]).await;
    browser.until("the task", "return new URLSearchParams(location.search).get('task') === '2'").await;
    browser.sees("Others wait for it at barrier `sync_7`").await;
    browser.press(&["?"]).await;
    browser.sees("stop and go on with live data").await;
    browser.press(&[TAB]).await;
    let focus = "const style = getComputedStyle(document.activeElement);
        return document.activeElement !== document.body && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2";
    assert_eq!(browser.run(focus).await, true, "where the focus is, is seen");
    browser.open(&format!("http://{address}/ui/job/train")).await;
    browser.sees("3 wait for it").await;
    let tree = browser.cdp("Accessibility.getFullAXTree", json!({})).await;
    let names: Vec<&str> = tree["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter_map(|node| node["name"]["value"].as_str())
        .collect();
    let is_named = |text: &str| names.iter().any(|name| name.contains(text));
    assert!(is_named("task 2 has not come") && is_named("Parts of the job"), "{names:?}");
    assert!(is_named("Strip of 4 tasks: 1 awaited, 3 in a barrier"), "{names:?}");
    // Who listens hears it in the order of the document.
    let order = "const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            if (walker.currentNode.data.includes('task 2 has not come')) {
                const parts = document.querySelector('[aria-label=\"Parts of the job\"]');
                return (walker.currentNode.compareDocumentPosition(parts) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
            }
        }
        return false";
    assert_eq!(browser.run(order).await, true, "the finding comes before the parts of the job");
    browser.press(&["."]).await;
    browser.sees("Stopped").await;
    asserts_quiet(&browser, &address, "keyboard").await;
    browser.end().await;
}
