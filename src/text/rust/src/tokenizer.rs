//! Text to ids. Added tokens (user-defined, and control tokens where asked for) are cut out of the
//! text first; Hugging Face's BPE model turns what lies between them into ids.

use ahash::AHashMap;
use aho_corasick::{AhoCorasick, MatchKind};
use tokenizers::models::bpe::BPE;
use tokenizers::Model;
use unicode_normalization::{is_nfc_quick, IsNormalized, UnicodeNormalization};

use crate::merges::{self, Vocabulary};
use crate::pretokenize::{PreTokenizer, Recipe};
use crate::{invalid, Failure, Outcome};

const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

pub struct Spec<'a> {
    pub model: &'a str,
    pub pre: &'a str,
    pub tokens: Vec<&'a str>,
    pub kinds: &'a [i32],
    pub scores: Option<&'a [f32]>,
    pub merges: Vec<&'a str>,
    pub unk_id: i32,
    pub add_space_prefix: bool,
}

enum Style {
    ByteLevel { pre: PreTokenizer, nfc: bool, alphabet: [char; 256] },
    SentencePiece { space_prefix: bool },
}

/// Finds added tokens in a text: leftmost first, then longest.
struct Finder {
    automaton: AhoCorasick,
    ids: Vec<u32>,
}

pub struct Tokenizer {
    bpe: BPE,
    style: Style,
    user_defined: Option<Finder>,
    user_defined_and_control: Option<Finder>,
    added: AHashMap<String, u32>, // the tokens BPE must not know: control and user-defined
    has_unknown: bool,
}

impl Tokenizer {
    pub fn new(spec: &Spec) -> Outcome<Tokenizer> {
        let byte_level = match spec.model {
            "gpt2" => true,
            "llama" => false,
            other => {
                return Err(Failure::Unsupported(format!(
                    "unknown tokenizer model \"{other}\" (tokenizer.ggml.model); wok knows: \
                     gpt2 (byte-level BPE), llama (SentencePiece BPE)"
                )))
            }
        };
        let recipe = Recipe::find(if byte_level { spec.pre } else { "default" })?;

        // Control tokens stay out of BPE's vocabulary, so that no text can merge into one.
        let unknown = usize::try_from(spec.unk_id).ok();
        let mut vocabulary = Vocabulary::with_capacity(spec.tokens.len());
        let mut mergeable = Vec::with_capacity(spec.tokens.len());
        let mut added = AHashMap::new();
        let mut user_defined = Vec::new();
        let mut control = Vec::new();
        let mut space_runs = Vec::new();
        for (index, &token) in spec.tokens.iter().enumerate() {
            let id = index as u32;
            let kind = spec.kinds[index];
            if token.is_empty() {
                continue;
            }
            if kind == CONTROL || kind == USER_DEFINED {
                // Of two tokens with one text the first is meant, here as below.
                added.entry(token.to_owned()).or_insert(id);
                if kind == CONTROL {
                    control.push((token, id));
                } else if !byte_level && token.chars().all(|c| c == ' ' || c == '▁') {
                    space_runs.push((token.replace(' ', "▁"), id));
                } else {
                    user_defined.push((token, id));
                }
            } else if !vocabulary.contains_key(token) {
                vocabulary.insert(token, id);
                if unknown != Some(index) {
                    mergeable.push((token, id));
                }
            }
        }

        // Gemma's runs of spaces are user-defined, yet Hugging Face's tokenizer does not look for
        // them in the text: it merges them, before anything else, in the order of their ids. This
        // differs from SentencePiece only in runs longer than the longest token.
        for (run, id) in &space_runs {
            vocabulary.entry(run).or_insert(*id);
        }
        let runs: Vec<(&str, u32)> = space_runs.iter().map(|(run, id)| (&run[..], *id)).collect();

        if byte_level {
            // Merges between added tokens exist in some files (runs of spaces): allow them, the
            // words they would make never reach BPE.
            for &(token, id) in &user_defined {
                vocabulary.entry(token).or_insert(id);
            }
        }
        // SentencePiece files have no table; tokenizers converted from them have.
        let merges = if byte_level || !spec.merges.is_empty() {
            merges::parse(&spec.merges, &vocabulary)?
        } else {
            let mut merges = merges::derive(&runs, None, &vocabulary);
            merges.extend(merges::derive(&mergeable, spec.scores, &vocabulary));
            merges
        };

        let mut builder = BPE::builder();
        if let Some(index) = unknown {
            let token = spec.tokens[index];
            vocabulary.entry(token).or_insert(index as u32);
            builder = builder.unk_token(token.to_owned());
        }
        let owned: AHashMap<String, u32> =
            vocabulary.into_iter().map(|(token, id)| (token.to_owned(), id)).collect();
        let bpe = builder
            .vocab_and_merges(owned, merges)
            .fuse_unk(!byte_level)
            .byte_fallback(!byte_level)
            .ignore_merges(byte_level && recipe.ignore_merges)
            .build()
            .map_err(|error| Failure::Invalid(format!("the merge table is unusable: {error}")))?;

        let style = if byte_level {
            Style::ByteLevel {
                pre: PreTokenizer::new(&recipe)?,
                nfc: recipe.nfc,
                alphabet: byte_alphabet(),
            }
        } else {
            Style::SentencePiece { space_prefix: spec.add_space_prefix }
        };
        let normalize = |list: &[(&str, u32)]| -> Vec<(String, u32)> {
            list.iter()
                .map(|&(text, id)| match style {
                    Style::ByteLevel { .. } => (text.to_owned(), id),
                    Style::SentencePiece { .. } => (text.replace(' ', "▁"), id),
                })
                .collect()
        };
        let user_defined = normalize(&user_defined);
        let mut both = user_defined.clone();
        both.extend(normalize(&control));
        Ok(Tokenizer {
            bpe,
            user_defined: Finder::new(user_defined)?,
            user_defined_and_control: Finder::new(both)?,
            added,
            has_unknown: unknown.is_some(),
            style,
        })
    }

