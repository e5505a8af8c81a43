#include "runtime/trainer/log_partners.h"

#include <algorithm>

namespace shoal {

LogPartners::LogPartners(const std::vector<LogRecord>& authority_log) {
  for (const LogRecord& record : authority_log) {
    const auto* round = std::get_if<LogCommit>(&record);
    if (round == nullptr) continue;
    for (const Secured& secured : round->commit.secured) {
      auto& serials = named_[secured.session].serials;
      serials.insert(serials.end(), secured.serials.begin(), secured.serials.end());
    }
  }
  for (auto& [session, named] : named_) {
    std::sort(named.serials.begin(), named.serials.end());
    named.serials.erase(std::unique(named.serials.begin(), named.serials.end()), named.serials.end());
    named.logged.assign(named.serials.size(), false);
  }
}

void LogPartners::logged(const EntryName& entry) {
  const auto of = named_.find(entry.session);
  if (of == named_.end()) return;
  const auto& serials = of->second.serials;
  const auto at = std::lower_bound(serials.begin(), serials.end(), entry.serial);
  if (at != serials.end() && *at == entry.serial)
    of->second.logged[static_cast<std::size_t>(at - serials.begin())] = true;
}

void LogPartners::merged(const EntryName& entry) {
  const auto of = named_.find(entry.session);
  if (of != named_.end() && std::binary_search(of->second.serials.begin(), of->second.serials.end(), entry.serial))
    return;
  if (never_named_.count++ == 0) never_named_.first = entry;
}

LogPartners::Finding LogPartners::never_logged() const {
  Finding finding;
  for (const auto& [session, named] : named_)
    for (std::size_t i = 0; i < named.serials.size(); ++i)
      if (!named.logged[i] && finding.count++ == 0) finding.first = {session, named.serials[i]};
  return finding;
}

Status LogPartners::check(const std::string& trainer_path, const std::string& authority_path) const {
  const auto older = [](const std::string& path, const std::string& partner, const std::string& what) {
    return make_error(ErrorCode::kCorrupt, path + " is older than " + partner + ": " + what +
                                               ". HINT: put the newest copy of " + path +
                                               " back; without it the run cannot go on, start a new one in another "
                                               "folder");
  };
  const auto name_of = [](const Finding& finding) {
    return std::to_string(finding.count) + " (the first is " + std::to_string(finding.first.serial) + " of session " +
           short_name(finding.first.session) + ")";
  };
  if (const Finding missing = never_logged(); missing.count > 0)
    return older(trainer_path, authority_path, "rounds name entries never logged, " + name_of(missing));
  if (never_named_.count > 0)
    return older(authority_path, trainer_path, "entries are merged that no round names, " + name_of(never_named_));
  return {};
}

}  // namespace shoal
