// `shoal checkpoint` on files that a peer could have written.
#include "state/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "common/os/file_storage.h"
#include "common/os/posix_file.h"
#include "runtime/config/config.h"
#include "tests/live/processes.h"

namespace shoal {
namespace {

KeyPair key_numbered(std::uint8_t n) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = n;
  return KeyPair::from_seed(seed);
}

struct Made {
  std::uint16_t stage = 0;
  std::uint64_t version = 1;
  std::uint8_t run = 3, peer = 1;
  std::uint64_t saved_s = 1'700'000'000;
};

class CheckpointCommandTest : public testing::Test {
 protected:
  CheckpointCommandTest() {
    std::filesystem::create_directories(swarm_.path("a"));
    std::filesystem::create_directories(swarm_.path("b"));
    run_file_ = swarm_.write_run({.executor = "kind = \"torch\""});
    const auto config = load_config(run_file_);
    EXPECT_TRUE(config.ok()) << config.error().message;
    specs_ = split_model(config->model_spec(), config->pipeline.stages).value();
  }

  // The parameters that the seed gives, shifted by the version, so that two of them differ.
  std::string make(const std::string& name, const Made& made) {
    const StageSpec& spec = specs_.at(made.stage);
    std::vector<float> arrays(2 * parameter_count(spec));
    initialise(spec, std::span(arrays).first(parameter_count(spec)));
    arrays.front() += static_cast<float>(made.version);
    return write(name, made, arrays);
  }
  std::string write(const std::string& name, const Made& made, const std::vector<float>& arrays) {
    const StateHeader header{.rule = RuleId::kDiloco,
                             .roles = 1,
                             .stage = StageId(made.stage),
                             .version = Version(made.version),
                             .tag = 5,
                             .floats = arrays.size() / 2};
    CheckpointOrigin origin{.run = {}, .sequence = made.version, .saved_s = made.saved_s};
    origin.run.bytes.fill(made.run);
    Buffer buffer = begin_state_image(header);
    std::ranges::copy(arrays, buffer.as<float>().subspan(kStateHeaderBytes / sizeof(float)).begin());
    const Bytes image = std::move(buffer).freeze();
    const std::string path = swarm_.path(name);
    EXPECT_TRUE(replace_file(path, checkpoint_parts(origin, image, key_numbered(made.peer))).ok());
    return path;
  }
  void flip(const std::string& name) {
    std::string bytes = ScratchFolder::read(swarm_.path(name));
    bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 4);
    swarm_.write_file(name, bytes);
  }

  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "checkpoint");
    swarm_.start("once", std::move(words));
    return swarm_.exit_code("once");
  }
  int export_to(const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> words = {"export", "--run-file", run_file_, "--out", swarm_.path(out)};
    words.insert(words.end(), more.begin(), more.end());
    return run(std::move(words));
  }
  std::string output() const { return swarm_.output("once"); }
  std::string errors() const { return swarm_.errors("once"); }
  bool prints(const std::string& part) const { return output().find(part) != std::string::npos; }
  bool complains(const std::string& part) const { return errors().find(part) != std::string::npos; }

  Processes swarm_;
  std::string run_file_;
  std::vector<StageSpec> specs_;
};

TEST_F(CheckpointCommandTest, ListsWhatAFolderHolds) {
  const std::string first = make("a/checkpoint-0303030303030303-0.safetensors", {.version = 12}),
                    second = make("a/checkpoint-0303030303030303-1.safetensors", {.stage = 1, .version = 13}),
                    renamed = make("a/kept.safetensors", {.version = 2});
  swarm_.write_file("a/model-00001-of-00002.safetensors", "of a model");
  flip("a/checkpoint-0303030303030303-1.safetensors");
  ASSERT_EQ(run({"ls", swarm_.path("a"), first}), 0) << errors();
  const std::string peer = short_name(key_numbered(1).id());
  std::istringstream lines(output());
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  ASSERT_EQ(rows.size(), 4u) << output();
  EXPECT_EQ(rows[1].substr(0, 8), "03030303");
  for (const std::string& part : {std::string(" 12 diloco "), " " + std::to_string(parameter_count(specs_[0])) + " ",
                                  std::string(" 2023-11-14T22:13:20Z "), " " + peer + " ", first + ": ok"})
    EXPECT_NE(rows[1].find(part), std::string::npos) << part << "\n" << rows[1];
  EXPECT_NE(rows[2].find(second + ": checkpoint: its arrays are not those that were written"), std::string::npos);
  EXPECT_NE(rows[3].find(renamed + ": ok"), std::string::npos);

  ASSERT_EQ(run({"--json", "ls", swarm_.path("a")}), 0) << errors();
  EXPECT_EQ(output().substr(0, 2), "[\n");
  for (const char* part :
       {"\"schema\": \"shoal.checkpoint/1\"", "\"ok\": true", "\"ok\": false", "\"stage\": 0", "\"version\": 12",
        "\"rule\": \"diloco\"", "\"saved\": \"2023-11-14T22:13:20Z\"", "\"problem\": \"checkpoint: its arrays"})
    EXPECT_TRUE(prints(part)) << part << output();
}

