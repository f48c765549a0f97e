#include "models/pack_id.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "models/encoder_weights.h"

namespace wok {
namespace {

constexpr std::string_view kStorePrefix = "sha256-";
constexpr size_t kDigestDigits = 64;

// 128 bits over what identifies a file's weights.
class Fingerprint {
 public:
  void add(const void* data, size_t size) { seen_.append(static_cast<const char*>(data), size); }
  void add_shape(const ModelTensor& tensor) {
    add(tensor.name.data(), tensor.name.size());
    add(tensor.shape, sizeof(tensor.shape));
    add(&tensor.type, sizeof(tensor.type));
    add(tensor.format->name, std::strlen(tensor.format->name));
  }
  // Start, middle and end of the data.
  void add_samples(const ModelTensor& tensor) {
    const std::span<const uint8_t> data = tensor.source == nullptr ? tensor.data : tensor.identity;
    const size_t sample = std::min<size_t>(data.size(), 64);
    for (const size_t at : {size_t{0}, (data.size() - sample) / 2, data.size() - sample}) {
      add(data.data() + at, sample);
    }
  }
  std::string hex() const {
    const XXH128_hash_t hash = XXH3_128bits(seen_.data(), seen_.size());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  std::string seen_;
};

// The content's hash that the store named the file, or its folder, by; "" for one of somebody else.
std::string digest_of(const ModelFile& file) {
  const std::filesystem::path path(file.path());
  for (const std::filesystem::path& part : {path, path.parent_path()}) {
    const std::string name = part.filename().string();
    const bool stored =
        name.starts_with(kStorePrefix) && name.size() == kStorePrefix.size() + kDigestDigits &&
        name.find_first_not_of("0123456789abcdef", kStorePrefix.size()) == std::string::npos;
    if (stored) return name.substr(kStorePrefix.size());
  }
  return "";
}

}  // namespace

std::string packed_model_id(const ModelFile& file, const std::vector<MatrixPlace>& places) {
  Fingerprint print;
  const uint64_t size = file.file_bytes();
  print.add(&size, sizeof(size));
  for (const MatrixPlace& place : places) {
    print.add_shape(*place.tensor);
    if (place.rows != place.tensor->rows()) {  // a part of a fused tensor
      print.add(&place.first_row, sizeof(place.first_row));
      print.add(&place.rows, sizeof(place.rows));
    }
  }
  if (const std::string digest = digest_of(file); !digest.empty()) {
    return digest + "-" + print.hex();
  }
  // A path can be used again for another model. Whole seconds: layers of container images keep no
  // more of a time.
  for (const MatrixPlace& place : places) print.add_samples(*place.tensor);
  struct stat info {};
  if (::stat(file.path().c_str(), &info) == 0) {
    print.add(&info.st_mtim.tv_sec, sizeof(info.st_mtim.tv_sec));
  }
  return print.hex();
}

Result<std::string> packed_model_id(const ModelFile& file) {
  if (is_encoder(file)) {
    WOK_TRY(config, read_encoder_config(file));
    EncoderWeights weights;
    WOK_TRY(places, collect_encoder_weights(file, config, weights));
    return packed_model_id(file, places);
  }
  WOK_TRY(config, read_decoder_config(file));
  DecoderWeights weights;
  WOK_TRY(places, collect_weights(file, config, weights));
  return packed_model_id(file, places);
}

}  // namespace wok
