//! A model's chat template, rendered as transformers renders it.

use chrono::DateTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{from_args, Value};
use minijinja::{context, AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior};
use serde_json::Value as Json;

use crate::json::tojson;
use crate::{invalid, Failure, Outcome};

const NAME: &str = "chat";

/// The work one rendering may do, in minijinja's unit: an instruction, or 64 bytes of text made. A
/// chat of a thousand messages takes some hundred thousand; the limit is reached in about half a
/// second and bounds the text a template can make at 256 MiB. Not counted by minijinja 3.1: walking
/// a list that shares its parts many times over (2^n values in n lists) to print or compare it.
const FUEL: u64 = 4 << 20;
const MAX_RECURSION: usize = 200;
const MAX_SOURCE_BYTES: usize = 4 << 20;

/// Put behind the last message's text to find its end in the rendered chat. The space tells
/// whether the template trims.
const END_OF_FINAL_MESSAGE: &str = "WOK-END-OF-FINAL-MESSAGE ";

pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    pub fn new(source: &str, bos: &str, eos: &str) -> Outcome<ChatTemplate> {
        if source.len() > MAX_SOURCE_BYTES {
            return invalid(format!(
                "the chat template has {} bytes; the limit is {MAX_SOURCE_BYTES}",
                source.len()
            ));
        }
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| Failure::Invalid(error.to_string()))?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(MAX_RECURSION);
        environment.set_unknown_method_callback(python_method);
        environment.add_filter("tojson", tojson);
        environment.add_function("raise_exception", raise_exception);
        environment
            .add_template_owned(NAME, without_generation_tags(source))
            .map_err(|error| Failure::Invalid(describe(&error)))?;
        Ok(ChatTemplate { environment, bos: bos.to_owned(), eos: eos.to_owned() })
    }

    /// input: what `wok_template_render` says.
    pub fn render(&self, input: &str) -> Outcome<String> {
        let mut input: Json = serde_json::from_str(input)
            .map_err(|error| Failure::Invalid(format!("the chat is not usable JSON: {error}")))?;
        let flag = |input: &Json, name: &str| input[name].as_bool().unwrap_or(false);
        let add_generation_prompt = flag(&input, "add_generation_prompt");
        let continues = flag(&input, "continue_final_message");
        if continues {
            if add_generation_prompt {
                return invalid(
                    "continue_final_message and add_generation_prompt exclude each other: the \
                     first continues the last message, the second begins a new one; set one",
                );
            }
            mark_end_of_final_message(&mut input["messages"])?;
        }
        let now = input["now_unix_s"].as_i64().unwrap_or(0);
        let chat = context! {
            messages => template_value(&input["messages"]),
            tools => template_value(&input["tools"]),
            documents => (),
            add_generation_prompt,
            bos_token => &self.bos,
            eos_token => &self.eos,
            strftime_now => Value::from_function(move |format: &str| strftime(now, format)),
        };
        let extra = match &input["kwargs"] {
            Json::Object(_) => template_value(&input["kwargs"]),
            Json::Null => context! {},
            _ => return invalid("chat_template_kwargs must be an object"),
        };
        // The extras win: a request may set tools or documents its own way, as in transformers.
        let chat = context! { ..extra, ..chat };
        let text = self
            .environment
            .get_template(NAME)
            .and_then(|template| template.render(chat))
            .map_err(|error| Failure::Invalid(describe(&error)))?;
        if continues {
            return cut_after_final_message(text);
        }
        Ok(text)
    }
}

fn template_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            _ => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(template_value).collect(),
        Json::Object(pairs) => {
            Value::from_pairs(pairs.iter().map(|(key, item)| (key.as_str(), template_value(item))))
        }
    }
}

/// "line 3: what", from the innermost error that has something to say.
fn describe(error: &Error) -> String {
    let mut line = error.line();
    let mut said = error;
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        if let Some(inner) = source.downcast_ref::<Error>() {
            said = inner;
            line = inner.line().or(line);
        }
        next = source.source();
    }
    let what = match (said.kind(), said.detail()) {
        (ErrorKind::OutOfFuel, _) => format!(
            "the template did more work than the {FUEL} steps a rendering may take; does it loop?"
        ),
        (ErrorKind::InvalidOperation, Some(detail)) => detail.to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    };
    match line {
        Some(line) => format!("chat template, line {line}: {what}"),
        None => format!("chat template: {what}"),
    }
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn strftime(now: i64, format: &str) -> Result<String, Error> {
    use std::fmt::Write;
    let bad = |what: String| Error::new(ErrorKind::InvalidOperation, what);
    let time = DateTime::from_timestamp(now, 0)
        .ok_or_else(|| bad(format!("strftime_now: {now} s is out of the calendar's range")))?;
    let mut text = String::new();
    // An unknown directive makes the formatter fail; to_string() would panic on it.
    write!(text, "{}", time.format(format))
        .map_err(|_| bad(format!("strftime_now: \"{format}\" has an unknown directive")))?;
    Ok(text)
}

/// Python's string and dict methods that minijinja-contrib lacks, then those it has.
fn python_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        match method {
            "removeprefix" => {
                let (prefix,): (&str,) = from_args(args)?;
                return Ok(Value::from(text.strip_prefix(prefix).unwrap_or(text)));
            }
            "removesuffix" => {
                let (suffix,): (&str,) = from_args(args)?;
                return Ok(Value::from(text.strip_suffix(suffix).unwrap_or(text)));
            }
            _ => {}
        }
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)
}

/// transformers' `{% generation %}` marks the assistant's tokens for training and renders its
/// body. minijinja has no such tag, so it becomes `{% if true %}`, its `-` and `+` signs kept.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        out.push_str(&rest[..at + 2]);
        rest = &rest[at + 2..];
        let Some(end) = rest.find("%}") else {
            break;
        };
        let tag = &rest[..end];
        let word = tag.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        let replacement = match word {
            "generation" => "if true",
            "endgeneration" => "endif",
            _ => continue,
        };
        out.push_str(&tag.replacen(word, replacement, 1));
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn mark_end_of_final_message(messages: &mut Json) -> Outcome<()> {
    let Some(last) = messages.as_array_mut().and_then(|messages| messages.last_mut()) else {
        return invalid("continue_final_message is set, but there is no message to continue");
    };
    let content = last.get_mut("content");
    let text = match content {
        Some(Json::String(text)) => Some(text),
        Some(Json::Array(parts)) => {
            parts.iter_mut().rev().find_map(|part| match part.get_mut("text") {
                Some(Json::String(text)) => Some(text),
                _ => None,
            })
        }
        _ => None,
    };
    match text {
        Some(text) => text.push_str(END_OF_FINAL_MESSAGE),
        None => {
            return invalid("continue_final_message is set, but the last message has no text");
        }
    }
    Ok(())
}

fn cut_after_final_message(mut rendered: String) -> Outcome<String> {
    let Some(at) = rendered.rfind(END_OF_FINAL_MESSAGE.trim_end()) else {
        return invalid(
            "continue_final_message is set, but the chat template does not write the last \
             message's text as it is, so it cannot be continued",
        );
    };
    let trimmed = !rendered[at..].starts_with(END_OF_FINAL_MESSAGE);
    rendered.truncate(at);
    if trimmed {
        rendered.truncate(rendered.trim_end().len());
    }
    Ok(rendered)
}
