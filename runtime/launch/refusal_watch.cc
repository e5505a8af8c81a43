#include "runtime/launch/refusal_watch.h"

#include <algorithm>

#include "common/formatted.h"

namespace shoal {
namespace {

std::string refusal_text(RefusalCause cause) {
  switch (cause) {
    case RefusalCause::kActivation:
      return "an activation is not finite";
    case RefusalCause::kGradient:
      return "a gradient is not finite";
    case RefusalCause::kLoss:
      return "the loss is beyond any of such a model";
    case RefusalCause::kMemory:
      return "memory ended";
    case RefusalCause::kOther:
      break;
  }
  return "what came in cannot be used";
}

bool is_number(RefusalCause cause) { return cause < RefusalCause::kMemory; }

}  // namespace

std::vector<std::string> RefusalWatch::take(const std::vector<StageStatus>& stages, const CommitBook& book,
                                            Duration patience, TimePoint now) {
  const bool committed = std::exchange(committed_, book.committed()) != book.committed();
  const auto before = std::exchange(words_, {});
  std::vector<std::string> lines;
  for (const StageStatus& stage : stages)
    for (const auto& [session, said] : stage.refused) {
      const auto of = before.find(said.serial);
      const bool known = of != before.end() && of->second.contains(session);
      const Word old = known ? of->second.at(session) : Word{};
      const bool more = said.times > old.said.times;
      words_[said.serial][session] = {stage.stage, said,
                                      committed || said.times < old.before ? said.times : old.before};
      if (!more) continue;
      passes_[{stage.stage, said.cause}] += said.times - old.said.times;
      const std::string at = "stage " + std::to_string(stage.stage.value), why = refusal_text(said.cause);
      if (!said_.due(at + why, now)) continue;
      lines.push_back(at + ": peer " + short_name(session) + " refuses microbatch " + std::to_string(said.serial) +
                      ": " + why + " (" + std::to_string(passes_.at({stage.stage, said.cause})) +
                      " such passes of that stage so far)");
    }
  all_ = refusal_of_all(stages, book);
  if (all_.empty() || committed) until_.reset();
  if (all_.empty() || until_) return lines;
  until_ = now + patience;
  lines.push_back(all_ + ". The run ends in " +
                  std::to_string(std::chrono::ceil<std::chrono::seconds>(patience).count()) +
                  " s, unless something is committed");
  return lines;
}

std::optional<std::string> RefusalWatch::hopeless(TimePoint now) const {
  return until_ && now >= *until_ ? std::optional(all_) : std::nullopt;
}

std::string RefusalWatch::refusal_of_all(const std::vector<StageStatus>& stages, const CommitBook& book) const {
  std::string lowest;
  std::size_t wanted = words_.empty() || book.open() == 0 ? 0 : book.open() / 2 + 1;
  for (std::uint64_t serial = book.low(); wanted > 0 && serial < book.next_serial(); ++serial) {
    if (!book.is_open({0, serial})) continue;
    const std::string refusal = refusal_of(serial, stages);
    if (refusal.empty()) return "";
    if (lowest.empty()) lowest = refusal;
    --wanted;
  }
  return lowest;
}

std::string RefusalWatch::refusal_of(std::uint64_t serial, const std::vector<StageStatus>& stages) const {
  const auto of = words_.find(serial);
  if (of == words_.end()) return "";
  for (const StageStatus& stage : stages) {
    std::size_t peers = 0;
    std::uint64_t passes = 0;
    RefusalCause cause = RefusalCause::kOther;
    for (const auto& [session, word] : of->second) {
      const std::uint32_t times = word.said.times - word.before;
      if (word.stage != stage.stage || !is_number(word.said.cause) || times < kTimes) continue;
      ++peers;
      passes += times;
      cause = word.said.cause;
    }
    if (peers > 0 && peers >= std::min<std::size_t>(2, stage.serving))
      return formatted("stage %u refuses microbatch %llu and what else is under way: ", +stage.stage.value,
                       static_cast<unsigned long long>(serial)) +
             refusal_text(cause) + " (" + std::to_string(peers) + " of its " + std::to_string(stage.serving) +
             " peers, " + std::to_string(passes) + " passes since the last commit)";
  }
  return "";
}

std::vector<StageRefusals> RefusalWatch::tally() const {
  std::vector<StageRefusals> all;
  for (const auto& [of, passes] : passes_) all.push_back({of.first, refusal_text(of.second), passes});
  return all;
}

std::string smaller_numbers_text(const RunConfig& config) {
  std::string options;
  for (const EdgeCodecs* direction : {&config.wire.forward, &config.wire.backward})
    for (const CodecId codec : direction->named()) {
      if (codec == CodecId::kRaw || codec == CodecId::kBf16) continue;
      const std::string instead =
          codec == CodecId::kFp16
              ? "\"bf16\" instead of \"fp16\", which holds nothing above 65504"
              : "a codec of more bits than \"" + std::string(kCodecNames[static_cast<std::size_t>(codec)]) + "\"";
      const std::string option =
          (direction == &config.wire.forward ? "[wire] forward = " : "[wire] backward = ") + instead + ", or ";
      if (options.find(option) == std::string::npos) options += option;
    }
  if (config.compute.dtype == ComputeType::kBf16) options += "[compute] dtype = \"fp32\", or ";
  return options + formatted("a lower [optimizer] lr than %g", config.optimizer.lr);
}

}  // namespace shoal
