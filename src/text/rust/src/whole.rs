//! A tokenizer.json taken as it is: normalizer, pre-tokenizer, model and what goes around a text or
//! a pair of texts. Encoders have tokenizers of many kinds, and all of them come so.

use tokenizers::{truncate_encodings, PostProcessor, TruncationParams};

use crate::{invalid, Failure, Outcome};

pub struct WholeTokenizer {
    inner: tokenizers::Tokenizer,
}

pub struct Encoded {
    pub ids: Vec<i32>,
    pub types: Vec<i32>,
}

fn failed(error: tokenizers::Error) -> Failure {
    Failure::Invalid(format!("the tokenizer failed: {error}"))
}

impl WholeTokenizer {
    pub fn new(json: &[u8]) -> Outcome<WholeTokenizer> {
        let mut inner = match tokenizers::Tokenizer::from_bytes(json) {
            Ok(tokenizer) => tokenizer,
            Err(error) => return invalid(format!("tokenizer.json is not as it has to be: {error}")),
        };
        // Lengths are the caller's business: nothing is cut or padded that was not asked for.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(failed)?;
        Ok(WholeTokenizer { inner })
    }

    /// The ids and token types of a text, or of a pair. max_tokens (0: no limit) cuts the longer of
    /// the two first, and never what `special` puts around them.
    pub fn encode(
        &self,
        first: &str,
        second: Option<&str>,
        special: bool,
        max_tokens: usize,
    ) -> Outcome<Encoded> {
        let mut one = self.inner.encode_fast(first, false).map_err(failed)?;
        let mut two = match second {
            Some(text) => Some(self.inner.encode_fast(text, false).map_err(failed)?),
            None => None,
        };
        if max_tokens > 0 {
            let around = match self.inner.get_post_processor() {
                Some(processor) if special => processor.added_tokens(two.is_some()),
                _ => 0,
            };
            if max_tokens <= around {
                return invalid(format!(
                    "{max_tokens} tokens leave no room for text beside the {around} around it"
                ));
            }
            let params = TruncationParams { max_length: max_tokens - around, ..Default::default() };
            (one, two) = truncate_encodings(one, two, &params).map_err(failed)?;
        }
        let whole = self.inner.post_process(one, two, special).map_err(failed)?;
        Ok(Encoded {
            ids: whole.get_ids().iter().map(|&id| id as i32).collect(),
            types: whole.get_type_ids().iter().map(|&kind| kind as i32).collect(),
        })
    }

    pub fn decode(&self, ids: &[i32], show_special: bool) -> Outcome<String> {
        let ids: Vec<u32> = ids.iter().filter_map(|&id| u32::try_from(id).ok()).collect();
        self.inner.decode(&ids, !show_special).map_err(failed)
    }

    pub fn id_of(&self, piece: &str) -> i32 {
        self.inner.token_to_id(piece).map_or(-1, |id| id as i32)
    }
}
