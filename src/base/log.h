// Logging goes through spdlog's default logger (stderr); main sets level and pattern once.
#pragma once

#include <spdlog/spdlog.h>

namespace wok::log {

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

// level: trace, debug, info, warn, error, off.
void configure(const std::string& level);

}  // namespace wok::log