    pub fn id_of(&self, piece: &str) -> i32 {
        let id = self.added.get(piece).copied().or_else(|| self.bpe.token_to_id(piece));
        id.map_or(-1, |id| id as i32)
    }

    pub fn encode(&self, text: &str, parse_special: bool) -> Outcome<Vec<i32>> {
        let spaced;
        let text = match self.style {
            Style::SentencePiece { .. } if text.contains(' ') => {
                spaced = text.replace(' ', "▁");
                &spaced
            }
            _ => text,
        };
        let mut ids = Vec::with_capacity(text.len() / 3 + 8);
        let finder =
            if parse_special { &self.user_defined_and_control } else { &self.user_defined };
        let mut at = 0;
        if let Some(finder) = finder {
            for found in finder.automaton.find_iter(text) {
                self.encode_plain(&text[at..found.start()], &mut ids)?;
                ids.push(finder.ids[found.pattern().as_usize()] as i32);
                at = found.end();
            }
        }
        self.encode_plain(&text[at..], &mut ids)?;
        Ok(ids)
    }

    /// Text without added tokens.
    fn encode_plain(&self, text: &str, ids: &mut Vec<i32>) -> Outcome<()> {
        if text.is_empty() {
            return Ok(());
        }
        match &self.style {
            Style::SentencePiece { space_prefix: true } => {
                self.encode_word(&format!("▁{text}"), ids)
            }
            Style::SentencePiece { space_prefix: false } => self.encode_word(text, ids),
            Style::ByteLevel { pre, nfc, alphabet } => {
                let normalized: String;
                let text = if *nfc && is_nfc_quick(text.chars()) != IsNormalized::Yes {
                    normalized = text.nfc().collect();
                    &normalized
                } else {
                    text
                };
                let mut spelled = String::new();
                pre.split(text, &mut |word| {
                    spelled.clear();
                    spelled.extend(word.bytes().map(|byte| alphabet[byte as usize]));
                    self.encode_word(&spelled, ids)
                })
            }
        }
    }

    fn encode_word(&self, word: &str, ids: &mut Vec<i32>) -> Outcome<()> {
        let tokens = match self.bpe.tokenize(word) {
            Ok(tokens) => tokens,
            Err(error) => return invalid(format!("the tokenizer failed: {error}")),
        };
        if !self.has_unknown {
            // BPE drops what it has no token for; a prompt with holes would be worse than an error.
            let covered: usize = tokens.iter().map(|token| token.offsets.1 - token.offsets.0).sum();
            if covered != word.len() {
                return invalid(format!(
                    "the vocabulary has no tokens for some characters of \"{}\" and no unknown \
                     token to stand for them",
                    word.chars().take(40).collect::<String>()
                ));
            }
        }
        ids.extend(tokens.iter().map(|token| token.id as i32));
        Ok(())
    }
}

impl Finder {
    fn new(tokens: Vec<(String, u32)>) -> Outcome<Option<Finder>> {
        if tokens.is_empty() {
            return Ok(None);
        }
        let ids = tokens.iter().map(|&(_, id)| id).collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|(text, _)| text))
            .map_err(|error| Failure::Invalid(format!("too many added tokens: {error}")))?;
        Ok(Some(Finder { automaton, ids }))
    }
}

/// GPT-2's bytes as printable characters: those that are printable in Latin-1 stand for
/// themselves, the rest follow from U+0100 on.
fn byte_alphabet() -> [char; 256] {
    let mut alphabet = ['\0'; 256];
    let mut next = 0x100;
    for byte in 0..=255u8 {
        alphabet[byte as usize] = match byte {
            b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
            _ => {
                next += 1;
                char::from_u32(next - 1).unwrap_or('\0')
            }
        };
    }
    alphabet
}
