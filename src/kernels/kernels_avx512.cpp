#if defined(__AVX512VNNI__)
#include "kernels/body/simd_avx512.h"
//
#include "kernels/body/table.h"

namespace wok {
const KernelTable* avx512_kernels(Streams streams) {
  return body_table(streams);
}
}  // namespace wok
#else
#include "kernels/kernels.h"

namespace wok {
const KernelTable* avx512_kernels(Streams) {
  return nullptr;
}
}  // namespace wok
#endif
