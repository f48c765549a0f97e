#include "app/context.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

namespace wok::app {

std::string Setting::variable() const {
  std::string name = "WOK_";
  for (const char c : key) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

CLI::Option* Context::setting(CLI::App* command, CLI::Option* option) {
  WOK_CHECK(!option->get_lnames().empty(), "a setting's key is its long name");
  std::string key = option->get_lnames().front();
  std::replace(key.begin(), key.end(), '-', '_');
  settings.push_back({.command = command, .option = option, .key = key});
  return option->description(
      fmt::format("{} [{}]", option->get_description(), settings.back().variable()));
}

Result<store::Store> Context::open_store() const {
  if (!cache_dir.empty() && !cache_dir.starts_with('/')) {
    return invalid(fmt::format("--cache-dir is '{}', expected an absolute path", cache_dir));
  }
  WOK_TRY(folder,
          store::default_cache_dir(cache_dir, environment("XDG_CACHE_HOME"), environment("HOME")));
  return store::Store(folder);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

int fail(const Error& error) {
  fmt::print(stderr, "error: {}\n", error.message);
  return 1;
}

}  // namespace wok::app
