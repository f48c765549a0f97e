//! The C ABI of wok's text room. `../../rust_abi.h` says who owns what; the two must match.

mod json;
mod merges;
mod pretokenize;
mod template;
mod tokenizer;
mod whole;

use std::ffi::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};

use template::ChatTemplate;
use tokenizer::{Spec, Tokenizer};
use whole::WholeTokenizer;

/// Why something failed, in the words the user will read.
pub enum Failure {
    Invalid(String),
    Unsupported(String),
}

pub type Outcome<T> = Result<T, Failure>;

pub fn invalid<T>(message: impl Into<String>) -> Outcome<T> {
    Err(Failure::Invalid(message.into()))
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    Invalid = 1,
    Unsupported = 2,
    Panic = 3,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    data: *const c_char,
    size: usize,
}

impl Bytes {
    /// # Safety
    /// data must point to size bytes that outlive the borrow, or size must be 0.
    unsafe fn get<'a>(self) -> &'a [u8] {
        slice(self.data.cast::<u8>(), self.size)
    }

    /// # Safety
    /// As get().
    unsafe fn text<'a>(self, what: &str) -> Outcome<&'a str> {
        std::str::from_utf8(self.get()).map_err(|error| {
            Failure::Invalid(format!(
                "{what} is not UTF-8: bad byte at offset {}",
                error.valid_up_to()
            ))
        })
    }
}

/// # Safety
/// As std::slice::from_raw_parts, except that null is fine when count is 0.
unsafe fn slice<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, count)
    }
}

/// A Vec taken apart, for the caller to hold and give back.
#[repr(C)]
pub struct Owned<T> {
    data: *mut T,
    size: usize,
    capacity: usize,
}

impl<T> From<Vec<T>> for Owned<T> {
    fn from(vec: Vec<T>) -> Self {
        let mut vec = std::mem::ManuallyDrop::new(vec);
        Owned { data: vec.as_mut_ptr(), size: vec.len(), capacity: vec.capacity() }
    }
}

impl<T> Owned<T> {
    /// # Safety
    /// self must come from From<Vec<T>> and not have been freed.
    unsafe fn free(self) {
        if !self.data.is_null() && self.capacity != 0 {
            drop(Vec::from_raw_parts(self.data, self.size, self.capacity));
        }
    }
}

#[repr(C)]
pub struct TokenizerSpec {
    model: Bytes,
    pre: Bytes,
    tokens: *const Bytes,
    kinds: *const i32,
    scores: *const f32,
    token_count: usize,
    merges: *const Bytes,
    merge_count: usize,
    unk_id: i32,
    add_space_prefix: u8,
}

/// Runs `body`; whatever goes wrong, panics included, becomes a status and a message.
unsafe fn guard<T>(
    error: *mut Owned<u8>,
    body: impl FnOnce() -> Outcome<T>,
) -> (Status, Option<T>) {
    let (status, message) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return (Status::Ok, Some(value)),
        Ok(Err(Failure::Invalid(message))) => (Status::Invalid, message),
        Ok(Err(Failure::Unsupported(message))) => (Status::Unsupported, message),
        Err(panic) => {
            let said = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            (Status::Panic, format!("internal error in the text library: {said}"))
        }
    };
    *error = message.into_bytes().into();
    (status, None)
}

#[no_mangle]
pub unsafe extern "C" fn wok_text_free(text: Owned<u8>) {
    text.free();
}

#[no_mangle]
pub unsafe extern "C" fn wok_ids_free(ids: Owned<i32>) {
    ids.free();
}

#[no_mangle]
pub unsafe extern "C" fn wok_tokenizer_new(
    spec: *const TokenizerSpec,
    status: *mut Status,
    error: *mut Owned<u8>,
) -> *mut Tokenizer {
    let (outcome, tokenizer) = guard(error, || {
        let spec = &*spec;
        let mut tokens = Vec::with_capacity(spec.token_count);
        for (id, token) in slice(spec.tokens, spec.token_count).iter().enumerate() {
            match std::str::from_utf8(token.get()) {
                Ok(token) => tokens.push(token),
                Err(_) => return invalid(format!("the text of token {id} is not UTF-8")),
            }
        }
        let mut merges = Vec::with_capacity(spec.merge_count);
        for (rank, merge) in slice(spec.merges, spec.merge_count).iter().enumerate() {
            match std::str::from_utf8(merge.get()) {
                Ok(merge) => merges.push(merge),
                Err(_) => return invalid(format!("merge {rank} is not UTF-8")),
            }
        }
        let scores = (!spec.scores.is_null()).then(|| slice(spec.scores, spec.token_count));
        Tokenizer::new(&Spec {
            model: spec.model.text("the tokenizer's model name")?,
            pre: spec.pre.text("the pre-tokenizer's name")?,
            tokens,
            kinds: slice(spec.kinds, spec.token_count),
            scores,
            merges,
            unk_id: spec.unk_id,
            add_space_prefix: spec.add_space_prefix != 0,
        })
    });
    *status = outcome;
    tokenizer.map_or(std::ptr::null_mut(), |made| Box::into_raw(Box::new(made)))
}

