#include "runtime/plan/layout_shape.h"

#include <algorithm>

#include "runtime/plan/line_bytes.h"
#include "runtime/plan/stage_memory.h"
#include "runtime/plan/stage_work.h"

namespace shoal {
namespace {

constexpr double kMegabit = 1e6 / 8;

bool is_torch(const RunConfig& config) { return config.executor.kind == ExecutorKind::kTorch; }

std::vector<ShapeStage> stages_of(const RunConfig& config) {
  const double targets = static_cast<double>(config.targets_per_microbatch());
  const std::vector<LineBytes> lines = line_bytes(config);
  const std::vector<double> rounds = round_payloads(config), work = stage_work(config);
  std::vector<ShapeStage> stages;
  for (std::size_t stage = 0; stage < lines.size(); ++stage)
    stages.push_back({.work = work[stage],
                      .forward_bytes = lines[stage].forward * targets,
                      .backward_bytes = lines[stage].backward * targets,
                      .round_bytes = rounds[stage]});
  return stages;
}

// Work a second; `work` is that of all stages.
Result<double> speed_of(const RunConfig& config, const PeerList& list, const NamedPeer& peer, double work) {
  const double part = work / config.pipeline.stages;
  if (peer.tokens_per_s) return *peer.tokens_per_s / static_cast<double>(config.targets_per_microbatch()) * work;
  if (peer.stage_ms) return part / (*peer.stage_ms / 1000);
  if (peer.flops && is_torch(config)) return *peer.flops;
  if (config.executor.kind == ExecutorKind::kPaced && config.executor.forward_ms + config.executor.backward_ms > 0)
    return part / ((config.executor.forward_ms + config.executor.backward_ms) / 1000);
  return make_error(ErrorCode::kInput,
                    at_line(list.origin, peer.line) + "peer \"" + peer.name + "\" has no speed" +
                        (peer.flops ? " that counts here: this run computes no FLOPs" : "") +
                        ". HINT: tokens_per_s = N of the whole model in one process, as `shoal solo` shows it there; " +
                        "or flops, or stage_ms of a microbatch at one stage");
}

Result<std::size_t> region_of(const PeerList& list, std::size_t line, const std::string& whose,
                              const std::string& region, std::vector<std::string>& regions, bool known) {
  const auto at = std::ranges::find(regions, region);
  if (at != regions.end()) return static_cast<std::size_t>(at - regions.begin());
  if (!known) {
    regions.push_back(region);
    return regions.size() - 1;
  }
  std::string names;
  for (const std::string& name : regions) names += " " + name;
  return make_error(ErrorCode::kInput, at_line(list.origin, line) + whose +
                                           (region.empty() ? " has no region" : " is in \"" + region + "\"") +
                                           "; the table of links knows:" + names);
}

bool has_room(std::uint64_t memory_bytes, const RunConfig& config, const StageSpec& spec) {
  return std::ranges::any_of(recomputes_of(config), [&](Recompute recompute) {
    return credits_within(memory_bytes, with_recompute(config, recompute), spec).ok();
  });
}

Result<ShapePeer> peer_of(const RunConfig& config, const PeerList& list, const NamedPeer& named, double work,
                          const std::vector<StageSpec>& specs) {
  ShapePeer peer{.name = named.name};
  SHOAL_ASSIGN(peer.speed, speed_of(config, list, named, work));
  if (named.up_mbps) peer.up = *named.up_mbps * kMegabit;
  if (named.down_mbps) peer.down = *named.down_mbps * kMegabit;
  if (named.stage && *named.stage >= specs.size())
    return make_error(ErrorCode::kInput, at_line(list.origin, named.line) + "peer \"" + named.name +
                                             "\" is to serve stage " + std::to_string(*named.stage) + "; the run has " +
                                             std::to_string(specs.size()) + " stages, numbered from 0");
  if (!named.stage && !(named.memory_mib && is_torch(config))) return peer;
  for (const StageSpec& spec : specs)
    peer.fits.push_back(named.stage ? *named.stage == spec.stage.value
                                    : has_room(*named.memory_mib << 20, config, spec));
  return peer;
}

}  // namespace

Result<LayoutShape> layout_shape(const RunConfig& config, const PeerList& list, const std::optional<LinkTable>& links) {
  SHOAL_ASSIGN(const std::vector<StageSpec> specs,
               split_model(config.model_spec(), config.pipeline.stages, config.pipeline.layers_per_stage));
  LayoutShape of{.lines_known = links.has_value()};
  of.shape.stages = stages_of(config);
  double work = 0;
  for (const ShapeStage& stage : of.shape.stages) work += stage.work;
  if (links) of.regions = links->regions;
  for (const NamedPeer& named : list.peers) {
    SHOAL_ASSIGN(ShapePeer peer, peer_of(config, list, named, work, specs));
    SHOAL_ASSIGN(peer.region,
                 region_of(list, named.line, "peer \"" + named.name + "\"", named.region, of.regions, of.lines_known));
    of.shape.peers.push_back(std::move(peer));
  }
  if (!list.trainer.empty()) {
    SHOAL_ASSIGN(of.shape.trainer,
                 region_of(list, list.trainer_line, "the trainer", list.trainer, of.regions, of.lines_known));
  }
  of.shape.regions = of.regions.size();
  of.shape.lines = links ? links->lines : std::vector<ShapeLine>(of.shape.regions * of.shape.regions);
  of.shape.every_step = traits_of(config.sync.rule).every_step;
  of.shape.round_microbatches = of.shape.every_step ? static_cast<double>(config.sync.microbatches_per_step)
                                                    : static_cast<double>(config.targets_per_round()) /
                                                          static_cast<double>(config.targets_per_microbatch());
  return of;
}

}  // namespace shoal
