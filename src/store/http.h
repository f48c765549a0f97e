// HTTP and HTTPS GET for downloads: libcurl behind one small class. Proxies come from the
// environment as curl reads them (http_proxy, https_proxy, all_proxy, no_proxy).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace wok::store {

struct HttpOptions {
  std::string ca_file;    // PEM certificates instead of the system's; "" = the system's
  std::string ca_folder;  // the same as a hashed folder
  int connect_timeout_s = 20;
  int stall_timeout_s = 30;       // no byte for so long: the transfer is given up
  std::function<bool()> stopped;  // true ends a transfer within about a second
};

struct HttpRequest {
  std::string url;  // http:// or https://
  // "Name: value". Those that carry credentials are not sent on when a redirect leads to another
  // host or port.
  std::vector<std::string> headers;
  std::string range;  // "0-99", "100-"; "" for the whole
};

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  int64_t retry_after_s = 0;                   // 0: the server did not say

  // "" when there is none.
  std::string header(const std::string& lower_case_name) const;
};

// Keeps its connections open from one request to the next; used by one thread at a time.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) = delete;
  ~HttpClient();

  // Called once, before the body; an error ends the transfer and comes back from get().
  using OnReply = std::function<Status(const HttpReply&)>;
  using OnBody = std::function<Status(std::span<const uint8_t>)>;

  // Follows redirects, but not from https to http. Any status is ok here, its meaning is the
  // caller's business. Errors: kBusy when the transfer broke and another try may help; kIo when it
  // would not; kCancelled; what the callbacks returned.
  Result<HttpReply> get(const HttpRequest& request, const OnReply& on_reply, const OnBody& on_body);

 private:
  HttpOptions options_;
  void* curl_;
};

// A path's characters as they stand in a URL, '/' kept; or of one component, '/' escaped.
std::string url_path(const std::string& path);
std::string url_component(const std::string& text);

}  // namespace wok::store
