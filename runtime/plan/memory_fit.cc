#include "runtime/plan/memory_fit.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace shoal {
namespace {

// What the run would be in so many stages.
RunConfig with_stages(RunConfig config, std::uint16_t stages) {
  config.pipeline.stages = stages;
  config.pipeline.layers_per_stage.clear();
  for (EdgeCodecs* edges : {&config.wire.forward, &config.wire.backward}) {
    edges->codecs.resize(1);
    edges->per_stage = false;
  }
  return config;
}

// What would fit, each with what it needs.
std::vector<std::string> remedies(std::uint64_t free_bytes, const RunConfig& config, const StageSpec& spec,
                                  std::uint64_t program_bytes) {
  std::vector<std::string> ways;
  const auto offer = [&](const std::string& way, const RunConfig& then, const StageSpec& there) {
    const std::uint64_t needed = process_bytes(then, there, kCreditsLeast, program_bytes);
    if (needed <= free_bytes) ways.push_back(way + " (" + mebibyte_text(needed) + ")");
    return needed <= free_bytes;
  };
  RunConfig again = config, narrow = config;
  again.compute.recompute = spec.is_last() ? Recompute::kBlock : Recompute::kStage;
  narrow.compute.dtype = ComputeType::kBf16;
  offer("[compute] recompute = \"" + std::string(name_of(again.compute.recompute)) + "\" in the run file", again, spec);
  offer("[compute] dtype = \"bf16\"", narrow, spec);
  const auto specs = split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage);
  for (std::size_t k = 0; specs.ok() && k < specs->size(); ++k)
    if (k != spec.stage.value && offer("--stage " + std::to_string(k), config, (*specs)[k])) break;
  if (const auto stages = stages_within(free_bytes, config, program_bytes))
    if (*stages > config.pipeline.stages) ways.push_back("[pipeline] stages = " + std::to_string(*stages));
  return ways;
}

struct Bounds {
  std::uint64_t allowed = 0, program = 0;
  std::optional<std::uint64_t> free{};
};

Result<std::size_t> credits_by(const Bounds& bounds, const RunConfig& config, const StageSpec& spec,
                               std::size_t credits) {
  if (bounds.allowed > 0) return credits_within(bounds.allowed, config, spec);
  if (bounds.free) return credits_that_fit(*bounds.free, credits, config, spec, bounds.program);
  return credits;
}

// Without its text. ERRORS: that of what needs least.
Result<Room> roomiest(const RunConfig& config, const StageSpec& spec, std::size_t credits, const Bounds& bounds) {
  std::optional<Room> best;
  std::optional<Error> refused;
  std::uint64_t best_bytes = 0, refused_bytes = 0, most = 0;
  for (const Recompute recompute : recomputes_of(config)) {
    const RunConfig then = with_recompute(config, recompute);
    const auto fits = credits_by(bounds, then, spec, credits);
    if (!fits.ok()) {
      const std::uint64_t least = process_bytes(then, spec, kCreditsLeast, bounds.program);
      if (!refused || least < refused_bytes) {
        refused = fits.error();
        refused_bytes = least;
      }
      continue;
    }
    const std::uint64_t entries = entries_with(config, std::min(*fits, credits));
    const std::uint64_t bytes = process_bytes(then, spec, std::min(*fits, credits), bounds.program);
    const bool smaller = best && best->recompute != Recompute::kNone && entries == most && bytes < best_bytes;
    if (best && entries <= most && !smaller) continue;
    best = Room{.credits = *fits, .recompute = recompute};
    most = entries;
    best_bytes = bytes;
  }
  if (!best) return *refused;
  return *best;
}

}  // namespace