TEST_F(CheckpointCommandTest, VerifySaysWhichCannotBeUsedAndEndsWith65) {
  const std::string good = make("a/checkpoint-0303030303030303-0.safetensors", {}),
                    bad = make("b/checkpoint-0303030303030303-0.safetensors", {.stage = 1});
  ASSERT_EQ(run({"verify", swarm_.path("a"), swarm_.path("b")}), 0) << errors();
  EXPECT_EQ(output(), good + ": ok\n" + bad + ": ok\n");
  flip("b/checkpoint-0303030303030303-0.safetensors");
  ASSERT_EQ(run({"verify", swarm_.path("a"), swarm_.path("b")}), 65);
  EXPECT_TRUE(prints(good + ": ok\n" + bad + ": checkpoint: ")) << output();
  EXPECT_TRUE(complains("1 of 2 checkpoints cannot be used. HINT:")) << errors();
  EXPECT_EQ(run({"--json", "verify", swarm_.path("b")}), 65);
  EXPECT_TRUE(prints("\"ok\": false")) << output();
  const std::string text = swarm_.write_file("text", "no checkpoint");
  EXPECT_EQ(run({"verify", text}), 65) << "a file that is named is judged, whatever it is called";
}

TEST_F(CheckpointCommandTest, WhatIsNotThereIsNamed) {
  EXPECT_EQ(run({"ls", swarm_.path("nowhere")}), 66);
  EXPECT_TRUE(complains(swarm_.path("nowhere") + ": no such file or folder. HINT:")) << errors();
  EXPECT_EQ(run({"verify", swarm_.path("a")}), 66);
  EXPECT_TRUE(complains("no checkpoint in " + swarm_.path("a"))) << errors();
  EXPECT_EQ(run({"vrify", swarm_.path("a")}), 64);
  EXPECT_TRUE(complains("did you mean \"verify\"?")) << errors();
  EXPECT_EQ(run({}), 64);
}

TEST_F(CheckpointCommandTest, ExportMakesTheModelOfTheNewestGoodOnes) {
  make("a/checkpoint-0303030303030303-0.safetensors", {.version = 6});
  make("a/checkpoint-0303030303030303-1.safetensors", {.version = 7});
  make("a/other.safetensors", {.version = 5});
  make("b/checkpoint-0303030303030303-0.safetensors", {.stage = 1, .version = 6, .peer = 2});
  flip("a/checkpoint-0303030303030303-1.safetensors");
  ASSERT_EQ(export_to("model", {swarm_.path("a"), swarm_.path("b")}), 0) << errors();
  EXPECT_TRUE(prints("stage 0: version 6 of " + swarm_.path("a/checkpoint-0303030303030303-0.safetensors")))
      << output();
  EXPECT_TRUE(prints("stage 1: version 6 of " + swarm_.path("b"))) << output();
  EXPECT_TRUE(complains("left out: " + swarm_.path("a/checkpoint-0303030303030303-1.safetensors"))) << errors();
  swarm_.start("eval", {"eval", swarm_.path("model"), "--text", swarm_.path("text.bin"), "--device", "cpu"});
  EXPECT_EQ(swarm_.exit_code("eval"), 0) << swarm_.errors("eval");
  EXPECT_NE(swarm_.output("eval").find("validation loss "), std::string::npos);

  ASSERT_EQ(export_to("again", {"--json", swarm_.path("a"), swarm_.path("b")}), 0) << errors();
  EXPECT_TRUE(prints("\"schema\": \"shoal.checkpoint_export/1\"")) << output();
  EXPECT_EQ(ScratchFolder::read(swarm_.path("again/B2SUMS")), ScratchFolder::read(swarm_.path("model/B2SUMS")));
}