#[no_mangle]
pub unsafe extern "C" fn wok_tokenizer_free(tokenizer: *mut Tokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

#[no_mangle]
pub unsafe extern "C" fn wok_tokenizer_encode(
    tokenizer: *const Tokenizer,
    text: Bytes,
    parse_special: u8,
    ids: *mut Owned<i32>,
    error: *mut Owned<u8>,
) -> Status {
    let (status, encoded) =
        guard(error, || (*tokenizer).encode(text.text("the text to encode")?, parse_special != 0));
    if let Some(encoded) = encoded {
        *ids = encoded.into();
    }
    status
}

#[no_mangle]
pub unsafe extern "C" fn wok_tokenizer_id_of(tokenizer: *const Tokenizer, piece: Bytes) -> i32 {
    let find = || std::str::from_utf8(piece.get()).map_or(-1, |piece| (*tokenizer).id_of(piece));
    catch_unwind(AssertUnwindSafe(find)).unwrap_or(-1)
}

#[no_mangle]
pub unsafe extern "C" fn wok_whole_new(
    json: Bytes,
    status: *mut Status,
    error: *mut Owned<u8>,
) -> *mut WholeTokenizer {
    let (outcome, made) = guard(error, || WholeTokenizer::new(json.get()));
    *status = outcome;
    made.map_or(std::ptr::null_mut(), |made| Box::into_raw(Box::new(made)))
}

#[no_mangle]
pub unsafe extern "C" fn wok_whole_free(tokenizer: *mut WholeTokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

#[no_mangle]
pub unsafe extern "C" fn wok_whole_encode(
    tokenizer: *const WholeTokenizer,
    first: Bytes,
    second: *const Bytes,
    special: u8,
    max_tokens: usize,
    ids: *mut Owned<i32>,
    types: *mut Owned<i32>,
    error: *mut Owned<u8>,
) -> Status {
    let (status, encoded) = guard(error, || {
        let second = match second.as_ref() {
            Some(text) => Some(text.text("the second text to encode")?),
            None => None,
        };
        (*tokenizer).encode(first.text("the text to encode")?, second, special != 0, max_tokens)
    });
    if let Some(encoded) = encoded {
        *ids = encoded.ids.into();
        *types = encoded.types.into();
    }
    status
}

#[no_mangle]
pub unsafe extern "C" fn wok_whole_decode(
    tokenizer: *const WholeTokenizer,
    ids: *const i32,
    count: usize,
    show_special: u8,
    output: *mut Owned<u8>,
    error: *mut Owned<u8>,
) -> Status {
    let (status, text) =
        guard(error, || (*tokenizer).decode(slice(ids, count), show_special != 0));
    if let Some(text) = text {
        *output = text.into_bytes().into();
    }
    status
}

#[no_mangle]
pub unsafe extern "C" fn wok_whole_id_of(tokenizer: *const WholeTokenizer, piece: Bytes) -> i32 {
    let find = || std::str::from_utf8(piece.get()).map_or(-1, |piece| (*tokenizer).id_of(piece));
    catch_unwind(AssertUnwindSafe(find)).unwrap_or(-1)
}

#[no_mangle]
pub unsafe extern "C" fn wok_template_new(
    source: Bytes,
    bos: Bytes,
    eos: Bytes,
    status: *mut Status,
    error: *mut Owned<u8>,
) -> *mut ChatTemplate {
    let (outcome, made) = guard(error, || {
        ChatTemplate::new(
            source.text("the chat template")?,
            bos.text("the text of BOS")?,
            eos.text("the text of EOS")?,
        )
    });
    *status = outcome;
    made.map_or(std::ptr::null_mut(), |made| Box::into_raw(Box::new(made)))
}

#[no_mangle]
pub unsafe extern "C" fn wok_template_free(chat_template: *mut ChatTemplate) {
    if !chat_template.is_null() {
        drop(Box::from_raw(chat_template));
    }
}

#[no_mangle]
pub unsafe extern "C" fn wok_template_render(
    chat_template: *const ChatTemplate,
    input: Bytes,
    output: *mut Owned<u8>,
    error: *mut Owned<u8>,
) -> Status {
    let (status, text) = guard(error, || (*chat_template).render(input.text("the chat")?));
    if let Some(text) = text {
        *output = text.into_bytes().into();
    }
    status
}
