#pragma once
// The run's figures for Prometheus: names and units as that project asks for (docs/PAGE.md lists them). prometheus-cpp
// has the registry and writes the text.   Thread: update() one at a time, text() any.
#include <memory>
#include <string>

#include "events/books/run_view.h"

namespace shoal {

class RunMetrics {
 public:
  static constexpr char kType[] = "text/plain; version=0.0.4; charset=utf-8";

  RunMetrics();
  ~RunMetrics();
  void update(const RunView& view);
  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace shoal
