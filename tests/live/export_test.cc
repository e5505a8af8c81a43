// A model goes out as transformers reads it, and comes in again.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "tests/live/processes.h"

namespace shoal {
namespace {

int run(Processes& swarm, const std::vector<std::string>& words) {
  swarm.start("shoal", words);
  return swarm.exit_code("shoal");
}

double number_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  return at == std::string::npos ? NAN : std::stod(text.substr(at + key.size()));
}

std::string run_from(const std::string& folder, const std::string& executor) {
  return "[model]\nfrom = \"" + folder +
         "\"\n[data]\npath = \"text.bin\"\nsequences = 2\n[optimizer]\nlr = "
         "1e-12\n[sync]\nrule = \"allreduce\"\n"
         "microbatches_per_step = 1\n[end]\nsteps = 1\n[executor]\nkind = \"" +
         executor + "\"\n";
}

class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_file_ = swarm_.write_run({.steps = 2, .executor = "kind = \"torch\""});
    ASSERT_EQ(run(swarm_, {"solo", run_file_, "--save", swarm_.path("saved"), "--device", "cpu", "--threads", "1"}), 0)
        << swarm_.errors("shoal");
  }
  Processes swarm_;
  std::string run_file_;
};

TEST_F(ExportTest, ARunThatBeginsFromAnExportedModelBeginsWithItsLoss) {
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out"), "--format", "hf"}), 0)
      << swarm_.errors("shoal");
  EXPECT_NE(swarm_.output("shoal").find("parameters in fp32"), std::string::npos) << swarm_.output("shoal");
  ASSERT_EQ(run(swarm_, {"--json", "eval", swarm_.path("saved"), "--text", swarm_.path("text.bin"), "--device", "cpu"}),
            0)
      << swarm_.errors("shoal");
  const double before = number_after(swarm_.output("shoal"), "\"val_loss\":");
  const std::string again = swarm_.write_file("again.toml", run_from("out", "torch"));
  ASSERT_EQ(run(swarm_, {"--json", "solo", again, "--device", "cpu", "--threads", "1"}), 0) << swarm_.errors("shoal");
  EXPECT_NEAR(number_after(swarm_.output("shoal"), "\"val_loss\": "), before, 1e-6);
}

// The steps are so small that every anchor stays what the folder holds.
TEST_F(ExportTest, ASwarmBeginsFromTheFolderAndWritesWhatTheFolderWrites) {
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out")}), 0) << swarm_.errors("shoal");
  std::string text = run_from("out", "torch");
  text.replace(text.find("steps = 1"), 9, "steps = 100000");
  swarm_.launch(swarm_.write_file("swarm.toml", text + "[pipeline]\nstages = 2\n"));
  for (const std::string name : {"one", "two"}) swarm_.join(name);
  ASSERT_TRUE(swarm_.wait_for_event("launch", {"\"event\":\"commit\""})) << swarm_.errors("launch");
  const auto write = [&](const std::string& source) {
    EXPECT_EQ(run(swarm_, {"--json", "generate", source, "--prompt", "the", "--tokens", "12", "--temperature", "0"}), 0)
        << swarm_.errors("shoal");
    const std::string said = swarm_.output("shoal");
    return said.substr(said.find("\"ids\":"), said.find("\"prompt_ids\"") - said.find("\"ids\":"));
  };
  const std::string here = write(swarm_.path("out"));
  EXPECT_EQ(std::ranges::count(here, ','), 12) << here;
  EXPECT_EQ(write(swarm_.ticket()), here);
}

