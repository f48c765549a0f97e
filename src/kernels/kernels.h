// The compute interface: everything the layers ask of a CPU (or, later, another device), as one
// table of function pointers per instruction set. reference.cpp is the plain truth each is tested
// against. All functions are thread-safe, allocate nothing, and give each output row the same sums
// whatever other rows are in the call (so a request gets the same tokens alone and in a batch).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace wok {

// How a weight matrix is stored for the matmul of one instruction set. Integer families hold
// `panel_rows` output rows interleaved, in blocks of 32 input columns; see pack.h for the bytes.
// A packed matrix takes the bits of its file's format, so that decode reads no more than it has to.
enum class Family : uint8_t {
  kInt4,       // codes 0..15, f16 scale and min a block
  kInt4Zero,   // the same with the zero point 8 and no min
  kInt4Group,  // codes 0..15, f16 scale and f16 zero point for 4 blocks
  kInt4Point,  // the same a block
  kInt4Super,  // 6-bit scale and min a block, f16 factors of both for 8 blocks
  kInt5,       // codes 0..31, likewise
  kInt5Zero,
  kInt5Super,
  kInt6Super,  // codes 0..63 meaning -32..31, int8 scale a half block, f16 factor for 8 blocks
  kInt8,       // signed codes, f16 scale a block
  kInt2Zero,   // codes 0..3 meaning -1..2, f16 scale a block
  kInt2Super,  // codes 0..3, 4-bit scale and min a half block, f16 factors of both for 8 blocks
  kInt3Super,  // codes 0..7 meaning -4..3, int8 scale a half block, f32 factor for 8 blocks
  // Codes that name entries of the matrix's codebook:
  kTable4,        // 4 bits, f16 scale a block
  kTable4Halves,  // 4 bits, f16 scale a half block
  kTable4Super,   // 4 bits, int8 scale a half block, f32 factor for 8 blocks
  kTable3Super,   // 3 bits, likewise
  kFloat16,       // panels of columns, two bytes each
  kBFloat16,
  kFloat32,
};
constexpr int kFamilyCount = 20;
constexpr bool is_integer(Family family) {
  return family != Family::kFloat16 && family != Family::kBFloat16 && family != Family::kFloat32;
}
// Whether codes name entries of Matrix::codebook.
constexpr bool is_table(Family family) {
  return family >= Family::kTable4 && family <= Family::kTable3Super;
}
constexpr int kBlockColumns = 32;  // columns of one packed block
constexpr int kPageTokens = 16;    // tokens of one KV page

constexpr int kGroupColumns = 128;       // columns of one group of prompt activations
constexpr int kExactColumns = 512;       // columns the exact matmul of many rows unpacks at a time
constexpr int kExactPanels = 2;          // panels of which it does so together
constexpr int kExactRows = 512;          // and rows it sums at a time
constexpr int kGroupBlockColumns = 512;  // columns a prompt's matmul unpacks at a time

// What a block of 32 codes of an exact activation row is worth. The whole numbers are what a weight
// family's zero point adds to an integer dot product, so that it costs no multiplication of its
// own.
struct ActivationBlock {
  float scale;         // absmax / 127: activation = scale * code
  float sum;           // scale * (sum of the codes)
  int32_t minus8;      // -8 * (sum of the codes)
  int32_t minus32[2];  // -32 * (sum of the codes of columns 0-15, of columns 16-31)
};

// Activation rows [rows, cols], in the forms the weight families need. `f32` is always there; the
// int8 forms only when an integer family will read them (cols % 32 == 0). Rows [0, exact_rows),
// tokens that are being decoded, have a scale a block of 32 and meet weights exactly as they are.
// The others, tokens of prompts, have a scale a group of 128 and meet weights rounded to int8 with
// one scale a group: arithmetic is what prefill waits for (docs/adr/0010).
struct Activations {
  const float* f32 = nullptr;  // [rows, cols]
  // Exact rows, e = exact_rows: codes [cols / 32, e, 32], blocks [cols / 32, e].
  const int8_t* q = nullptr;
  const ActivationBlock* blocks = nullptr;
  // Row r >= e: codes + 128 at q + r * cols, scale [groups] at scale + r * (cols / 32).
  const float* scale = nullptr;
  int32_t rows = 0;
  int32_t cols = 0;
  int32_t exact_rows = 0;
};

