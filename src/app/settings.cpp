#include "app/settings.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

namespace wok::app {
namespace {

struct Value {
  std::string text;
  std::string where;  // "config.toml line 3, key serve.port"
};
using Values = std::map<const CLI::Option*, Value>;

std::string config_file(const Context& context) {
  if (!context.config_path.empty()) return context.config_path;
  const std::string xdg = environment("XDG_CONFIG_HOME");
  std::string folder = xdg.starts_with('/') ? xdg : environment("HOME") + "/.config";
  return folder + "/wok/config.toml";
}

std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (!node.is_integer() && !node.is_floating_point() && !node.is_boolean()) return "";
  std::stringstream out;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_value<decltype(value)>) out << std::boolalpha << value.get();
  });
  return out.str();
}

// Reads the file's keys one by one; what is wrong with it is collected, so that one run names all.
class ConfigReader {
 public:
  ConfigReader(const Context& context, const CLI::App* root, const CLI::App* chosen,
               std::string path)
      : context_(context), root_(root), chosen_(chosen), path_(std::move(path)) {}

  Result<Values> read() {
    toml::table table;
    try {
      table = toml::parse_file(path_);
    } catch (const toml::parse_error& error) {
      return invalid(
          fmt::format("{} line {}: {}", path_, error.source().begin.line, error.description()));
    }
    // Top level first: a command's own table goes over it.
    for (const auto& [key, node] : table) {
      if (!node.is_table()) top_level(std::string(key.str()), node);
    }
    for (const auto& [key, node] : table) {
      if (node.is_table()) command_table(std::string(key.str()), *node.as_table());
    }
    if (problems_.empty()) return std::move(values_);
    return invalid(fmt::format("{}: {}", path_, fmt::join(problems_, "; ")));
  }

 private:
  void take(const Setting& setting, const std::string& key, const toml::node& node) {
    std::string text = text_of(node);
    if (text.empty() && !node.is_string()) {
      problem(key, node, "expected a string, a number or true/false");
      return;
    }
    values_[setting.option] = {
        std::move(text), fmt::format("{} line {}, key {}", path_, node.source().begin.line, key)};
  }

  // Without a table a key means this setting for whatever command has it.
  void top_level(const std::string& key, const toml::node& node) {
    bool known = false;
    for (const Setting& setting : context_.settings) {
      if (setting.key != key) continue;
      known = true;
      if (setting.command == root_ || setting.command == chosen_) take(setting, key, node);
    }
    if (!known) problem(key, node, "unknown key");
  }

  void command_table(const std::string& name, const toml::table& table) {
    std::set<std::string> known;
    for (const Setting& setting : context_.settings) {
      if (setting.command != root_ && setting.command->get_name() == name)
        known.insert(setting.key);
    }
    if (known.empty()) {
      problem(fmt::format("[{}]", name), table, "unknown table");
      return;
    }
    for (const auto& [key, node] : table) {
      const std::string text(key.str());
      if (known.count(text) == 0) {
        problem(fmt::format("{}.{}", name, text), node,
                fmt::format("unknown key; [{}] takes {}", name, fmt::join(known, ", ")));
        continue;
      }
      for (const Setting& setting : context_.settings) {
        if (setting.command != chosen_ || chosen_->get_name() != name) continue;
        if (setting.key == text) take(setting, fmt::format("{}.{}", name, text), node);
      }
    }
  }

  void problem(const std::string& key, const toml::node& node, const std::string& what) {
    problems_.push_back(fmt::format("line {}: '{}': {}", node.source().begin.line, key, what));
  }

  const Context& context_;
  const CLI::App* root_;
  const CLI::App* chosen_;
  std::string path_;
  Values values_;
  std::vector<std::string> problems_;
};

Status set(CLI::Option* option, const Value& value) {
  try {
    option->add_result(value.text);
    option->run_callback();  // the same conversions and checks as for a flag
  } catch (const CLI::Error& error) {
    return invalid(fmt::format("{}: {}", value.where, error.what()));
  }
  return Ok{};
}

}  // namespace

Status apply_settings(const Context& context, const CLI::App* root, const CLI::App* chosen) {
  Values from_file;
  const std::string path = config_file(context);
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    WOK_TRY(values, ConfigReader(context, root, chosen, path).read());
    from_file = std::move(values);
  } else if (!context.config_path.empty()) {
    return not_found(fmt::format("--config {}: no such file", path));
  }
  for (const Setting& setting : context.settings) {
    if (setting.command != root && setting.command != chosen) continue;
    if (setting.option->count() > 0) continue;
    const std::string variable = setting.variable();
    if (const std::string text = environment(variable.c_str()); !text.empty()) {
      WOK_RETURN_IF_ERROR(set(setting.option, {text, variable}));
    } else if (const auto it = from_file.find(setting.option); it != from_file.end()) {
      WOK_RETURN_IF_ERROR(set(setting.option, it->second));
    }
  }
  return Ok{};
}

Result<uint64_t> parse_size(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  std::string_view unit(rest, static_cast<size_t>(end - rest));
  constexpr std::string_view kUnits = "KMGT";
  double scale = 1;
  if (!unit.empty()) {
    const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(unit.front())));
    if (const size_t power = kUnits.find(letter); power != std::string_view::npos) {
      scale = std::pow(1024.0, static_cast<double>(power + 1));
      unit.remove_prefix(1);
    }
  }
  const bool known_unit = unit.empty() || unit == "B" || (scale > 1 && unit == "iB");
  const double bytes = number * scale;
  if (error != std::errc() || !known_unit || !(bytes >= 0) || bytes >= 9e18) {
    return invalid(
        fmt::format("'{}' is not a size; expected for example 65536, 512M or 1.5G", text));
  }
  return static_cast<uint64_t>(bytes);
}

CLI::Option* add_size_option(CLI::App* command, const std::string& name, uint64_t& value,
                             const std::string& description) {
  return command
      ->add_option_function<std::string>(
          name,
          [&value, name](const std::string& text) {
            const Result<uint64_t> bytes = parse_size(text);
            if (!bytes.ok()) throw CLI::ValidationError(name, bytes.error().message);
            value = *bytes;
          },
          description)
      ->type_name("SIZE");
}

}  // namespace wok::app
