use proptest::prelude::*;

use super::*;

fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn members_are_found_by_name_not_by_spelling() {
    let table = [
        (r#"{"a":1,"name":"x","b":{"name":"y"}}"#, Some(r#""x""#)),
        (r#"{ "n\u0061me" : [ 1 ] }"#, Some("[ 1 ]")),
        (r#"{"Name":1,"name ":2,"nam":3}"#, None),
        (r#"{"name":1,"name":2}"#, None),
        (r#"{"name":1,"\u006eame":1}"#, None),
        (r#"{"\ud800":1,"name":2}"#, Some("2")),
        (r#"{"name":null}"#, Some("null")),
        ("{}", None),
        (r#"["name",1]"#, None),
        (r#""name""#, None),
    ];
    for (object, expected) in table {
        let object = json(object);
        assert_eq!(
            member(&object, "name").map(RawValue::get),
            expected,
            "{object}"
        );
    }
    let object = json(r#"{"b":2,"a":1,"c":3,"c":4}"#);
    let found = pick(&object, ["a", "b", "c", "d"]).map(|raw| raw.map(RawValue::get));
    assert_eq!(found, [Some("1"), Some("2"), None, None]);
}

#[test]
fn members_are_set_and_removed_in_place() {
    let value = json("[ 0.10 ]");
    let set = |object: &str, name: &str| set_member(&json(object), name, &value).get().to_owned();
    assert_eq!(set("{}", "a"), r#"{"a":[ 0.10 ]}"#);
    assert_eq!(
        set(r#"{ "a" : 1 , "b" : 2 }"#, "a"),
        r#"{"a":[ 0.10 ],"b":2}"#
    );
    assert_eq!(
        set(r#"{"\u0061":1,"\/":2}"#, "a"),
        r#"{"\u0061":[ 0.10 ],"\/":2}"#
    );
    assert_eq!(
        set(r#"{"a":1,"b":2,"a":3}"#, "a"),
        r#"{"a":[ 0.10 ],"b":2}"#
    );
    assert_eq!(set("{}", "q\"\n"), r#"{"q\"\n":[ 0.10 ]}"#);
    assert_eq!(set("[1]", "a"), "[1]");

    let remove = |object: &str| remove_members(&json(object), &["a", "b"]).get().to_owned();
    assert_eq!(remove(r#"{"a":1, "c":3,"b":2,"a":1}"#), r#"{"c":3}"#);
    assert_eq!(remove(r#"{ "c": 1 }"#), r#"{ "c": 1 }"#);
    assert_eq!(remove("null"), "null");
    assert!(matches!(remove_members(&value, &["a"]), Cow::Borrowed(_)));
}

#[test]
fn duplicates_are_seen_in_objects_of_any_width() {
    for width in [1, 15, 16, 17, 1000] {
        let members: Vec<String> = (0..width).map(|at| format!(r#""k{at}":0"#)).collect();
        let (clean, last) = (members.join(","), width - 1);
        let duplicate = |text: String| {
            let object = json(&text);
            Object::read(&object)
                .unwrap()
                .duplicate()
                .map(Cow::into_owned)
        };
        assert_eq!(duplicate(format!("{{{clean}}}")), None);
        let twice = format!(r#"{{{clean},"\u006b{last}":1}}"#);
        assert_eq!(duplicate(twice), Some(format!("k{last}")));
    }
}

#[test]
fn t_f1_objects_made_of_members_are_not_held_apart() {
    let of = |width: usize| json(&format!("{{{}}}", vec![r#""":0"#; width].join(",")));
    assert!(Object::read(&of(MAX_MEMBERS)).is_some());
    assert!(Object::read(&of(MAX_MEMBERS + 1)).is_none());
}

#[test]
fn nested_objects_are_opened_apart() {
    let raw = json(r#"{"o":{"a":1},"n":null,"s":"x"}"#);
    let mut object = Object::read(&raw).unwrap();
    assert!(object.contains("o") && !object.contains("a"));
    assert!(object.open("n").is_none() && object.open("missing").is_none());
    assert!(object.open("s").is_some_and(|inner| inner.is_none()));
    let mut inner = object.open("o").flatten().unwrap();
    inner.set_number("b", 2);
    inner.set_text("c", "\"");
    object.set_object("o", inner);
    let expected = r#"{"o":{"a":1,"b":2,"c":"\""},"n":null,"s":"x"}"#;
    assert_eq!(object.into_raw().get(), expected);
}

#[test]
fn elements_are_replaced_where_they_stand() {
    let array = json("[ 1 ,\n2, 1.0 ,[1] ]");
    let mapped = map_elements(array.get(), |element| match element {
        "1" => Cow::Owned("\"one\"".to_owned()),
        _ => Cow::Borrowed(element),
    });
    assert_eq!(mapped, "[ \"one\" ,\n2, 1.0 ,[1] ]");
    let same = map_elements(array.get(), Cow::Borrowed);
    assert!(matches!(same, Cow::Borrowed(_)));
    let mut count = 0;
    assert!(each_element(&array, |_| count += 1) && count == 4);
    assert!(!each_element(&json("{}"), |_| ()));
}

#[test]
fn strings_are_unquoted() {
    for (raw, expected) in [
        (r#""plain é""#, Some("plain é")),
        (r#""a\/\u00e9\n""#, Some("a/é\n")),
        (r#""""#, Some("")),
        (r#""\ud800""#, None),
        ("1", None),
        ("null", None),
    ] {
        assert_eq!(text(&json(raw)).as_deref(), expected, "{raw}");
    }
}

proptest! {
    /// An edit that changes nothing writes what it read.
    #[test]
    fn objects_are_rewritten_as_they_were(
        members in prop::collection::vec(("([a-z é]|\\\\u00e9|\\\\/|\\\\\"){0,5}", "[0-9]\\.0|\\{ ?\\}|\"\\\\t\""), 0..20),
    ) {
        let members: Vec<String> = members.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
        let text = format!("{{{}}}", members.join(","));
        let object = json(&text);
        let again = Object::read(&object).unwrap().into_raw();
        prop_assert_eq!(again.get(), text);
    }

    #[test]
    fn names_survive_quoting(name in any::<String>()) {
        let object = set_member(&json("{}"), &name, RawValue::TRUE);
        prop_assert!(member(&object, &name).is_some());
    }

    /// With any values and any layout.
    #[test]
    fn members_are_walked_as_they_are_written(
        members in prop::collection::vec((spaced(quoted()), spaced(value())), 0..8),
    ) {
        let texts: Vec<String> = members.iter().map(|(k, v)| format!("{k}:{v}")).collect();
        let object = json(&format!("{{{}}}", texts.join(",")));
        let mut found = Vec::new();
        prop_assert!(each_member(&object, |key, value| found.push((key.written(), value.get()))));
        let members: Vec<_> = members.iter().map(|(k, v)| (k.trim(), v.trim())).collect();
        prop_assert_eq!(found, members);
    }
}

fn quoted() -> impl Strategy<Value = String> {
    r#""([a-z é{}\[\],:]|\\\\|\\"|\\u00e9){0,20}""#.prop_map(String::from)
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![quoted(), "-?[1-9]\\.[0-9]e[0-9]|[0-9]|true|null"];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let inner = spaced(inner);
        let array = prop::collection::vec(inner.clone(), 0..4);
        let object = prop::collection::vec((spaced(quoted()), inner), 0..4);
        prop_oneof![
            array.prop_map(|all| format!("[{}]", all.join(","))),
            object.prop_map(|all| {
                let all: Vec<String> = all.iter().map(|(k, v)| format!("{k}:{v}")).collect();
                format!("{{{}}}", all.join(","))
            }),
        ]
    })
}

fn spaced(inner: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    ("[ \\t\\n]{0,2}", inner, "[ \\r\\n]{0,2}")
        .prop_map(|(before, value, after)| before + &value + &after)
        .boxed()
}
