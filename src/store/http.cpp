#include "store/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace wok::store {
namespace {

constexpr long kMaxRedirects = 10;
constexpr long kBufferBytes = 256 * 1024;

// libcurl's own state, made before the first thread uses it.
void init_curl() {
  static std::once_flag once;
  std::call_once(once, [] {
    WOK_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl can be set up");
  });
}

struct Transfer {
  CURL* curl = nullptr;
  const HttpOptions* options = nullptr;
  const HttpClient::OnReply* on_reply = nullptr;
  const HttpClient::OnBody* on_body = nullptr;
  HttpReply reply;
  bool replied = false;
  std::optional<Error> error;  // of a callback

  bool take(const Status& status) {
    if (!status.ok()) error = status.error();
    return status.ok();
  }
  // The last reply's headers are complete: redirects are behind us.
  bool begin_body() {
    if (std::exchange(replied, true)) return true;
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    reply.status = static_cast<int>(status);
    curl_off_t wait = 0;
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait);
    reply.retry_after_s = wait;
    return !*on_reply || take((*on_reply)(reply));
  }
};

size_t on_header(char* bytes, size_t size, size_t count, void* user) {
  auto& reply = static_cast<Transfer*>(user)->reply;
  const std::string_view line(bytes, size * count);
  if (line.starts_with("HTTP/")) reply.headers.clear();  // of a redirect, or "100 Continue"
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front())) != 0) {
    value.remove_prefix(1);
  }
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())) != 0) {
    value.remove_suffix(1);
  }
  reply.headers[name] = std::string(value);
  return line.size();
}

size_t on_bytes(char* bytes, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t total = size * count;
  if (!transfer.begin_body()) return 0;
  const std::span<const uint8_t> span(reinterpret_cast<const uint8_t*>(bytes), total);
  return transfer.take((*transfer.on_body)(span)) ? total : 0;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const HttpOptions& options = *static_cast<Transfer*>(user)->options;
  return options.stopped && options.stopped() ? 1 : 0;
}

// Whether the same request may go better in a while.
bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_WEIRD_SERVER_REPLY:
      return true;
    default:
      return false;
  }
}

// Hosts and paths may be shown, a signed URL's query may not.
std::string without_query(const std::string& url) {
  return url.substr(0, url.find_first_of("?#"));
}

std::string escaped(const std::string& text, std::string_view keep) {
  std::string out;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("-._~").find(c) != std::string_view::npos ||
                       keep.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

}  // namespace

std::string HttpReply::header(const std::string& lower_case_name) const {
  const auto it = headers.find(lower_case_name);
  return it != headers.end() ? it->second : "";
}

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) {
  init_curl();
  curl_ = curl_easy_init();
  WOK_CHECK(curl_ != nullptr, "libcurl gives a handle");
}

HttpClient::HttpClient(HttpClient&& other) noexcept
    : options_(std::move(other.options_)), curl_(std::exchange(other.curl_, nullptr)) {}

HttpClient::~HttpClient() {
  if (curl_ != nullptr) curl_easy_cleanup(curl_);
}

Result<HttpReply> HttpClient::get(const HttpRequest& request, const OnReply& on_reply,
                                  const OnBody& on_body) {
  CURL* curl = curl_;
  Transfer transfer{.curl = curl,
                    .options = &options_,
                    .on_reply = &on_reply,
                    .on_body = &on_body,
                    .reply = {},
                    .error = {}};
  curl_slist* list = nullptr;
  for (const std::string& header : request.headers) {
    list = curl_slist_append(list, header.c_str());
  }
  const std::unique_ptr<curl_slist, FreeList> owner(list);
  const bool secure = request.url.starts_with("https://");

  curl_easy_reset(curl);  // keeps the connections
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "wok");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // threads
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kBufferBytes);
  std::array<char, CURL_ERROR_SIZE> words{};
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words.data());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.connect_timeout_s));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall_timeout_s));
  if (!request.range.empty()) curl_easy_setopt(curl, CURLOPT_RANGE, request.range.c_str());
  if (!options_.ca_file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options_.ca_file.c_str());
  }
  if (!options_.ca_folder.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAPATH, options_.ca_folder.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &on_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);

  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (code == CURLE_OK) transfer.begin_body();  // of a reply without a body
  if (transfer.error) return *transfer.error;
  if (code == CURLE_OK) return transfer.reply;
  if (code == CURLE_ABORTED_BY_CALLBACK) return Error{ErrorKind::kCancelled, "cancelled"};
  return Error{may_pass(code) ? ErrorKind::kBusy : ErrorKind::kIo,
               fmt::format("cannot get {}: {}", without_query(request.url),
                           words[0] != 0 ? words.data() : curl_easy_strerror(code))};
}

std::string url_path(const std::string& path) {
  return escaped(path, "/");
}

std::string url_component(const std::string& text) {
  return escaped(text, "");
}

}  // namespace wok::store
