#include "models/model.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/log.h"
#include "quant/pack_matrix.h"

namespace wok {
namespace {

constexpr int kLayoutVersion = 2;  // raise when pack.h's layout changes
constexpr size_t kMatrixAlignment = 64;

size_t aligned(size_t n) {
  return (n + kMatrixAlignment - 1) / kMatrixAlignment * kMatrixAlignment;
}

// FNV-1a over what identifies a file's weights: shapes, types, and samples of every tensor's data
// (start, middle, end), so that a path reused for another model never finds the old pack.
class Fingerprint {
 public:
  void add(const void* data, size_t size) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    for (size_t i = 0; i < size; ++i) {
      low_ = (low_ ^ bytes[i]) * 0x100000001b3u;
      high_ = (high_ ^ bytes[i] ^ (low_ >> 56)) * 0x9e3779b97f4a7c15u;
    }
  }
  void add(const GgufTensor& tensor) {
    add(tensor.name.data(), tensor.name.size());
    add(tensor.shape, sizeof(tensor.shape));
    add(&tensor.type, sizeof(tensor.type));
    const size_t sample = std::min<size_t>(tensor.data.size(), 64);
    for (const size_t at :
         {size_t{0}, (tensor.data.size() - sample) / 2, tensor.data.size() - sample}) {
      add(tensor.data.data() + at, sample);
    }
  }
  std::string hex() const { return fmt::format("{:016x}{:016x}", high_, low_); }

 private:
  uint64_t low_ = 0xcbf29ce484222325u, high_ = 0x6c62272e07bb0142u;
};

std::string pack_key(const GgufFile& file, const KernelTable& kernels,
                     const std::vector<MatrixPlace>& places) {
  Fingerprint print;
  const uint64_t size = file.file_bytes();
  print.add(&size, sizeof(size));
  struct stat info {};
  if (::stat(file.path().c_str(), &info) == 0) print.add(&info.st_mtim, sizeof(info.st_mtim));
  for (const MatrixPlace& place : places) print.add(*place.tensor);
  // A file of the store is named by its content's hash; its packs carry that hash in front, so that
  // removing the model finds them.
  std::string name = std::filesystem::path(file.path()).filename().string();
  name = name.starts_with("sha256-") ? name.substr(7) + "-" : "";
  return fmt::format("{}{}-{}{}-v{}", name, print.hex(), kernels.name, kernels.panel_rows,
                     kLayoutVersion);
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
    const GgufTensor& t = *places[i].tensor;
    const auto rows = static_cast<int32_t>(t.rows());
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
        const MatrixPlace& place = places[pieces[i].place];
        pack_panels(*place.tensor->format, *kernels_, static_cast<int32_t>(place.tensor->rows()),
                    static_cast<int32_t>(place.tensor->shape[0]), place.tensor->data.data(),
                    pieces[i].panel_begin, pieces[i].panel_end, memory + offsets[pieces[i].place]);
      });
    };
    WOK_TRY(memory,
            PackMemory::open(options.pack_dir, pack_key(*file_, *kernels_, places), total, fill));
    packed_ = std::move(memory);
    log::debug("weights: {} MiB, {}", total >> 20, packed_.from_file() ? "mapped" : "packed");
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const GgufTensor& t = *places[i].tensor;
    *places[i].matrix = make_matrix(*t.format, *kernels_, static_cast<int32_t>(t.rows()),
                                    static_cast<int32_t>(t.shape[0]), t.data.data(),
                                    total > 0 ? packed_.data() + offsets[i] : nullptr);
  }
  return Ok{};
}

Result<std::unique_ptr<Model>> Model::load(std::shared_ptr<const GgufFile> file,
                                           const KernelTable& kernels,
                                           const ModelOptions& options) {
  WOK_CHECK(options.pool != nullptr, "loading packs on a pool");
  auto model = std::unique_ptr<Model>(new Model());
  model->file_ = std::move(file);
  model->kernels_ = &kernels;
  WOK_TRY(config, read_decoder_config(*model->file_));
  model->config_ = std::move(config);
  WOK_TRY(places, collect_weights(*model->file_, model->config_, model->weights_));
  WOK_RETURN_IF_ERROR(model->pack(options, places));
  return model;
}

}  // namespace wok
