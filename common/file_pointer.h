#pragma once
// Git LFS leaves a few lines of text in the place of a large file that it has not fetched. Pure. Thread: any.
#include <string>
#include <string_view>

#include "common/bytes.h"
#include "common/result.h"

namespace shoal {

inline constexpr std::string_view kFilePointerBegin = "version https://git-lfs.github.com/spec/";
inline constexpr std::size_t kFilePointerBytes = kFilePointerBegin.size();  // of a file, that tell

inline bool is_file_pointer(ByteView front) {
  return std::string_view(reinterpret_cast<const char*>(front.data()), front.size()).starts_with(kFilePointerBegin);
}
inline Error file_pointer_error(const std::string& path) {
  return make_error(ErrorCode::kInput, path +
                                           " is a pointer of Git LFS, and not the file itself. HINT: `git lfs pull` in "
                                           "its repository fetches it, as does `hf download`");
}

}  // namespace shoal
