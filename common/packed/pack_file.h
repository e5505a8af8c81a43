#pragma once
// Thread: any.
#include <string>

#include "common/result.h"

namespace shoal {

// PATH becomes PATH.zst (RFC 8878), with a checksum of its content. Until that one is whole and on the disk, PATH
// stays; afterwards it is removed. A PATH.zst that is there already is replaced. Memory: some 10 MiB, whatever the file
// has. ERRORS: open_regular_file's, kIo.
Status pack_file(const std::string& path);

}  // namespace shoal
