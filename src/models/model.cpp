#include "models/model.h"

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

Status Model::pack(const ModelOptions& options, const std::vector<MatrixPlace>& places) {
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
        total + packed_matrix_bytes(*t.format, *kernels_, rows, static_cast<int32_t>(t.shape[0])));
    const int32_t panels = panel_count(*kernels_, rows);
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
        const int64_t begin = place.first_row + int64_t{piece.panel_begin} * kernels_->panel_rows;
        const int64_t end =
            place.first_row + std::min(rows, piece.panel_end * kernels_->panel_rows);
        std::vector<uint8_t> buffer;
        pack_panels(*t.format, *kernels_, rows, static_cast<int32_t>(t.shape[0]),
                    t.read_rows(begin, end - begin, buffer), piece.panel_begin, piece.panel_end,
                    memory + offsets[piece.place]);
        if (t.source != nullptr) return;
        const auto row_bytes = static_cast<size_t>(t.format->row_bytes(t.shape[0]));
        file_->release_pages(t.data.subspan(static_cast<size_t>(begin) * row_bytes,
                                            static_cast<size_t>(end - begin) * row_bytes));
      });
    };
    const PackId id = {packed_model_id(*file_, places), kernels_->name, kernels_->panel_rows,
                       kLayoutVersion, total};
    WOK_TRY(memory, PackMemory::open(options.pack_dir, id, options.pack_mode, *options.pool, fill));
    packed_ = std::move(memory);
    log::debug("weights: {} MiB, {}", total >> 20, packed_.from_file() ? "mapped" : "packed");
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const MatrixPlace& place = places[i];
    const ModelTensor& t = *place.tensor;
    const uint8_t* rows = nullptr;  // packed matrices do not read them
    if (total == 0) {
      if (t.source != nullptr) made_.emplace_back();
      std::vector<uint8_t> none;
      rows = t.read_rows(place.first_row, place.rows, t.source != nullptr ? made_.back() : none);
    }
    *places[i].matrix = make_matrix(*t.format, *kernels_, static_cast<int32_t>(place.rows),
                                    static_cast<int32_t>(t.shape[0]), rows,
                                    total > 0 ? packed_.data() + offsets[i] : nullptr);
    if (t.source != nullptr && !t.source->column_order().empty()) {
      places[i].matrix->column_order = t.source->column_order().data();
      weights_.ordered = true;
    }
  }
  return Ok{};
}

Result<std::unique_ptr<Model>> Model::load(std::shared_ptr<const ModelFile> file,
                                           const KernelTable& kernels,
                                           const ModelOptions& options) {
  WOK_CHECK(options.pool != nullptr, "loading packs on a pool");
  auto model = std::unique_ptr<Model>(new Model());
  model->file_ = std::move(file);
  model->kernels_ = &kernels;
  WOK_TRY(config, read_decoder_config(*model->file_));
  model->config_ = std::move(config);
  model->config_.served_tokens = options.context_tokens;
  WOK_TRY(places, collect_weights(*model->file_, model->config_, model->weights_));
  WOK_RETURN_IF_ERROR(model->pack(options, places));
  if (model->packed_.bytes() > 0) model->file_->release_pages();
  return model;
}

}  // namespace wok
