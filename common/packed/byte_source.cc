#include "common/packed/byte_source.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "common/byte_codec.h"
#include "common/os/posix_file.h"

namespace shoal {
namespace {

constexpr std::size_t kPieceBytes = 256u << 10;

class PlainSource final : public ByteSource {
 public:
  PlainSource(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  Result<std::size_t> read(MutableByteView into) override {
    while (true) {
      const ssize_t got = ::read(file_.get(), into.data(), into.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return error_of_errno("read", path_, errno);
      taken_ += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
  }
  std::uint64_t taken() const override { return taken_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t taken_ = 0;
};

// What both kinds of compressed files share: a piece of the file, of which a part is not decompressed yet.
class PackedSource : public ByteSource {
 public:
  explicit PackedSource(PlainSource file) : file_(std::move(file)), piece_(kPieceBytes) {}
  std::uint64_t taken() const override { return file_.taken(); }

 protected:
  // Whether there is anything left to decompress.
  Result<bool> refill() {
    if (begin_ < end_) return true;
    begin_ = 0;
    SHOAL_ASSIGN(end_, file_.read(piece_));
    if (file_.taken() == 0) return damaged("it is empty");
    return end_ > 0;
  }
  ByteView rest() const { return ByteView(piece_).subspan(begin_, end_ - begin_); }
  void took(std::size_t bytes) { begin_ += bytes; }
  Error damaged(const std::string& why) const {
    return make_error(ErrorCode::kCorrupt, file_.path() + ": cannot be decompressed near byte " +
                                               std::to_string(file_.taken() - (end_ - begin_)) + ": " + why +
                                               ". HINT: copy it once more");
  }
  const std::string& path() const { return file_.path(); }

 private:
  PlainSource file_;
  std::vector<std::uint8_t> piece_;
  std::size_t begin_ = 0, end_ = 0;
};

class GzipSource final : public PackedSource {
 public:
  explicit GzipSource(PlainSource file) : PackedSource(std::move(file)) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    SHOAL_CHECK_EQ(inflateInit2(&stream_, kGzipOnly), Z_OK);
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  Result<std::size_t> read(MutableByteView into) override {
    while (true) {
      SHOAL_ASSIGN(const bool more, refill());
      if (!more && !within_) return std::size_t{0};
      if (!more) return damaged("it is cut");
      if (behind_ && !within_ && rest().front() == 0) {  // a tape's or a disk's blocks were filled up
        took(1);
        continue;
      }
      if (!within_) SHOAL_CHECK_EQ(inflateReset(&stream_), Z_OK);
      within_ = true;
      const ByteView from = rest();
      stream_.next_in = const_cast<Bytef*>(from.data());
      stream_.avail_in = static_cast<uInt>(from.size());
      stream_.next_out = into.data();
      stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), 1u << 30));
      const int code = inflate(&stream_, Z_NO_FLUSH);
      took(from.size() - stream_.avail_in);
      if (code == Z_STREAM_END) {  // another member may follow
        within_ = false;
        behind_ = true;
      }
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return damaged(stream_.msg != nullptr ? stream_.msg : "zlib says " + std::to_string(code));
      if (const auto made = static_cast<std::size_t>(stream_.next_out - into.data()); made > 0) return made;
    }
  }

 private:
  z_stream stream_ = {};
  bool within_ = false;  // a member
  bool behind_ = false;  // one
};

class ZstdSource final : public PackedSource {
 public:
  explicit ZstdSource(PlainSource file) : PackedSource(std::move(file)), stream_(ZSTD_createDStream()) {
    SHOAL_CHECK(stream_ != nullptr);
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;

  Result<std::size_t> read(MutableByteView into) override {
    while (true) {
      SHOAL_ASSIGN(const bool more, refill());
      if (!more && !within_) return std::size_t{0};
      const ByteView from = more ? rest() : ByteView();
      ZSTD_inBuffer in{from.data(), from.size(), 0};
      ZSTD_outBuffer out{into.data(), into.size(), 0};
      const std::size_t left = ZSTD_decompressStream(stream_, &out, &in);
      took(in.pos);
      if (ZSTD_isError(left) != 0) return refused(ZSTD_getErrorName(left));
      within_ = left != 0;  // 0: a frame is over and all of it is out
      if (out.pos > 0) return out.pos;
      if (!more && within_) return damaged("it is cut");
    }
  }

 private:
  Error refused(const std::string& why) const {
    if (why.find("too much memory") == std::string::npos) return damaged(why);
    return make_error(ErrorCode::kUnsupported, path() +
                                                   ": was compressed with a window above 128 MiB. HINT: compress "
                                                   "it anew without --long, or decompress it first");
  }
  ZSTD_DStream* stream_;
  bool within_ = false;  // a frame
};

}  // namespace

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path) {
  SHOAL_ASSIGN(Descriptor file, open_regular_file(path));
  std::array<std::uint8_t, 4> magic{};
  SHOAL_ASSIGN(const std::uint64_t size, read_file_at(path, 0, magic));
  const bool gzip = size >= 3 && magic[0] == 0x1f && magic[1] == 0x8b && magic[2] == 8;
  const bool zstd = size >= 4 && get_le<std::uint32_t>(ByteView(magic), 0) == ZSTD_MAGICNUMBER;
  PlainSource plain(path, std::move(file));
  if (gzip || (path.ends_with(".gz") && !zstd))
    return std::unique_ptr<ByteSource>(std::make_unique<GzipSource>(std::move(plain)));
  if (zstd || path.ends_with(".zst"))
    return std::unique_ptr<ByteSource>(std::make_unique<ZstdSource>(std::move(plain)));
  return std::unique_ptr<ByteSource>(std::make_unique<PlainSource>(std::move(plain)));
}

std::string name_of_content(const std::string& path) {
  for (const std::string ending : {".gz", ".zst"})
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  return path;
}

std::uint64_t bytes_of_files(const std::vector<std::string>& files) {
  std::uint64_t sum = 0;
  for (const std::string& file : files) {
    std::error_code failure;
    const auto size = std::filesystem::file_size(file, failure);
    if (!failure) sum += size;
  }
  return sum;
}

}  // namespace shoal
