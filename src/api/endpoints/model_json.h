// A served model as /v1/models shows it.
#pragma once

#include <nlohmann/json.hpp>

#include "api/served_model.h"

namespace wok {

inline nlohmann::json model_json(const ServedModel& served) {
  return {{"id", served.id},
          {"object", "model"},
          {"created", served.created_unix_s},
          {"owned_by", "wok"},
          {"max_model_len", served.context_tokens()},
          {"meta",
           {{"architecture", served.info.architecture},
            {"name", served.info.name},
            {"n_params", served.info.parameters},
            {"n_ctx_train", served.info.context_tokens},
            {"n_vocab", served.tokenizer->vocab_size()},
            {"size", served.info.file_bytes}}}};
}

}  // namespace wok