// Whatever batch the model was trained in; and what is not judged is counted.
TEST_F(ExportTest, ALossIsOfModelAndTextAlone) {
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out")}), 0) << swarm_.errors("shoal");
  const std::string text = swarm_.write_file("short.bin", ScratchFolder::read(swarm_.path("text.bin")).substr(0, 1000));
  for (const bool whole : {true, false}) {
    std::string first;
    for (const std::string sequences : {"1", "3", "5"}) {
      std::string config = run_from("out", "torch");
      config.replace(config.find("sequences = 2") + 12, 1, sequences);
      const std::string saved = swarm_.path("of" + sequences);
      ASSERT_EQ(run(swarm_, {"solo", swarm_.write_file("batch.toml", config), "--save", saved, "--device", "cpu"}), 0)
          << swarm_.errors("shoal");
      std::vector<std::string> words = {"--json", "eval", saved, "--text", text, "--device", "cpu"};
      if (whole) words.push_back("--whole");
      ASSERT_EQ(run(swarm_, words), 0) << swarm_.errors("shoal");
      const std::string said = swarm_.output("shoal");
      const double targets = number_after(said, "\"targets\":");
      EXPECT_EQ(targets, whole ? 992 : 96) << "62 sequences of 16, a tenth of them";
      EXPECT_EQ(number_after(said, "\"not_judged\":"), 1000 - targets);
      const std::string loss = std::to_string(number_after(said, "\"val_loss\":"));
      if (first.empty()) first = loss;
      EXPECT_EQ(loss, first) << sequences;
    }
  }
}

// What the folder that a run begins from says of the ends of a text goes with the model, one id or a list.
TEST_F(ExportTest, TheEndsOfATextGoWithTheModel) {
  for (const std::string ends : {"7", "[7,9]"}) {
    for (const std::string folder : {"out", "model", "again"}) std::filesystem::remove_all(swarm_.path(folder));
    ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out")}), 0) << swarm_.errors("shoal");
    swarm_.write_file("out/generation_config.json", "{\"eos_token_id\": " + ends + "}");
    const std::string file = swarm_.write_file("ends.toml", run_from("out", "torch"));
    ASSERT_EQ(run(swarm_, {"solo", file, "--save", swarm_.path("model"), "--device", "cpu"}), 0)
        << swarm_.errors("shoal");
    ASSERT_EQ(run(swarm_, {"export", swarm_.path("model"), swarm_.path("again")}), 0) << swarm_.errors("shoal");
    for (const std::string name : {"config.json", "generation_config.json"}) {
      std::string said = ScratchFolder::read(swarm_.path("again/" + name));
      std::erase_if(said, [](unsigned char c) { return std::isspace(c) != 0; });
      EXPECT_NE(said.find("\"eos_token_id\":" + ends), std::string::npos) << said;
    }
  }
}

TEST_F(ExportTest, WhatCannotBeExportedIsNamed) {
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("nothing"), swarm_.path("out")}), 66);
  EXPECT_NE(swarm_.errors("shoal").find("shoal checkpoint export"), std::string::npos) << swarm_.errors("shoal");
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("saved")}), 73) << "it holds a model";
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out"), "--tokenizer", run_file_}), 65)
      << "no tokenizer.json";
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out"), "--dtype", "int8"}), 64);
}

TEST_F(ExportTest, AModelWithABoundaryGoesOutWithItsClassAndComesInAgain) {
  std::string text = ScratchFolder::read(run_file_);
  text.insert(text.find("[model]\n") + 8, "boundary = 4\ncuts = [1]\n");
  const std::string file = swarm_.write_file("narrow.toml", text);
  ASSERT_EQ(run(swarm_, {"solo", file, "--save", swarm_.path("narrow"), "--device", "cpu", "--threads", "1"}), 0)
      << swarm_.errors("shoal");
  EXPECT_FALSE(std::filesystem::exists(swarm_.path("narrow/config.json")))
      << "transformers would take it for a plain one";
  const auto loss = [&](const std::string& folder) {
    EXPECT_EQ(run(swarm_, {"--json", "eval", folder, "--text", swarm_.path("text.bin"), "--device", "cpu"}), 0)
        << swarm_.errors("shoal");
    return number_after(swarm_.output("shoal"), "\"val_loss\":");
  };
  const double before = loss(swarm_.path("narrow"));
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("narrow"), swarm_.path("out")}), 0) << swarm_.errors("shoal");
  EXPECT_NE(swarm_.output("shoal").find("trust_remote_code=True"), std::string::npos) << swarm_.output("shoal");
  EXPECT_TRUE(std::filesystem::exists(swarm_.path("out/modeling_boundary.py")));
  const std::string again = swarm_.write_file("again.toml", run_from("out", "torch"));
  ASSERT_EQ(run(swarm_, {"--json", "solo", again, "--device", "cpu", "--threads", "1"}), 0) << swarm_.errors("shoal");
  EXPECT_NEAR(number_after(swarm_.output("shoal"), "\"val_loss\": "), before, 1e-6);
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("narrow"), swarm_.path("peft"), "--format", "peft"}), 65);
  EXPECT_NE(swarm_.errors("shoal").find("no adapters"), std::string::npos) << swarm_.errors("shoal");
  EXPECT_FALSE(std::filesystem::exists(swarm_.path("peft")));
}

