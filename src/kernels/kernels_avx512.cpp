#if defined(__AVX512VNNI__)
#include "kernels/body/simd_avx512.h"
//
#include "kernels/body/table.h"

namespace wok {
const KernelTable* avx512_kernels() {
  return &kBodyTable;
}
}  // namespace wok
#else
#include "kernels/kernels.h"

namespace wok {
const KernelTable* avx512_kernels() {
  return nullptr;
}
}  // namespace wok
#endif
