#include "page/run_figures.h"

#include "events/books/stage_sums.h"

namespace shoal {
namespace {

using V = const RunView&;

StageSum total(V v) { return total_of(sums_of(v)); }

FigureValue ratio(std::uint64_t a, std::uint64_t b) {
  return b > 0 ? FigureValue(static_cast<double>(a) / static_cast<double>(b)) : FigureValue();
}

FigureValue unless(bool unknown, FigureValue value) { return unknown ? FigureValue() : value; }

// clang-format off
const RunFigure kRows[] = {
    {[](V v) -> FigureValue { return v.targets(); },
     {.page = "/tokens/done", .metric = {"shoal_tokens_total", "Tokens committed so far.", true}}},
    {[](V v) { return unless(v.facts().end_targets == 0, v.facts().end_targets); },
     {.page = "/tokens/total", .metric = {"shoal_end_tokens", "Tokens at which the run ends; 0 where no end is set."}}},
    {[](V v) { return unless(!v.knows_rate(), v.targets_per_s()); },
     {.page = "/tokens/per_second", .metric = {"shoal_tokens_per_second", "Tokens committed a second, over the last 10 s."}}},
    {[](V v) { return figure_value(v.left_s()); }, {.page = "/tokens/left_s"}},
    {[](V v) -> FigureValue { return v.loss().step; },
     {.page = "/loss/step", .metric = {"shoal_step", "The newest global step."}}},
    {[](V v) { return figure_value(v.loss().first); }, {.page = "/loss/first"}},
    {[](V v) { return figure_value(v.loss().newest); },
     {.page = "/loss/newest", .metric = {"shoal_loss_nats", "Loss of the newest step, nats a token."}}},
    {[](V v) { return figure_value(v.loss().validation); },
     {.page = "/loss/validation", .metric = {"shoal_validation_loss_nats", "The newest validation loss or estimate of it."}}},
    {[](V v) { return figure_value(v.facts().unigram); }, {.page = "/loss/unigram"}},
    {[](V v) { return figure_value(v.facts().bigram); }, {.page = "/loss/bigram"}},
    {[](V v) -> FigureValue { return v.tally().counted_twice(); },
     {.page = "/count/twice", .metric = {"shoal_counted_twice_total", "Contributions that were counted twice.", true}}},
    {[](V v) -> FigureValue { return v.tally().issued(); },
     {.page = "/count/issued", .metric = {"shoal_microbatches_issued_total", "Microbatches issued.", true}}},
    {[](V v) -> FigureValue { return v.tally().committed(); },
     {.page = "/count/committed", .metric = {"shoal_microbatches_committed_total", "Microbatches committed.", true}}},
    {[](V v) -> FigureValue { return v.tally().committed_targets(); }, {.page = "/count/committed_tokens"}},
    {[](V v) -> FigureValue { return total(v).counts.secured; }, {.page = "/count/secured"}},
    {[](V v) -> FigureValue { return total(v).counts.lost; }, {.page = "/count/lost"}},
    {[](V v) -> FigureValue { return total(v).counts.taken_back; }, {.page = "/count/taken_back"}},
    {[](V v) -> FigureValue { return total(v).undecided; }, {.page = "/count/undecided"}},
    {[](V v) -> FigureValue { return total(v).counts.rounds; }, {.page = "/count/rounds"}},
    {[](V v) { return figure_value(v.delay()); },
     {.page = "/staleness", .metric = {"shoal_gradient_delay_steps", "How many inner steps late gradients are."}}},
    {[](V v) { return unless(v.facts().of_peer(), v.story().faults()); },
     {.page = "/faults", .metric = {"shoal_faults_total", "Sessions lost, rounds abandoned, stages gone back, joiners not reached, contradictions.", true}}},
    {[](V v) -> FigureValue { return v.bytes().sent; },
     {.page = "/bytes/sent", .metric = {"shoal_sent_bytes_total", "Bytes sent, by those whose events are here.", true}}},
    {[](V v) -> FigureValue { return v.bytes().received; },
     {.page = "/bytes/received", .metric = {"shoal_received_bytes_total", "Bytes received, by those whose events are here.", true}}},
    {[](V v) -> FigureValue { return v.bytes().up.per_second(v.now()); }, {.page = "/bytes/up_per_second"}},
    {[](V v) -> FigureValue { return v.bytes().down.per_second(v.now()); }, {.page = "/bytes/down_per_second"}},
    {[](V v) { return ratio(v.bytes().fp32, v.bytes().payload); }, {.page = "/bytes/codec_ratio"}},
    {[](V v) -> FigureValue { return v.bytes().rounds; },
     {.page = "/bytes/rounds", .metric = {"shoal_round_sent_bytes_total", "Bytes of rounds sent, by those whose events are here.", true}}},
    {[](V v) -> FigureValue { return static_cast<double>(v.bytes().round_us) * 1e-6; },
     {.page = "/rounds_device_s", .metric = {"shoal_round_device_seconds_total", "Seconds that rounds held devices of those whose events are here.", true}}},
    {[](V v) { return ratio(v.bytes().deltas, v.bytes().deltas + v.bytes().keys); }, {.page = "/bytes/base_hits"}},
};
// clang-format on

}  // namespace

std::span<const RunFigure> run_figures() { return kRows; }

}  // namespace shoal
