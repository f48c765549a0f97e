#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace wok::log {

void configure(const std::string& level) {
  // stdout belongs to answers; everything said to the operator goes to stderr.
  auto logger = std::make_shared<spdlog::logger>(
      "wok", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace wok::log
