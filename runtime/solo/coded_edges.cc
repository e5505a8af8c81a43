#include "runtime/solo/coded_edges.h"

#include <algorithm>

#include "compression/codec.h"

namespace shoal {
namespace {

// A stage's one session, for the books.
Session session_of(StageId stage) { return {stage.value + std::uint64_t{1}, 1}; }

std::vector<CodecId> by_edge(const EdgeCodecs& direction, std::size_t edges) {
  std::vector<CodecId> codecs;
  for (std::size_t edge = 0; edge < edges; ++edge)
    codecs.push_back(direction.at(StageId(static_cast<std::uint16_t>(edge))).or_else(CodecId::kRaw));
  return codecs;
}

// "int4", or "int4, raw and int4" where edges differ.
std::string names_of(const std::vector<CodecId>& codecs) {
  const bool one = std::ranges::adjacent_find(codecs, std::ranges::not_equal_to()) == codecs.end();
  const std::size_t count = one ? 1 : codecs.size();
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += std::string(i == 0 ? "" : i + 1 == count ? " and " : ", ") + std::string(codec_for(codecs[i]).name());
  return text;
}

}  // namespace

CodedEdges::CodedEdges(const RunConfig& config)
    : forward_(by_edge(config.wire.forward, config.pipeline.stages - 1u)),
      backward_(by_edge(config.wire.backward, config.pipeline.stages - 1u)),
      books_(config.pipeline.stages, BaseBook(config.base_bytes())) {}

Result<CodedEdges> CodedEdges::make(const RunConfig& config) {
  if (config.pipeline.stages < 2)
    return make_error(ErrorCode::kInput,
                      "between the stages of [pipeline] stages = 1 nothing crosses. HINT: --wire needs two or more");
  return CodedEdges(config);
}

ActivationCoder CodedEdges::forward_coder(const StageSpec& spec, const MicrobatchId& microbatch, SampleId sample,
                                          Bytes frame) const {
  const std::size_t stage = spec.stage.value;
  ForwardBases bases;
  if (const auto before = spec.route().before) {
    bases.above = deltas(*before);
    if (bases.above) bases.incoming = books_[stage].incoming(session_of(*before), sample, frame.view());
  }
  CodecId below = CodecId::kRaw;
  if (!spec.is_last()) {
    below = forward_[stage];
    bases.below = deltas(spec.stage);
    if (bases.below) bases.outgoing = books_[stage].outgoing(sample);
  }
  const std::uint64_t seed = rounding_seed(microbatch, spec.stage, TensorRole::kActivation);
  return ActivationCoder(std::move(frame), std::move(bases), below, seed, std::nullopt);
}

Bytes CodedEdges::forwarded(const StageSpec& spec, SampleId sample, ActivationCoder& coder) {
  const Route route = spec.route();
  BaseBook& book = books_[spec.stage.value];
  if (route.before && deltas(*route.before)) book.keep(session_of(*route.before), sample, coder.take_after());
  if (!route.next) return {};
  OutgoingActivation made = coder.take_made();
  Bytes frame = std::move(made.key);
  if (deltas(spec.stage)) {
    const Session next = session_of(*route.next);
    const bool delta = book.sends_delta(next, sample, made.base_hash);
    if (delta) frame = std::move(made.delta);
    book.settled(next, sample, std::move(delta ? made.after_delta : made.after_key));
  }
  traffic_.forward_bytes += frame.size();
  return frame;
}

GradientCoder CodedEdges::backward_coder(const StageSpec& spec, const MicrobatchId& microbatch, Bytes frame) const {
  const auto before = spec.route().before;
  if (!before) return GradientCoder(std::move(frame), CodecId::kRaw, 0, std::nullopt);
  const std::uint64_t seed = rounding_seed(microbatch, *before, TensorRole::kGradient);
  return GradientCoder(std::move(frame), backward_[before->value], seed, std::nullopt);
}

Bytes CodedEdges::returned(const GradientCoder& coder) {
  traffic_.backward_bytes += coder.made().size();
  return coder.made();
}

EdgeTraffic CodedEdges::traffic() const {
  EdgeTraffic all = traffic_;
  for (const BaseBook& book : books_) {
    all.key_frames += book.counters().keys;
    all.delta_frames += book.counters().deltas;
    all.no_room += book.counters().no_room;
  }
  return all;
}

std::string CodedEdges::text() const { return names_of(forward_) + " forward, " + names_of(backward_) + " backward"; }

}  // namespace shoal
