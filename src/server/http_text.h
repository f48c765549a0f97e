// HTTP/1.1 as text: what the sessions read out of request targets and write in front of bodies.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http.h"

namespace wok {

// "/v1/models/a%2Fb?x=1" or "http://host/v1/…" → "/v1/models/a/b"; nothing for a malformed one.
std::optional<std::string> target_path(std::string_view target);

const char* status_text(int status);

// Status line and headers of a whole reply, its body behind them unless `head`.
std::string reply_text(const ApiReply& reply, bool keep_alive, bool head);
// Of a stream; `chunked` needs HTTP/1.1, otherwise the end of the connection ends the stream.
std::string stream_head_text(std::string_view content_type, bool keep_alive, bool chunked);
// Appends one piece of a chunked body.
void append_chunk_text(std::string_view bytes, std::string& out);

constexpr std::string_view kLastChunk = "0\r\n\r\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace wok
