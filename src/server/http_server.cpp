#include "server/http_server.h"

#include <thread>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/log.h"
#include "base/short_slices.h"
#include "server/session.h"

namespace wok {

using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kLastWords = std::chrono::seconds(2);  // for replies of cancelled requests
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

// Sessions hold it, so that the io_context outlives every socket, whichever thread drops the last
// writer. Acceptor and drain timers live on `strand_`.
class HttpServer::Impl : public SessionHost, public std::enable_shared_from_this<Impl> {
 public:
  Impl(ServerOptions options, ApiContext& context)
      : options_(std::move(options)),
        context_(context),
        io_(options_.io_threads),
        strand_(asio::make_strand(io_)),
        acceptor_(strand_),
        pause_(strand_),
        grace_(strand_) {}

  Status listen();
  uint16_t port() const { return port_; }
  void run();
  void drain(std::chrono::milliseconds grace);
  void stop();

  const ServerOptions& options() const override { return options_; }
  ApiContext& context() override { return context_; }
  void ended(Session* session) override;

 private:
  void accept();
  void accepted(error_code error, Session::Socket socket);
  std::vector<std::shared_ptr<Session>> sessions();
  void close_acceptor();
  void grace_over();

  const ServerOptions options_;
  ApiContext& context_;
  asio::io_context io_;
  Session::Strand strand_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_, grace_;
  uint16_t port_ = 0;

  std::mutex mutex_;
  std::unordered_map<Session*, std::weak_ptr<Session>> sessions_;
  bool ending_ = false;
};

Status HttpServer::Impl::listen() {
  error_code error;
  const std::string host = options_.host == "localhost" ? "127.0.0.1" : options_.host;
  const auto address = asio::ip::make_address(host, error);
  if (error) {
    return invalid(
        fmt::format("--host must be an IP address of this machine (127.0.0.1, 0.0.0.0 "
                    "for all, ::), found \"{}\"",
                    options_.host));
  }
  const tcp::endpoint endpoint(address, options_.port);
  const std::string where = fmt::format("{}:{}", host, options_.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use) {
    return Error{ErrorKind::kBusy,
                 fmt::format("{} is in use by another program; stop that one, or choose another "
                             "port with --port (0 takes a free one)",
                             where)};
  }
  if (error == asio::error::access_denied) {
    return io_error(
        fmt::format("no permission to listen on {}; choose a --port above 1023", where));
  }
  if (error) return io_error(fmt::format("cannot listen on {}: {}", where, error.message()));
  port_ = acceptor_.local_endpoint().port();
  asio::post(strand_, [this] { accept(); });
  return Ok{};
}

void HttpServer::Impl::run() {
  ask_for_short_slices();
  std::vector<std::thread> threads;
  for (int i = 1; i < options_.io_threads; ++i) threads.emplace_back([this] { io_.run(); });
  io_.run();
  for (std::thread& thread : threads) thread.join();
}

void HttpServer::Impl::accept() {
  if (!acceptor_.is_open()) return;
  acceptor_.async_accept(asio::make_strand(io_), [this](error_code error, Session::Socket socket) {
    accepted(error, std::move(socket));
  });
}

void HttpServer::Impl::accepted(error_code error, Session::Socket socket) {
  if (!acceptor_.is_open()) return;
  if (error == asio::error::no_descriptors || error == asio::error::no_buffer_space) {
    // Trying again at once would spin: the waiting connection keeps the socket ready.
    log::warn("cannot accept connections: {}", error.message());
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](error_code cancelled) {
      if (!cancelled) accept();
    });
    return;
  }
  if (error) return accept();
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);  // a token must not wait for the next one
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  auto session = std::make_shared<Session>(std::move(socket), shared_from_this());
  bool full = false;
  {
    std::lock_guard lock(mutex_);
    full = sessions_.size() >= static_cast<size_t>(options_.max_connections);
    sessions_.emplace(session.get(), session);
  }
  if (full) {
    session->refuse();
  } else {
    session->start();
  }
  accept();
}

void HttpServer::Impl::ended(Session* session) {
  std::lock_guard lock(mutex_);
  sessions_.erase(session);
  if (ending_ && sessions_.empty()) asio::post(strand_, [this] { grace_.cancel(); });
}

std::vector<std::shared_ptr<Session>> HttpServer::Impl::sessions() {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Session>> all;
  for (const auto& [raw, weak] : sessions_) {
    if (auto session = weak.lock()) all.push_back(std::move(session));
  }
  return all;
}

void HttpServer::Impl::close_acceptor() {
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

void HttpServer::Impl::drain(std::chrono::milliseconds grace) {
  context_.drain();
  asio::post(strand_, [this, grace] {
    close_acceptor();
    for (const auto& session : sessions()) session->last_request();
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
      if (sessions_.empty()) return;
    }
    grace_.expires_after(grace);
    grace_.async_wait([this](error_code cancelled) {
      if (!cancelled) grace_over();
    });
  });
}

void HttpServer::Impl::grace_over() {
  for (const auto& session : sessions()) session->cancel(CancelReason::kShutdown);
  grace_.expires_after(kLastWords);
  grace_.async_wait([this](error_code cancelled) {
    if (cancelled) return;
    for (const auto& session : sessions()) session->close();
  });
}

void HttpServer::Impl::stop() {
  context_.drain();
  asio::post(strand_, [this] {
    close_acceptor();
    grace_.cancel();
    for (const auto& session : sessions()) session->close();
  });
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::create(ServerOptions options, ApiContext& context) {
  auto impl = std::make_shared<Impl>(std::move(options), context);
  WOK_RETURN_IF_ERROR(impl->listen());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const {
  return impl_->port();
}
void HttpServer::run() {
  impl_->run();
}
void HttpServer::drain(std::chrono::milliseconds grace) {
  impl_->drain(grace);
}
void HttpServer::stop() {
  impl_->stop();
}

}  // namespace wok