// Dequantizes `n` weights of one row from the file's own blocks (reference path only).
using DequantizeFn = void (*)(const uint8_t* blocks, float* out, int64_t n);

// A weight matrix [rows, cols] ready for one kernel table.
struct Matrix {
  int32_t rows = 0;  // output features
  int32_t cols = 0;  // input features
  Family family = Family::kFloat32;
  bool native = false;  // true: `data` holds the file's rows; reference table only
  const uint8_t* data = nullptr;
  size_t panel_bytes = 0;  // bytes of one panel (of one row when native)
  DequantizeFn dequantize = nullptr;
  const int8_t* codebook = nullptr;  // Table families: 16 values
  // Column i multiplies input column_order[i]; null: input i. Activations in f32 stay in their own
  // order, so packed float families have none.
  const int32_t* column_order = nullptr;
};

// y[m, r] (+)= sum over c of x[m, c] * W[r, c] for x's rows [row_begin, row_end) and the rows of
// panels [panel_begin, panel_end).
struct MatmulArgs {
  const Matrix* weights = nullptr;
  const Activations* x = nullptr;
  int32_t row_begin = 0;
  int32_t row_end = 0;
  int32_t panel_begin = 0;
  int32_t panel_end = 0;
  float* y = nullptr;  // [rows, y_stride]; its first element is of row y_row and panel y_panel
  int64_t y_stride = 0;
  int32_t y_row = 0;
  int32_t y_panel = 0;
  bool accumulate = false;     // add to what y holds (residual)
  uint8_t* scratch = nullptr;  // matmul_scratch_bytes(cols) of this worker's own, 64-byte aligned
};

// Keys and values of one KV head of one layer live in each page: keys transposed
// [head_dim, kPageTokens], values [kPageTokens, head_dim], elements of two bytes.
struct KvView {
  uint8_t* pool = nullptr;  // first byte of the pool
  size_t page_bytes = 0;
  size_t key_offset = 0;  // of this layer and head within a page
  size_t value_offset = 0;
};

// One tile of attention: up to kMaxAttendRows query rows that share a KV head and a page table: the
// heads of a GQA group, neighbouring tokens of a chunk, sequences with the same prefix. Row i
// attends to positions [begin[i], end[i]). Positions are taken in absolute splits of kAttendSplit,
// each with a softmax of its own; splits are folded together in order (FlashAttention-2,
// Flash-Decoding).
constexpr int kMaxAttendRows = 48;
constexpr int kAttendSplit = 256;
constexpr int kMaxHeadDim = 512;
struct AttendArgs {
  KvView kv;
  const int32_t* page_table = nullptr;
  int32_t head_dim = 0;  // multiple of 16, at most kMaxHeadDim
  int32_t rows = 0;
  const float* q[kMaxAttendRows] = {};  // each [head_dim]
  float* out[kMaxAttendRows] = {};      // each [head_dim], of attend_split [split_floats(head_dim)]
  int32_t begin[kMaxAttendRows] = {};
  int32_t end[kMaxAttendRows] = {};
  float scale = 1;  // applied to q·k
  float cap = 0;    // scores become cap * tanh(score / cap); 0: they stay
  // [rows]: a score that takes its part of the row's softmax and brings no value; null: none.
  const float* sinks = nullptr;  // attend_split leaves them to combine_splits
};
// What attend_split leaves of a row: sums of weighted values [head_dim], their greatest score, the
// sum of their weights (0: the row sees nothing of the split), and padding.
constexpr int32_t split_floats(int32_t head_dim) {
  return head_dim + 16;
}

struct KvKernels {
  // Writes one token's key and value of one head, f32 [head_dim] each, at `position`.
  void (*store)(const KvView& kv, const int32_t* page_table, int32_t position, int32_t head_dim,
                const float* key, const float* value);
  void (*attend)(const AttendArgs& args);
  // The same for the positions of one split. With combine_splits it gives what attend gives, bit
  // for bit.
  void (*attend_split)(const AttendArgs& args, int32_t split);
};

constexpr float kGluLimit = 7;  // of clamped_glu
constexpr float kGluSlope = 1.702f;

// How matmul reads packed panels for a few rows: one after the other, or several side by side.
// Which is faster depends on a CPU's prefetchers, not on its instructions; the results are the same
// bits.
enum class Streams : uint8_t { kOne, kSeveral };

