// What endpoints that use the model do alike.
#pragma once

#include <string>
#include <variant>

#include <nlohmann/json.hpp>

#include "api/api_context.h"
#include "api/generation.h"

namespace wok {

// What a request wants of the served model.
enum class Task { kGenerate, kEmbed, kRank };

// The served model, or null after having answered why there is none (loading, or draining, or one
// that does something else).
ServedModel* model_or_reply(ApiContext& context, ResponseWriter& writer,
                            Task task = Task::kGenerate);

// The body as an object, or nothing after having answered what is wrong with it.
std::optional<nlohmann::json> body_or_reply(const ApiRequest& request, ResponseWriter& writer);

// A fresh id and what else every chunk of a reply repeats.
ReplyHead make_head(const ApiContext& context, const ServedModel& served, bool usage_in_chunks);

// 200 with this object.
void reply_json(ResponseWriter& writer, const nlohmann::json& body);

}  // namespace wok
