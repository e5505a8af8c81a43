#include "metrics/launch_figures.h"

namespace shoal {
namespace {

using L = LaunchFigures;
using enum FigureRecord::Room;

constexpr double kRunCountMax = 999'999'999'999'999;  // a record has room for a peer whatever its numbers are

// clang-format off
const LaunchFigure kLaunchRows[] = {
    {&L::loss_start, {.summary = "loss_start"}},
    {&L::loss_end, {.summary = "loss_end"}},
    {&L::validation_loss, {.summary = "val_loss"}},
    {&L::step, {.record = {"step", kAlways, kRunCountMax}, .inspect = "step"}},
    {&L::run_targets, {.record = {"done", kAlways, kRunCountMax}, .inspect = "tokens", .summary = "tokens"}, true},
    {&L::end_targets, {.record = {"of", kAlways, kRunCountMax}, .inspect = "end_tokens"}},
    {&L::loss, {.record = {"loss", kUsually, 1e6, 1, 10000}, .inspect = "loss"}},
    {&L::rate, {.record = {"rate", kUsually, 1e15, 1, 10}, .inspect = "rate"}},
    {&L::falls, {.record = {"falls", kUsually, 99'999}, .inspect = "dht_falls"}, true},
    {&L::issued, {.summary = "issued"}},
    {&L::committed, {.summary = "committed"}},
    {&L::unfinished, {.summary = "unfinished"}},
    {&L::faults, {.summary = "faults"}},
    {&L::asked_again, {.summary = "asked_again"}},
    {&L::lost, {.summary = "lost"}},
    {&L::taken_back, {.summary = "taken_back"}},
    {&L::acks_gone, {.summary = "answered_gone"}},
    {&L::rounds, {.summary = "rounds"}},
    {&L::rounds_abandoned, {.summary = "rounds_abandoned"}},
    {&L::loss_bound_microbatches, {.summary = "loss_bound_microbatches"}},
    {&L::loss_bound_targets, {.summary = "loss_bound_tokens"}},
    {&L::full_in_flight_share, {.summary = "full_in_flight_share"}},
    {&L::delay, {.summary = "delay"}},
    {&L::sent_bytes, {.summary = "launch_sent_bytes"}},
    {&L::elapsed_s, {.summary = "elapsed_s"}},
};
// clang-format on

}  // namespace

std::span<const LaunchFigure> launch_figures() { return kLaunchRows; }

}  // namespace shoal
