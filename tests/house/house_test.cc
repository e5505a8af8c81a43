#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/house/house_rules.h"

namespace shoal {
namespace {

std::vector<std::string> complaints(const std::string& path, std::string_view text) {
  std::vector<std::string> all;
  for (const Violation& violation : judge_file(path, text)) {
    all.push_back(std::to_string(violation.line) + ": " + violation.what);
  }
  return all;
}

TEST(HouseTest, TheTreeKeepsItsRules) {
  int files = 0;
  std::string report;
  for (const Violation& violation : judge_tree(SHOAL_SOURCE_DIR, &files)) {
    report += violation.path + ":" + std::to_string(violation.line) + ": " + violation.what + "\n";
  }
  EXPECT_GT(files, 20) << "the tree was not found under " << SHOAL_SOURCE_DIR;
  EXPECT_TRUE(report.empty()) << report;
}

TEST(HouseTest, IncludesAreFoundWithTheirLines) {
  const auto found =
      includes_of("// #include \"no.h\"\n#include <vector>\n#  include \"router/x.h\"  // why\n\t#include <zmq.hpp>");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].path, "vector");
  EXPECT_EQ(found[0].line, 2);
  EXPECT_EQ(found[1].path, "router/x.h");
  EXPECT_EQ(found[1].line, 3);
  EXPECT_EQ(found[2].path, "zmq.hpp");
}

TEST(HouseTest, AnArrowAgainstTheOrderIsNamedWithItsLine) {
  EXPECT_THAT(complaints("common/a.cc", "#include \"common/b.h\"\n#include \"router/planner.h\"\n"),
              testing::ElementsAre("2: no arrow from common to router"));
  EXPECT_THAT(complaints("router/a.cc", "#include \"sync/round.h\"\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("runtime/peer/a.cc", "#include \"sim/sim_loop.h\"\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("runtime/peer/a.cc", "#include \"cli/demo.h\"\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("stages/a.cc", "#include \"tests/stages/rig.h\"\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("authority/a.cc", "#include \"events/event_log.h\"\n#include \"common/ids.h\"\n"),
              testing::IsEmpty());
  EXPECT_THAT(complaints("sim/a.cc", "#include \"runtime/peer/peer.h\"\n"), testing::IsEmpty());
  EXPECT_THAT(complaints("runtime/peer/a.cc", "#include \"runtime/trainer/trainer.h\"\n"),
              testing::ElementsAre("1: no arrow from runtime/peer to runtime/trainer"));
  EXPECT_THAT(complaints("runtime/trainer/a.cc", "#include \"runtime/peer/peer.h\"\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("events/a.cc", "#include \"router/ledger.h\"\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("transport/a.cc", "#include \"transport/zmq/zmq_wire.h\"\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("attic/a.cc", ""), testing::SizeIs(1));
  EXPECT_THAT(complaints("runtime/a.cc", ""), testing::SizeIs(1));
}

TEST(HouseTest, LibrariesStayOutOfHeadersAndInTheirPlaces) {
  EXPECT_THAT(complaints("transport/wire.h", "#pragma once\n#include <zmq.hpp>\n"),
              testing::ElementsAre("2: zmq in a header of ours", "2: zmq is not included in this place"));
  EXPECT_THAT(complaints("router/a.cc", "#include <zmq.hpp>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("transport/zmq/zmq_wire.cc", "#include <zmq.h>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("transport/zmq/zmq_socket.cc", "#include <zmq.h>\n"), testing::IsEmpty());
  EXPECT_THAT(complaints("router/a.cc", "#include <msgpack.hpp>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("transport/link.cc", "#include <sodium.h>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("cli/launch.cc", "#include <ATen/core/Tensor.h>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("runtime/peer/a.cc", "#include <opendht.h>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("runtime/peer/a.cc", "#include <spdlog/spdlog.h>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("tests/stages/a.cc", "#include <ATen/core/Tensor.h>\n"), testing::IsEmpty());
}

TEST(HouseTest, TorchStaysNarrowAndApartFromSpdlogAndCuda) {
  EXPECT_THAT(complaints("stages/gpt2_layers.cc", "#include <ATen/ops/mm.h>\n"), testing::IsEmpty());
  EXPECT_THAT(complaints("stages/gpt2_layers.cc", "#include <torch/torch.h>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("tests/stages/a.cc", "#include <ATen/ATen.h>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("tests/stages/a.cc", "#include <ATen/ops/mm.h>\n#include <spdlog/spdlog.h>\n"),
              testing::SizeIs(1));
  EXPECT_THAT(complaints("tests/stages/a.cu", "#include <ATen/ops/mm.h>\n"), testing::SizeIs(1));
}

TEST(HouseTest, WhatNobodyKnowsIsRefused) {
  EXPECT_THAT(complaints("router/a.cc", "#include <boost/asio.hpp>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("router/a.cc", "#include <curl.h>\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("router/a.cc", "#include \"../sync/round.h\"\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("router/a.cc", "#include \"router/../sync/round.h\"\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("cli/live.cc", "#include <netinet/in.h>\n#include <vector>\n#include <unistd.h>\n"),
              testing::IsEmpty());
}

TEST(HouseTest, ProductionIsHandedInByTheProgramAlone) {
  for (const char* path : {"runtime/peer/peer.cc", "sim/swarm.cc"}) {
    EXPECT_THAT(complaints(path, "#include \"stages/torch_executor.h\"\n"), testing::SizeIs(1));
    EXPECT_THAT(complaints(path, "#include \"transport/zmq/zmq_wire.h\"\n"), testing::SizeIs(1));
  }
  EXPECT_THAT(complaints("cli/join.cc", "#include \"transport/zmq/zmq_wire.h\"\n"), testing::IsEmpty());
}

TEST(HouseTest, FilesHaveNamesThatSayWhatTheyAre) {
  EXPECT_THAT(complaints("router/peer_manager.cc", ""), testing::SizeIs(1));
  EXPECT_THAT(complaints("common/util.h", "#pragma once\n"), testing::SizeIs(1));
  EXPECT_THAT(complaints("router/information.cc", ""), testing::IsEmpty());
  EXPECT_THAT(complaints("router/ledger.h", "struct A {};\n"), testing::ElementsAre("0: no #pragma once"));
}

}  // namespace
}  // namespace shoal
