// Every endpoint there is: the name of its file, and of the function in it that describes it.
#pragma once

#include "api/endpoint.h"

#define WOK_ENDPOINTS(X) \
  X(chat_completions)    \
  X(completions)         \
  X(embeddings)          \
  X(rerank)              \
  X(rerank_plain)        \
  X(models)              \
  X(model)               \
  X(tokenize)            \
  X(detokenize)          \
  X(apply_template)      \
  X(health)              \
  X(ready)               \
  X(metrics)             \
  X(version)

namespace wok {

#define WOK_DECLARE_ENDPOINT(name) Endpoint name##_endpoint();
WOK_ENDPOINTS(WOK_DECLARE_ENDPOINT)
#undef WOK_DECLARE_ENDPOINT

}  // namespace wok
