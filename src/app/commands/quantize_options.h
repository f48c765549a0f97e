// What `wok quantize` was asked for, and the part of it that needs a model run.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "app/context.h"
#include "app/interrupt.h"
#include "formats/model_file.h"
#include "quantizer/imatrix.h"

namespace wok::app {

struct QuantizeCommand {
  std::string in, out, method, calibration, imatrix;
  int32_t threads = 0, bits = 4, group = 128, chunk_tokens = 512, chunks = 64;
  bool json = false, tensors = false, act_order = false, asymmetric = false;
};

// A redrawn line on a terminal: share done and time left. False: the user wants an end.
class ShareProgress {
 public:
  bool operator()(double share) const {
    if (terminal_ && share > 0) {
      const double passed =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
      fmt::print(stderr, "\r\x1b[K{:.0f} %, {:.0f} s left", 100 * share, passed / share - passed);
      if (share >= 1) fmt::print(stderr, "\r\x1b[K");
    }
    return !interrupt_.pending();
  }

 private:
  Interrupt interrupt_;
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The methods of folders by name, comma-separated in `method`: "gptq", "awq", "rtn", "imatrix".
bool is_folder_method(const std::string& method);

// Quantizes a Hugging Face folder. Returns the exit code.
int quantize_folder_command(const Context& context, const QuantizeCommand& o,
                            const std::string& path);

// Of a GGUF file's model on the text that --calibration names. kCancelled: interrupted.
Result<ImportanceMatrix> measure_importance(const Context& context, const QuantizeCommand& o,
                                            const std::string& path, ComputePool& pool);

}  // namespace wok::app
