#if defined(__AVX2__)
#include "kernels/body/simd_avx2.h"
//
#include "kernels/body/table.h"

namespace wok {
const KernelTable* avx2_kernels(Streams streams) {
  return body_table(streams);
}
}  // namespace wok
#else
#include "kernels/kernels.h"

namespace wok {
const KernelTable* avx2_kernels(Streams) {
  return nullptr;
}
}  // namespace wok
#endif
