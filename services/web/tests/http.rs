//! The http port over a gateway in memory, with requests as a probe sends them. The number behind `n` is that of the
//! walk-through of a new operator.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tripod_gateway::{FlushTimes, Gateway, Measures};

/// Status line and body of a GET.
async fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("answered");
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer of HTTP");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

async fn serve(gateway: Gateway) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    tokio::spawn(tripod_web::serve(listener, gateway, std::future::pending()));
    address
}

#[tokio::test]
async fn a_node_with_a_leader_is_live_ready_and_tells_its_status() {
    let (gateway, _backend) = Gateway::in_memory();
    let address = serve(gateway).await;
    assert_eq!(get(&address, "/livez").await.0, "HTTP/1.1 200 OK");
    assert_eq!(get(&address, "/readyz").await.0, "HTTP/1.1 200 OK");
    let (head, body) = get(&address, "/status").await;
    assert_eq!(head, "HTTP/1.1 200 OK");
    let status: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((&status["id"], &status["role"]), (&1.into(), &"leader".into()));
}

#[tokio::test]
async fn n33_a_browser_is_shown_paths_that_are_served() {
    let (gateway, _backend) = Gateway::in_memory();
    let address = serve(gateway).await;
    assert_eq!(get(&address, "/").await.0, "HTTP/1.1 307 Temporary Redirect");
    let (head, body) = get(&address, "/ui/").await;
    assert_eq!(head, "HTTP/1.1 200 OK");
    let (_, programs) = body.split_once("<footer>").expect("a list of what programs read");
    let paths = programs.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let paths: Vec<&str> = paths.collect();
    assert_eq!(paths, ["/livez", "/readyz", "/readyz?verbose", "/status", "/metrics"]);
    for path in paths {
        assert_eq!(get(&address, path).await.0, "HTTP/1.1 200 OK", "{path}");
    }
}

#[tokio::test]
async fn a_node_without_a_leader_is_live_but_not_ready() {
    let (gateway, backend) = Gateway::in_memory();
    backend.depose();
    let address = serve(gateway).await;
    assert_eq!(get(&address, "/livez").await.0, "HTTP/1.1 200 OK");
    let (head, body) = get(&address, "/readyz").await;
    assert_eq!(head, "HTTP/1.1 503 Service Unavailable");
    assert!(body.starts_with("not ready: no leader is known"), "{body}");
    backend.elect();
    assert_eq!(get(&address, "/readyz").await.0, "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn each_check_is_a_line_for_those_who_ask_for_detail() {
    let (gateway, backend) = Gateway::in_memory();
    let address = serve(gateway).await;
    let verbose = |path: &'static str| {
        let address = address.clone();
        async move { get(&address, path).await }
    };
    let (head, body) = verbose("/readyz?verbose").await;
    assert_eq!(head, "HTTP/1.1 200 OK");
    assert_eq!(body, "[+]leader ok\n[+]read ok\n[+]disk ok\n[+]drained ok\nready\n");
    assert_eq!(verbose("/readyz?verbose=1&x=y").await.1, body);
    assert_eq!(verbose("/readyz").await.1, "ok\n");

    let flush = FlushTimes { under_way: Some(Duration::from_millis(4200)), ..FlushTimes::default() };
    backend.set_measures(Measures { flush, ..Measures::default() });
    let (head, body) = verbose("/readyz?verbose").await;
    assert_eq!(head, "HTTP/1.1 503 Service Unavailable");
    let disk = "[-]disk: the disk has not answered for 4.2 s";
    assert_eq!(body, format!("[+]leader ok\n[+]read ok\n{disk}\n[+]drained ok\nnot ready\n"));
    assert_eq!(verbose("/livez").await.0, "HTTP/1.1 200 OK", "another start would not help the disk");

    backend.depose();
    let (_, body) = verbose("/readyz?verbose").await;
    assert!(body.starts_with("[-]leader: no leader is known in term 1\n[-]read: "), "{body}");
}

#[tokio::test]
async fn what_to_alarm_on_is_told_as_metrics() {
    let (gateway, _backend) = Gateway::in_memory();
    let address = serve(gateway).await;
    let (head, body) = get(&address, "/metrics").await;
    assert_eq!(head, "HTTP/1.1 200 OK");
    let told: Vec<&str> = body.lines().filter(|line| !line.starts_with('#')).collect();
    for line in [
        "tripod_leader 1",
        "tripod_disk_full 0",
        "tripod_growth_refused 0",
        "tripod_leader_gave_up_total{reason=\"disk-stalled\"} 0",
        "tripod_held_calls 0",
    ] {
        assert!(told.contains(&line), "{line} is missing in\n{body}");
    }
    assert!(body.ends_with("# EOF\n"), "the page is whole");
}

#[tokio::test]
async fn f15_a_head_that_does_not_come_ends_its_connection_before_and_between_requests() {
    let address = serve(Gateway::in_memory().0).await;
    let mut lines = Vec::new();
    for said in ["", "GET /livez HT", "GET /livez HTTP/1.1\r\nHost: node\r\n\r\n"] {
        let mut line = TcpStream::connect(&address).await.expect("connected");
        line.write_all(said.as_bytes()).await.expect("sent");
        lines.push((said, line));
    }
    // The third one's answer is there before its next head is waited for.
    let (_, answered) = &mut lines[2];
    let mut answer = [0; 12];
    answered.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
    tokio::time::pause();
    for (said, mut line) in lines {
        let mut heard = Vec::new();
        let end = line.read_to_end(&mut heard);
        // A reset is an end, too.
        let ended = tokio::time::timeout(Duration::from_secs(60), end).await;
        assert!(ended.is_ok(), "after {said:?}");
    }
}

#[tokio::test]
async fn f6_one_address_leaves_places_for_others_at_the_http_port() {
    let address = serve(Gateway::in_memory().0).await;
    let mut kept = Vec::new();
    for _ in 0..16 {
        kept.push(TcpStream::connect(&address).await.expect("connected"));
    }
    // Connections are taken in the order in which they came.
    assert_eq!(get(&address, "/livez").await.0, "HTTP/1.1 503 Service Unavailable");
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.9:0".parse().expect("an address")).expect("an address of this machine");
    let mut other = socket.connect(address.parse().expect("an address")).await.expect("connected");
    other.write_all(b"GET /livez HTTP/1.0\r\n\r\n").await.expect("sent");
    let mut text = String::new();
    other.read_to_string(&mut text).await.expect("answered");
    assert!(text.starts_with("HTTP/1.0 200"), "{text}");
}
