#include "runtime/solo/saved_model.h"

#include <filesystem>

#include "common/crypto/hash.h"
#include "runtime/solo/stage_chain.h"
#include "stages/stage_file.h"
#include "tests/solo/solo_rig.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SavedModelTest : public SoloRig {
 protected:
  // Two stages of numbers that differ.
  void save() {
    const RunConfig run = config("", 2);
    const auto specs = split_model(run.model_spec(), 2, {});
    ASSERT_TRUE(specs.ok());
    for (const StageSpec& spec : *specs) {
      std::vector<float> parameters(parameter_count(spec));
      initialise(spec, parameters);
      ASSERT_TRUE(save_stage(folder_.path(), spec, parameters).ok());
    }
    const Status finished = finish_saved_model(folder_.path(), run, *specs);
    ASSERT_TRUE(finished.ok()) << finished.error().message;
  }
  // Every file that belongs to the model.
  const std::vector<std::string> names_ = {stage_file_name(StageId(0), 2), stage_file_name(StageId(1), 2),
                                           kIndexFileName, kArchitectureFileName, kSavedConfigName};
};

TEST_F(SavedModelTest, EveryFileIsNamedWithItsDigest) {
  save();
  const std::string sums = ScratchFolder::read(folder_ / kSavedSumsName);
  std::string expected;
  for (const std::string& name : names_) {
    const std::string text = ScratchFolder::read(folder_ / name);
    expected +=
        hex_of(blake2b_256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()})) + "  " + name + "\n";
  }
  EXPECT_EQ(sums, expected) << "as b2sum -l 256 writes it";
  EXPECT_TRUE(check_saved_model(folder_.path()).ok());
  EXPECT_EQ(load_saved_config(folder_.path())->pipeline.stages, 2);
}

TEST_F(SavedModelTest, OfAModelWithABoundaryTheDigestsNameNoArchitecture) {
  save();
  RunConfig run = config("", 2);
  run.model.boundary = run.model.dim / 2;
  run.model.boundary_table = 0;
  run.model.cuts = {1};
  const auto specs = *split_model(run.model_spec(), 2, {});
  for (const StageSpec& spec : specs)
    ASSERT_TRUE(save_stage(folder_.path(), spec, std::vector<float>(parameter_count(spec))).ok());
  const Status finished = finish_saved_model(folder_.path(), run, specs);
  ASSERT_TRUE(finished.ok()) << finished.error().message;
  EXPECT_EQ(ScratchFolder::read(folder_ / kSavedSumsName).find(kArchitectureFileName), std::string::npos);
  EXPECT_TRUE(check_saved_model(folder_.path()).ok());
  EXPECT_EQ(load_saved_config(folder_.path())->model_spec(), run.model_spec());
}

TEST_F(SavedModelTest, TheTokenizerOfTheRunLiesBesideTheModelWhereItCanBeRead) {
  RunConfig run = config("", 2);
  save();
  const auto specs = *split_model(run.model_spec(), 2, {});
  run.data.tokenizer = folder_ / "away.json";
  ASSERT_TRUE(finish_saved_model(folder_.path(), run, specs).ok()) << "the model is not lost with it";
  EXPECT_EQ(ScratchFolder::read(folder_ / kSavedSumsName).find(kSavedTokenizerName), std::string::npos);
  run.data.tokenizer = folder_.write("other.json", "{\"model\": {}}");
  ASSERT_TRUE(finish_saved_model(folder_.path(), run, specs).ok());
  EXPECT_EQ(ScratchFolder::read(folder_ / kSavedTokenizerName), "{\"model\": {}}");
  EXPECT_NE(ScratchFolder::read(folder_ / kSavedSumsName).find(kSavedTokenizerName), std::string::npos);
}

TEST_F(SavedModelTest, OneChangedBitOfAnyFileIsFoundAndNamed) {
  save();
  for (const std::string& name : names_) {
    const std::string text = ScratchFolder::read(folder_ / name);
    std::string changed = text;
    changed[changed.size() - 2] = static_cast<char>(changed[changed.size() - 2] ^ 1);
    folder_.write(name, changed);
    const Status damaged = check_saved_model(folder_.path());
    ASSERT_FALSE(damaged.ok()) << name;
    EXPECT_EQ(damaged.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(damaged.error().message, AllOf(HasSubstr(folder_ / name), HasSubstr("HINT:")));
    EXPECT_EQ(StageChain::load(folder_.path(), factory()).code(), ErrorCode::kCorrupt) << name;
    folder_.write(name, text);
  }
  EXPECT_TRUE(check_saved_model(folder_.path()).ok());
}

TEST_F(SavedModelTest, AFileThatIsAwayIsMissingAndDigestsThatAreNoneAreDamage) {
  save();
  const std::string sums = ScratchFolder::read(folder_ / kSavedSumsName);
  std::filesystem::remove(folder_ / names_[1]);
  EXPECT_EQ(check_saved_model(folder_.path()).code(), ErrorCode::kMissing);
  const std::string digest = sums.substr(0, 64);
  for (const std::string& line : {std::string("\n"), std::string("not a digest  a\n"), digest + "\n", digest + "  \n",
                                  digest + " a\n", digest + "  ../" + names_[0] + "\n"}) {
    folder_.write(kSavedSumsName, line);
    EXPECT_EQ(check_saved_model(folder_.path()).code(), ErrorCode::kCorrupt) << line;
  }
}

TEST_F(SavedModelTest, WhatAnOlderProgramSavedHasNoDigests) {
  save();
  std::filesystem::remove(folder_ / kSavedSumsName);
  EXPECT_TRUE(check_saved_model(folder_.path()).ok());
}

}  // namespace
}  // namespace shoal
