// The C ABI of the Rust crate in rust/: the only way between it and C++. Only src/text includes it.
//
// Ownership: wok_bytes are borrowed for the length of one call. wok_text and wok_ids that a
// function fills belong to the caller, who gives each back once with wok_text_free/wok_ids_free
// (both accept an empty one). Handles come from *_new and end with *_free; any thread may use one,
// many at once. No function unwinds: a panic inside becomes WOK_PANIC with its text in `error`.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char* data;  // need not end in NUL, may hold NULs; may be null when size is 0
  size_t size;
} wok_bytes;

typedef struct {
  char* data;
  size_t size;
  size_t capacity;
} wok_text;

typedef struct {
  int32_t* data;
  size_t size;
  size_t capacity;
} wok_ids;

typedef enum {
  WOK_OK = 0,
  WOK_INVALID = 1,      // what was passed is malformed
  WOK_UNSUPPORTED = 2,  // well-formed, but the crate does not do it
  WOK_PANIC = 3,        // a bug in the crate or in a library below it
} wok_status;

typedef struct {
  wok_bytes model;
  wok_bytes pre;
  const wok_bytes* tokens;
  const int32_t* kinds;  // token_count of them, as GGUF numbers them
  const float* scores;   // null, or token_count of them
  size_t token_count;
  const wok_bytes* merges;
  size_t merge_count;
  int32_t unk_id;  // -1: none
  uint8_t add_space_prefix;
} wok_tokenizer_spec;

typedef struct wok_tokenizer wok_tokenizer;
typedef struct wok_whole_tokenizer wok_whole_tokenizer;
typedef struct wok_template wok_template;

void wok_text_free(wok_text text);
void wok_ids_free(wok_ids ids);

// Null when it fails; then *status says how and *error (never null) why.
wok_tokenizer* wok_tokenizer_new(const wok_tokenizer_spec* spec, wok_status* status,
                                 wok_text* error);
void wok_tokenizer_free(wok_tokenizer* tokenizer);
// The text's ids, without BOS or EOS; control tokens in the text are found if parse_special.
wok_status wok_tokenizer_encode(const wok_tokenizer* tokenizer, wok_bytes text,
                                uint8_t parse_special, wok_ids* ids, wok_text* error);
// The id of exactly this piece as the vocabulary spells it, or -1.
int32_t wok_tokenizer_id_of(const wok_tokenizer* tokenizer, wok_bytes piece);

// A tokenizer made of a whole tokenizer.json, which also says what goes around a text or a pair.
wok_whole_tokenizer* wok_whole_new(wok_bytes json, wok_status* status, wok_text* error);
void wok_whole_free(wok_whole_tokenizer* tokenizer);
// Ids and token types, one a token. second: null, or the other text of a pair. max_tokens: 0, or
// the longer text is cut until both and what `special` puts around them are so many.
wok_status wok_whole_encode(const wok_whole_tokenizer* tokenizer, wok_bytes first,
                            const wok_bytes* second, uint8_t special, size_t max_tokens,
                            wok_ids* ids, wok_ids* types, wok_text* error);
wok_status wok_whole_decode(const wok_whole_tokenizer* tokenizer, const int32_t* ids, size_t count,
                            uint8_t show_special, wok_text* output, wok_text* error);
int32_t wok_whole_id_of(const wok_whole_tokenizer* tokenizer, wok_bytes piece);

// Compiles a Jinja chat template. bos/eos are what it sees as bos_token/eos_token.
wok_template* wok_template_new(wok_bytes source, wok_bytes bos, wok_bytes eos, wok_status* status,
                               wok_text* error);
void wok_template_free(wok_template* chat_template);
// input: a JSON object {messages, tools, kwargs, add_generation_prompt, continue_final_message,
// now_unix_s}; the keys of its objects keep their order.
wok_status wok_template_render(const wok_template* chat_template, wok_bytes input, wok_text* output,
                               wok_text* error);

#ifdef __cplusplus
}
#endif
