// A look at what matrices are multiplied by, for calibration: forward() shows the rows as floats
// where a workspace has a tap.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernels.h"
#include "layers/experts.h"

namespace wok {

// By what reads them.
enum class TapSite : uint8_t {
  kAttention,     // queries, keys and values
  kAttentionOut,  // the attention's output matrix
  kFeedForward,   // gate and up; the router
  kDown,          // down
  kExperts,       // gate and up of experts, rows sorted by expert
  kExpertDown,    // down of experts
};

class ActivationTap {
 public:
  virtual ~ActivationTap() = default;
  // x.f32 [x.rows, x.cols]; groups: of the two expert sites. On the thread that calls forward().
  virtual void see(int32_t layer, TapSite site, const Activations& x,
                   std::span<const ExpertRows> groups) = 0;
};

}  // namespace wok
