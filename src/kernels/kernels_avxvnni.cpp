// AVX2's body with VNNI in 256-bit registers, as client CPUs have it.
#if defined(__AVXVNNI__)
#include "kernels/body/simd_avx2.h"
//
#include "kernels/body/table.h"

namespace wok {
const KernelTable* avxvnni_kernels(Streams streams) {
  return body_table(streams);
}
}  // namespace wok
#else
#include "kernels/kernels.h"

namespace wok {
const KernelTable* avxvnni_kernels(Streams) {
  return nullptr;
}
}  // namespace wok
#endif
