#include "runtime/launch/refusal_watch.h"

#include <algorithm>

#include "common/formatted.h"

namespace shoal {
namespace {

std::string refusal_text(RefusalCause cause) {
  static constexpr const char* kTexts[] = {"an activation is not finite", "a gradient is not finite",
                                           "the loss is beyond any of such a model", "memory ended",
                                           "what came in cannot be used"};
  return kTexts[static_cast<std::size_t>(cause)];
}

std::string stage_text(StageId stage) { return "stage " + std::to_string(stage.value); }

}  // namespace

std::vector<std::string> RefusalWatch::take(const std::vector<StageStatus>& stages, const CommitBook& book,
                                            Duration patience, TimePoint now) {
  const bool committed = std::exchange(committed_, book.committed()) != book.committed();
  auto before = std::exchange(words_, {});
  std::vector<std::string> lines;
  for (const StageStatus& stage : stages)
    for (const auto& [session, said] : stage.refused) {
      const Word old = before[said.serial][session];
      // Fewer than before: one was counted meanwhile.
      const bool anew = committed || said.times < old.before;
      words_[said.serial][session] = {stage.stage, said, anew ? said.times : old.before};
      if (said.times <= old.said.times) continue;
      const std::string at = stage_text(stage.stage), why = refusal_text(said.cause);
      const std::uint64_t passes = passes_[{stage.stage, why}] += said.times - old.said.times;
      if (said_.due(at + why, now))
        lines.push_back(at + ": peer " + short_name(session) + " refuses microbatch " + std::to_string(said.serial) +
                        ": " + why + " (" + std::to_string(passes) + " such passes there so far)");
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

std::string RefusalWatch::refusal_of_all(const std::vector<StageStatus>& stages, const CommitBook& book) const {
  std::string lowest;
  if (words_.empty() || book.open() == 0) return lowest;
  std::size_t wanted = std::min(book.open() / 2 + 1, limits::kRefusedMax);
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
    std::string why;
    for (const auto& [session, word] : of->second) {
      const std::uint32_t times = word.said.times - word.before;
      if (word.stage != stage.stage || word.said.cause >= RefusalCause::kMemory || times < kTimes) continue;
      ++peers;
      passes += times;
      why = refusal_text(word.said.cause);
    }
    if (peers > 0 && peers >= std::min<std::size_t>(2, stage.serving))
      return stage_text(stage.stage) + " refuses microbatch " + std::to_string(serial) +
             " and what else is under way: " + why + " (" + std::to_string(peers) + " of its " +
             std::to_string(stage.serving) + " peers, " + std::to_string(passes) + " passes since the last commit)";
  }
  return "";
}

std::string smaller_numbers_text(const RunConfig& config) {
  std::string options;
  for (const auto& [key, codecs] : {std::pair("forward", &config.wire.forward), {"backward", &config.wire.backward}})
    for (const CodecId codec : codecs->named()) {
      if (codec == CodecId::kRaw || codec == CodecId::kBf16) continue;
      options += std::string("[wire] ") + key + " = " + (codec == CodecId::kFp16 ? "\"bf16\"" : "\"raw\"") + ", or ";
      break;
    }
  if (config.compute.dtype == ComputeType::kBf16) options += "[compute] dtype = \"fp32\", or ";
  return options + formatted("a lower [optimizer] lr than %g", config.optimizer.lr);
}

}  // namespace shoal