struct KernelTable {
  const char* name;
  int32_t panel_rows;   // 0: matrices stay in the file's own layout
  int32_t stream_rows;  // rows up to which matmul takes codes as they come from memory
  void (*matmul)(const MatmulArgs& args);
  // y = x / rms(x) * weight, over n elements. y may be x.
  void (*rmsnorm)(const float* x, const float* weight, float eps, int32_t n, float* y);
  // y = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias, over n elements. y may be x.
  void (*layernorm)(const float* x, const float* weight, const float* bias, float eps, int32_t n,
                    float* y);
  // y = GELU(x + bias), in its exact form: v times the normal distribution's share below v
  // (arXiv 1606.08415). y may be x.
  void (*gelu_bias)(const float* x, const float* bias, int32_t n, float* y);
  // One of `e` exact rows to int8 blocks: the pointers are those of the row's first block in the
  // arrays of Activations. n % 32 == 0.
  void (*quantize)(const float* x, int32_t n, int32_t e, int8_t* q, ActivationBlock* blocks);
  // One prompt row: q [n] codes + 128, scale a group of 128 (the last may be shorter). Null where
  // all rows are exact.
  void (*quantize_group)(const float* x, int32_t n, uint8_t* q, float* scale);
  // Rotates pairs (2i, 2i+1) or (i, i + n/2) of x [n] by angles with cos/sin [n/2].
  void (*rope_interleaved)(float* x, const float* cos, const float* sin, int32_t n);
  void (*rope_halves)(float* x, const float* cos, const float* sin, int32_t n);
  void (*silu_mul)(const float* gate, const float* up, int32_t n, float* y);
  void (*gelu_mul)(const float* gate, const float* up, int32_t n, float* y);  // tanh form
  // g * sigmoid(1.702 g) * (u + 1), of g = min(gate, kGluLimit) and u = up within +-kGluLimit.
  void (*clamped_glu)(const float* gate, const float* up, int32_t n, float* y);
  void (*add)(const float* x, int32_t n, float* y);  // y += x
  void (*soft_cap)(float* x, float cap, int32_t n);  // x = cap * tanh(x / cap)
  int32_t (*argmax)(const float* x, int32_t n);      // lowest index of the largest; NaN never wins
  float (*max)(const float* x, int32_t n);
  // y = exp((x - shift) * inv_temperature); returns the sum (in double: n is a vocabulary).
  double (*exp_sum)(const float* x, float shift, float inv_temperature, int32_t n, float* y);
  // Rows of attend_split of splits 0, 1, …, `stride` floats apart, to one result [head_dim]. sink:
  // the row's, or null.
  void (*combine_splits)(const float* parts, int64_t stride, int32_t splits, int32_t head_dim,
                         const float* sink, float* out);
  KvKernels kv_f16;
  KvKernels kv_bf16;
};

inline int32_t panel_count(const KernelTable& table, int32_t rows) {
  const int32_t width = table.panel_rows == 0 ? 1 : table.panel_rows;
  return (rows + width - 1) / width;
}

// Panels that a prompt's matmul takes together, so that it reads activations once for all of them.
constexpr int32_t kPanelsPerTask = 4;

constexpr size_t matmul_scratch_bytes(int32_t cols) {
  // Panels of 16 rows. Exact rows: kExactPanels by kExactColumns, a byte a code and up to four
  // vectors of factors a block, and the sums. Prompt rows: kPanelsPerTask by kGroupBlockColumns, a
  // byte a code and two vectors a group. The reference needs one f32 row.
  const size_t exact =
      kExactPanels * 64 * (kExactColumns / 4 + kExactColumns / 32 * 4 + kExactRows);
  const size_t groups = kGroupBlockColumns / kGroupColumns;
  const size_t prompt = kPanelsPerTask * (16 * kGroupBlockColumns + groups * 2 * 64);
  const size_t row = static_cast<size_t>(cols) * sizeof(float);
  return std::max({exact, prompt, row});
}

const KernelTable& reference_kernels();
// Null when this program was built without them (not x86-64).
const KernelTable* avx2_kernels(Streams streams);
const KernelTable* avxvnni_kernels(Streams streams);
const KernelTable* avx512_kernels(Streams streams);

}  // namespace wok
