// shoal lend, with a systemctl that writes down what it is told.
#include <sys/stat.h>

#include <filesystem>

#include "tests/live/processes.h"

namespace shoal {
namespace {

class LiveLendTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(swarm_.path("bin"));
    answer_systemctl(0);
    swarm_.launch(swarm_.write_run({.stages = 1, .replicas = 1, .steps = 100000}));
  }
  void answer_systemctl(int code) {
    const std::string path = swarm_.write_file("bin/systemctl", "#!/bin/sh\necho \"$@\" >>\"" + swarm_.path("told") +
                                                                    "\"\nexit " + std::to_string(code) + "\n");
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  }
  int lend(std::vector<std::string> words) {
    words.insert(words.begin(), {"--home", swarm_.path("home-a"), "lend"});
    swarm_.start_in_shell("lend",
                          "export PATH=\"" + swarm_.path("bin") + ":$PATH\" XDG_CONFIG_HOME=\"" +
                              swarm_.path("config") + "\"; exec \"$0\" \"$@\"",
                          std::move(words));
    return swarm_.exit_code("lend");
  }
  std::string unit() const { return ScratchFolder::read(swarm_.path("config/systemd/user/shoal-lend.service")); }
  std::string told() const { return ScratchFolder::read(swarm_.path("told")); }

  Processes swarm_;
};

TEST_F(LiveLendTest, AUnitIsWrittenStartedToldOfAndTakenAwayWhileTheKeyStays) {
  ASSERT_EQ(lend({swarm_.ticket(), "--hours", "22-8", "--up", "20mbit", "--down", "1.5gbit", "--device", "cpu"}), 0)
      << swarm_.errors("lend");
  EXPECT_EQ(told(),
            "--user daemon-reload\n--user daemon-reload\n--user enable shoal-lend.service\n"
            "--user restart shoal-lend.service\n");
  const std::string text = unit();
  EXPECT_NE(text.find("\"join\" \"" + swarm_.ticket() +
                      "\" \"--hours\" \"22-8\" \"--up\" \"20mbit\" \"--down\" \"1.5gbit\" \"--device\" \"cpu\"\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nRestart=on-failure\n"), std::string::npos);
  EXPECT_NE(text.find("\nRestartPreventExitStatus=64 65 66 73 76 77 78 130 143 129\n"), std::string::npos) << text;
  struct stat facts {};
  ASSERT_EQ(::stat(swarm_.path("config/systemd/user/shoal-lend.service").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u) << "the ticket is in it";

  EXPECT_EQ(lend({"--status"}), 0);
  EXPECT_EQ(swarm_.output("lend"), "lent, and its unit runs; no join runs with this home\n");
  swarm_.join("a", {"--no-checkpoints", "--up", "100mbit"});
  ASSERT_TRUE(swarm_.wait_for_event("a", {"\"event\":\"serving\""})) << swarm_.errors("a");
  EXPECT_NE(swarm_.errors("a").find("sends at most 100mbit and takes without a cap\n"), std::string::npos)
      << swarm_.errors("a");
  EXPECT_EQ(lend({"--status"}), 0);
  EXPECT_TRUE(swarm_.output("lend").starts_with("lent, and its unit runs; serving 0")) << swarm_.output("lend");

  ASSERT_EQ(lend({"--stop"}), 0) << swarm_.errors("lend");
  EXPECT_NE(told().find("--user disable --now shoal-lend.service\n"), std::string::npos);
  EXPECT_EQ(unit(), "");
  EXPECT_TRUE(std::filesystem::exists(swarm_.path("home-a/key")));
  EXPECT_EQ(lend({"--status"}), 3);
  EXPECT_EQ(lend({"--stop"}), 0);
}

TEST_F(LiveLendTest, WithoutSystemdALineSaysHowAndNothingIsWritten) {
  answer_systemctl(1);
  EXPECT_EQ(lend({swarm_.ticket()}), 69);
  const std::string errors = swarm_.errors("lend");
  EXPECT_NE(errors.find("no systemd answers for this user"), std::string::npos) << errors;
  EXPECT_NE(errors.find("join " + swarm_.ticket() + "; code=$?; do case $code in 0|64|"), std::string::npos) << errors;
  EXPECT_EQ(unit(), "");
}

TEST_F(LiveLendTest, WhatJoinWouldRefuseIsRefusedBeforeAnythingIsWritten) {
  EXPECT_EQ(lend({"shoal1:nonsense"}), 65);
  EXPECT_EQ(lend({swarm_.ticket(), "--hours", "8-8"}), 65);
  EXPECT_EQ(lend({swarm_.ticket(), "--up", "20"}), 65);
  EXPECT_NE(swarm_.errors("lend").find("--up 20: it has no unit"), std::string::npos) << swarm_.errors("lend");
  swarm_.join("a", {"--down", "100kbit"});
  EXPECT_EQ(swarm_.exit_code("a"), 65);
  EXPECT_NE(swarm_.errors("a").find("--down 100kbit: too little for a peer"), std::string::npos) << swarm_.errors("a");
  EXPECT_EQ(lend({}), 64);
  EXPECT_EQ(lend({swarm_.ticket(), "--stop"}), 64);
  EXPECT_EQ(unit(), "");
}

}  // namespace
}  // namespace shoal