TEST_F(ExportTest, AModelIsPlainWithoutItsBoundary) {
  std::string text = ScratchFolder::read(run_file_);
  text.insert(text.find("[model]\n") + 8, "boundary = 4\ncuts = [1]\n");
  const std::string file = swarm_.write_file("narrow.toml", text);
  ASSERT_EQ(run(swarm_, {"solo", file, "--save", swarm_.path("narrow"), "--device", "cpu", "--threads", "1"}), 0)
      << swarm_.errors("shoal");
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("narrow"), swarm_.path("plain"), "--drop-boundary"}), 0)
      << swarm_.errors("shoal");
  EXPECT_NE(swarm_.output("shoal").find("train it on"), std::string::npos) << swarm_.output("shoal");
  EXPECT_FALSE(std::filesystem::exists(swarm_.path("plain/modeling_boundary.py")));
  EXPECT_EQ(ScratchFolder::read(swarm_.path("plain/config.json")).find("boundary"), std::string::npos);
  const std::string on = swarm_.write_file("on.toml", run_from("plain", "torch"));
  EXPECT_EQ(run(swarm_, {"solo", on, "--device", "cpu", "--threads", "1"}), 0) << swarm_.errors("shoal");
  EXPECT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out"), "--drop-boundary"}), 65);
  EXPECT_NE(swarm_.errors("shoal").find("without a narrow boundary"), std::string::npos) << swarm_.errors("shoal");
  EXPECT_FALSE(std::filesystem::exists(swarm_.path("out")));
}

// A run that begins from what fit wrote begins with its loss; the more values cross, the nearer that of the model.
TEST_F(ExportTest, AModelGetsABoundaryThatIsFittedToAText) {
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("plain")}), 0) << swarm_.errors("shoal");
  const auto begins_with = [&](const std::string& folder) {
    std::string text = run_from(folder, "torch") + "[pipeline]\nstages = 2\n";
    text.replace(text.find("sequences = 2"), 13, "sequences = 1");  // its validation is then what fit judges by
    const std::string file = swarm_.write_file("from.toml", text);
    EXPECT_EQ(run(swarm_, {"--json", "solo", file, "--device", "cpu", "--threads", "1"}), 0) << swarm_.errors("shoal");
    return number_after(swarm_.output("shoal"), "\"val_loss\": ");
  };
  const auto fit = [&](const std::string& out, const std::string& values, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {
        "--json",   "fit", swarm_.path("plain"), swarm_.path(out), "--text",   swarm_.path("text.bin"),
        "--width",  "u8",  "--boundary",         values,           "--stages", "2",
        "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return run(swarm_, words);
  };
  for (const std::string table : {"0", "2", "8"}) {
    ASSERT_EQ(fit("cut" + table, "3", {"--boundary-table", table}), 0) << swarm_.errors("shoal");
    const double loss = number_after(swarm_.output("shoal"), "\"loss\": ");
    const double without = number_after(swarm_.output("shoal"), "\"loss_without\": ");
    EXPECT_NEAR(begins_with("cut" + table), loss, 1e-5) << table;
    EXPECT_NEAR(begins_with("plain"), without, 1e-5);
    EXPECT_TRUE(std::filesystem::exists(swarm_.path("cut" + table + "/modeling_boundary.py")));
  }
  EXPECT_EQ(fit("cut0", "4"), 73) << "it holds a model";
  EXPECT_EQ(fit("other", "4096"), 65);
  EXPECT_NE(swarm_.errors("shoal").find("no fewer values than dim"), std::string::npos) << swarm_.errors("shoal");
  EXPECT_EQ(run(swarm_, {"fit", swarm_.path("cut0"), swarm_.path("other"), "--text", swarm_.path("text.bin"), "--width",
                         "u8", "--boundary", "4", "--stages", "2"}),
            65);
  EXPECT_NE(swarm_.errors("shoal").find("already"), std::string::npos) << swarm_.errors("shoal");
  EXPECT_EQ(run(swarm_, {"fit", swarm_.path("plain"), swarm_.path("other"), "--text", swarm_.path("text.bin"),
                         "--boundary", "4", "--stages", "2"}),
            65);
  EXPECT_NE(swarm_.errors("shoal").find("--width u8"), std::string::npos) << swarm_.errors("shoal");
  EXPECT_FALSE(std::filesystem::exists(swarm_.path("other")));
}

