#include "store/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "store/files.h"

extern char** environ;

namespace wok::store {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kKeptLines = 12;
constexpr size_t kMaxLine = 500;
constexpr auto kGrace = std::chrono::milliseconds(2000);

// Splits a stream into lines and keeps the last few; '\r' ends a line too (pip redraws).
class Tail {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n' || c == '\r') {
        end_line();
      } else if (line_.size() < kMaxLine) {
        line_ += c;
      }
    }
  }
  std::vector<std::string> take() {
    end_line();
    return {lines_.begin(), lines_.end()};
  }

 private:
  void end_line() {
    if (line_.find_first_not_of(" \t") != std::string::npos) lines_.push_back(line_);
    if (lines_.size() > kKeptLines) lines_.pop_front();
    line_.clear();
  }
  std::string line_;
  std::deque<std::string> lines_;
};

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment(
    const std::vector<std::pair<std::string, std::string>>& extra) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view view(*entry);
    bool replaced = false;
    for (const auto& [key, value] : extra) replaced |= view.starts_with(key + "=");
    if (!replaced) out.emplace_back(view);
  }
  for (const auto& [key, value] : extra) out.push_back(key + "=" + value);
  return out;
}

// fork and exec rather than posix_spawn, which cannot ask for PR_SET_PDEATHSIG: without it a
// `kill -9` of wok leaves pip downloading into a folder that the next pull is about to clean.
// Only async-signal-safe calls between the two.
pid_t start(const std::vector<char*>& argv, const std::vector<char*>& env, int output, int input) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before prctl took hold
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execve(argv[0], argv.data(), env.data());
  ::_exit(127);
}

void end_group(pid_t pid) {
  ::kill(-pid, SIGTERM);
  const auto deadline = Clock::now() + kGrace;
  while (Clock::now() < deadline) {
    if (::waitpid(pid, nullptr, WNOHANG) != 0) {
      ::kill(-pid, SIGKILL);  // what it may have started itself
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

}  // namespace

Result<ChildResult> run_child(const ChildOptions& options) {
  WOK_CHECK(!options.argv.empty() && options.argv[0].starts_with('/'), "argv[0] is a full path");
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> env = environment(options.extra_environment);
  const std::vector<char*> argv_pointers = pointers(argv);
  const std::vector<char*> env_pointers = pointers(env);

  std::array<int, 2> pipe_fds{};
  if (::pipe2(pipe_fds.data(), O_CLOEXEC) != 0) return system_error("open", "a pipe", errno);
  const int null_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t pid = start(argv_pointers, env_pointers, pipe_fds[1], null_fd);
  const int fork_error = errno;
  ::close(pipe_fds[1]);
  if (null_fd >= 0) ::close(null_fd);
  if (pid < 0) {
    ::close(pipe_fds[0]);
    return system_error("start", options.argv[0], fork_error);
  }

  const auto began = Clock::now();
  Tail tail;
  std::array<char, 4096> buffer{};
  int wait_status = 0;
  bool exited = false;
  bool open = true;
  const auto stop_with = [&](Error error) {
    end_group(pid);
    ::close(pipe_fds[0]);
    return error;
  };
  // Until the child has ended and its output is read; a grandchild that keeps the pipe open is not
  // waited for.
  while (!exited) {
    pollfd poll_fd{pipe_fds[0], POLLIN, 0};
    if (open) {
      ::poll(&poll_fd, 1, options.poll_interval_ms);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    exited = ::waitpid(pid, &wait_status, WNOHANG) == pid;
    while (open && ::poll(&poll_fd, 1, 0) > 0) {
      const ssize_t n = ::read(pipe_fds[0], buffer.data(), buffer.size());
      if (n <= 0) open = n < 0 && errno == EINTR;
      if (n > 0) tail.add({buffer.data(), static_cast<size_t>(n)});
    }
    if (options.on_poll) options.on_poll();
    if (exited) break;
    if (options.cancelled != nullptr && options.cancelled->load()) {
      return stop_with({ErrorKind::kCancelled, "cancelled"});
    }
    if (options.timeout_ms > 0 &&
        Clock::now() - began > std::chrono::milliseconds(options.timeout_ms)) {
      return stop_with(io_error(
          fmt::format("{} did not end within {} ms", options.argv[0], options.timeout_ms)));
    }
  }
  ::close(pipe_fds[0]);
  ChildResult result;
  result.exit_code =
      WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  result.last_lines = tail.take();
  return result;
}

std::string find_program(const std::string& name, const std::string& path) {
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find(':', begin), path.size());
    std::string candidate = path.substr(begin, end - begin) + "/" + name;
    struct stat info {};
    if (candidate.starts_with('/') && ::access(candidate.c_str(), X_OK) == 0 &&
        ::stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      return candidate;
    }
    begin = end + 1;
  }
  return "";
}

}  // namespace wok::store
