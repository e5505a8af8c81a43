#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "events/audit/audit.h"

namespace shoal {

std::string audit_table(const AuditReport& r) {
  std::ostringstream out;
  out << "event files " << r.files << ", lines " << r.lines << ", torn " << r.torn << ", missing " << r.missing
      << ", sessions " << r.sessions << ", over " << r.sessions_over << (r.ended ? "" : "; the run has not ended")
      << '\n'
      << "microbatches: issued " << r.issued << ", committed " << r.committed << ", unfinished " << r.unfinished << '\n'
      << "entries: branches " << r.branches << ", undone " << r.undone << ", commits answered gone " << r.answered_gone
      << ", too late " << r.dropped_late << "\n\n";
  const char* columns[] = {"stage", "commits", "secured", "lost",    "undecided", "silent",
                           "twice", "rounds",  "version", "anchors", "tag"};
  for (const char* column : columns) out << std::setw(10) << column;
  out << '\n';
  for (const auto& [stage, s] : r.stages) {
    for (std::uint64_t value : {std::uint64_t{stage}, s.commits, s.secured, s.lost, s.undecided, s.silent,
                                s.counted_twice, s.rounds, s.version, s.anchors}) {
      out << std::setw(10) << value;
    }
    out << std::setw(10) << (s.tag_fits ? "fits" : "DIFFERS") << '\n';
  }
  for (const auto& [stage, s] : r.stages)
    if (s.restores > 0)
      out << "stage " << stage << ": restored " << s.restores << (s.restores == 1 ? " time" : " times")
          << ", taken back " << s.taken_back << '\n';
  out << '\n';
  const auto list = [&](const char* what, const std::vector<std::string>& shown, std::uint64_t count) {
    for (const std::string& line : shown) out << what << ": " << line << '\n';
    if (count > shown.size()) out << "and " << count - shown.size() << " more\n";
  };
  list("violation", r.violations, r.violation_count);
  list("incomplete", r.incomplete, r.incomplete_count);
  out << "verdict: " << (r.verdict() == AuditVerdict::kViolated ? "VIOLATED" : name_of(r.verdict()))
      << " (counted twice " << r.counted_twice << ", silent losses " << r.silent << ", lost by name " << r.lost
      << ", undecided " << r.undecided;
  if (r.taken_back > 0) out << ", taken back " << r.taken_back;
  out << ")\n";
  return out.str();
}

std::string ranges_text(const AcceptedWork::OfStage& work) {
  std::string text;
  for (auto at = work.begin(); at != work.end();) {
    const std::uint64_t first = at->first;
    std::uint64_t last = first;
    for (++at; at != work.end() && at->first == last + 1; ++at) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
  }
  return text;
}

std::string audit_json(const AuditReport& r) {
  nlohmann::ordered_json out = {{"schema", "shoal.audit/1"},
                                {"verdict", name_of(r.verdict())},
                                {"ended", r.ended},
                                {"issued", r.issued},
                                {"committed", r.committed},
                                {"unfinished", r.unfinished},
                                {"secured", r.secured},
                                {"taken_back", r.taken_back},
                                {"lost", r.lost},
                                {"undecided", r.undecided},
                                {"silent", r.silent},
                                {"counted_twice", r.counted_twice},
                                {"branches", r.branches},
                                {"undone", r.undone},
                                {"answered_gone", r.answered_gone},
                                {"dropped_late", r.dropped_late},
                                {"sessions", r.sessions},
                                {"sessions_over", r.sessions_over},
                                {"rounds", r.rounds},
                                {"restores", r.restores},
                                {"files", r.files},
                                {"lines", r.lines},
                                {"torn", r.torn},
                                {"missing", r.missing}};
  out["stages"] = nlohmann::ordered_json::array();
  for (const auto& [stage, s] : r.stages) {
    out["stages"].push_back({{"stage", stage},
                             {"commits", s.commits},
                             {"secured", s.secured},
                             {"taken_back", s.taken_back},
                             {"lost", s.lost},
                             {"undecided", s.undecided},
                             {"silent", s.silent},
                             {"counted_twice", s.counted_twice},
                             {"rounds", s.rounds},
                             {"restores", s.restores},
                             {"version", s.version},
                             {"anchors", s.anchors},
                             {"tag_fits", s.tag_fits}});
  }
  out["violation_count"] = r.violation_count;
  out["violations"] = r.violations;
  out["incomplete_count"] = r.incomplete_count;
  out["incomplete"] = r.incomplete;
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace shoal
