#include "models/model.h"

namespace wok {

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
  WOK_TRY(packed, pack_weights(*model->file_, kernels, options, places));
  model->packed_ = std::move(packed);
  model->weights_.ordered = model->packed_.ordered;
  if (model->packed().bytes() > 0) model->file_->release_pages();
  return model;
}

}  // namespace wok
