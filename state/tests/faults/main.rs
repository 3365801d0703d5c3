//! Of which class every fault is, and how it reads in plain words: what front ends tell that have no word of their own.

mod samples;

#[test]
fn every_fault_has_a_class_and_plain_words() {
    samples::check_transcript("tests/faults/faults.txt", |fault| {
        format!("{} {:?}", fault.class().word(), fault.text())
    });
}
