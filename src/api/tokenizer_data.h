// What a GGUF file says about its tokenizer, in the text room's terms. It stands here because this
// is the first room that knows both files and text.
#pragma once

#include "base/result.h"
#include "formats/model_file.h"
#include "text/tokenizer.h"

namespace wok {

// Errors: kInvalid names the key; a file without a tokenizer says so.
Result<TokenizerData> read_tokenizer_data(const ModelFile& file);

}  // namespace wok
