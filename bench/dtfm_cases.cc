#include <span>

#include "bench/dtfm_cost.h"
#include "layout/link_table.h"

namespace shoal {
namespace {

constexpr double kGigabit = 1e9 / 8;

struct MeasuredLine {
  std::size_t a = 0, b = 0;
  double delay_ms = 0, gigabits = 0;
};
// Between regions of AWS, as DT-FM measured them. Virginia, Oregon, California, Ohio:
constexpr MeasuredLine kUsLines[] = {{0, 1, 67, 1.15}, {0, 2, 59, 1.05}, {0, 3, 11, 1.12},
                                     {1, 2, 12, 1.25}, {1, 3, 49, 1.10}, {2, 3, 52, 1.02}};
// Oregon, Virginia, Ohio, Tokyo, Seoul, London, Frankfurt, Ireland:
constexpr MeasuredLine kWorldLines[] = {{0, 1, 67, 0.79},   {0, 2, 49, 1.10},   {0, 3, 96, 0.523},  {0, 4, 124, 0.46},
                                        {0, 5, 136, 0.42},  {0, 6, 143, 0.404}, {0, 7, 124, 0.482}, {1, 2, 11, 1.12},
                                        {1, 3, 143, 0.524}, {1, 4, 172, 0.500}, {1, 5, 76, 1.16},   {1, 6, 90, 1.02},
                                        {1, 7, 67, 1.05},   {2, 3, 130, 0.694}, {2, 4, 159, 0.529}, {2, 5, 86, 1.05},
                                        {2, 6, 99, 0.799},  {2, 7, 77, 1.14},   {3, 4, 34, 1.10},   {3, 5, 210, 0.366},
                                        {3, 6, 223, 0.36},  {3, 7, 199, 0.465}, {4, 5, 238, 0.342}, {4, 6, 235, 0.358},
                                        {4, 7, 228, 0.335}, {5, 6, 14, 1.14},   {5, 7, 12, 1.09},   {6, 7, 24, 1.08}};

SwarmShape shape_of(const std::vector<std::size_t>& sizes, ShapeLine inside, ShapeLine between) {
  SwarmShape shape;
  shape.regions = sizes.size();
  shape.lines.assign(sizes.size() * sizes.size(), between);
  for (std::size_t region = 0; region < sizes.size(); ++region) {
    shape.lines[region * sizes.size() + region] = inside;
    for (std::size_t i = 0; i < sizes[region]; ++i)
      shape.peers.push_back({.name = std::to_string(shape.peers.size()), .region = region});
  }
  return shape;
}

SwarmShape shape_of(std::size_t regions, std::size_t each, std::span<const MeasuredLine> lines) {
  SwarmShape shape = shape_of(std::vector<std::size_t>(regions, each), kInsideRegion, {});
  for (const MeasuredLine& line : lines)
    shape.lines[line.a * regions + line.b] =
        shape.lines[line.b * regions + line.a] = {line.delay_ms / 1000, line.gigabits * kGigabit};
  return shape;
}

}  // namespace

std::vector<DtfmCase> dtfm_cases(CaseSize size) {
  struct Sizes {
    std::size_t centres, of_centre;           // machines, and their devices
    std::size_t machines, of_machine, alone;  // spot: those, and devices that have a machine for themselves
    std::size_t of_two, of_four, of_eight, groups;
  };
  static constexpr Sizes kSizes[] = {
      {8, 8, 8, 4, 32, 32, 16, 8, 8}, {4, 4, 4, 2, 8, 8, 4, 2, 4}, {4, 3, 3, 2, 6, 6, 3, 1, 3}};
  const Sizes& of = kSizes[static_cast<std::size_t>(size)];
  const ShapeLine machine{0, 100 * kGigabit}, slow{0, 1.25 * kGigabit};
  std::vector<std::size_t> spot(of.machines, of.of_machine);
  spot.push_back(of.alone);
  std::vector<DtfmCase> cases = {
      {"data centre", shape_of(std::vector<std::size_t>(of.centres, of.of_centre), machine, {0, 3.125 * kGigabit}),
       of.groups},
      {"spot", shape_of(spot, machine, slow), of.groups},
      {"two centres", shape_of({of.of_two, of.of_two}, {0.001, 5 * kGigabit}, {0.011, 1.12 * kGigabit}), of.groups},
      {"regional", shape_of(4, of.of_four, kUsLines), of.groups},
      {"world", shape_of(8, of.of_eight, kWorldLines), of.groups}};
  cases[1].shape.lines.back() = slow;  // between two that are alone
  return cases;
}

DtfmCase case_of_links(const std::string& name, const LinkTable& links) {
  DtfmCase of{name, shape_of(std::vector<std::size_t>(links.regions.size(), 8), kInsideRegion, {}), 8};
  of.shape.lines = links.lines;
  return of;
}

}  // namespace shoal
