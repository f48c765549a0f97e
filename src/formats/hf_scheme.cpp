#include "formats/hf_scheme.h"

#include <fmt/format.h>

#include "formats/hf_sources.h"

namespace wok {

std::span<const HfScheme* const> hf_schemes() {
#define WOK_LIST_SCHEME(id) &kHfScheme_##id,
  static constexpr const HfScheme* kAll[] = {WOK_HF_SCHEMES(WOK_LIST_SCHEME)};
#undef WOK_LIST_SCHEME
  return kAll;
}

const HfTensor* HfModule::find(const char* part) const {
  const auto it = tensors->find(name + "." + part);
  return it == tensors->end() ? nullptr : &it->second;
}

Error HfModule::wrong(const std::string& what) const {
  return invalid(fmt::format("'{}': module '{}': {}", folder, name, what));
}

Result<HfMatrix> read_plain(const HfModule& module) {
  const HfTensor* weight = module.find("weight");
  if (weight->shape.empty() || weight->elements() < 1) return module.wrong("its weight is empty");
  HfMatrix out;
  out.cols = weight->shape.back();
  out.rows = weight->elements() / out.cols;
  out.format = hf_float_format(weight->type);
  out.data = weight->data;
  return out;
}

}  // namespace wok
