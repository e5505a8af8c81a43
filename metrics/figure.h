#pragma once
// A figure is one row: where it stands in its snapshot, what it says, and where it is shown as what. What shows a
// snapshot walks its rows. Values; thread-safe.
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

namespace shoal {

// How it stands in a signed record, where every byte counts.
struct FigureRecord {
  enum class Room : std::uint8_t { kAlways, kUsually, kSpare };  // when a record is full, kSpare gives way first
  const char* key = nullptr;                                     // null: it is in none
  Room room = Room::kSpare;
  double max = 1e15;       // of the number that stands there; of a text: of its bytes
  std::uint64_t unit = 1;  // of a count: what 1 stands for there, rounded up
  double steps = 1;        // of a real number: to how many parts of 1 it is rounded
};

struct FigureMetric {  // for Prometheus
  const char *name = nullptr, *help = "";
  bool counter = false;  // else a gauge
};

// As what it is shown there; null: not there. Of a launching process, page, metric and line are not walked: the page
// learns of a run from its events (page/run_figures.cc).
struct FigurePlaces {
  FigureRecord record{};
  const char* inspect = nullptr;  // key of `inspect --json`, for what a record has
  const char* summary = nullptr;  // key of `join --json`, or of `launch --json` and summary.json
  const char* page = nullptr;     // place in the page's moment, or key in what it says of its own process
  FigureMetric metric{};
  const char* line = nullptr;  // of the status line: words with one % for the number
};

using FigureValue = std::variant<std::monostate, double, std::uint64_t, std::string>;  // nothing: not known
inline FigureValue figure_value(FigureValue value) { return value; }
template <class Number>
FigureValue figure_value(const std::optional<Number>& number) {
  return number ? FigureValue(*number) : FigureValue();
}

// As a value of a JSON library; null: not known.
template <class Json>
Json figure_json(const FigureValue& value) {
  return std::visit(
      [](const auto& told) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(told)>, std::monostate>)
          return nullptr;
        else
          return told;
      },
      value);
}

template <class Snapshot>
struct Figure {
  using Of = FigureValue (*)(const Snapshot&);
  using Optional = std::optional<double> Snapshot::*;  // may be told to be 0
  std::variant<double Snapshot::*, std::uint64_t Snapshot::*, std::string Snapshot::*, Optional, Of> from;
  FigurePlaces places{};
  bool known_at_zero = false;  // else 0 says that it was not told

  FigureValue of(const Snapshot& snapshot) const {
    return std::visit([&](const auto read) { return figure_value(std::invoke(read, snapshot)); }, from);
  }
  double number_of(const Snapshot& snapshot) const {  // 0 of a text, and of what is not known
    const FigureValue value = of(snapshot);
    if (const auto* count = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*count);
    return std::holds_alternative<double>(value) ? std::get<double>(value) : 0;
  }
  // Neither 0, but of an optional number, nor no number, nor an empty text.
  bool is_told(const Snapshot& snapshot) const {
    if (const auto* optional = std::get_if<Optional>(&from))
      return snapshot.**optional && std::isfinite(*(snapshot.**optional));
    const FigureValue value = of(snapshot);
    const auto* text = std::get_if<std::string>(&value);
    return text != nullptr ? !text->empty() : number_of(snapshot) > 0;
  }
};

}  // namespace shoal
