// Texts that are prepared, trained on, resumed and evaluated by the program itself.
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/live/processes.h"

namespace shoal {
namespace {

constexpr char kTokenizer[] = SHOAL_SOURCE_DIR "/tests/text/golden/gpt2.json";
constexpr char kOther[] = SHOAL_SOURCE_DIR "/tests/text/golden/qwen2.json";

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class LiveTokenFileTest : public testing::Test {
 protected:
  int run(std::vector<std::string> words) {
    swarm_.start("command", std::move(words));
    return swarm_.exit_code("command");
  }
  std::string errors() const { return swarm_.errors("command"); }
  nlohmann::json json() const { return nlohmann::json::parse(swarm_.output("command")); }
  std::string write_text(const std::string& name, int words) {
    std::string text;
    for (int i = 0; i < words; ++i)
      text += "word " + std::to_string(i % 97 * (i % 89)) + (i % 9 == 0 ? ".\n" : " and ");
    return swarm_.write_file(name, text);
  }
  std::string smaller_tokenizer() {
    const std::string out = swarm_.path("smaller.json");
    EXPECT_EQ(run({"data", "train-tokenizer", write_text("few.txt", 90), "--vocabulary", "260", "--out", out}), 0);
    return out;
  }
  // Returns the token file.
  std::string prepare(const std::string& name, int words, const std::string& tokenizer = kTokenizer) {
    const std::string out = swarm_.path(name + ".bin");
    EXPECT_EQ(run({"data", "prepare", write_text(name + ".txt", words), "--tokenizer", tokenizer, "--out", out}), 0)
        << errors();
    return out;
  }
  // Trains on a.bin and b.bin, validates on v.bin.
  std::string write_run(const std::string& executor) {
    return swarm_.write_file("run.toml",
                             "[model]\nlayers = 2\ndim = 16\nheads = 2\npositions = 16\nvocabulary = 700\n"
                             "[data]\npath = [\"a.bin\", \"b.bin\"]\nweights = [3, 1]\nvalidation = \"v.bin\"\n"
                             "tokenizer = \"tokenizer.json\"\nwidth = \"u16\"\nsequences = 1\n"
                             "[pipeline]\nstages = 1\n[sync]\nrule = \"allreduce\"\nmicrobatches_per_step = 4\n"
                             "[executor]\nkind = \"" +
                                 executor + "\"\n[end]\nsteps = 2\n");
  }
  void prepare_all() {
    std::filesystem::copy_file(kTokenizer, swarm_.path("tokenizer.json"));
    for (const auto& [name, words] : {std::pair("a", 900), {"b", 300}, {"v", 200}}) prepare(name, words);
  }
  Processes swarm_;
};

TEST_F(LiveTokenFileTest, APreparedTextTrainsAndIsEvaluated) {
  prepare_all();
  ASSERT_EQ(run({"solo", write_run("torch"), "--save", swarm_.path("model"), "--json"}), 0) << errors();
  const double loss = json()["val_loss"];
  ASSERT_EQ(run({"eval", swarm_.path("model"), "--text", swarm_.path("v.bin"), "--whole", "--json"}), 0) << errors();
  const auto said = json();
  EXPECT_NEAR(said["val_loss"], loss, 1e-6);
  EXPECT_NEAR(said["perplexity"], std::exp(loss), 1e-3);
  const double targets = said["targets"], bytes = said["bytes"];
  EXPECT_NEAR(said["bits_per_byte"], loss / std::log(2.0) * targets / bytes, 1e-6);
  EXPECT_GT(bytes, targets);
  ASSERT_EQ(run({"data", "info", swarm_.path("v.bin"), "--json"}), 0) << errors();
  EXPECT_EQ(json()["sidecar"]["documents"], 1);

  const std::string other = prepare("other", 200, kOther);
  EXPECT_EQ(run({"eval", swarm_.path("model"), "--text", other}), 65);
  EXPECT_TRUE(says(errors(), "other.bin was made with the tokenizer")) << errors();
  EXPECT_EQ(run({"eval", swarm_.path("model"), "--text", swarm_.path("v.bin"), "--tokenizer", kOther}), 65);
  EXPECT_TRUE(says(errors(), "qwen2.json is not the one")) << errors();
  EXPECT_EQ(run({"generate", swarm_.path("model"), "--prompt", "word", "--tokenizer", smaller_tokenizer()}), 65);
  EXPECT_TRUE(says(errors(), "is not the tokenizer that made the ids of")) << errors();
}

TEST_F(LiveTokenFileTest, ARunIsResumedWithTheFilesThatItWasBegunWith) {
  prepare_all();
  const std::string run_file = write_run("integer");
  swarm_.launch(run_file);
  swarm_.join("a");
  EXPECT_EQ(swarm_.exit_code("launch"), 0) << swarm_.errors("launch");
  const std::vector<std::string> resume = {"launch", "--resume", swarm_.path("run"), "--no-dht"};
  EXPECT_EQ(run({"launch", "--resume", run_file, "--dir", swarm_.path("run"), "--no-dht"}), 0) << errors();
  for (const auto& [name, words] : {std::pair("b", 300), {"v", 200}}) {
    prepare(name, words + 1);
    EXPECT_EQ(run(resume), 65);
    EXPECT_TRUE(says(errors(), std::string(name) + ".bin is not the one that the run was begun with")) << errors();
    prepare(name, words);
  }
}

TEST_F(LiveTokenFileTest, ATokenizerOfOnesOwnPreparesATextInFewerTokens) {
  const std::string text = write_text("own.txt", 3000), tokenizer = swarm_.path("own.json");
  ASSERT_EQ(run({"data", "train-tokenizer", text, "--vocabulary", "300", "--out", tokenizer, "--json"}), 0) << errors();
  EXPECT_EQ(json()["vocabulary"], 300);
  ASSERT_EQ(run({"data", "prepare", text, "--tokenizer", tokenizer, "--out", swarm_.path("own.bin"), "--json"}), 0)
      << errors();
  EXPECT_GT(json()["text_bytes"], 2 * json()["tokens"].get<std::uint64_t>());
  EXPECT_EQ(run({"data", "train-tokenizer", text, "--vocabulary", "200", "--out", tokenizer}), 64) << errors();
  EXPECT_EQ(run({"data", "train-tokenizer", swarm_.path("absent"), "--vocabulary", "300", "--out", tokenizer}), 66);
}

TEST_F(LiveTokenFileTest, InitWritesARunFileThatPlansAndTrains) {
  const std::string text = write_text("mine.txt", 4000), out = swarm_.path("run.toml");
  const std::vector<std::string> words = {"init",       "--text", text,    "--size", "0.1M",     "--stages", "2",
                                          "--replicas", "2",      "--out", out,      "--tokens", "20k",      "--json"};
  ASSERT_EQ(run(words), 0) << errors();
  EXPECT_NEAR(json()["parameters"].get<double>(), 1e5, 2.5e4);
  EXPECT_EQ(json()["text"], "mine.txt") << "relative to the run file";
  EXPECT_EQ(run({"plan", out}), 0) << errors();
  ASSERT_EQ(run({"solo", out, "--json"}), 0) << errors();
  EXPECT_NEAR(json()["tokens"].get<double>(), 20e3, 256) << "microbatches are whole";

  EXPECT_EQ(run(words), 73) << "what is there stays";
  EXPECT_TRUE(says(errors(), "run.toml exists already. HINT: --out FILE, or --force")) << errors();
  auto forced = words;
  forced.push_back("--force");
  EXPECT_EQ(run(forced), 0) << errors();
}

TEST_F(LiveTokenFileTest, InitPreparesTheTextWithATokenizerAndNamesItsWidth) {
  const std::string text = write_text("mine.txt", 4000), out = swarm_.path("run.toml");
  ASSERT_EQ(run({"init", "--text", text, "--size", "300k", "--tokenizer", kTokenizer, "--out", out, "--tokens", "4k",
                 "--json"}),
            0)
      << errors();
  EXPECT_EQ(json()["text"], "mine.bin");
  ASSERT_EQ(run({"solo", out, "--json"}), 0) << errors();
  std::filesystem::remove(out);
  ASSERT_EQ(run({"init", "--text", swarm_.path("mine.bin"), "--size", "300k", "--out", out}), 0)
      << "the sidecar says how wide its ids are: " << errors();
  EXPECT_EQ(run({"init", "--text", swarm_.path("mine.bin"), "--size", "300", "--out", out, "--force"}), 64) << errors();
  EXPECT_EQ(run({"init", "--text", swarm_.path("mine.bin"), "--size", "20k", "--out", out, "--force"}), 65) << errors();
  EXPECT_TRUE(says(errors(), "the nearest has")) << errors();
  EXPECT_EQ(run({"init", "--text", swarm_.path("absent"), "--size", "1M", "--out", out, "--force"}), 66) << errors();
  EXPECT_EQ(run({"init", "--text", swarm_.write_file("a.jsonl", "{}"), "--size", "1M", "--out", out, "--force"}), 65);
  EXPECT_TRUE(says(errors(), "--tokenizer FILE makes ids of it")) << errors();
}

TEST_F(LiveTokenFileTest, APrepareThatIsStoppedLeavesNothing) {
  swarm_.start("command", {"data", "prepare", write_text("long.txt", 1'500'000), "--tokenizer", kTokenizer, "--out",
                           swarm_.path("long.bin"), "--fault", "output.step=delay:300"});
  ASSERT_TRUE(swarm_.wait_for_line(swarm_.path("command.err"), {"fault point output.step strikes"}));
  swarm_.process("command").send_signal(SIGTERM);
  EXPECT_EQ(swarm_.exit_code("command"), 143) << errors();
  for (const auto& entry : std::filesystem::directory_iterator(swarm_.path("")))
    EXPECT_FALSE(says(entry.path().filename(), "long.bin")) << entry.path();
}

TEST_F(LiveTokenFileTest, OutputsAndInputsHaveTheExitCodesOfThePage) {
  const std::string text = write_text("a.txt", 10), out = swarm_.path("a.bin");
  const auto prepare_of = [&](const std::string& in, const std::string& tokenizer, const std::string& to) {
    return run({"data", "prepare", in, "--tokenizer", tokenizer, "--out", to});
  };
  EXPECT_EQ(prepare_of(text, kTokenizer, swarm_.path("absent") + "/a.bin"), 73) << errors();
  EXPECT_EQ(prepare_of(swarm_.path("absent"), kTokenizer, out), 66) << errors();
  EXPECT_EQ(prepare_of(text, swarm_.path("absent"), out), 66) << errors();
  EXPECT_EQ(prepare_of(swarm_.write_file("bad.jsonl", "{}\n"), kTokenizer, out), 65) << errors();
  EXPECT_TRUE(says(errors(), "bad.jsonl:1: the line has no field \"text\"")) << errors();
  EXPECT_EQ(prepare_of(text, text, out), 65) << errors();
  EXPECT_EQ(run({"data", "prepare", text, "--tokenizer", kTokenizer, "--out", out, "--fault", "output.step=error@2"}),
            74);
  EXPECT_EQ(run({"data", "info", text}), 65) << errors();
  EXPECT_TRUE(says(errors(), "HINT: --width")) << errors();
  EXPECT_EQ(run({"data"}), 64);
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace shoal
