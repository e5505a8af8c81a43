#include "runtime/peer/known_run.h"

#include "runtime/plan/stage_memory.h"

namespace shoal {

std::optional<StageSpec> KnownRun::spec_of(StageId stage) const {
  auto specs = split_model(config->model_spec(), config->pipeline.stages, config->pipeline.layers_per_stage);
  if (!specs.ok() || stage.value >= specs->size()) return std::nullopt;
  return std::move((*specs)[stage.value]);
}

Result<Room> KnownRun::room_for_stage(const StageSpec& there, const PeerOptions& options,
                                      std::optional<std::uint64_t> memory_free) const {
  return room_for(*config, there, options.credits.value_or(usual_credits(*config)), options.memory_bytes,
                  options.program_bytes, memory_free);
}

void KnownRun::serve_in(const Room& room) {
  credits = room.credits;
  served = std::make_shared<const RunConfig>(with_recompute(*config, room.recompute));
}

void KnownRun::add_to(PeerFigures& figures, const PeerOptions& options, const Traffic& all) const {
  figures.device = options.device;
  if (spec) figures.memory_bytes = process_bytes(*served, *spec, credits, options.program_bytes);
  figures.sent_bytes = all.sent;
  figures.received_bytes = all.received;
}

}  // namespace shoal
