#include "common/packed/pack_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "common/check.h"
#include "common/os/posix_file.h"
#include "common/packed/byte_source.h"

namespace shoal {
namespace {

struct FreeStream {
  void operator()(ZSTD_CCtx* stream) const { ZSTD_freeCCtx(stream); }
};

Status write_packed(ByteSource& source, const Descriptor& file, const std::string& path) {
  const std::unique_ptr<ZSTD_CCtx, FreeStream> stream(ZSTD_createCCtx());
  SHOAL_CHECK(stream != nullptr);
  SHOAL_CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(stream.get(), ZSTD_c_checksumFlag, 1)) == 0);
  Buffer from(ZSTD_CStreamInSize()), into(ZSTD_CStreamOutSize());
  bool over = false;
  while (!over) {
    SHOAL_ASSIGN(const std::size_t got, source.read(from.view()));
    over = got == 0;
    ZSTD_inBuffer in{from.data(), got, 0};
    std::size_t left = 1;
    while (in.pos < in.size || (over && left != 0)) {
      ZSTD_outBuffer out{into.data(), into.size(), 0};
      left = ZSTD_compressStream2(stream.get(), &out, &in, over ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left) != 0)
        return make_error(ErrorCode::kIo, path + ": cannot be compressed: " + ZSTD_getErrorName(left));
      SHOAL_TRY(write_all(file, path, {Bytes::copy_of(ByteView(into.data(), out.pos))}));
    }
  }
  return sync_file(file, path);
}

}  // namespace

Status pack_file(const std::string& path) {
  const std::string packed = path + ".zst", part = packed + ".part";
  SHOAL_ASSIGN(const auto source, ByteSource::open(path));
  SHOAL_ASSIGN(const Descriptor file, open_file(part, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC));
  Status written = write_packed(*source, file, part);
  if (written.ok() && ::rename(part.c_str(), packed.c_str()) != 0) written = error_of_errno("rename", part, errno);
  if (written.ok()) written = sync_folder_of(packed);
  if (written.ok() && ::unlink(path.c_str()) != 0) written = error_of_errno("remove", path, errno);
  if (!written.ok()) ::unlink(part.c_str());
  return written;
}

}  // namespace shoal
