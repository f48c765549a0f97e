// An HTTP server on loopback for tests of clients: a function answers every request, and an answer
// can be cut off in the middle. One request a connection, one thread a connection.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace wok::test {

struct StubRequest {
  std::string path;                            // with its query
  std::map<std::string, std::string> headers;  // names in lower case

  std::string header(const std::string& name) const {
    const auto it = headers.find(name);
    return it != headers.end() ? it->second : "";
  }
};

struct StubReply {
  int status = 200;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  size_t cut_after = std::string::npos;  // so many bytes of the body, then the connection ends
};

class HttpStub {
 public:
  using Handler = std::function<StubReply(const StubRequest&)>;

  explicit HttpStub(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener_, 64);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~HttpStub() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    for (std::thread& thread : threads_) thread.join();
  }
  HttpStub(const HttpStub&) = delete;
  HttpStub& operator=(const HttpStub&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Those that came so far.
  std::vector<StubRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  void forget_requests() {
    const std::lock_guard lock(mutex_);
    requests_.clear();
  }

 private:
  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      threads_.emplace_back([this, fd] {
        serve(fd);
        ::shutdown(fd, SHUT_RDWR);
        ::close(fd);
      });
    }
  }

  void serve(int fd) {
    std::string head;
    char byte = 0;
    while (!head.ends_with("\r\n\r\n")) {
      if (::recv(fd, &byte, 1, 0) != 1) return;
      head += byte;
    }
    StubRequest request;
    size_t end = head.find("\r\n");
    const std::string line = head.substr(0, end);
    request.path = line.substr(4, line.rfind(' ') - 4);  // behind "GET "
    while (end + 2 < head.size()) {
      const size_t begin = end + 2;
      end = head.find("\r\n", begin);
      const std::string field = head.substr(begin, end - begin);
      const size_t colon = field.find(": ");
      if (colon == std::string::npos) continue;
      std::string name = field.substr(0, colon);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      request.headers[name] = field.substr(colon + 2);
    }
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const StubReply reply = handler_(request);
    std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " X\r\nConnection: close\r\n" +
                       "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
    for (const auto& [name, value] : reply.headers) text += name + ": " + value + "\r\n";
    text += "\r\n" + reply.body.substr(0, std::min(reply.cut_after, reply.body.size()));
    for (size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
    }
  }

  Handler handler_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> threads_;  // the acceptor's, until it has ended
  mutable std::mutex mutex_;
  std::vector<StubRequest> requests_;
};

// A file's answer to a request with or without "Range: bytes=A-B".
inline StubReply file_reply(const StubRequest& request, const std::string& bytes) {
  const std::string range = request.header("range");
  if (!range.starts_with("bytes=")) return {.status = 200, .body = bytes, .headers = {}};
  const size_t dash = range.find('-');
  const size_t begin = std::strtoull(range.c_str() + 6, nullptr, 10);
  const size_t last = std::strtoull(range.c_str() + dash + 1, nullptr, 10);
  if (begin >= bytes.size() || last < begin) return {.status = 416, .body = "", .headers = {}};
  const std::string part = bytes.substr(begin, last - begin + 1);
  return {.status = 206,
          .body = part,
          .headers = {{"Content-Range", "bytes " + std::to_string(begin) + "-" +
                                            std::to_string(begin + part.size() - 1) + "/" +
                                            std::to_string(bytes.size())}}};
}

}  // namespace wok::test
