//! The page as a browser loads it: the same for every path, with the first data and, for whoever has no script, the words.

use serde_json::{Value, json};

use crate::router::PATHS;
use crate::ui::assets;

/// The page about what is `watched` (`overview`, or a job's name behind `job/`), which shows `data` before anything else was
/// loaded. `links`: the other nodes have their pages at the addresses that they announce.
pub(crate) fn page(watched: &str, data: &Value, words: &str, links: bool) -> String {
    let first = inside(&json!({"watched": watched, "fields": data}));
    let (style, icon) = (assets::path("style"), assets::path("icon"));
    let (app, graph) = (assets::path("app"), assets::path("graph"));
    let links = if links { " data-links" } else { "" };
    let paths = PATHS.iter().map(|(path, what)| format!("<li><a href=\"{path}\">{path}</a>: {what}</li>\n"));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Tripod</title>\n\
         <link rel=\"icon\" href=\"{icon}\">\n<link rel=\"stylesheet\" href=\"{style}\">\n</head>\n<body>\n\
         <div id=\"app\" data-graph=\"{graph}\"{links}><noscript><main><pre>{}</pre></main></noscript></div>\n\
         <script type=\"application/json\" id=\"first\">{first}</script>\n\
         <script src=\"{app}\" defer></script>\n\
         <footer><details><summary>For programs</summary>\n<ul>\n{}</ul></details></footer>\n</body>\n</html>\n",
        escaped(words),
        paths.collect::<String>(),
    )
}

/// JSON that cannot end the element in which it stands.
fn inside(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_called_something_stays_a_text() {
        let hostile = "</script><script>alert(1)</script><!--";
        let page = page("overview", &json!({"note": hostile}), hostile, true);
        assert_eq!(page.matches("<script").count(), 2, "{page}");
        assert!(page.contains("\\u003c/script>") && page.contains("&lt;/script&gt;"), "{page}");
        assert!(!page.contains("<!--"), "{page}");
    }

    #[test]
    fn a_page_with_a_port_of_its_own_does_not_know_where_those_of_others_are() {
        for links in [true, false] {
            assert_eq!(page("overview", &json!({}), "", links).contains("data-links"), links);
        }
    }
}
