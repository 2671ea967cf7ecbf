use crate::leader::FencingToken;
use proptest::prelude::*;

/// Numbers of every length: plain ones would nearly all have twenty digits.
fn revision() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(n, shift)| n >> shift)
}

fn era() -> impl Strategy<Value = u32> {
    (0..=FencingToken::MAX_ERA, 0..20_u32).prop_map(|(n, shift)| n >> shift)
}

proptest! {
    #[test]
    fn ordered_alike_as_a_value_and_as_a_string(a in (era(), revision()), b in (era(), revision())) {
        let (a, b) = (FencingToken::new(a.0, a.1), FencingToken::new(b.0, b.1));
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
    }

    #[test]
    fn read_back_as_it_was_written(era in era(), revision in revision()) {
        let token = FencingToken::new(era, revision);
        prop_assert_eq!(token.to_string().len(), 26);
        prop_assert_eq!(token.to_string().parse::<FencingToken>().unwrap(), token);
        let json = serde_json::to_string(&token).unwrap();
        prop_assert_eq!(&json, &format!("\"{token}\""));
        prop_assert_eq!(serde_json::from_str::<FencingToken>(&json).unwrap(), token);
        prop_assert_eq!((token.era(), token.revision()), (era, revision));
    }

    #[test]
    fn a_higher_era_beats_any_revision(low in revision(), high in revision(), era in 0..FencingToken::MAX_ERA) {
        prop_assert!(FencingToken::new(era + 1, low) > FencingToken::new(era, high));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,40}") {
        if let Ok(token) = text.parse::<FencingToken>() {
            prop_assert_eq!(token.to_string(), text);
        }
    }

    #[test]
    fn digits_are_read_or_refused(text in "[0-9]{24,28}") {
        if let Ok(token) = text.parse::<FencingToken>() {
            prop_assert_eq!(token.to_string(), text);
        }
    }
}

#[test]
fn as_a_sink_sees_it() {
    assert_eq!(FencingToken::new(3, 812_345).to_string(), "00000300000000000000812345");
    assert_eq!(FencingToken::new(u32::MAX, 1).era(), FencingToken::MAX_ERA, "six digits are all there is");
}

#[test]
fn what_is_no_token_is_refused_and_shown() {
    for bad in [
        "",
        "12",
        "0000030000000000000081234",
        "000003000000000000008123456",
        "0000030000000000000081234x",
        "+0000300000000000000812345",
        "00000399999999999999999999", // above a u64
        "0000030000000000000081234٣", // a digit, but not one of ours
    ] {
        let error = bad.parse::<FencingToken>().unwrap_err();
        assert!(error.to_string().contains("26 digits"), "{error}");
    }
    let long = "9".repeat(10_000).parse::<FencingToken>().unwrap_err().to_string();
    assert!(long.len() < 300, "an error is not a copy of what was sent: {} bytes", long.len());
}
