//! Cuts text into the words that byte-level BPE works on, as each family's published tokenizer
//! does. `RECIPES` is the list: a new pre-tokenizer is one entry there.
//!
//! The published patterns end in `\s+(?!\S)|\s+`: a run of spaces leaves its last one to the word
//! behind it. Look-ahead needs a backtracking engine, which a long run of spaces drives into its
//! limits; here that alternative is a second pattern, `\s+`, whose matches give their last
//! character back when a word follows. The automaton stays linear in the text.

use std::borrow::Cow;

use regex_automata::meta::Regex;

use crate::{Failure, Outcome};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+";
const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
);
const QWEN35: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}",
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
);
const GPT4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+"
);
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+"
);
const DEEPSEEK3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+"
);

/// One pass over every word of the pass before: matches and the gaps between them become words.
#[derive(Clone)]
struct Step {
    pattern: Cow<'static, str>,
    spaces: bool, // ends in `\s+(?!\S)|\s+`
}

const fn words(pattern: &'static str) -> Step {
    Step { pattern: Cow::Borrowed(pattern), spaces: true }
}

const fn only(pattern: &'static str) -> Step {
    Step { pattern: Cow::Borrowed(pattern), spaces: false }
}

/// How one family of models cuts its text.
#[derive(Clone)]
pub struct Recipe {
    names: &'static [&'static str], // what tokenizer.ggml.pre calls it
    steps: Cow<'static, [Step]>,
    pub nfc: bool,           // the published tokenizer normalizes to NFC first
    pub ignore_merges: bool, // a word that is a token is that token, whatever the merges say
}

const PLAIN: Recipe =
    Recipe { names: &[], steps: Cow::Borrowed(&[]), nfc: false, ignore_merges: false };

static RECIPES: &[Recipe] = &[
    Recipe {
        names: &["default", "gpt-2", "phi-2", "olmo"],
        steps: Cow::Borrowed(&[words(GPT2)]),
        ..PLAIN
    },
    Recipe {
        names: &["smollm", "starcoder", "refact"],
        steps: Cow::Borrowed(&[only(r"\p{N}"), words(GPT2)]),
        ..PLAIN
    },
    Recipe {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"],
        steps: Cow::Borrowed(&[words(LLAMA3)]),
        ignore_merges: true,
        ..PLAIN
    },
    Recipe { names: &["dbrx", "smaug-bpe"], steps: Cow::Borrowed(&[words(LLAMA3)]), ..PLAIN },
    Recipe {
        names: &["tekken"],
        steps: Cow::Borrowed(&[words(TEKKEN)]),
        ignore_merges: true,
        ..PLAIN
    },
    Recipe {
        names: &["qwen2", "deepseek-r1-qwen"],
        steps: Cow::Borrowed(&[words(QWEN2)]),
        nfc: true,
        ..PLAIN
    },
    Recipe { names: &["qwen35"], steps: Cow::Borrowed(&[words(QWEN35)]), nfc: true, ..PLAIN },
    Recipe { names: &["gpt-4o", "llama4"], steps: Cow::Borrowed(&[words(GPT4O)]), ..PLAIN },
    Recipe {
        names: &["deepseek-coder"],
        steps: Cow::Borrowed(&[
            only(r"[\r\n]"),
            only(r"\s?\p{L}+"),
            only(r"\s?\p{P}+"),
            only("[一-龥ࠀ-一가-\u{d7ff}]+"),
            only(r"\p{N}"),
        ]),
        ..PLAIN
    },
    Recipe {
        names: &["deepseek-v3"],
        steps: Cow::Borrowed(&[only(r"\p{N}{1,3}"), only("[一-龥぀-ゟ゠-ヿ]+"), words(DEEPSEEK3)]),
        ..PLAIN
    },
];

