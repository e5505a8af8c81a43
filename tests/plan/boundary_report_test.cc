// What `shoal plan` says of a narrow boundary and of what a line carries.
#include "runtime/plan/boundary_report.h"

#include <gmock/gmock.h>

#include "runtime/plan/line_bytes.h"
#include "runtime/plan/stage_report.h"
#include "tests/plan/narrow_run.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string said(const RunConfig& config, double mbit = 0, double made = 0) {
  return text_of(*boundary_figures(config, mbit, made));
}

TEST(BoundaryReportTest, SaysWhatCrossesAndWhatItIsExpectedToCost) {
  EXPECT_THAT(said(narrow_run(16)), AllOf(HasSubstr("16 of a token's 128 values cross"), HasSubstr("Loss: + 6.1 %, as"),
                                          HasSubstr("docs/RESULTS.md).\n"), Not(HasSubstr("A peer's line"))));
  EXPECT_THAT(said(narrow_run(4)), HasSubstr("Loss: + 7.2 %"));
  EXPECT_THAT(said(narrow_run(4)), HasSubstr("; not measured: less than a sixteenth of the width"));
  EXPECT_EQ(said(narrow_run(0)), "");
}

TEST(BoundaryReportTest, BytesAreThoseOfTheEdges) {
  const BoundaryFigures figures = *boundary_figures(narrow_run(16), 0, 0);
  EXPECT_EQ(figures.forward, line_bytes(narrow_run(16))[0].forward);
  EXPECT_EQ(figures.back, line_bytes(narrow_run(16))[0].backward);
  EXPECT_EQ(figures.whole_forward, line_bytes(narrow_run(0))[0].forward);
  EXPECT_EQ(figures.whole_back, line_bytes(narrow_run(0))[0].backward);
}

TEST(BoundaryReportTest, ALineCarriesSoManyTokensOfTheBoundaryAndOfAllValues) {
  RunConfig config = narrow_run(16);
  config.pipeline.replicas = 2;
  const BoundaryFigures figures = *boundary_figures(config, 2, 0);
  EXPECT_EQ(figures.carried->hops, carried_tokens(config, 250'000, {}));
  EXPECT_EQ(figures.carried->with_rounds, carried_tokens(config, 250'000, round_bytes(config)));
  EXPECT_LT(figures.carried->with_rounds, figures.carried->hops);
  EXPECT_LT(figures.whole->hops, figures.carried->hops / 6);
  EXPECT_THAT(said(config, 2), AllOf(HasSubstr("A peer's line carries "), HasSubstr("; of all values ")));
  EXPECT_THAT(said(narrow_run(0), 2), AllOf(HasSubstr("A peer's line carries "), Not(HasSubstr("of all values"))));
}

TEST(BoundaryReportTest, SaysUpToWhichBoundaryTheLineCarriesWhatADeviceMakes) {
  const RunConfig plain = narrow_run(0);
  const std::uint32_t widest = widest_boundary(plain, 250'000, 3000);
  EXPECT_THAT(said(plain, 2, 3000), HasSubstr("Its device makes 3000 tokens/s, which the line carries up to [model] "
                                              "boundary = " +
                                              std::to_string(widest) + ".\n"));
  EXPECT_THAT(said(plain, 2, 1), HasSubstr("carries with all values.\n"));
  EXPECT_THAT(said(plain, 2, 1e9), HasSubstr("carries with no boundary"));
  EXPECT_FALSE(boundary_figures(plain, 0, 3000)->widest) << "no line is given";
}

TEST(BoundaryReportTest, OneStageSendsNothing) {
  RunConfig config = narrow_run(0);
  config.pipeline.stages = 1;
  EXPECT_FALSE(boundary_figures(config, 2, 3000));
}

TEST(BoundaryReportTest, ThePlanHasItBehindItsStagesAndInItsJson) {
  RunConfig config = narrow_run(16);
  config.pipeline.replicas = 2;
  EXPECT_THAT(stages_text(config, {.tflops = 1e-3, .mbit = 2}),
              AllOf(HasSubstr(" in rounds\n"), HasSubstr(said(config, 2, 0)), HasSubstr("Its device makes ")));
  Json out = {{"schema", "shoal.plan/1"}};
  add_stages(config, {.mbit = 2}, out);
  const std::string json = out.text();
  for (const char* key : {"\"round_bytes_per_token\"", "\"boundary\"", "\"values\": 16", "\"line_with_all_values\""})
    EXPECT_THAT(json, HasSubstr(key));
}

}  // namespace
}  // namespace shoal
