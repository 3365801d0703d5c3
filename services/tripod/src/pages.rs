//! The pages about error codes, `docs/errors/Tnnnn.md`, as parts of this program.

use tripod_proto::code::Code;

macro_rules! pages {
    ($($number:literal)*) => {
        &[$(($number, include_str!(concat!("../../../docs/errors/T", $number, ".md"))),)*]
    };
}

const PAGES: &[(u16, &str)] = pages!(
    1101 1102 1103 1104 1105 1106 1107 1201 1202 1203 1204 1205 1206 1301 1302 1303 1304 1401 1402
    1501 1502 1503 1511 1512 1513 1514 1515 1516 1521 1522 1523 1531 1532 1533 1534 1535 1536 1537
    1538 1539 1541 1601 1602 2101 2102 2103 2104 2105 2201 2202 2203 2204 2205 2206 2207 2208 2209
    2210 2211 2212 2213 2214 3101 3102 3103 3104 3105 3106 3107 3108 3109 3110 3111 3112 3113 3114
    3115 3116 3117 3118 3119 3201 3202 3203 3204 3205 3301 4101 4102 4103 4104 4201 4202 4203 4204
    4205 4206 4207 4301 4302 4303 4304 4305 4306 4307 4308 4309 4310 4311 4312 4313 4401 4402 4403
    4404 4405 4406 4407 4408 4409 4410 5101 5102 5103 5104 5105 5106 5107 5201 5202 5203 5301 5302
    5303 5304 5305 5401 5402 5403 5404 5501 6101 6102 6103 6104 6105 6106 6107 6108 6109 6201 6202
    6203 6204 6205 6301 6302 6303 6304 6305 6401 6402 6403 6404 6501 6502 6503 6504 6651 7101 7102
    7103 7104 7105 7106 7107 7108 7109 7110 7111 7113 7201 7202 7203 7204 7205 7206 7301 7302 7501
    7502 7503
);

/// The page about a code.
pub(crate) fn of(code: Code) -> &'static str {
    let page = PAGES.iter().find(|(number, _)| *number == code.number());
    page.expect("a test compares the pages with the catalogue").1
}

/// The code that somebody means: `T3101`, `3101` or `log-damaged`.
pub(crate) fn named(text: &str) -> Option<Code> {
    let text = text.trim().trim_end_matches(':').to_ascii_lowercase();
    let number = text.strip_prefix('t').unwrap_or(&text).parse().ok();
    let by_word = || Code::ALL.iter().copied().find(|code| code.slug() == text);
    number.and_then(Code::numbered).or_else(by_word)
}

#[cfg(test)]
mod tests;
