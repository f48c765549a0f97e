#include "models/pack_weights.h"

#include <algorithm>

#include "base/log.h"
#include "models/pack_id.h"
#include "quant/pack_matrix.h"

namespace wok {
namespace {

constexpr int kLayoutVersion = 2;  // raise when pack.h's layout changes
constexpr size_t kMatrixAlignment = 64;

size_t aligned(size_t n) {
  return (n + kMatrixAlignment - 1) / kMatrixAlignment * kMatrixAlignment;
}

}  // namespace

Result<PackedWeights> pack_weights(const ModelFile& file, const KernelTable& kernels,
                                   const ModelOptions& options,
                                   const std::vector<MatrixPlace>& places) {
  PackedWeights packed;
  struct Piece {
    size_t place;
    int32_t panel_begin, panel_end;
  };
  constexpr int32_t kPanelsPerPiece = 64;
  std::vector<size_t> offsets;
  std::vector<Piece> pieces;
  size_t total = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const ModelTensor& t = *places[i].tensor;
    const auto rows = static_cast<int32_t>(places[i].rows);
    offsets.push_back(total);
    total = aligned(
        total + packed_matrix_bytes(*t.format, kernels, rows, static_cast<int32_t>(t.shape[0])));
    const int32_t panels = panel_count(kernels, rows);
    for (int32_t p = 0; p < panels; p += kPanelsPerPiece) {
      pieces.push_back({i, p, std::min(p + kPanelsPerPiece, panels)});
    }
  }
  if (total > 0) {
    auto fill = [&](uint8_t* memory) {
      options.pool->run(static_cast<int32_t>(pieces.size()), [&](int32_t i, int32_t) {
        const Piece& piece = pieces[i];
        const MatrixPlace& place = places[piece.place];
        const ModelTensor& t = *place.tensor;
        const auto rows = static_cast<int32_t>(place.rows);
        const int64_t begin = place.first_row + int64_t{piece.panel_begin} * kernels.panel_rows;
        const int64_t end = place.first_row + std::min(rows, piece.panel_end * kernels.panel_rows);
        std::vector<uint8_t> buffer;
        pack_panels(*t.format, kernels, rows, static_cast<int32_t>(t.shape[0]),
                    t.read_rows(begin, end - begin, buffer), piece.panel_begin, piece.panel_end,
                    memory + offsets[piece.place]);
        if (t.source != nullptr) return;
        const auto row_bytes = static_cast<size_t>(t.format->row_bytes(t.shape[0]));
        file.release_pages(t.data.subspan(static_cast<size_t>(begin) * row_bytes,
                                          static_cast<size_t>(end - begin) * row_bytes));
      });
    };
    const PackId id = {packed_model_id(file, places), kernels.name, kernels.panel_rows,
                       kLayoutVersion, total};
    WOK_TRY(memory, PackMemory::open(options.pack_dir, id, options.pack_mode, *options.pool, fill));
    packed.memory = std::move(memory);
    log::debug("weights: {} MiB, {}", total >> 20, packed.memory.from_file() ? "mapped" : "packed");
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const MatrixPlace& place = places[i];
    const ModelTensor& t = *place.tensor;
    const uint8_t* rows = nullptr;  // packed matrices do not read them
    if (total == 0) {
      if (t.source != nullptr) packed.made.emplace_back();
      std::vector<uint8_t> none;
      rows =
          t.read_rows(place.first_row, place.rows, t.source != nullptr ? packed.made.back() : none);
    }
    *place.matrix = make_matrix(*t.format, kernels, static_cast<int32_t>(place.rows),
                                static_cast<int32_t>(t.shape[0]), rows,
                                total > 0 ? packed.memory.data() + offsets[i] : nullptr);
    if (t.source != nullptr && !t.source->column_order().empty()) {
      place.matrix->column_order = t.source->column_order().data();
      packed.ordered = true;
    }
  }
  return packed;
}

}  // namespace wok
