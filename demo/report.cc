#include "demo/report.h"

#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "events/line_parts.h"

namespace shoal {
namespace {

constexpr double kBelowUnigram = 0.6;  // nats a byte that validation must be below the unigram entropy

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string fixed(const std::optional<double>& value, int digits) { return value ? fixed(*value, digits) : "-"; }

bool is_long_run(const DemoResult& r) { return !r.chaos && r.seconds >= kLongRunSeconds; }

void judge_loss(const DemoResult& r, std::vector<std::string>& failures) {
  if (!r.val_loss) return failures.push_back("no validation loss of the swarm");
  if (r.seconds < kLossJudgedFromSeconds) return;
  const double bound = validation_bound(r) * r.solo.val_loss;
  if (!(*r.val_loss <= bound))
    failures.push_back("validation " + fixed(r.val_loss, 4) + " is above " + fixed(validation_bound(r), 2) +
                       " x solo's = " + fixed(bound, 4));
  if (is_long_run(r) && !(*r.val_loss < r.solo.bigram))
    failures.push_back("validation " + fixed(r.val_loss, 4) + " is not below the text's bigram entropy " +
                       fixed(r.solo.bigram, 4));
  if (!is_long_run(r) && r.tokens >= kLossJudgedTokens && !(*r.val_loss <= r.solo.unigram - kBelowUnigram))
    failures.push_back("validation " + fixed(r.val_loss, 4) + " is not " + fixed(kBelowUnigram, 1) +
                       " nats below the text's unigram entropy " + fixed(r.solo.unigram, 4));
}

class Rows {
 public:
  void add(const std::string& name, const std::string& value) {
    out_ << "  " << std::left << std::setw(28) << name << value << '\n';
  }
  void pair(const std::string& name, const std::string& swarm, const std::string& solo) {
    out_ << "  " << std::left << std::setw(28) << name << std::right << std::setw(12) << swarm << std::setw(12) << solo
         << '\n';
  }
  void gap() { out_ << '\n'; }
  std::string text() const { return out_.str(); }