impl Recipe {
    /// One that is spelled out, as a tokenizer.json does: a list of {"pattern": …}, and flags.
    /// `gpt2` stands for the pattern that GPT-2's byte level has built in.
    fn spelled_out(json: &str) -> Outcome<Recipe> {
        let broken = |what: &str| Failure::Invalid(format!("the pre-tokenizer {what}"));
        let value: serde_json::Value =
            serde_json::from_str(json).map_err(|_| broken("is no JSON"))?;
        let flag = |name: &str| value[name].as_bool().unwrap_or(false);
        let mut steps = Vec::new();
        for pattern in value["patterns"].as_array().ok_or_else(|| broken("has no patterns"))? {
            let pattern = pattern.as_str().ok_or_else(|| broken("has no text as its pattern"))?;
            let pattern = if pattern == "gpt2" { GPT2 } else { pattern };
            let end = r"|\s+(?!\S)|\s+";
            steps.push(match pattern.strip_suffix(end) {
                Some(words) => Step { pattern: Cow::Owned(words.to_owned()), spaces: true },
                None if pattern == GPT2 => words(GPT2),
                None => Step { pattern: Cow::Owned(pattern.to_owned()), spaces: false },
            });
        }
        Ok(Recipe {
            names: &[],
            steps: Cow::Owned(steps),
            nfc: flag("nfc"),
            ignore_merges: flag("ignore_merges"),
        })
    }

    /// A file that names none gets "default"; a name that is a JSON object spells the recipe out.
    pub fn find(name: &str) -> Outcome<Recipe> {
        if name.starts_with('{') {
            return Recipe::spelled_out(name);
        }
        let wanted = if name.is_empty() { "default" } else { name };
        RECIPES.iter().find(|recipe| recipe.names.contains(&wanted)).cloned().ok_or_else(|| {
            let known: Vec<&str> =
                RECIPES.iter().flat_map(|recipe| recipe.names).copied().collect();
            Failure::Unsupported(format!(
                "unknown pre-tokenizer \"{name}\" (tokenizer.ggml.pre); wok knows: {}",
                known.join(", ")
            ))
        })
    }
}

pub struct PreTokenizer {
    steps: Vec<Regex>,
}

impl PreTokenizer {
    pub fn new(recipe: &Recipe) -> Outcome<PreTokenizer> {
        let mut steps = Vec::new();
        for step in recipe.steps.iter() {
            let patterns: &[&str] =
                if step.spaces { &[&step.pattern, r"\s+"] } else { &[&step.pattern] };
            steps.push(Regex::new_many(patterns).map_err(|error| {
                Failure::Invalid(format!("the pre-tokenizer's pattern does not compile: {error}"))
            })?);
        }
        Ok(PreTokenizer { steps })
    }

    /// Calls `word` with every word of the text, in order; none is empty, together they are it.
    pub fn split<'t>(
        &self,
        text: &'t str,
        word: &mut dyn FnMut(&'t str) -> Outcome<()>,
    ) -> Outcome<()> {
        split_from(&self.steps, text, word)
    }
}

fn split_from<'t>(
    steps: &[Regex],
    text: &'t str,
    word: &mut dyn FnMut(&'t str) -> Outcome<()>,
) -> Outcome<()> {
    let Some((step, later)) = steps.split_first() else {
        return if text.is_empty() { Ok(()) } else { word(text) };
    };
    let mut at = 0;
    while at < text.len() {
        let input = regex_automata::Input::new(text).span(at..text.len());
        let Some(found) = step.search(&input) else {
            break;
        };
        let mut end = found.end();
        if found.pattern().as_usize() == 1 && end < text.len() {
            let last = text[found.start()..end].chars().next_back().map_or(0, char::len_utf8);
            if found.start() + last < end {
                end -= last;
            }
        }
        if found.start() > at {
            split_from(later, &text[at..found.start()], word)?;
        }
        split_from(later, &text[found.start()..end], word)?;
        at = end;
    }
    split_from(later, &text[at..], word)
}
