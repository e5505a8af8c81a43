#include "metrics/launch_figures.h"

namespace shoal {
namespace {

using F = LaunchFigures;
using enum FigureRecord::Room;

constexpr double kCountMax = 999'999'999'999'999;  // a record has room for a peer whatever its numbers are

// clang-format off
const LaunchFigure kRows[] = {
    {&F::loss_start, {.summary = "loss_start"}},
    {&F::loss_end, {.summary = "loss_end"}},
    {&F::validation_loss, {.summary = "val_loss"}},
    {&F::step, {.record = {"step", kAlways, kCountMax}, .inspect = "step"}},
    {&F::run_targets, {.record = {"done", kAlways, kCountMax}, .inspect = "tokens", .summary = "tokens"}, true},
    {&F::end_targets, {.record = {"of", kAlways, kCountMax}, .inspect = "end_tokens"}},
    {&F::loss, {.record = {"loss", kUsually, 1e6, 1, 10000}, .inspect = "loss"}},
    {&F::rate, {.record = {"rate", kUsually, 1e15, 1, 10}, .inspect = "rate"}},
    {&F::falls, {.record = {"falls", kUsually, 99'999}, .inspect = "dht_falls"}, true},
    {&F::issued, {.summary = "issued"}},
    {&F::committed, {.summary = "committed"}},
    {&F::unfinished, {.summary = "unfinished"}},
    {&F::faults, {.summary = "faults"}},
    {&F::asked_again, {.summary = "asked_again"}},
    {&F::lost, {.summary = "lost"}},
    {&F::taken_back, {.summary = "taken_back"}},
    {&F::acks_gone, {.summary = "answered_gone"}},
    {&F::rounds, {.summary = "rounds"}},
    {&F::rounds_abandoned, {.summary = "rounds_abandoned"}},
    {&F::loss_bound_microbatches, {.summary = "loss_bound_microbatches"}},
    {&F::loss_bound_targets, {.summary = "loss_bound_tokens"}},
    {&F::full_in_flight_share, {.summary = "full_in_flight_share"}},
    {&F::delay, {.summary = "delay"}},
    {&F::sent_bytes, {.summary = "launch_sent_bytes"}},
    {&F::elapsed_s, {.summary = "elapsed_s"}},
};
// clang-format on

}  // namespace

std::span<const LaunchFigure> launch_figures() { return kRows; }

}  // namespace shoal
