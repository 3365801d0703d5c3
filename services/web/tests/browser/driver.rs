//! A Chromium that is driven by WebDriver, which is JSON over HTTP. A library for it would bring 45 crates and another set of
//! features for those that everything here is built from (docs/decisions/085).

#![allow(unreachable_pub)]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const DRIVER: &str = "/usr/bin/chromedriver";
/// Bytes of an answer: a screenshot is the longest.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A browser of its own, with nothing in it.
pub struct Browser {
    driver: Child,
    address: String,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// `None`, with a word: this machine has none.
    pub async fn start() -> Option<Self> {
        if !PathBuf::from(DRIVER).exists() {
            println!("skipped: there is no {DRIVER}; `apt-get install chromium chromium-driver` brings it");
            return None;
        }
        let profile = tempfile::tempdir().expect("a directory");
        // It takes a free port itself: one that was looked for here could be somebody else's by the time that it starts.
        let mut driver = Command::new(DRIVER)
            .args(["--port=0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let mut said = BufReader::new(driver.stdout.take().expect("piped")).lines();
        let told = async {
            loop {
                let line = said.next_line().await.expect("text").expect("it goes on");
                if let Some(port) = port_in(&line) {
                    return port;
                }
            }
        };
        let address =
            format!("127.0.0.1:{}", tripod_wait::within("the driver's word where it listens", told).await);
        // Whatever else it says is read, or it would have to wait.
        tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
        let mut browser = Self { driver, address, session: String::new(), _profile: profile };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,900",
        ];
        let mut arguments: Vec<String> = arguments.map(str::to_owned).to_vec();
        arguments.push(format!("--user-data-dir={}", browser._profile.path().display()));
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let session = browser.call("POST", "/session", &wanted).await;
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        Some(browser)
    }

    /// One call of the driver; it panics at an error.
    async fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let text = if method == "GET" { String::new() } else { body.to_string() };
        let mut line = TcpStream::connect(&self.address).await.expect("the driver listens");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.address,
            text.len()
        );
        line.write_all(head.as_bytes()).await.expect("sent");
        line.write_all(text.as_bytes()).await.expect("sent");
        let text = read_answer(&mut line).await;
        let (_, body) = text.split_once("\r\n\r\n").expect("a body");
        let answer: Value = serde_json::from_str(body).expect("JSON");
        assert!(answer["value"]["error"].is_null(), "{method} {path}: {answer}");
        answer["value"].clone()
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", &format!("/session/{}/{path}", self.session), &body).await
    }

    pub async fn open(&self, url: &str) {
        self.post("url", json!({"url": url})).await;
    }

    /// What a function's body returns, or what its promise becomes.
    pub async fn run(&self, script: &str) -> Value {
        self.post("execute/sync", json!({"script": script, "args": []})).await
    }

    /// Waits until a body returns what is true.
    pub async fn until(&self, what: &str, script: &str) -> Value {
        tripod_wait::until_async(what, || async {
            let seen = self.run(script).await;
            let is_true = !matches!(seen, Value::Null | Value::Bool(false));
            if !is_true {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            is_true.then_some(seen)
        })
        .await
    }

    /// Waits until the page has this text in what is seen.
    pub async fn sees(&self, text: &str) {
        let script = format!("return document.body.innerText.includes({})", json!(text));
        self.until(&format!("`{text}` on the page"), &script).await;
    }

    /// Presses keys, one after another; a key of more than a letter is written as WebDriver numbers it.
    pub async fn press(&self, keys: &[&str]) {
        let pressed = keys.iter().flat_map(|key| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        });
        let pressed: Vec<Value> = pressed.collect();
        self.post("actions", json!({"actions": [{"type": "key", "id": "keys", "actions": pressed}]})).await;
    }

    /// A command of Chromium's own protocol.
    pub async fn cdp(&self, command: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({"cmd": command, "params": parameters})).await
    }

    pub async fn look(&self, width: u32, dark: bool) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.cdp("Emulation.setDeviceMetricsOverride", size).await;
        let value = if dark { "dark" } else { "light" };
        let feature = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.cdp("Emulation.setEmulatedMedia", feature).await;
    }

    /// What the page wrote to the console since it was last asked.
    pub async fn console(&self) -> Vec<Value> {
        self.post("se/log", json!({"type": "browser"})).await.as_array().cloned().unwrap_or_default()
    }

    /// Keeps a picture of the page below the folder of test artefacts.
    pub async fn picture(&self, name: &str) {
        let taken = self.call("GET", &format!("/session/{}/screenshot", self.session), &Value::Null).await;
        let folder = artefacts();
        std::fs::create_dir_all(&folder).expect("a folder");
        let bytes = from_base64(taken.as_str().expect("a picture"));
        std::fs::write(folder.join(format!("{name}.png")), bytes).expect("written");
    }

    /// Ends the browser, and then the driver.
    pub async fn end(mut self) {
        self.call("DELETE", &format!("/session/{}", self.session), &json!({})).await;
        self.driver.kill().await.expect("it ran");
    }
}

/// A test that failed leaves neither of them.
impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(id) = self.driver.id() {
            let _ = std::process::Command::new("kill").args(["-9", "--", &format!("-{id}")]).status();
        }
    }
}

/// The port in the driver's word that it listens.
fn port_in(line: &str) -> Option<u16> {
    line.strip_prefix("ChromeDriver was started successfully on port ")?.strip_suffix('.')?.parse().ok()
}

/// Where pictures are kept: `target/tests/browser`.
pub fn artefacts() -> PathBuf {
    crate::common::modules::target().join("tests/browser")
}

/// A whole answer: the driver may keep the connection.
async fn read_answer(line: &mut TcpStream) -> String {
    let (mut answer, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let read = line.read(&mut part).await.expect("an answer");
        answer.extend_from_slice(&part[..read]);
        assert!(answer.len() <= ANSWER_BYTES_MAX && (read > 0 || !answer.is_empty()), "no whole answer");
        let Some(head) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            assert!(read > 0, "the driver closed the connection");
            continue;
        };
        let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
        let length =
            text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        if read == 0 || length.is_some_and(|length| answer.len() >= head + 4 + length) {
            return String::from_utf8(answer).expect("UTF-8");
        }
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values = text.bytes().filter_map(|byte| LETTERS.iter().position(|letter| *letter == byte));
    let values: Vec<usize> = values.collect();
    let part = |part: &[usize]| {
        let bits = part.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - part.len()));
        (0..part.len() - 1).map(move |place| (bits >> (16 - 8 * place)) as u8).collect::<Vec<_>>()
    };
    values.chunks(4).flat_map(part).collect()
}
