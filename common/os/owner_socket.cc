#include "common/os/owner_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include "common/lifetime.h"
#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"

namespace shoal {
namespace {

// The path of a socket has 108 bytes, and a home may lie deeper: the folder is opened, and the kernel finds the rest.
struct SocketName {
  Descriptor folder;
  sockaddr_un address{};
};

Result<SocketName> name_socket(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string folder = whole.has_parent_path() ? whole.parent_path().string() : ".";
  SHOAL_ASSIGN(Descriptor opened, open_file(folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
  SocketName name{.folder = std::move(opened)};
  const std::string text = "/proc/self/fd/" + std::to_string(name.folder.get()) + "/" + whole.filename().string();
  if (text.size() >= sizeof name.address.sun_path)
    return make_error(ErrorCode::kIo, "the name of the socket " + path + " is too long");
  name.address.sun_family = AF_UNIX;
  std::copy(text.begin(), text.end(), name.address.sun_path);
  return name;
}

const sockaddr* as_address(const SocketName& name) { return reinterpret_cast<const sockaddr*>(&name.address); }

void say_line(int socket, std::string line) {
  line += '\n';
  [[maybe_unused]] const auto sent = ::send(socket, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

struct OwnerSocket::State {
  struct Client {
    Descriptor socket;
    TimePoint until{};  // for its line
    std::string line;
    bool heard = false;
    bool over = false;  // answered, gone or silent for too long
  };

  State(EventLoop& loop, Take take) : loop(loop), take(std::move(take)) {}

  void run();
  void accept_one();
  void read_from(Client& client);
  void hear(Client& client);
  void answer(std::uint64_t number, const std::string& line);
  Client* find(std::uint64_t number);

  EventLoop& loop;
  const Take take;
  Lifetime lifetime;                               // of what is posted; loop's thread
  const Lifetime::Watch watch = lifetime.watch();  // copied by the other thread, which may not ask the Lifetime
  Descriptor listening, wake_read, wake_write;

  std::mutex mutex;  // of what follows: answers come from other threads
  bool stopping = false;
  std::uint64_t next_number = 1;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<Client>>> clients;
};

OwnerSocket::State::Client* OwnerSocket::State::find(std::uint64_t number) {
  for (const auto& [one, client] : clients)
    if (one == number) return client.get();
  return nullptr;
}

void OwnerSocket::State::accept_one() {
  const int socket = ::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  auto client = std::make_unique<Client>();
  client->socket = Descriptor(socket);
  client->until = monotonic_now() + kSilenceMax;
  if (clients.size() < kSocketClientsMax) clients.emplace_back(next_number++, std::move(client));
}

void OwnerSocket::State::read_from(Client& client) {
  char bytes[256];
  const ssize_t got = ::recv(client.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    client.over = true;
    return;
  }
  if (client.heard) return;  // one line is all that it may say
  client.line.append(bytes, static_cast<std::size_t>(got));
  const auto end = client.line.find('\n');
  client.over = end == std::string::npos && client.line.size() > kSocketLineMax;
  if (end == std::string::npos) return;
  client.line.resize(end);
  client.heard = true;
}

void OwnerSocket::State::answer(std::uint64_t number, const std::string& line) {
  const std::lock_guard lock(mutex);
  Client* const client = find(number);
  if (client == nullptr || client->over) return;
  say_line(client->socket.get(), line);
  client->over = true;
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(wake_write.get(), &byte, 1);
}

void OwnerSocket::State::run() {
  std::vector<pollfd> waits;
  std::vector<std::uint64_t> numbers;
  for (;;) {
    waits.assign({{wake_read.get(), POLLIN, 0}, {listening.get(), POLLIN, 0}});
    numbers.clear();
    bool patient = true;
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      for (const auto& [number, client] : clients) {
        waits.push_back({client->socket.get(), POLLIN, 0});
        numbers.push_back(number);
        patient = patient && client->heard;
      }
    }
    const int ready = ::poll(waits.data(), waits.size(), patient ? -1 : 500);
    if (ready < 0) continue;
    std::vector<std::pair<std::uint64_t, std::string>> heard;
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      char bytes[64];
      if (waits[0].revents != 0) [[maybe_unused]]
        const auto read = ::read(wake_read.get(), bytes, sizeof bytes);
      const TimePoint now = monotonic_now();
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        Client* const client = find(numbers[i]);
        const bool had = client->heard;
        if (waits[i + 2].revents != 0) read_from(*client);
        if (!had && client->heard) heard.emplace_back(numbers[i], client->line);
        client->over = client->over || (!client->heard && now >= client->until);
      }
      if (waits[1].revents != 0) accept_one();
      std::erase_if(clients, [](const auto& entry) { return entry.second->over; });
    }
    for (const auto& [number, line] : heard)
      loop.post([this, number, line, watch = watch] {
        if (!watch.over())
          take(line, [this, number, watch](const std::string& text) {
            if (!watch.over()) answer(number, text);
          });
      });
  }
}

OwnerSocket::OwnerSocket(std::shared_ptr<State> state, std::string path)
    : state_(std::move(state)), path_(std::move(path)), thread_([this] { state_->run(); }) {}

OwnerSocket::~OwnerSocket() {
  state_->lifetime.end();
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(state_->wake_write.get(), &byte, 1);
  thread_.join();
  ::unlink(path_.c_str());
}

Result<std::unique_ptr<OwnerSocket>> OwnerSocket::listen(EventLoop& loop, const std::string& path, Take take) {
  auto state = std::make_shared<State>(loop, std::move(take));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) return error_of_errno("make a pipe for", path, errno);
  state->wake_read = Descriptor(pipe[0]);
  state->wake_write = Descriptor(pipe[1]);
  SHOAL_ASSIGN(const SocketName name, name_socket(path));
  state->listening = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (state->listening.get() < 0) return error_of_errno("make the socket", path, errno);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return error_of_errno("replace", path, errno);
  // The mode that the file is made with: at no moment others may connect.
  if (::fchmod(state->listening.get(), 0600) != 0 ||
      ::bind(state->listening.get(), as_address(name), sizeof name.address) != 0 || ::chmod(path.c_str(), 0600) != 0 ||
      ::listen(state->listening.get(), kSocketClientsMax) != 0)
    return error_of_errno("listen on", path, errno);
  return std::unique_ptr<OwnerSocket>(new OwnerSocket(std::move(state), path));
}

Result<std::string> ask_line(const std::string& path, const std::string& line) {
  auto name = name_socket(path);
  if (!name.ok()) return name.error();
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return error_of_errno("make a socket for", path, errno);
  if (::connect(socket.get(), as_address(*name), sizeof name->address) != 0) {
    if (errno == ECONNREFUSED || errno == ENOENT) return make_error(ErrorCode::kMissing, "nobody listens on " + path);
    if (errno == EACCES) return make_error(ErrorCode::kRefused, path + " is another user's");
    return error_of_errno("connect to", path, errno);
  }
  say_line(socket.get(), line);
  std::string answer;
  char bytes[256];
  for (ssize_t got = 1; got != 0 && answer.size() <= kSocketLineMax && answer.find('\n') == std::string::npos;) {
    got = ::recv(socket.get(), bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;  // its process died
    answer.append(bytes, static_cast<std::size_t>(got));
  }
  return answer.substr(0, answer.find('\n'));
}

}  // namespace shoal
