// Speed of the forward pass without HTTP, scheduler or sampling: prefill of 512 tokens and decode
// of 128, by 1 and by 16 sequences. Prints one JSON line a figure; bench/compare_llama_cpp.py runs
// it beside llama.cpp.
//
//   offline_bench MODEL.gguf [--threads N] [--isa NAME] [--repeat N]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>

#include "kernels/isa.h"
#include "models/model.h"

namespace wok {
namespace {

constexpr int32_t kPrompt = 512, kOutput = 128, kManySequences = 16;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Bench {
 public:
  Bench(const Model& model, ComputePool& pool, int32_t sequences)
      : model_(model),
        pool_(pool),
        pages_each_((kPrompt + kOutput) / kPageTokens),
        work_(model.config(), model.weights(), kPrompt, sequences, sequences, pool.threads()),
        memory_(std::move(
            PageMemory::create(model.kv_shape(kKvFormat_f16), pages_each_ * sequences).value())),
        pages_(static_cast<size_t>(pages_each_) * sequences) {
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  double prefill(int32_t sequence) {
    std::vector<int32_t> tokens(kPrompt), positions(kPrompt), owner(kPrompt, 0);
    for (int32_t i = 0; i < kPrompt; ++i) {
      tokens[i] = (i * 7919 + 13 + sequence) % model_.config().vocab;
      positions[i] = i;
    }
    const SequenceSpan span{0, kPrompt, kPrompt, pages_.data() + sequence * pages_each_};
    const int32_t row = kPrompt - 1;
    const double begin = now_s();
    model_.forward({tokens, positions, {&span, 1}, owner, {&row, 1}}, memory_, pool_, work_);
    return now_s() - begin;
  }

  double decode(int32_t sequences, int32_t first, int32_t steps) {
    std::vector<int32_t> tokens(sequences), positions(sequences), rows(sequences);
    std::vector<SequenceSpan> spans(sequences);
    std::iota(rows.begin(), rows.end(), 0);
    const double begin = now_s();
    for (int32_t s = 0; s < steps; ++s) {
      for (int32_t i = 0; i < sequences; ++i) {
        tokens[i] = (s * 31 + i) % model_.config().vocab;
        positions[i] = first + s;
        spans[i] = {i, 1, first + s + 1, pages_.data() + i * pages_each_};
      }
      model_.forward({tokens, positions, spans, rows, rows}, memory_, pool_, work_);
    }
    return now_s() - begin;
  }

 private:
  const Model& model_;
  ComputePool& pool_;
  int32_t pages_each_;
  Workspace work_;
  PageMemory memory_;
  std::vector<int32_t> pages_;
};

void report(const char* test, int32_t batch, int32_t tokens, double seconds) {
  std::printf("{\"test\": \"%s\", \"batch\": %d, \"tokens_per_s\": %.2f}\n", test, batch,
              tokens / seconds);
  std::fflush(stdout);
}

int run(const std::string& path, int32_t threads, const std::string& isa, int32_t repeat) {
  auto choice = choose_isa(isa);
  if (!choice.ok()) return std::fprintf(stderr, "error: %s\n", choice.error().message.c_str()), 1;
  auto file = GgufFile::open(path);
  if (!file.ok()) return std::fprintf(stderr, "error: %s\n", file.error().message.c_str()), 1;
  ComputePool pool(threads > 0 ? threads : usable_cpus());
  auto model = Model::load(std::make_shared<const GgufFile>(std::move(file).value()),
                           *choice->kernels, {"", &pool});
  if (!model.ok()) return std::fprintf(stderr, "error: %s\n", model.error().message.c_str()), 1;
  std::fprintf(stderr, "%s, %s kernels, %d threads\n", path.c_str(), choice->name.c_str(),
               pool.threads());
  Bench one(**model, pool, 1), many(**model, pool, kManySequences);
  one.prefill(0);
  one.decode(1, kPrompt, 8);
  many.decode(kManySequences, 0, 4);
  for (int32_t r = 0; r < repeat; ++r) {
    report("pp512", 1, kPrompt, one.prefill(0));
    report("tg128", 1, kOutput, one.decode(1, 0, kOutput));
    double seconds = 0;
    for (int32_t s = 0; s < kManySequences; ++s) seconds += many.prefill(s);
    report("pp512", kManySequences, kPrompt * kManySequences, seconds);
    report("tg128", kManySequences, kOutput * kManySequences,
           many.decode(kManySequences, 0, kOutput));
  }
  return 0;
}

}  // namespace
}  // namespace wok

int main(int argc, char** argv) {
  std::string path, isa;
  int threads = 0, repeat = 3;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--threads" && i + 1 < argc) {
      threads = std::atoi(argv[++i]);
    } else if (arg == "--isa" && i + 1 < argc) {
      isa = argv[++i];
    } else if (arg == "--repeat" && i + 1 < argc) {
      repeat = std::atoi(argv[++i]);
    } else if (path.empty() && arg[0] != '-') {
      path = arg;
    } else {
      path.clear();
      break;
    }
  }
  if (path.empty() || repeat < 1 || threads < 0) {
    std::fprintf(stderr,
                 "usage: offline_bench MODEL.gguf [--threads N] [--isa NAME] [--repeat N]\n");
    return 2;
  }
  return wok::run(path, threads, isa, repeat);
}
