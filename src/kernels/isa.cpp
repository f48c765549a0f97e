#include "kernels/isa.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <fstream>

#include "base/log.h"

namespace wok {
namespace {

struct Feature {
  const char* name;
  bool present;
};

// __builtin_cpu_supports also asks the operating system whether it saves the wide registers.
#if defined(__x86_64__)
#define WOK_FEATURE(name)                   \
  Feature {                                 \
    name, __builtin_cpu_supports(name) != 0 \
  }
#else
#define WOK_FEATURE(name) \
  Feature {               \
    name, false           \
  }
#endif

// Asked of the CPU itself: clang 14 has no such name for __builtin_cpu_supports. The registers are
// AVX's, so whether the operating system saves them is part of AVX2's answer.
Feature f16c_feature() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return {"f16c", __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0};
#else
  return {"f16c", false};
#endif
}

Feature avx_vnni_feature() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return {"avx_vnni", __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && ((a >> 4) & 1) != 0};
#else
  return {"avx_vnni", false};
#endif
}

// Measured on one CPU of each maker, with AVX-512: side by side, panels of one row were read a
// quarter slower by an EPYC and a fifth faster by a Xeon (docs/performance.md).
Streams fitting_streams() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool amd = __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_AMD_ebx;
  return amd ? Streams::kOne : Streams::kSeveral;
#else
  return Streams::kSeveral;
#endif
}

struct Candidate {
  IsaOption option;
  const KernelTable* kernels;
};

template <size_t N>
Candidate candidate(const char* name, const KernelTable* kernels, const Feature (&features)[N]) {
  Candidate c{{name, kernels != nullptr, ""}, kernels};
  std::string has, lacks;
  for (const Feature& f : features) (f.present ? has : lacks) += fmt::format(" {}", f.name);
  if (!lacks.empty()) c.option.available = false;
  c.option.reason = kernels == nullptr ? "not in this build"
                    : lacks.empty()    ? "the CPU has" + has
                                       : "the CPU lacks" + lacks;
  return c;
}

std::vector<Candidate> candidates(Streams streams) {
  std::vector<Candidate> all;
  all.push_back({{"reference", true, "plain C++, for checking"}, &reference_kernels()});
  all.push_back(candidate("avx2", avx2_kernels(streams),
                          {WOK_FEATURE("avx2"), WOK_FEATURE("fma"), f16c_feature()}));
  all.push_back(
      candidate("avxvnni", avxvnni_kernels(streams),
                {WOK_FEATURE("avx2"), WOK_FEATURE("fma"), f16c_feature(), avx_vnni_feature()}));
  all.push_back(candidate("avx512", avx512_kernels(streams),
                          {WOK_FEATURE("avx512f"), WOK_FEATURE("avx512bw"), WOK_FEATURE("avx512dq"),
                           WOK_FEATURE("avx512vl"), WOK_FEATURE("avx512vnni")}));
  all.push_back({{"amx", false, "wok has no AMX kernels yet"}, nullptr});
  return all;
}

}  // namespace

std::vector<const KernelTable*> runnable_tables() {
  std::vector<const KernelTable*> tables;
  for (const Streams streams : {Streams::kOne, Streams::kSeveral}) {
    for (const Candidate& c : candidates(streams)) {
      const bool known = std::find(tables.begin(), tables.end(), c.kernels) != tables.end();
      if (c.option.available && !known) tables.push_back(c.kernels);
    }
  }
  return tables;
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

Result<IsaChoice> choose_isa(std::string_view forced) {
  const std::vector<Candidate> all = candidates(fitting_streams());
  IsaChoice choice;
  choice.cpu = cpu_model();
  std::string names;
  for (const Candidate& c : all) {
    choice.options.push_back(c.option);
    names += (names.empty() ? "" : ", ") + c.option.name;
  }
  if (!forced.empty()) {
    for (const Candidate& c : all) {
      if (c.option.name != forced) continue;
      if (!c.option.available) {
        return unsupported(
            fmt::format("WOK_ISA={}: {}. Leave WOK_ISA unset, or name one that is available (wok "
                        "version --cpu)",
                        forced, c.option.reason));
      }
      if (const std::string fault = self_check(*c.kernels); !fault.empty()) {
        return unsupported(fmt::format("WOK_ISA={}: self-test failed: {}", forced, fault));
      }
      choice.name = c.option.name;
      choice.reason = "asked for";
      choice.kernels = c.kernels;
      return choice;
    }
    return invalid(fmt::format("WOK_ISA={}: unknown; expected one of {}", forced, names));
  }
  for (auto c = all.rbegin(); c != all.rend(); ++c) {
    if (!c->option.available) continue;
    if (const std::string fault = self_check(*c->kernels); !fault.empty()) {
      log::warn("kernels '{}' failed their self-test ({}); stepping down", c->option.name, fault);
      continue;
    }
    choice.name = c->option.name;
    choice.reason = "the widest available: " + c->option.reason;
    choice.kernels = c->kernels;
    return choice;
  }
  return unsupported("no kernel table passes its self-test on this CPU: its arithmetic is broken");
}

}  // namespace wok