TEST_F(CheckpointCommandTest, PruneRemovesWhatWasSavedLongAgoAndNothingElse) {
  const std::string old = make("a/checkpoint-0303030303030303-0.safetensors", {});
  const auto now = static_cast<std::uint64_t>(std::time(nullptr));
  const std::string fresh = make("a/checkpoint-0404040404040404-0.safetensors", {.run = 4, .saved_s = now});
  const std::string model = swarm_.write_file("a/model-00001-of-00002.safetensors", "of a model");
  ASSERT_EQ(run({"prune", "--dry-run", swarm_.path("a")}), 0) << errors();
  EXPECT_EQ(output(), old + "\n");
  EXPECT_TRUE(std::filesystem::exists(old));
  ASSERT_EQ(run({"prune", swarm_.path("a")}), 0) << errors();
  EXPECT_EQ(output(), old + "\n");
  EXPECT_FALSE(std::filesystem::exists(old));
  ASSERT_EQ(run({"prune", "--older-than", "1", swarm_.path("a")}), 0) << errors();
  EXPECT_TRUE(std::filesystem::exists(fresh));
  EXPECT_TRUE(std::filesystem::exists(model));
}

TEST_F(CheckpointCommandTest, PruneRemovesNothingThatDoesNotSayThatItIsACheckpoint) {
  const std::string pair = "0303030303030303-0404040404040404-";
  std::vector<std::string> others = {
      swarm_.write_file("a/notes.txt", "\"shoal.checkpoint\":\"1\" \"shoal.signature\":\"\""),
      swarm_.write_file("a/checkpoint-best.safetensors", "of another program"),
      swarm_.write_file("a/checkpoint-" + pair + "0.safetensors", ""),
      swarm_.path("a/checkpoint-" + pair + "1.safetensors"),
      swarm_.path("a/checkpoint-" + pair + "2.safetensors"),
      swarm_.path("a/checkpoint-" + pair + "3.safetensors")};
  const std::string elsewhere = make("b/x.safetensors", {});
  std::filesystem::create_directory(others[3]);
  ASSERT_EQ(::mkfifo(others[4].c_str(), 0600), 0);
  std::filesystem::create_symlink(elsewhere, others[5]);
  const auto all_there = [&] {
    return std::ranges::all_of(others, [](const std::string& path) {
      return std::filesystem::symlink_status(path).type() != std::filesystem::file_type::not_found;
    });
  };
  EXPECT_EQ(run({"prune", "--older-than", "0", swarm_.path("a")}), 66);
  EXPECT_TRUE(all_there() && std::filesystem::exists(elsewhere));
  const std::string old = make("a/old.safetensors", {});
  for (const std::string& path : others) {
    if (std::filesystem::is_directory(path)) continue;  // looked into
    EXPECT_EQ(run({"prune", "--older-than", "0", old, path}), 65) << path;
    EXPECT_TRUE(complains(path + " does not say that it is a checkpoint")) << errors();
    EXPECT_EQ(output(), "");
  }
  EXPECT_TRUE(all_there() && std::filesystem::exists(elsewhere) && std::filesystem::exists(old));
  flip("a/old.safetensors");
  ASSERT_EQ(run({"prune", "--older-than", "0", swarm_.path("a")}), 0) << "damaged, and says what it is" << errors();
  EXPECT_EQ(output(), old + "\n");
  EXPECT_TRUE(all_there() && std::filesystem::exists(elsewhere));
}

TEST_F(CheckpointCommandTest, WhatAProcessLeftThatDiedWhileItWroteIsListedAndPruned) {
  const std::string name = "a/checkpoint-0303030303030303-0404040404040404-0.safetensors.tmp.";
  const std::string left = swarm_.write_file(name + "12", "half of"),
                    written = swarm_.write_file(name + "13", "a half"),
                    other = swarm_.write_file("a/model.safetensors.tmp.12", "of another program");
  const auto lock = FileLock::take(written);  // as its writer has
  ASSERT_TRUE(lock.ok());
  ASSERT_EQ(run({"ls", swarm_.path("a")}), 0) << errors();
  EXPECT_TRUE(prints(left + ": left by a process that died while it wrote a checkpoint. HINT:")) << output();
  EXPECT_EQ(run({"prune", swarm_.path("a")}), 0) << errors();
  EXPECT_EQ(output(), left + "\n");
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(written) && std::filesystem::exists(other));
}