Result<std::size_t> credits_that_fit(std::uint64_t free_bytes, std::size_t credits, const RunConfig& config,
                                     const StageSpec& spec, std::uint64_t program_bytes) {
  for (std::size_t fewer = credits; fewer > kCreditsLeast; --fewer)
    if (process_bytes(config, spec, fewer, program_bytes) <= free_bytes) return fewer;
  const std::uint64_t least = process_bytes(config, spec, kCreditsLeast, program_bytes);
  if (least <= free_bytes) return std::min(credits, kCreditsLeast);
  std::string ways;
  for (const std::string& way : remedies(free_bytes, config, spec, program_bytes))
    ways += (ways.empty() ? ". What would fit: " : ", or ") + way;
  return make_error(
      ErrorCode::kTooLarge,
      "stage " + std::to_string(spec.stage.value) + " needs about " + mebibyte_text(least) + " of memory with " +
          std::to_string(kCreditsLeast) + " microbatches at a time, and this machine has " + mebibyte_text(free_bytes) +
          " left for it now" + ways + ". HINT: end other programs, raise this container's limit, or lend a " +
          "larger machine; --memory MIB takes your word");
}

std::string needs_text(const RunConfig& config, const StageSpec& spec, std::size_t credits, std::uint64_t program_bytes,
                       std::optional<std::uint64_t> free_bytes) {
  if (config.executor.kind != ExecutorKind::kTorch) return {};
  const StageMemory memory = stage_memory(config, spec);
  const std::uint64_t entries = entries_with(config, credits);
  const std::uint64_t for_a_while = memory.needed(entries) - memory.state() - entries * memory.entry();
  return "stage " + std::to_string(spec.stage.value) + " needs " +
         mebibyte_text(program_bytes + memory.needed(entries)) + " here at most: " + mebibyte_text(program_bytes) +
         " the program, " + mebibyte_text(memory.state()) + " its state, " + mebibyte_text(entries * memory.entry()) +
         " for " + std::to_string(entries) + " microbatches at a time, " + mebibyte_text(for_a_while) +
         " for rounds and passes" + (free_bytes ? "; it has " + mebibyte_text(*free_bytes) : "");
}

Result<Room> room_for(const RunConfig& config, const StageSpec& spec, std::size_t credits, std::uint64_t allowed_bytes,
                      std::uint64_t program_bytes, std::optional<std::uint64_t> free_bytes) {
  const Bounds bounds{allowed_bytes, program_bytes, free_bytes};
  SHOAL_ASSIGN(const Room taken, roomiest(config, spec, credits, bounds));
  Room room = taken;
  const RunConfig then = with_recompute(config, room.recompute);
  room.text = needs_text(then, spec, room.credits, program_bytes, free_bytes);
  if (room.text.empty()) return room;
  if (allowed_bytes > 0)
    room.text += "; --memory allows " + mebibyte_text(allowed_bytes) + " beside the program";
  else if (room.credits < credits)
    room.text +=
        ": room for " + std::to_string(room.credits) + " microbatches at a time, not " + std::to_string(credits);
  if (config.compute.recompute != Recompute::kAuto) return room;
  room.text += "; recompute = \"auto\" takes \"" + std::string(name_of(room.recompute)) + "\"";
  if (room.recompute != Recompute::kNone)
    room.text += ", since \"none\" needs " +
                 mebibyte_text(process_bytes(with_recompute(config, Recompute::kNone), spec, credits, program_bytes)) +
                 " for " + std::to_string(entries_with(config, credits)) + " at a time";
  return room;
}

std::uint64_t least_bytes(const RunConfig& config, const StageSpec& spec, std::uint64_t program_bytes) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const Recompute recompute : recomputes_of(config))
    least = std::min(least, process_bytes(with_recompute(config, recompute), spec, kCreditsLeast, program_bytes));
  return least;
}

std::optional<std::uint16_t> stages_within(std::uint64_t memory_bytes, const RunConfig& config,
                                           std::uint64_t program_bytes) {
  const std::uint32_t most = std::min<std::uint32_t>(config.model.layers, 256);
  for (std::uint16_t stages = 1; stages <= most; ++stages) {
    const RunConfig then = with_stages(config, stages);
    const auto specs = split_model(then.model_spec(), stages);
    if (!specs.ok()) continue;
    if (std::ranges::all_of(
            *specs, [&](const StageSpec& spec) { return least_bytes(then, spec, program_bytes) <= memory_bytes; }))
      return stages;
  }
  return std::nullopt;
}

}  // namespace shoal