 private:
  std::ostringstream out_;
};

std::string cost_text(const DemoFault& fault) {
  if (!fault.cost) return "";
  return "; cost " + fixed(fault.cost->seconds, 1) + " s of full rate, in the " + fixed(fault.cost->window, 0) +
         " s after it";
}

// The run would be judged by the text's entropy if it had seen more.
std::string too_few_text(const DemoResult& r) {
  if (r.seconds < kLossJudgedFromSeconds || r.tokens >= kLossJudgedTokens) return "";
  return "; too few to be judged by the text's entropy, which takes " + short_number(kLossJudgedTokens);
}

std::string lost_text(const DemoResult& r) {
  std::string text = std::to_string(r.audit.lost) + " (microbatch, stage) pairs";
  for (const auto& [session, count] : r.lost_by_peer) text += ", " + std::to_string(count) + " with session " + session;
  return text + " (at most " + std::to_string(r.loss_bound_microbatches) + " with one session)";
}

std::string percent(double share) { return fixed(100 * share, 0) + " %"; }

// Names the cause and what to do about it.
std::string busy_text(const BusySpan& busy) {
  return "the machine was busy: in " + fixed(busy.seconds, 0) + " of the " + fixed(busy.watched, 0) +
         " s for it other processes wanted the processors too (" + percent(busy.others) +
         " of all their time). HINT: run the demo again when nothing else computes here";
}

std::string recovery_text(const DemoFault& fault) {
  if (fault.recovered_s) return "rate recovered after " + fixed(*fault.recovered_s, 0) + " s";
  return fault.busy.undecided() ? "not judged, the machine was busy" : "NOT RECOVERED";
}

std::string rejoin_text(const DemoResult& r) {
  if (r.rejoined_s) return "serving " + fixed(*r.rejoined_s, 1) + " s after its start";
  return r.rejoin_busy.undecided() ? "not judged, the machine was busy" : "NOT SERVING";
}

}  // namespace

double validation_bound(const DemoResult& r) {
  if (!is_long_run(r)) return 1.08;
  return traits_of(r.rule).demo_loss_ratio;
}

std::vector<std::string> demo_failures(const DemoResult& r) {
  std::vector<std::string> failures = r.process_failures;
  if (r.audit.counted_twice != 0)
    failures.push_back(std::to_string(r.audit.counted_twice) + " contributions were counted twice");
  if (r.audit.unfinished != 0)
    failures.push_back(std::to_string(r.audit.unfinished) + " microbatches were not finished");
  if (!r.audit.ended) failures.push_back("the run did not end in order");
  if (r.audit.undecided != 0)
    failures.push_back(std::to_string(r.audit.undecided) +
                       " contributions were neither secured nor lost when it ended");
  if (r.audit.silent != 0) failures.push_back(std::to_string(r.audit.silent) + " contributions were lost in silence");
  for (const auto& [session, count] : r.lost_by_peer)
    if (count > r.loss_bound_microbatches)
      failures.push_back(std::to_string(count) + " contributions were lost with session " + session +
                         ", more than the " + std::to_string(r.loss_bound_microbatches) +
                         " that a run may lose with one");
  if (r.audit.committed == 0) failures.push_back("nothing was committed");
  if (!r.audit.clean())
    failures.push_back("the audit of the event logs disagrees (shoal audit on the kept folder shows where)");
  for (const DemoFault& fault : r.faults) {
    if (!fault.recovered_s && !fault.busy.undecided())
      failures.push_back("the rate did not recover from the " + fault.kind + " of a peer of stage " +
                         std::to_string(fault.stage));
  }
  if (r.chaos && !r.rejoined_s && !r.rejoin_busy.undecided()) failures.push_back("the killed peer did not serve again");
  judge_loss(r, failures);
  return failures;
}

std::vector<std::string> demo_doubts(const DemoResult& r) {
  std::vector<std::string> doubts;
  for (const DemoFault& fault : r.faults) {
    if (!fault.recovered_s && fault.busy.undecided())
      doubts.push_back("the rate was not back after the " + fault.kind + " of a peer of stage " +
                       std::to_string(fault.stage) + ", and " + busy_text(fault.busy));
  }
  if (r.chaos && !r.rejoined_s && r.rejoin_busy.undecided())
    doubts.push_back("the killed peer did not serve again, and " + busy_text(r.rejoin_busy));
  return doubts;
}

std::string demo_table(const DemoResult& r) {
  Rows rows;
  rows.pair("nats a byte", "swarm", "solo");
  rows.pair("loss at the start", fixed(r.loss_start, 4), fixed(r.solo.loss_start, 4));
  rows.pair("loss at the end", fixed(r.loss_end, 4), fixed(r.solo.loss_end, 4));
  rows.pair("validation", fixed(r.val_loss, 4), fixed(r.solo.val_loss, 4));
  rows.pair("tokens/s", short_number(r.tokens_per_s), short_number(r.solo.tokens_per_s));
  rows.gap();
  rows.add("the text's entropy", "unigram " + fixed(r.solo.unigram, 4) + ", bigram " + fixed(r.solo.bigram, 4));
  if (r.val_loss && r.solo.val_loss > 0)
    rows.add("validation over solo's",
             fixed(*r.val_loss / r.solo.val_loss, 4) + " (allowed " + fixed(validation_bound(r), 2) +
                 (r.seconds < kLossJudgedFromSeconds ? "; not judged in a run this short)" : ")"));
  rows.add("tokens", short_number(r.tokens) + " in " + fixed(r.trained_s, 0) + " s" + too_few_text(r));
  rows.add("bytes per token",
           fixed(r.bytes_per_token, 1) + " over shoal's TCP connections; the DHT's UDP is not in it");
  rows.add("codec ratio", fixed(r.codec_ratio, 2));
  if (r.deltas + r.keys > 0)
    rows.add("sent as differences", std::to_string(r.deltas) + " of " + std::to_string(r.deltas + r.keys) +
                                        " activations; the others were key frames");
  rows.gap();
  if (r.busy.watched > 0)
    rows.add("processors", "others had " + percent(r.busy.others) + " of their time while the swarm trained");
  for (const DemoFault& fault : r.faults) {
    rows.add(fault.kind + " at " + fixed(fault.at_s, 1) + " s, stage " + std::to_string(fault.stage),
             recovery_text(fault) + cost_text(fault));
  }
  if (r.chaos) rows.add("the killed one rejoined", rejoin_text(r));
  rows.add("microbatches", "issued " + std::to_string(r.audit.issued) + ", committed " +
                               std::to_string(r.audit.committed) + ", unfinished " +
                               std::to_string(r.audit.unfinished));
  rows.add("computed again", std::to_string(r.audit.branches) + " (microbatch, stage) pairs");
  rows.add("faults", std::to_string(r.session_faults) + " sessions were over without having left");
  rows.add("contributions lost", lost_text(r));
  rows.add("counted twice", std::to_string(r.audit.counted_twice));
  rows.add("rounds", std::to_string(r.audit.rounds));
  rows.add("audit of the event logs", std::string(name_of(r.audit.verdict())));
  rows.add("the whole demo took", fixed(r.total_s, 0) + " s");
  return rows.text();
}

std::string demo_json(const DemoResult& r) {
  const auto value = [](const std::optional<double>& v) {
    return v ? nlohmann::ordered_json(*v) : nlohmann::ordered_json(nullptr);
  };
  nlohmann::ordered_json out = {{"loss_start", r.loss_start},
                                {"loss_end", r.loss_end},
                                {"val_loss", value(r.val_loss)},
                                {"solo_loss_end", r.solo.loss_end},
                                {"solo_val_loss", r.solo.val_loss},
                                {"unigram_entropy", r.solo.unigram},
                                {"bigram_entropy", r.solo.bigram},
                                {"tokens", r.tokens},
                                {"trained_s", r.trained_s},
                                {"tokens_per_s", r.tokens_per_s},
                                {"solo_tokens_per_s", r.solo.tokens_per_s},
                                {"bytes_per_token", r.bytes_per_token},
                                {"codec_ratio", r.codec_ratio},
                                {"deltas", r.deltas},
                                {"key_frames", r.keys},
                                {"issued", r.audit.issued},
                                {"committed", r.audit.committed},
                                {"unfinished", r.audit.unfinished},
                                {"computed_again", r.audit.branches},
                                {"session_faults", r.session_faults},
                                {"lost", r.audit.lost},
                                {"counted_twice", r.audit.counted_twice},
                                {"rounds", r.audit.rounds},
                                {"audit", name_of(r.audit.verdict())}};
  out["faults"] = nlohmann::ordered_json::array();
  for (const DemoFault& fault : r.faults)
    out["faults"].push_back({{"kind", fault.kind},
                             {"stage", fault.stage},
                             {"at_s", fault.at_s},
                             {"recovered_s", value(fault.recovered_s)},
                             {"cost_s", value(fault.cost ? std::optional(fault.cost->seconds) : std::nullopt)},
                             {"cost_window_s", value(fault.cost ? std::optional(fault.cost->window) : std::nullopt)}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace shoal
