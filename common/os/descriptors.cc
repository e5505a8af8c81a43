#include "common/os/descriptors.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace shoal {
namespace {

rlimit descriptor_limit() {
  rlimit limit = {};
  SHOAL_CHECK_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit;
}

std::string few(std::uint64_t allowed) {
  return "this process may have " + std::to_string(allowed) +
         " descriptors open, so it refuses connections earlier than others do. HINT: raise the limit (ulimit -n, "
         "LimitNOFILE= of a service, --ulimit nofile= of a container)";
}

}  // namespace

std::uint64_t descriptors_max() { return descriptor_limit().rlim_cur; }

Status raise_descriptors_max() {
  const rlimit before = descriptor_limit();
  const rlimit raised = {before.rlim_max, before.rlim_max};
  if (before.rlim_cur < before.rlim_max && ::setrlimit(RLIMIT_NOFILE, &raised) != 0)
    return make_error(ErrorCode::kIo, "the limit of descriptors is not raised (" + std::string(std::strerror(errno)) +
                                          "): " + few(before.rlim_cur));
  if (raised.rlim_cur < kDescriptorsWanted) return make_error(ErrorCode::kUnsupported, few(raised.rlim_cur));
  return {};
}

}  // namespace shoal
