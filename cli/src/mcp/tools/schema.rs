//! The schemas of the tools, in the dialect that every client's validator reads: no `$schema`, no formats that JSON
//! Schema does not know, optional arguments as plain types.
use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::{Marks, Tool};

/// Returns the schema of a tool's own arguments.
pub(super) fn input<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = object(settings.into_generator().into_root_schema_for::<T>());
    schema.remove("title");
    schema.remove("description");
    plain(&mut schema);
    let mut value = Value::Object(schema);
    tidy(&mut value);
    into_object(value)
}

/// How deep the data of an answer is outlined: its fields, and the fields of what its lists hold.
const DEPTH: usize = 2;

/// Returns the schema of a tool's structured content; `T` is the command's own data. It is an outline: which fields
/// there are, without words and without what lies deeper. Each listing of the tools carries it, and some clients give it
/// to the model; `docs/schemas/` has the whole.
pub(super) fn output<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.meta_schema = None;
    let whole = object(
        settings
            .into_generator()
            .into_root_schema_for::<Answer<T>>(),
    );
    let fields: JsonObject = ["ok", "exit", "summary", "data"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), whole.get("properties")?.get(name)?.clone())))
        .map(|(name, field)| {
            let depth = if name == "data" { DEPTH } else { 0 };
            (name, outline(&field, &whole, depth))
        })
        .collect();
    JsonObject::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(fields)),
        ("required".to_owned(), json!(["ok", "exit", "summary"])),
    ])
}

/// Returns what a schema demands down to a depth; everything that fits the schema fits its outline.
fn outline(schema: &Value, whole: &JsonObject, depth: usize) -> Value {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let named = name
            .strip_prefix("#/$defs/")
            .and_then(|name| whole.get("$defs")?.get(name));
        return named.map_or_else(|| json!({}), |named| outline(named, whole, depth));
    }
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    if let Some(Value::Array(choices)) = choices {
        return any_of(choices.iter().map(|choice| outline(choice, whole, depth)));
    }
    let mut outlined = JsonObject::new();
    if let Some(kind @ Value::String(_)) = schema.get("type") {
        outlined.insert("type".to_owned(), kind.clone());
    }
    if depth > 0 {
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let properties: JsonObject = properties
                .iter()
                .map(|(name, property)| {
                    // What a list holds is told, what a single field holds is not.
                    let depth = property.get("items").map_or(0, |_| depth - 1);
                    (name.clone(), outline(property, whole, depth))
                })
                .collect();
            outlined.insert("properties".to_owned(), Value::Object(properties));
        }
        if let Some(items) = schema.get("items") {
            outlined.insert("items".to_owned(), outline(items, whole, depth));
        }
    }
    Value::Object(outlined)
}

/// Puts outlines together into one that each of them fits.
fn any_of(outlines: impl Iterator<Item = Value>) -> Value {
    let mut choices: Vec<Value> = Vec::new();
    for outline in outlines {
        if !choices.contains(&outline) {
            choices.push(outline);
        }
    }
    let null = json!({"type": "null"});
    match choices.as_mut_slice() {
        [only] => only.take(),
        // It may be there or not: its fields are named, its type is left open.
        [Value::Object(some), none] if *none == null => {
            some.remove("type");
            Value::Object(std::mem::take(some))
        }
        _ => json!({ "anyOf": choices }),
    }
}

/// One of two shapes of data.
pub(super) struct Either<A, B>(std::marker::PhantomData<(A, B)>);

impl<A: JsonSchema, B: JsonSchema> JsonSchema for Either<A, B> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}Or{}", A::schema_name(), B::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> Schema {
        let either = [
            generator.subschema_for::<A>(),
            generator.subschema_for::<B>(),
        ];
        schemars::json_schema!({ "anyOf": either })
    }
}

fn object(schema: Schema) -> JsonObject {
    into_object(Value::from(schema))
}

fn into_object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// An argument that may be left out is of its type, not of its type or null.
fn plain(schema: &mut JsonObject) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        if property.get("default") == Some(&Value::Null) {
            property.remove("default");
        }
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                property.insert("type".to_owned(), only);
            }
        }
        // An enumeration with a comment on each value: the values are enough.
        if let Some(Value::Array(values)) = property.remove("oneOf") {
            let values: Vec<Value> = values
                .iter()
                .filter_map(|value| value.get("const").cloned())
                .collect();
            property.insert("type".to_owned(), json!("string"));
            property.insert("enum".to_owned(), Value::Array(values));
        }
    }
}

/// Takes out Rust's own number formats, which validators warn of.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(format)) = map.get("format")
                && (format.starts_with("uint") || format.starts_with("int"))
            {
                map.remove("format");
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns a tool as clients see it.
pub(in super::super) fn definition(tool: &Tool) -> rmcp::model::Tool {
    let mut schema = (tool.input)();
    let properties = schema
        .entry("properties")
        .or_insert_with(|| json!({}))
        .as_object_mut();
    if let Some(properties) = properties {
        let mut add = |name: &str, value: Value| {
            properties.insert(name.to_owned(), value);
        };
        if tool.list.is_some() {
            add(
                "limit",
                json!({"type": "integer", "minimum": 1, "description": "At most so many"}),
            );
            add(
                "offset",
                json!({"type": "integer", "minimum": 0, "description": "Pass so many by: the next part of a long list"}),
            );
        }
        if tool.asks() {
            add(
                "confirmed",
                json!({"type": "boolean", "description": "Counts only where the user's own settings say so; leave it out, the person is asked"}),
            );
        }
        add(
            "repository",
            json!({"type": "string", "description": "Path of the work tree, where several are open"}),
        );
        add(
            "session",
            json!({"type": "string", "description": "Your session's id, where takeup cannot find it"}),
        );
    }
    let annotations = ToolAnnotations::with_title(tool.title)
        .read_only(tool.marks == Marks::Reads)
        .destructive(tool.marks == Marks::Ends)
        .idempotent(matches!(tool.marks, Marks::Reads | Marks::Repeatable))
        .open_world(false);
    rmcp::model::Tool::new(tool.name, tool.description, Arc::new(schema))
        .with_title(tool.title)
        .with_raw_output_schema(Arc::new((tool.output)()))
        .with_annotations(annotations)
}
