//! Values as Python's json.dumps writes them: models were trained on prompts that it made, so the
//! spaces after separators, the digits of floats and the escapes matter.

use std::fmt::Write;

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

struct Style<'a> {
    // Every value written costs fuel: a list may hold one list twice, that one another twice, …
    state: &'a State<'a, 'a>,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    ensure_ascii: bool,
    sort_keys: bool,
}

/// The `tojson` filter with transformers' arguments: ensure_ascii, indent, separators, sort_keys.
pub fn tojson(
    state: &State,
    value: Value,
    positional: Rest<Value>,
    options: Kwargs,
) -> Result<Value, Error> {
    let mut style = Style {
        state,
        indent: None,
        item_separator: ", ".into(),
        key_separator: ": ".into(),
        ensure_ascii: false,
        sort_keys: false,
    };
    let named = |name: &str| options.get::<Option<Value>>(name);
    let mut indent = named("indent")?;
    for value in positional.iter() {
        // transformers' first positional argument is ensure_ascii, Jinja's own filter's is indent.
        match value.kind() {
            ValueKind::Bool => style.ensure_ascii = value.is_true(),
            _ => indent = Some(value.clone()),
        }
    }
    if let Some(indent) = indent.filter(|indent| !indent.is_none()) {
        style.indent = Some(match indent.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(i64::try_from(indent)?.clamp(0, 64)).unwrap_or(0)),
        });
        style.item_separator = ",".into();
    }
    if let Some(pair) = named("separators")?.filter(|pair| !pair.is_none()) {
        style.item_separator = pair.get_item_by_index(0)?.to_string();
        style.key_separator = pair.get_item_by_index(1)?.to_string();
    }
    if let Some(flag) = named("ensure_ascii")? {
        style.ensure_ascii = flag.is_true();
    }
    if let Some(flag) = named("sort_keys")? {
        style.sort_keys = flag.is_true();
    }
    options.assert_all_used()?;
    let mut out = String::new();
    write_value(&mut out, &value, &style, 0)?;
    Ok(Value::from(out))
}

fn write_value(out: &mut String, value: &Value, style: &Style, depth: usize) -> Result<(), Error> {
    if depth > 200 {
        return Err(fail("tojson: the value is nested more than 200 deep"));
    }
    let before = out.len();
    style.state.consume_fuel(1)?;
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
        ValueKind::Number => write_float(out, f64::try_from(value.clone())?),
        ValueKind::String => {
            write_string(out, value.as_str().unwrap_or_default(), style);
            style.state.consume_fuel((out.len() - before) as u64 / 64)?;
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            write_group(out, ['[', ']'], items.len(), style, depth, |out, index| {
                write_value(out, &items[index], style, depth + 1)
            })?;
        }
        ValueKind::Map => {
            let mut pairs = Vec::new();
            for key in value.try_iter()? {
                let item = value.get_item(&key)?;
                pairs.push((key_text(&key)?, item));
            }
            if style.sort_keys {
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
            }
            write_group(out, ['{', '}'], pairs.len(), style, depth, |out, index| {
                write_string(out, &pairs[index].0, style);
                out.push_str(&style.key_separator);
                write_value(out, &pairs[index].1, style, depth + 1)
            })?;
        }
        other => return Err(fail(format!("tojson: a value of type {other} has no JSON form"))),
    }
    Ok(())
}

fn write_group(
    out: &mut String,
    brackets: [char; 2],
    count: usize,
    style: &Style,
    depth: usize,
    mut item: impl FnMut(&mut String, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let new_line = |out: &mut String, depth: usize| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    };
    out.push(brackets[0]);
    for index in 0..count {
        if index > 0 {
            out.push_str(&style.item_separator);
        }
        new_line(out, depth + 1);
        item(out, index)?;
    }
    if count > 0 {
        new_line(out, depth);
    }
    out.push(brackets[1]);
    Ok(())
}

fn key_text(key: &Value) -> Result<String, Error> {
    Ok(match key.kind() {
        ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
        ValueKind::None => "null".into(),
        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.into(),
        ValueKind::Number => key.to_string(),
        other => return Err(fail(format!("tojson: a key of type {other} has no JSON form"))),
    })
}

fn write_string(out: &mut String, text: &str, style: &Style) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (style.ensure_ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// repr() of a Python float. Rust's Debug has the same digits and the same thresholds for
/// exponents, but writes 1e-5 where Python writes 1e-05, and 1e16 for 1e+16.
fn write_float(out: &mut String, number: f64) {
    if number.is_nan() {
        return out.push_str("NaN");
    }
    if number.is_infinite() {
        return out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let digits = format!("{number:?}");
    match digits.split_once('e') {
        None => out.push_str(&digits),
        Some((mantissa, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(rest) => ('-', rest),
                None => ('+', exponent),
            };
            let mantissa = mantissa.strip_suffix(".0").unwrap_or(mantissa);
            let _ = write!(out, "{mantissa}e{sign}{exponent:0>2}");
        }
    }
}

fn fail(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}
