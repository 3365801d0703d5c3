//! What holds of every identity and of every text: written and read is the same, and no text of others ends a process.

use proptest::prelude::*;
use tripod_identity::{Identity, Kind, Realm};

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9][a-z0-9_.-]{0,62}"
}

fn kind() -> impl Strategy<Value = Kind> {
    let legal = "each part was made by its rule";
    prop_oneof![
        name().prop_map(move |name| Kind::Node(name.parse().expect(legal))),
        name().prop_map(move |name| Kind::Operator(name.parse().expect(legal))),
        name().prop_map(move |name| Kind::Viewer(name.parse().expect(legal))),
        name().prop_map(move |name| Kind::Agent(name.parse().expect(legal))),
        (name(), proptest::option::of(0..=i32::MAX)).prop_map(move |(name, number)| Kind::Task {
            job: name.parse().expect(legal),
            number: number.map(|number| tripod_identity::TaskNumber::new(number).expect(legal)),
        }),
        name().prop_map(move |name| Kind::Driver(name.parse().expect(legal))),
        name().prop_map(move |name| Kind::Worker(name.parse().expect(legal))),
        name().prop_map(move |name| Kind::Store(name.parse().expect(legal))),
    ]
}

fn identity() -> impl Strategy<Value = Identity> {
    let trust = "[a-z0-9_.-]{1,255}";
    (trust, name(), kind()).prop_map(|(trust, cluster, kind)| {
        let (trust, cluster) = (trust.parse().expect("by its rule"), cluster.parse().expect("by its rule"));
        Identity { realm: Realm { trust, cluster }, kind }
    })
}

/// Texts that are nearly identities: words of the form and what does not belong there, in any order.
fn nearly() -> impl Strategy<Value = String> {
    let words = "spiffe:// spiffe: / // tripod tripod/ main node operator viewer job task agent driver worker store . .. 0 \
                 1 -1 99999999999 % %2f ? # @ : A \u{1b} é";
    let word = proptest::sample::select(words.split(' ').map(str::to_owned).collect::<Vec<_>>());
    proptest::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

/// What is read is written as the same bytes; what is refused says so in a text without a byte of what was refused.
fn is_total(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<Identity>() {
        Ok(identity) => prop_assert_eq!(identity.to_string(), text),
        Err(refused) => {
            let told = refused.to_string();
            prop_assert!(
                !told.is_empty() && told.bytes().all(|byte| (0x20..0x7f).contains(&byte)),
                "{}",
                told
            );
            prop_assert!(refused.word().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        }
    }
    let _ = Identity::of_uris([text, text]);
    Ok(())
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same(identity in identity()) {
        prop_assert_eq!(identity.to_string().parse::<Identity>(), Ok(identity));
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        is_total(&text)?;
    }

    #[test]
    fn a_text_that_is_nearly_an_identity_is_read_or_refused(text in nearly()) {
        is_total(&text)?;
    }

    #[test]
    fn a_changed_byte_makes_another_identity_or_none(
        identity in identity(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let text = identity.to_string();
        let mut bytes = text.clone().into_bytes();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(changed) = String::from_utf8(bytes) && changed != text {
            is_total(&changed)?;
            prop_assert_ne!(changed.parse::<Identity>(), Ok(identity));
        }
    }
}
