//! The files of the page, as parts of this program: made from `page/` by `page/build.mjs`, compressed, and named after their
//! contents, so that a browser may keep them for ever.

use std::sync::LazyLock;

use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tripod_proto::code::Code;
use xxhash_rust::xxh3::xxh3_64;

use crate::ui::guard::refuse;

/// A file of the page.
pub(crate) struct Asset {
    stem: &'static str,
    ending: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($stem:literal, $ending:literal, $kind:literal) => {
        Asset {
            stem: $stem,
            ending: $ending,
            kind: $kind,
            bytes: include_bytes!(concat!("../../page/dist/", $stem, ".", $ending, ".gz")),
        }
    };
}

static ASSETS: [Asset; 4] = [
    asset!("app", "js", "text/javascript; charset=utf-8"),
    asset!("graph", "js", "text/javascript; charset=utf-8"),
    asset!("style", "css", "text/css; charset=utf-8"),
    asset!("icon", "svg", "image/svg+xml"),
];

static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| ASSETS.iter().map(Asset::name).collect());

impl Asset {
    fn name(&self) -> String {
        format!("{}.{:016x}.{}", self.stem, xxh3_64(self.bytes), self.ending)
    }
}

/// The path of the file that is called so without its hash.
pub(crate) fn path(stem: &str) -> String {
    let place = ASSETS.iter().position(|asset| asset.stem == stem).expect("a file of the page");
    format!("/ui/assets/{}", NAMES[place])
}

/// The file of that name.
pub(crate) fn answer(name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = NAMES.iter().position(|known| known == name).map(|place| &ASSETS[place]) else {
        return refuse(StatusCode::NOT_FOUND, Code::UiRequest, "the page has no such file; load it again");
    };
    let mut accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    if !accepted.any(|value| value.contains("gzip") || value.contains('*')) {
        return refuse(StatusCode::NOT_ACCEPTABLE, Code::UiRequest, "the files of the page are sent as gzip");
    }
    let marks = [
        (CONTENT_TYPE, asset.kind),
        (CONTENT_ENCODING, "gzip"),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (VARY, "accept-encoding"),
    ];
    (marks, asset.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of script and style together, compressed.
    const BYTES_MAX: usize = 90 << 10;

    #[test]
    fn all_files_of_the_page_together_stay_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes}");
        assert!(ASSETS.iter().all(|asset| asset.bytes.starts_with(&[0x1f, 0x8b])), "they are gzip");
    }
}
