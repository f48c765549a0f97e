// The matmul of a table: picks the body by the matrix's family and the rows' form.
#pragma once

#include "kernels/body/exact_matmul.h"
#include "kernels/body/float_matmul.h"
#include "kernels/body/group_matmul.h"

namespace wok {
namespace {

template <class F, Streams kStreams>
void int_matmul(const MatmulArgs& args) {
  const int32_t exact = args.x->exact_rows;
  if (args.row_begin < exact) {
    exact_matmul<F, kStreams>(args, args.row_begin, args.row_end < exact ? args.row_end : exact);
  }
  if constexpr (Simd::kHasGroups) {
    if (args.row_end > exact) {
      group_matmul<F>(args, args.row_begin > exact ? args.row_begin : exact, args.row_end);
    }
  }
}

template <Streams kStreams>
void matmul(const MatmulArgs& args) {
  switch (args.weights->family) {
    case Family::kInt4:
      return int_matmul<Int4, kStreams>(args);
    case Family::kInt4Zero:
      return int_matmul<Int4Zero, kStreams>(args);
    case Family::kInt4Group:
      return int_matmul<Int4Group, kStreams>(args);
    case Family::kInt4Point:
      return int_matmul<Int4Point, kStreams>(args);
    case Family::kInt4Super:
      return int_matmul<Int4Super, kStreams>(args);
    case Family::kInt5:
      return int_matmul<Int5, kStreams>(args);
    case Family::kInt5Zero:
      return int_matmul<Int5Zero, kStreams>(args);
    case Family::kInt5Super:
      return int_matmul<Int5Super, kStreams>(args);
    case Family::kInt6Super:
      return int_matmul<Int6Super, kStreams>(args);
    case Family::kInt8:
      return int_matmul<Int8, kStreams>(args);
    case Family::kInt2Zero:
      return int_matmul<Int2Zero, kStreams>(args);
    case Family::kInt2Super:
      return int_matmul<Int2Super, kStreams>(args);
    case Family::kInt3Super:
      return int_matmul<Int3Super, kStreams>(args);
    case Family::kTable4:
      return int_matmul<Table4, kStreams>(args);
    case Family::kTable4Halves:
      return int_matmul<Table4Halves, kStreams>(args);
    case Family::kTable4Super:
      return int_matmul<Table4Super, kStreams>(args);
    case Family::kTable3Super:
      return int_matmul<Table3Super, kStreams>(args);
    case Family::kFloat16:
      return float_matmul<LoadHalf>(args);
    case Family::kBFloat16:
      return float_matmul<LoadBf16>(args);
    case Family::kFloat32:
      return float_matmul<LoadFloat>(args);
  }
}

}  // namespace
}  // namespace wok
