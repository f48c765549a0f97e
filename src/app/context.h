// What a command gets from main: the global options and a place to put its action. A command is
// one file in commands/ and one name in commands/commands.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "store/store.h"

namespace wok::app {

// An option that may also be set by WOK_<KEY> in the environment and by `<key> = …` in the TOML
// file. Precedence: flag, environment, file, default.
struct Setting {
  CLI::App* command = nullptr;  // the root app for global ones
  CLI::Option* option = nullptr;
  std::string key;  // "kv_memory"

  std::string variable() const;  // "WOK_KV_MEMORY"
};

struct Context {
  std::string cache_dir;    // --cache-dir, WOK_CACHE_DIR; "" = the XDG folder
  std::string config_path;  // --config; "" = $XDG_CONFIG_HOME/wok/config.toml when it is there
  std::string log_level;    // "" = info for serve, warn for what people read
  std::vector<Setting> settings;
  std::function<int()> action;  // set by the chosen command's callback; returns the exit code

  // Makes an option (with a long name) a setting and says so in its help.
  CLI::Option* setting(CLI::App* command, CLI::Option* option);

  Result<store::Store> open_store() const;
};

// The variable's value; "" when unset.
std::string environment(const char* name);

// Prints "error: …" to stderr and returns exit code 1.
int fail(const Error& error);

constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;

}  // namespace wok::app
