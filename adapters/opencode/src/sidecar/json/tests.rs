use super::*;

/// Pairs of input and what `JSON.stringify(JSON.parse(input))` prints.
const JAVASCRIPT: &[(&str, &str)] = &[
    (
        r#" { "b" : 1 , "a" : [ ] , "c":{} } "#,
        r#"{"b":1,"a":[],"c":{}}"#,
    ),
    (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
    (
        r#"{"b":1,"10":2,"9":3,"01":4,"-1":5}"#,
        r#"{"9":3,"10":2,"b":1,"01":4,"-1":5}"#,
    ),
    (
        r#""\u0041\/\u001f\u007f\u2028""#,
        "\"A/\\u001f\u{7f}\u{2028}\"",
    ),
    (
        r#""\ud83d\ude00 \ud83d \ude00\uDE00""#,
        "\"😀 \\ud83d \\ude00\\ude00\"",
    ),
    (
        "[1.0,1e2,-0,0.1,1e21,123456789012345680000,1e-6,1e-7,1.5e300,5e-324,9007199254740993,1e999,0.000123,-12.5]",
        "[1,100,0,0.1,1e+21,123456789012345680000,0.000001,1e-7,1.5e+300,5e-324,9007199254740992,null,0.000123,-12.5]",
    ),
    ("[true,false,null]", "[true,false,null]"),
];

#[test]
fn values_are_printed_as_javascript_prints_them() {
    for (input, output) in JAVASCRIPT {
        assert_eq!(&Json::parse(input.as_bytes()).unwrap().compact(), output);
    }
}

#[test]
fn what_the_plugin_wrote_survives_byte_for_byte() {
    let text = "{\n  \"z\": 1,\n  \"a\": [\n    \"x\",\n    {\n      \"é\": null\n    }\n  ],\n  \"empty\": [],\n  \"none\": {}\n}\n";
    assert_eq!(Json::parse(text.as_bytes()).unwrap().pretty(), text);
}

#[test]
fn damage_is_named_and_never_a_panic() {
    for bad in [
        "",
        "{",
        "[",
        "{broken",
        "[1,]",
        "{\"a\":1,}",
        "01",
        "1.",
        "-",
        "\"",
        "\"\\",
        "\"\\x\"",
        "\"\\u12é4\"",
        "\"\u{1}\"",
        "nul",
        "1 2",
        "\u{feff}{}",
        "{\"a\" 1}",
        "\"\\é\"",
    ] {
        assert!(Json::parse(bad.as_bytes()).is_err(), "{bad:?}");
    }
    let deep = "[".repeat(1_000_000);
    assert!(Json::parse(deep.as_bytes()).unwrap_err().contains("deeper"));
    assert!(Json::parse(b"\"\xff\xfe\"").is_ok());
}

#[test]
fn a_key_set_again_keeps_its_place() {
    let mut object = Json::parse(b"{\"a\":1,\"revision\":3,\"b\":2}").unwrap();
    let Json::Object(object) = &mut object else {
        panic!("an object")
    };
    assert_eq!(object.revision(), Some(3));
    object.set("a", "x");
    object.set("c", 4);
    assert_eq!(
        Json::Object(object.clone()).compact(),
        r#"{"a":"x","revision":3,"b":2,"c":4}"#
    );
}
