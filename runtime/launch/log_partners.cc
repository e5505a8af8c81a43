#include "runtime/launch/log_partners.h"

namespace shoal {

namespace {
Error older(const std::string& path, const std::string& partner, const std::string& what) {
  return make_error(ErrorCode::kCorrupt, path + " is older than " + partner + ": " + what +
                                             ". HINT: put the newest copy of " + path +
                                             " back; without it the run cannot go on, start a new one in another "
                                             "folder");
}
}  // namespace

Status check_log_partners(const LogReach& authority, const CommitBook& book, const std::string& trainer_path,
                          const std::string& authority_path) {
  if (book.committed() < authority.paths)
    return older(trainer_path, authority_path,
                 "it has " + std::to_string(book.committed()) +
                     " microbatches, and a round was committed when it had " + std::to_string(authority.paths));
  for (std::uint16_t k = 0; k < book.stages(); ++k) {
    const StageId stage(k);
    const auto at = authority.versions.find(stage);
    const Version version = at == authority.versions.end() ? Version() : at->second;
    if (version < book.done().heard(stage))
      return older(authority_path, trainer_path,
                   "entries are merged by version " + std::to_string(book.done().heard(stage).value) + " of stage " +
                       std::to_string(stage.value) + ", and it ends at version " + std::to_string(version.value));
  }
  return {};
}

}  // namespace shoal
