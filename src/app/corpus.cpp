#include "app/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "text/utf8.h"

namespace wok::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDocs = "/usr/share/doc";

Result<std::string> read_some(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const std::string why = std::strerror(errno);
    return errno == ENOENT ? not_found(fmt::format("there is no file '{}'", path))
                           : io_error(fmt::format("cannot read '{}': {}", path, why));
  }
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  if (file.bad() || (file.fail() && !file.eof())) {
    return io_error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace

Result<Corpus> read_text_file(const std::string& path, size_t most_bytes) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return invalid(fmt::format("'{}' is a folder; name a text file", path));
  }
  WOK_TRY(text, read_some(path, most_bytes));
  // A cut may have left a part of the last character.
  if (text.size() == most_bytes) {
    while (!text.empty() && (static_cast<uint8_t>(text.back()) & 0xc0) == 0x80) text.pop_back();
    if (!text.empty() && static_cast<uint8_t>(text.back()) >= 0x80) text.pop_back();
  }
  if (find_invalid_utf8(text) != std::string_view::npos) {
    return invalid(fmt::format("'{}' is no text in UTF-8; convert it first", path));
  }
  return Corpus{fs::path(path).filename().string(), std::move(text)};
}

Result<Corpus> read_corpus(const std::string& name, size_t most_bytes) {
  if (name != "python-docs") {
    return invalid(
        fmt::format("there is no corpus '{}'; there is python-docs, or --text FILE", name));
  }
  std::error_code error;
  std::vector<fs::path> folders;
  for (fs::directory_iterator it(kDocs, error), end; !error && it != end; it.increment(error)) {
    const fs::path sources = it->path() / "html" / "_sources";
    std::error_code ignored;
    if (it->path().filename().string().starts_with("python3") && fs::exists(sources, ignored)) {
      folders.push_back(sources);
    }
  }
  if (folders.empty()) {
    return not_found(
        "the text of python-docs is not on this machine: `apt install python3-doc`, or give "
        "a text of your own with --text FILE");
  }
  std::sort(folders.begin(), folders.end());
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(folders.back(), error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".txt") files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  Corpus corpus{"python-docs (Python's documentation, PSF-2.0)", ""};
  for (const fs::path& path : files) {
    if (corpus.text.size() >= most_bytes) break;
    WOK_TRY(part, read_text_file(path.string(), most_bytes - corpus.text.size()));
    corpus.text += part.text;
    corpus.text += '\n';
  }
  return corpus;
}

}  // namespace wok::app
