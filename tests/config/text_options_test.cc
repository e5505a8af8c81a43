// What RUN.toml says of the text.
#include <gmock/gmock.h>

#include "runtime/config/config.h"

namespace shoal {
namespace {

using testing::HasSubstr;

std::string files(const std::string& more) {
  return "[model]\nlayers = 2\ndim = 32\nheads = 4\npositions = 16\n[data]\npath = [\"a\", \"b\"]\n" + more;
}
std::string why(const std::string& more) {
  const auto config = parse_config(files(more), "run.toml");
  return config.ok() ? "it is taken" : config.error().message;
}

TEST(TextOptionsTest, WeightsGoWithTheFilesOfTheText) {
  const auto config = parse_config(files("weights = [0.5, 2]\nvalidation = \"v\"\nwidth = \"u16\"\n"), "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  const TextFiles text = config->text_files();
  EXPECT_EQ(text.paths, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(text.weights, (std::vector<double>{0.5, 2}));
  EXPECT_EQ(text.validation, "v");
  EXPECT_EQ(text.width, DType::kU16);
  EXPECT_THAT(why("weights = [1]\n"), HasSubstr("[data] weights has 1 numbers for the 2 files of path"));
  EXPECT_THAT(why("weights = [1, 0]\n"), HasSubstr("give each file a share above 0"));
  EXPECT_THAT(why("weights = [1, -1]\n"), HasSubstr("give each file a share above 0"));
}

// A manifest without digests was made by an older program.
TEST(TextOptionsTest, AManifestNamesTheTextByDigestsAlone) {
  auto config = parse_config(files(""), "run.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_TRUE(parse_manifest(*canonical_text(*config)).ok());
  Digest file, tokenizer;
  file.bytes[0] = 1;
  tokenizer.bytes[0] = 2;
  config->name_text({file}, tokenizer);
  const auto manifest = parse_manifest(*canonical_text(*config));
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(manifest->text_files().digests, std::vector<Digest>{file});
  EXPECT_EQ(manifest->text_files().tokenizer_digest, tokenizer);
}

}  // namespace
}  // namespace shoal
