//! Faults and times without service beside each other, as a picture that needs nothing but itself: no script, nothing
//! from elsewhere, and colours for light and dark pages.

use super::markdown::{put, seconds};
use super::{Episode, Outage, Report};
use crate::history::Micros;

/// Sizes, in pixels before the picture is scaled.
const WIDTH: usize = 1_000;
/// Where the names of the rows end and time begins.
const LEFT: usize = 190;
/// How long all of the time is.
const LENGTH: usize = 790;
/// Where the first row begins, below the title.
const TOP: usize = 44;
const ROW: usize = 22;
/// Of a bar; the rest of a row is air.
const BAR: usize = 14;
/// Below the last row: the numbers of the axis, and what the colours mean.
const BOTTOM: usize = 52;
/// The narrowest bar: a fault that was over at once must be seen.
const BAR_MIN: f64 = 2.0;
/// Lines of the axis, at most.
const TICKS_MAX: u64 = 12;
/// Seconds between two lines of the axis.
const TICKS: &[u64] = &[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];

const STYLE: &str = "\
.page{fill:#ffffff}text{fill:#1f2328;font:12px sans-serif}.title{font-size:15px;font-weight:bold}
.axis{stroke:#d0d7de}.fault{fill:#0969da;fill-opacity:.7}.outage{fill:#cf222e}.shade{fill:#cf222e;fill-opacity:.12}
.planned{fill:none;stroke:#57606a;stroke-dasharray:3 2}
@media (prefers-color-scheme: dark){.page{fill:#0d1117}text{fill:#e6edf3}.axis{stroke:#3d444d}.fault{fill:#4493f8}
.outage{fill:#f85149}.shade{fill:#f85149;fill-opacity:.18}.planned{stroke:#9198a1}}";

impl Report {
    /// The timeline as SVG: a row for each kind of fault, one for the times without an acknowledged write, and these as a
    /// shade behind all rows. A broken frame is how long a fault was to last.
    #[must_use]
    pub fn picture(&self) -> String {
        let mut kinds: Vec<&str> = Vec::new();
        for episode in &self.timeline {
            if !kinds.contains(&episode.kind.as_str()) {
                kinds.push(&episode.kind);
            }
        }
        let scale = Scale { total: self.total() };
        let rows_end = TOP + ROW * (kinds.len() + 1);
        let height = rows_end + BOTTOM;
        let name = escaped(&format!("{}, seed {}: {}", self.scenario, self.seed, self.verdict));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\">\n<title>{name}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
             <text class=\"title\" x=\"12\" y=\"26\">{name}</text>\n"
        );
        axis(&mut svg, &scale, rows_end);
        for outage in &self.outages {
            let at = Bar { from: outage.from_us, length: outage.length_us, top: TOP, height: rows_end - TOP };
            scale.bar(&mut svg, "shade", &at, &without_service(outage));
        }
        for (row, kind) in kinds.iter().enumerate() {
            label(&mut svg, row, kind);
            for episode in self.timeline.iter().filter(|episode| episode.kind == **kind) {
                fault(&mut svg, &scale, row, episode);
            }
        }
        label(&mut svg, kinds.len(), "no write acknowledged");
        for outage in &self.outages {
            let at = in_row(kinds.len(), outage.from_us, outage.length_us);
            scale.bar(&mut svg, "outage", &at, &without_service(outage));
        }
        legend(&mut svg, rows_end + 38);
        put(&mut svg, "</svg>\n");
        svg
    }

    /// The last moment that is shown.
    fn total(&self) -> Micros {
        let ended = |episode: &Episode| {
            let longest = episode.length_us.unwrap_or_default().max(episode.planned_us.unwrap_or_default());
            episode.from_us.plus(longest)
        };
        let faults = self.timeline.iter().map(ended);
        let outages = self.outages.iter().map(Outage::until);
        faults.chain(outages).chain([self.duration_us, Micros(1)]).max().unwrap_or(Micros(1))
    }
}

/// How moments become places.
struct Scale {
    total: Micros,
}

/// Something that lasts.
struct Bar {
    from: Micros,
    length: Micros,
    top: usize,
    height: usize,
}

impl Scale {
    fn pixels(&self, length: Micros) -> f64 {
        LENGTH as f64 * length.as_secs_f64() / self.total.as_secs_f64()
    }

    fn x(&self, at: Micros) -> f64 {
        LEFT as f64 + self.pixels(at)
    }

    fn bar(&self, svg: &mut String, class: &str, bar: &Bar, words: &str) {
        let Bar { from, length, top, height } = bar;
        let (x, width) = (self.x(*from), self.pixels(*length).max(BAR_MIN));
        let words = escaped(words);
        put(
            svg,
            &format!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height}\">\
                 <title>{words}</title></rect>\n"
            ),
        );
    }
}

fn fault(svg: &mut String, scale: &Scale, row: usize, episode: &Episode) {
    let Episode { kind, target, from_us, length_us, planned_us, .. } = episode;
    let lasted =
        length_us.map_or_else(|| "not healed".to_owned(), |length| format!("lasted {}", seconds(length)));
    let planned = planned_us.map_or_else(String::new, |length| format!(", planned {}", seconds(length)));
    let words = format!("{kind}: {target}, at {}, {lasted}{planned}", seconds(*from_us));
    scale.bar(svg, "fault", &in_row(row, *from_us, length_us.unwrap_or_default()), &words);
    if let Some(planned) = planned_us {
        scale.bar(svg, "planned", &in_row(row, *from_us, *planned), &words);
    }
}

fn in_row(row: usize, from: Micros, length: Micros) -> Bar {
    Bar { from, length, top: TOP + ROW * row + (ROW - BAR) / 2, height: BAR }
}

fn without_service(outage: &Outage) -> String {
    format!("no write acknowledged for {} from {} on", seconds(outage.length_us), seconds(outage.from_us))
}

fn label(svg: &mut String, row: usize, name: &str) {
    let (x, y, name) = (LEFT - 8, TOP + ROW * row + ROW - 7, escaped(name));
    put(svg, &format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{name}</text>\n"));
}

/// Upright lines with the seconds below.
fn axis(svg: &mut String, scale: &Scale, rows_end: usize) {
    let whole = scale.total.0 / 1_000_000;
    let fits = TICKS.iter().copied().find(|step| whole / step <= TICKS_MAX);
    // A run longer than twelve days has longer steps.
    let step = fits.unwrap_or(whole / TICKS_MAX + 1);
    for tick in (0..=whole / step).map(|tick| tick * step) {
        let (x, numbers) = (scale.x(Micros::from_millis(tick * 1_000)), rows_end + 16);
        put(
            svg,
            &format!(
                "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{rows_end}\"/>\n\
                 <text x=\"{x:.1}\" y=\"{numbers}\" text-anchor=\"middle\">{tick} s</text>\n"
            ),
        );
    }
}

fn legend(svg: &mut String, y: usize) {
    let entries =
        [("fault", "fault"), ("planned", "length by the plan"), ("outage", "no write acknowledged")];
    for (place, (class, words)) in entries.into_iter().enumerate() {
        let (x, top) = (LEFT + 200 * place, y - 11);
        let text = x + 26;
        put(
            svg,
            &format!(
                "<rect class=\"{class}\" x=\"{x}\" y=\"{top}\" width=\"20\" height=\"12\"/>\n\
                 <text x=\"{text}\" y=\"{y}\">{words}</text>\n"
            ),
        );
    }
}

/// Text as XML holds it. What XML cannot hold is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            other if other.is_control() => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use roxmltree::Document;

    use super::*;
    use crate::history::{Call, ClientId, Header, Key, Outcome, Recorder, Reply, Value};
    use crate::report::About;

    fn report() -> Report {
        let recorder = Recorder::new(Header { scenario: "kills & more".into(), seed: 7 });
        let second = |second: u64| Micros(second * 1_000_000);
        recorder.fault(second(1), "kill-leader", "node 1").planned(Micros(1_200_000)).heal(second(7));
        recorder.fault(second(3), "bridge", "nodes <2> & \"3\"\u{7}").heal(second(5));
        let _never_heals = recorder.fault(second(9), "kill-leader", "node 2");
        let call = Call::Write { key: Key::from("r"), value: Value(1) };
        let done = Outcome::Ok(Reply::Written { version: None, index: None });
        recorder.invoke(second(2), ClientId(1), call).complete(second(6), done);
        let about = About { duration: second(20), ..About::default() };
        Report::new(&recorder.history(second(20)), Vec::new(), about)
    }

    #[test]
    fn n44_every_fault_is_in_the_picture_with_the_times_without_service() {
        let svg = report().picture();
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
        let of_class = |class: &str| {
            let all = document.descendants().filter(|node| node.attribute("class") == Some(class));
            // Those of the legend stand for nothing that happened.
            all.filter(|node| node.children().any(|child| child.has_tag_name("title"))).count()
        };
        assert_eq!((of_class("fault"), of_class("planned")), (3, 1));
        assert_eq!((of_class("outage"), of_class("shade")), (1, 1));
        for words in [
            "kill-leader: node 1, at 1.00 s, lasted 6.00 s, planned 1.20 s",
            "bridge: nodes <2> & \"3\", at 3.00 s, lasted 2.00 s",
            "kill-leader: node 2, at 9.00 s, not healed",
            "no write acknowledged for 4.00 s from 2.00 s on",
        ] {
            assert!(document.descendants().any(|node| node.text() == Some(words)), "{words} is not in {svg}");
        }
    }

    #[test]
    fn the_picture_stays_within_its_frame_and_has_no_script() {
        let svg = report().picture();
        let document = Document::parse(&svg).unwrap();
        let number = |node: &roxmltree::Node<'_, '_>, name: &str| -> f64 {
            node.attribute(name).map_or(0.0, |text| text.parse().unwrap())
        };
        let height = number(&document.root_element(), "height");
        for node in document.descendants().filter(|node| node.has_tag_name("rect")) {
            assert!(number(&node, "x") + number(&node, "width") <= WIDTH as f64, "{node:?}");
            assert!(number(&node, "y") + number(&node, "height") <= height, "{node:?}");
        }
        let tags: std::collections::BTreeSet<&str> = document
            .descendants()
            .filter(roxmltree::Node::is_element)
            .map(|node| node.tag_name().name())
            .collect();
        let known = ["line", "rect", "style", "svg", "text", "title"];
        assert_eq!(tags.into_iter().collect::<Vec<_>>(), known);
        assert!(!svg.contains("href") && !svg.contains("url("), "{svg}");
        assert!(svg.contains("prefers-color-scheme: dark"), "{svg}");
    }

    #[test]
    fn a_run_without_faults_and_a_long_one_have_a_picture() {
        for seconds in [0, 30, 30 * 86_400] {
            let about = About { duration: Micros(seconds * 1_000_000), ..About::default() };
            let svg = Report::new(&crate::history::History::default(), Vec::new(), about).picture();
            let document = Document::parse(&svg).unwrap();
            let lines = document.descendants().filter(|node| node.has_tag_name("line")).count();
            assert!((1..=13).contains(&lines), "{lines} lines in {seconds} s");
        }
    }
}