TEST_F(ExportTest, ARunWhosePeersHaveItsStatesNeedsItsFolderNoMore) {
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out")}), 0) << swarm_.errors("shoal");
  swarm_.launch(swarm_.write_file("again.toml", run_from("out", "torch")));
  swarm_.join("a");
  ASSERT_EQ(swarm_.exit_code("launch"), 0) << swarm_.errors("launch");
  std::filesystem::remove_all(swarm_.path("out"));
  const std::vector<std::string> resume = {"launch", "--resume", swarm_.path("run"), "--no-dht"};
  EXPECT_EQ(run(swarm_, resume), 66) << swarm_.errors("shoal");
  std::string kept = ScratchFolder::read(swarm_.path("run/run.toml"));
  const std::size_t from = kept.find("from = ");
  kept.erase(from, kept.find('\n', from) + 1 - from);
  const std::string without = swarm_.write_file("run/run.toml", kept);
  EXPECT_EQ(run(swarm_, resume), 0) << swarm_.errors("shoal");
  EXPECT_NE(swarm_.errors("shoal").find("goes on without the folder"), std::string::npos) << swarm_.errors("shoal");
  EXPECT_EQ(run(swarm_, {"launch", without, "--dir", swarm_.path("new"), "--no-dht"}), 65) << "nobody has a state";
}

double after_loss(const std::string& said) { return number_after(said, "\"val_loss\":"); }

class AdaptersTest : public ExportTest {
 protected:
  void SetUp() override {
    ExportTest::SetUp();
    ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out")}), 0) << swarm_.errors("shoal");
  }
  // Adapters beside what was exported, in two stages.
  std::string run_of_adapters() {
    std::string text = run_from("out", "torch");
    text.insert(text.find("[data]"), "lora_rank = 4\n");
    text.replace(text.find("1e-12"), 5, "0.02\nlook_ahead = 0");
    text.insert(text.find("microbatches_per_step"), "mode = \"drain\"\n");  // else gradients come late
    text.replace(text.find("steps = 1"), 9, "steps = 5");
    return swarm_.write_file(
        "adapters.toml",
        text + "[pipeline]\nstages = 2\nin_flight = 1\n[wire]\nforward = \"raw\"\nbackward = \"raw\"\n");
  }
  double loss_of(const std::string& saved, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--json", "eval", saved, "--text", swarm_.path("text.bin"), "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(swarm_, words), 0) << swarm_.errors("shoal");
    return after_loss(swarm_.output("shoal"));
  }
};

// A peer fetches the base and keeps it; what is saved are adapters alone, which go on beside their base and nowhere
// else.
TEST_F(AdaptersTest, ASwarmTrainsThemAsOneProcessDoesAndKeepsTheirBase) {
  const std::string file = run_of_adapters();
  swarm_.launch(file, {"--save", swarm_.path("swarm")});
  for (const std::string name : {"one", "two"}) swarm_.join(name);
  ASSERT_EQ(swarm_.exit_code("launch"), 0) << swarm_.errors("launch");
  for (const std::string name : {"one", "two"}) {
    EXPECT_EQ(swarm_.exit_code(name), 0) << swarm_.errors(name);
    EXPECT_EQ(std::ranges::distance(std::filesystem::directory_iterator(swarm_.path("home-" + name + "/base"))), 1);
  }
  ASSERT_EQ(run(swarm_, {"solo", file, "--save", swarm_.path("solo"), "--device", "cpu", "--threads", "1"}), 0)
      << swarm_.errors("shoal");
  const std::vector<std::string> beside = {"--base", swarm_.path("out")};
  const double base = loss_of(swarm_.path("saved"), {}), one = loss_of(swarm_.path("solo"), beside);
  const double swarm = loss_of(swarm_.path("swarm"), beside);
  EXPECT_NEAR(swarm, one, 1e-4 * one);
  EXPECT_GT(std::abs(base - one), 1e-3) << "they learnt";

  ASSERT_EQ(run(swarm_, {"export", swarm_.path("swarm"), swarm_.path("whole"), "--base", swarm_.path("out")}), 0)
      << swarm_.errors("shoal");
  const std::string again = swarm_.write_file("again.toml", run_from("whole", "torch"));
  ASSERT_EQ(run(swarm_, {"--json", "solo", again, "--device", "cpu", "--threads", "1"}), 0) << swarm_.errors("shoal");
  EXPECT_NEAR(number_after(swarm_.output("shoal"), "\"val_loss\": "), swarm, 1e-5);
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("swarm"), swarm_.path("peft"), "--format", "peft"}), 0)
      << swarm_.errors("shoal");
  EXPECT_TRUE(std::filesystem::exists(swarm_.path("peft/adapter_model.safetensors")));
}

