// Texts to measure models by: a file, or what Debian packages hold (nothing is shipped with wok).
#pragma once

#include <string>

#include "base/result.h"

namespace wok::app {

struct Corpus {
  std::string name;  // as reports say it, with its licence
  std::string text;
};

// At most `most_bytes` of the file, up to a whole character. Errors: kNotFound, kIo; kInvalid for
// what is no UTF-8.
Result<Corpus> read_text_file(const std::string& path, size_t most_bytes);

// "python-docs": the documentation of Debian's python3-doc packages, in the order of its paths.
// Errors: kNotFound says which package to install; kInvalid names the corpora there are.
Result<Corpus> read_corpus(const std::string& name, size_t most_bytes);

}  // namespace wok::app
