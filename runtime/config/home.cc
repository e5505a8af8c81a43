#include "runtime/config/home.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "common/crypto/text_codes.h"
#include "common/os/posix_file.h"

namespace shoal {
namespace {

constexpr std::string_view kKeyPrefix = "shoal-key1:";
constexpr std::size_t kKeyFileBytesMax = 256;  // one that is larger holds no key

Result<KeyPair> parse_key_file(const std::string& path, ByteView content) {
  std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const auto damaged = [&] {
    return make_error(ErrorCode::kCorrupt,
                      path + ": holds no key. Restore it from a backup, or move it away to get a new one");
  };
  if (!text.starts_with(kKeyPrefix)) return damaged();
  auto seed = parse_checked_base64url(text.substr(kKeyPrefix.size()));
  if (!seed.ok() || seed->size() != 32) return damaged();
  std::array<std::uint8_t, 32> bytes;
  std::copy(seed->begin(), seed->end(), bytes.begin());
  const KeyPair key = KeyPair::from_seed(bytes);
  wipe(bytes);
  wipe(*seed);
  return key;
}

Status check_mode(const std::string& path, const Descriptor& file) {
  struct stat facts;
  if (fstat(file.get(), &facts) != 0) return error_of_errno("examine", path, errno);
  if ((facts.st_mode & 077) == 0) return {};
  return make_error(ErrorCode::kRefused, path + ": others may read this key. Run: chmod 600 " + path);
}

Result<KeyPair> make_key_file(const std::string& path) {
  const KeyPair key = KeyPair::generate();
  const std::string text = std::string(kKeyPrefix) + checked_base64url_of(key.seed()) + "\n";
  const std::string temporary = path + ".new." + std::to_string(getpid());
  {
    const int fd = ::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) return error_of_errno("create", temporary, errno);
    const Descriptor file(fd);
    Status status = write_all(file, temporary, {Bytes::copy_of(std::string_view(text))});
    if (status.ok()) status = sync_file(file, temporary);
    if (!status.ok()) {
      ::unlink(temporary.c_str());
      return status.error();
    }
  }
  // link() never replaces: of two processes that start at once, both end with the key of the first.
  const int linked = ::link(temporary.c_str(), path.c_str());
  const int failure = errno;
  ::unlink(temporary.c_str());
  if (linked != 0 && failure == EEXIST) return load_or_make_key(path);
  if (linked != 0) return error_of_errno("create", path, failure);
  SHOAL_TRY(sync_folder_of(path));
  return key;
}

}  // namespace

Result<KeyPair> load_or_make_key(const std::string& path) {
  auto key = load_key(path);
  if (!key.ok() && key.code() == ErrorCode::kMissing) return make_key_file(path);
  return key;
}

Result<KeyPair> load_key(const std::string& path) {
  SHOAL_ASSIGN(const Descriptor file, open_regular_file(path));
  SHOAL_TRY(check_mode(path, file));
  std::array<std::uint8_t, kKeyFileBytesMax> content;
  ssize_t got;
  do {
    got = ::read(file.get(), content.data(), content.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return error_of_errno("read", path, errno);
  auto key = parse_key_file(path, ByteView(content).first(static_cast<std::size_t>(got)));
  wipe(content);
  return key;
}

Result<KeyPair> load_run_key(const std::string& folder, bool resume) {
  const std::string path = run_key_path(folder);
  if (!resume) return load_or_make_key(path);
  auto key = load_key(path);
  if (key.ok() || key.code() != ErrorCode::kMissing) return key;
  return make_error(ErrorCode::kMissing, path +
                                             " is missing: it is the key of the run, whose logs and peers know no "
                                             "other. HINT: put it back; without it the run cannot go on, start a new "
                                             "one in another folder");
}

std::string Home::default_path() {
  const char* data_home = std::getenv("XDG_DATA_HOME");
  if (data_home != nullptr && *data_home != '\0') return std::string(data_home) + "/shoal";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::string(home) + "/.local/share/shoal";
  return kHere;
}

Result<Home> Home::open(const std::string& path) {
  std::error_code failure;
  const bool made = std::filesystem::create_directories(path, failure);
  if (failure) return error_of_errno("create the folder", path, failure.value());
  if (made && ::chmod(path.c_str(), 0700) != 0) return error_of_errno("protect", path, errno);
  auto lock = FileLock::take(path + "/lock");
  if (!lock.ok() && lock.code() != ErrorCode::kBusy) return lock.error();
  if (!lock.ok()) return Home(path, KeyPair::generate(), nullptr);
  SHOAL_ASSIGN(KeyPair key, load_or_make_key(path + "/key"));
  return Home(path, std::move(key), std::make_unique<FileLock>(std::move(*lock)));
}

}  // namespace shoal
