#pragma once
// The figures of a run that the page's moment and Prometheus show, as rows. Pure; thread-safe.
#include <span>

#include "events/books/run_view.h"
#include "metrics/figure.h"

namespace shoal {

using RunFigure = Figure<RunView>;
std::span<const RunFigure> run_figures();

}  // namespace shoal
