#include "api/draft_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/tokenizer_data.h"

namespace wok {

Result<std::shared_ptr<const ModelFile>> open_draft_file(const std::string& path,
                                                         const std::string& target_path,
                                                         const TokenizerData& target) {
  WOK_TRY(file, ModelFile::open(path));
  WOK_TRY(draft, read_tokenizer_data(file));
  const size_t both = std::min(draft.tokens.size(), target.tokens.size());
  for (size_t id = 0; id < both; ++id) {
    if (draft.tokens[id] == target.tokens[id]) continue;
    return invalid(fmt::format(
        "'{}' cannot guess for '{}': token {} is '{}' in one and '{}' in the other. A draft model "
        "needs the vocabulary of the model it guesses for: take a smaller one of the same family",
        path, target_path, id, draft.tokens[id], target.tokens[id]));
  }
  return std::make_shared<const ModelFile>(std::move(file));
}

}  // namespace wok
