// The table an instruction set's translation unit hands out. Include after one simd_*.h.
#pragma once

#include "kernels/body/attention.h"
#include "kernels/body/elementwise.h"
#include "kernels/body/matmul.h"
#include "kernels/kernels.h"

namespace wok {
namespace {

template <Streams kStreams>
constexpr KernelTable kBodyTable = {
    .name = Simd::kName,
    .panel_rows = Simd::kWidth,
    .stream_rows = StreamTile<Int4, kStreams>::kRows,
    .matmul = matmul<kStreams>,
    .rmsnorm = rmsnorm,
    .layernorm = layernorm,
    .gelu_bias = gelu_bias,
    .quantize = quantize,
    .quantize_group = Simd::kHasGroups ? quantize_group : nullptr,
    .rope_interleaved = rope_interleaved,
    .rope_halves = rope_halves,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .clamped_glu = clamped_glu,
    .add = add_rows,
    .soft_cap = soft_cap,
    .argmax = argmax,
    .max = max_row,
    .exp_sum = exp_sum,
    .combine_splits = combine_splits,
    .kv_f16 = {.store = store_kv<HalfKv>,
               .attend = attend<HalfKv>,
               .attend_split = attend_split<HalfKv>},
    .kv_bf16 = {.store = store_kv<Bf16Kv>,
                .attend = attend<Bf16Kv>,
                .attend_split = attend_split<Bf16Kv>},
};

[[maybe_unused]] const KernelTable* body_table(Streams streams) {
  return streams == Streams::kOne ? &kBodyTable<Streams::kOne> : &kBodyTable<Streams::kSeveral>;
}

}  // namespace
}  // namespace wok
