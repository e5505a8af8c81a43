#include "metrics/peer_figures.h"

namespace shoal {
namespace {

using F = PeerFigures;
using enum FigureRecord::Room;

// clang-format off
const PeerFigure kRows[] = {
    {&F::accepted, {.summary = "accepted", .page = "microbatches", .line = "took %"}},
    {&F::rate, {.record = {"rate", kAlways, 1e15, 1, 10}, .inspect = "rate", .line = "% tok/s"}},
    {&F::queue_seconds, {.record = {"queue", kAlways, 1e6, 1, 1000}, .inspect = "queue_s"}, true},
    {&F::device, {.record = {"dev", kUsually, 24}, .inspect = "device"}},
    {&F::memory_bytes, {.record = {"mem", kUsually, 1ull << 40, 1 << 20}, .inspect = "memory_bytes",
     .summary = "memory_estimated_bytes"}},
    {&F::rtt_ms, {.record = {"rtt", kUsually, 1e6, 1, 10}, .inspect = "rtt_ms"}},
    {&F::sent_rate, {.record = {"up", kUsually}, .inspect = "sent_bytes_s"}},
    {&F::got_rate, {.record = {"down", kUsually}, .inspect = "received_bytes_s"}},
    {&F::falls, {.record = {"falls", kUsually, 4294967295.0}, .inspect = "dht_falls"}, true},
    {&F::activation_codec, {.record = {"act", kSpare, 16}, .inspect = "activation_codec"}},
    {&F::gradient_codec, {.record = {"grad", kSpare, 16}, .inspect = "gradient_codec"}},
    {&F::accepted_targets, {.page = "tokens"}},
    {&F::counted, {.summary = "counted"}},
    {&F::undone, {.summary = "undone"}},
    {&F::recomputed, {.summary = "recomputed"}},
    {&F::graphs_dropped, {.summary = "graphs_dropped"}},
    {&F::delay, {.summary = "delay"}},
    {&F::sent_bytes, {.summary = "sent_bytes"}},
    {&F::received_bytes, {.summary = "received_bytes"}},
};
// clang-format on

}  // namespace

std::span<const PeerFigure> peer_figures() { return kRows; }

}  // namespace shoal
