// A TCP client for tests that sends what it is told, byte for byte, and understands just enough
// HTTP to know where a reply ends. Every wait is bounded.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

namespace wok::test {

class RawClient {
 public:
  // receive_buffer: of the kernel, in bytes, for readers that are meant to be slow; 0: as it is.
  explicit RawClient(uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(sent);
    }
    return true;
  }
  bool post(std::string_view path, std::string_view body, std::string_view headers = "") {
    std::string text = "POST " + std::string(path) +
                       " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
                       "\r\n" + std::string(headers) + "\r\n";
    return send(text + std::string(body));
  }
  bool get(std::string_view path, std::string_view headers = "") {
    return send("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(headers) +
                "\r\n");
  }

  // Until `end` has come; it is part of the result. Less when the server closes, or after a minute.
  std::string read_until(std::string_view end) {
    size_t found = 0;
    while ((found = buffer_.find(end)) == std::string::npos && receive()) {
    }
    return take(found == std::string::npos ? buffer_.size() : found + end.size());
  }
  // One whole reply: by Content-Length, chunks, or (for a HEAD) no body at all.
  std::string read_reply(bool head = false) {
    std::string reply = read_until("\r\n\r\n");
    if (head) return reply;
    const size_t length = reply.find("Content-Length: ");
    if (length != std::string::npos) {
      const size_t want = std::strtoul(reply.c_str() + length + 16, nullptr, 10);
      while (buffer_.size() < want && receive()) {
      }
      return reply + take(std::min(want, buffer_.size()));
    }
    if (reply.find("chunked") != std::string::npos) return reply + read_until("0\r\n\r\n");
    return reply;
  }
  // True: the server has closed, and nothing more has come.
  bool at_end() {
    while (receive()) {
    }
    return closed_;
  }
  std::string rest() {
    at_end();
    return take(buffer_.size());
  }

 private:
  bool receive() {
    pollfd event{fd_, POLLIN, 0};
    if (::poll(&event, 1, 60'000) <= 0) return false;
    char bytes[4096];
    const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) closed_ = true;
    if (got > 0) buffer_.append(bytes, got);
    return got > 0;
  }
  std::string take(size_t count) {
    std::string taken = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return taken;
  }

  int fd_ = -1;
  bool connected_ = false, closed_ = false;
  std::string buffer_;
};

}  // namespace wok::test
