#include "server/http_text.h"

#include <charconv>

namespace wok {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string head(int status, std::string_view content_type, bool keep_alive) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " " + status_text(status) + "\r\n";
  if (!content_type.empty()) {
    out += "Content-Type: ";
    out += content_type;
    out += "\r\n";
  }
  out += keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  return out;
}

}  // namespace

std::optional<std::string> target_path(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const size_t slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  target = target.substr(0, target.find_first_of("?#"));
  if (target == "*") return "*";  // OPTIONS *
  if (!target.starts_with('/')) return std::nullopt;
  std::string path;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] != '%') {
      path += target[i];
      continue;
    }
    if (i + 2 >= target.size()) return std::nullopt;
    const int high = hex_digit(target[i + 1]);
    const int low = hex_digit(target[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    path += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return path;
}

const char* status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
}

std::string reply_text(const ApiReply& reply, bool keep_alive, bool head_only) {
  std::string out = head(reply.status, reply.status == 204 ? "" : reply.content_type, keep_alive);
  for (const auto& [name, value] : reply.headers) out += name + ": " + value + "\r\n";
  if (reply.status != 204) {
    out += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  }
  out += "\r\n";
  if (!head_only) out += reply.body;
  return out;
}

std::string stream_head_text(std::string_view content_type, bool keep_alive, bool chunked) {
  std::string out = head(200, content_type, keep_alive);
  // A proxy that buffers would undo the stream.
  out += "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
  if (chunked) out += "Transfer-Encoding: chunked\r\n";
  out += "\r\n";
  return out;
}

void append_chunk_text(std::string_view bytes, std::string& out) {
  if (bytes.empty()) return;  // an empty chunk would end the body
  char size[20];
  const auto end = std::to_chars(size, size + sizeof size, bytes.size(), 16).ptr;
  out.append(size, end);
  out += "\r\n";
  out += bytes;
  out += "\r\n";
}

}  // namespace wok