TEST_F(CheckpointCommandTest, AHomeThatStartsAgainRemovesWhatItLeftAndNothingOfOthers) {
  swarm_.start("key", {"--home", swarm_.path("home-peer"), "key"});
  ASSERT_EQ(swarm_.exit_code("key"), 0) << swarm_.errors("key");
  const std::string key = swarm_.output("key").substr(0, 16);
  std::filesystem::create_directories(swarm_.path("home-peer/checkpoints"));
  const std::string begin = "home-peer/checkpoints/checkpoint-0303030303030303-", end = "-1.safetensors.tmp.12",
                    mine = swarm_.write_file(begin + key + end, "half"),
                    other = swarm_.write_file(begin + "0404040404040404" + end, "half");
  swarm_.launch(run_file_);
  swarm_.join("peer");
  ASSERT_TRUE(swarm_.wait_for_line(swarm_.path("peer.err"), {"this machine is peer " + key.substr(0, 8)}))
      << swarm_.errors("peer");
  EXPECT_FALSE(std::filesystem::exists(mine)) << swarm_.errors("peer");
  EXPECT_TRUE(std::filesystem::exists(other));
}

TEST_F(CheckpointCommandTest, ExportTakesOneRunAlone) {
  for (const std::uint16_t stage : {0, 1}) {
    make("a/run3-" + std::to_string(stage) + ".safetensors", {.stage = stage});
    make("b/run4-" + std::to_string(stage) + ".safetensors", {.stage = stage, .version = 9, .run = 4});
  }
  EXPECT_EQ(export_to("model", {swarm_.path("a"), swarm_.path("b")}), 64);
  EXPECT_TRUE(complains("03030303") && complains("04040404") && complains("HINT: name one of them with --run HEX"))
      << errors();
  EXPECT_FALSE(std::filesystem::exists(swarm_.path("model")));
  ASSERT_EQ(export_to("model", {"--run", "03030303", swarm_.path("a"), swarm_.path("b")}), 0) << errors();
  EXPECT_TRUE(prints("stage 0: version 1 of ")) << output();
  EXPECT_EQ(export_to("model", {"--run", "05050505", swarm_.path("a")}), 66);
  EXPECT_TRUE(complains("no checkpoint is of run 05050505")) << errors();
  EXPECT_EQ(export_to("model", {"--run", "3", swarm_.path("a")}), 64);
}

TEST_F(CheckpointCommandTest, ExportRefusesWhatIsNotTheWholeModelOfTheRunFile) {
  const std::string first = make("a/checkpoint-0303030303030303-0.safetensors", {});
  EXPECT_EQ(export_to("model", {first}), 66);
  EXPECT_TRUE(complains("no good checkpoint of these stages: 1. HINT:")) << errors();
  const std::string odd = write("b/odd.safetensors", {.stage = 1}, std::vector<float>(6));
  EXPECT_EQ(export_to("model", {first, odd}), 65);
  EXPECT_TRUE(complains(odd + " has 3 parameters, and stage 1 of " + run_file_ + " has ")) << errors();
  const std::string beyond = write("b/odd.safetensors", {.stage = 7}, std::vector<float>(6));
  EXPECT_EQ(export_to("model", {first, beyond}), 65);
  EXPECT_TRUE(complains("of stage 7, and " + run_file_ + " has 2 stages")) << errors();
  flip("a/checkpoint-0303030303030303-0.safetensors");
  EXPECT_EQ(export_to("model", {first}), 66);
  EXPECT_TRUE(complains("none of the checkpoints can be used")) << errors();
  EXPECT_FALSE(std::filesystem::exists(swarm_.path("model")));
  swarm_.write_run({});  // of whole numbers
  EXPECT_EQ(export_to("model", {first}), 78) << errors();
}

TEST_F(CheckpointCommandTest, AFolderThatCannotBeMadeIsNamedBeforeAnythingIsWritten) {
  for (const std::uint16_t stage : {0, 1}) make("a/" + std::to_string(stage) + ".safetensors", {.stage = stage});
  const std::string file = swarm_.write_file("a-file", "x");
  EXPECT_EQ(export_to("a-file/model", {swarm_.path("a")}), 73);
  EXPECT_TRUE(complains(file)) << errors();
}

}  // namespace
}  // namespace shoal