TEST_F(AdaptersTest, WithoutTheirOwnBaseTheyAreRefused) {
  swarm_.launch(run_of_adapters(), {"--save", swarm_.path("swarm")});
  for (const std::string name : {"one", "two"}) swarm_.join(name);
  ASSERT_EQ(swarm_.exit_code("launch"), 0) << swarm_.errors("launch");
  const auto refused = [&](std::vector<std::string> words, const std::string& what) {
    EXPECT_EQ(run(swarm_, words), 65) << what;
    EXPECT_NE(swarm_.errors("shoal").find(what), std::string::npos) << swarm_.errors("shoal");
  };
  const std::string saved = swarm_.path("swarm"), text = swarm_.path("text.bin");
  refused({"eval", saved, "--text", text}, "--base FOLDER");
  refused({"export", saved, swarm_.path("whole")}, "--base FOLDER");
  refused({"eval", swarm_.path("saved"), "--text", text, "--base", swarm_.path("out")}, "leave --base out");
  refused({"export", swarm_.path("saved"), swarm_.path("peft"), "--format", "peft"}, "no adapters");
  // The same shapes with other weights.
  const std::string other = swarm_.write_run({.steps = 1, .executor = "kind = \"torch\""});
  ASSERT_EQ(run(swarm_, {"solo", other, "--save", swarm_.path("other"), "--device", "cpu"}), 0);
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("other"), swarm_.path("others")}), 0);
  refused({"eval", saved, "--text", text, "--base", swarm_.path("others")}, "other weights");
  std::string bare =
      "[model]\nlayers = 2\ndim = 8\nheads = 2\npositions = 4\nlora_rank = 2\n[data]\npath = "
      "\"text.bin\"\n[end]\nsteps = 1\n";
  refused({"solo", swarm_.write_file("bare.toml", bare)}, "[model] from");
  refused({"launch", swarm_.write_file("bare.toml", bare), "--no-dht"}, "[model] from");
}

TEST_F(ExportTest, WhatNoTextCanComeFromIsNamed) {
  for (const std::string& source : {run_file_, swarm_.path("nothing"), std::string()}) {
    EXPECT_EQ(run(swarm_, {"generate", source, "--prompt", "a"}), 66) << source;
    EXPECT_NE(swarm_.errors("shoal").find("neither a folder nor a ticket"), std::string::npos) << source;
  }
  for (const std::string option : {"--temperature", "--top-p", "--patience"})
    EXPECT_EQ(run(swarm_, {"generate", swarm_.path("saved"), "--prompt", "a", option, "nan"}), 64) << option;
}

TEST_F(ExportTest, AnExecutorWithoutAModelBeginsFromNone) {
  ASSERT_EQ(run(swarm_, {"export", swarm_.path("saved"), swarm_.path("out"), "--dtype", "bf16"}), 0)
      << swarm_.errors("shoal");
  const std::string again = swarm_.write_file("again.toml", run_from("out", "integer"));
  EXPECT_EQ(run(swarm_, {"solo", again}), 78);
  EXPECT_NE(swarm_.errors("shoal").find("[executor] kind"), std::string::npos) << swarm_.errors("shoal");
}

}  // namespace
}  // namespace shoal
