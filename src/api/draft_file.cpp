#include "api/draft_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/tokenizer_data.h"

namespace wok {
namespace {

Status check_vocabulary(const GgufFile& draft, const GgufFile& target) {
  WOK_TRY(ours, read_tokenizer_data(draft));
  WOK_TRY(theirs, read_tokenizer_data(target));
  const size_t both = std::min(ours.tokens.size(), theirs.tokens.size());
  for (size_t id = 0; id < both; ++id) {
    if (ours.tokens[id] == theirs.tokens[id]) continue;
    return invalid(fmt::format(
        "'{}' cannot guess for '{}': token {} is '{}' in one and '{}' in the other. A draft model "
        "needs the vocabulary of the model it guesses for: take a smaller one of the same family",
        draft.path(), target.path(), id, ours.tokens[id], theirs.tokens[id]));
  }
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<Model>> load_draft_model(const std::string& path, const GgufFile& target,
                                                const KernelTable& kernels,
                                                const ModelOptions& options) {
  WOK_TRY(opened, GgufFile::open(path));
  const auto file = std::make_shared<const GgufFile>(std::move(opened));
  WOK_RETURN_IF_ERROR(check_vocabulary(*file, target));
  WOK_TRY(model, Model::load(file, kernels, options));
  file->release_pages();
  return model;
}

}  // namespace wok
