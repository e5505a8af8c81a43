// A checkpoint as bytes: round trips, and what is flipped, cut or of another program.
#include "state/checkpoint.h"

#include <gmock/gmock.h>

#include <limits>

#include "stages/safetensors.h"
#include "tests/state/checkpoint_rig.h"

namespace shoal {
namespace {

using test::file_of;
using test::image_of;
using test::key_numbered;
using test::parse_file;
using test::run_numbered;
using test::tiny_spec;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint8_t> diloco_file() {
  return file_of(checkpoint_parts({.run = run_numbered(3), .sequence = 9, .saved_s = 1000},
                                  image_of(*make_diloco_rule(), Version(12)), key_numbered(1)));
}

bool same(const Checkpoint& a, const Checkpoint& b) {
  const auto same_bytes = std::ranges::equal(a.image.view(), b.image.view());
  return same_bytes && a.info.run == b.info.run && a.info.peer == b.info.peer && a.info.digest == b.info.digest &&
         a.info.sequence == b.info.sequence && a.info.saved_s == b.info.saved_s;
}

TEST(CheckpointTest, ComesBackAsItWasWritten) {
  for (const RuleId id : {RuleId::kAllreduce, RuleId::kDiloco}) {
    const Bytes image = image_of(*OuterRules().of(id), Version(12));
    const KeyPair key = key_numbered(1);
    const CheckpointOrigin origin{
        .run = run_numbered(3), .sequence = std::numeric_limits<std::uint64_t>::max(), .saved_s = 1'700'000'000};
    const auto read = parse_file(file_of(checkpoint_parts(origin, image, key)));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(std::ranges::equal(read->image.view(), image.view())) << "also the tag, which no float could hold";
    EXPECT_EQ(read->info.run, origin.run);
    EXPECT_EQ(read->info.peer, key.id());
    EXPECT_EQ(read->info.sequence, origin.sequence);
    EXPECT_EQ(read->info.saved_s, origin.saved_s);
    EXPECT_EQ(read->info.digest, digest_of_image(image));
    EXPECT_EQ(read->info.state.rule, id);
    EXPECT_EQ(read->info.state.version, Version(12));
    EXPECT_EQ(read->info.state.stage, tiny_spec().stage);
    EXPECT_EQ(read->info.state.tag, ~CountTag{7});
    EXPECT_EQ(read->info.state.floats, kIntegerParameters);
    EXPECT_EQ(read->info.state.roles, OuterRules().of(id)->shared_roles().size());
  }
}

TEST(CheckpointTest, IsASafetensorsFileThatSaysWhatItIs) {
  for (const RuleId id : {RuleId::kAllreduce, RuleId::kDiloco}) {
    const Bytes image = image_of(*OuterRules().of(id), Version(12));
    const auto file = parse_safetensors(
        Bytes::from_vector(file_of(checkpoint_parts({.run = run_numbered(3)}, image, key_numbered(1)))));
    ASSERT_TRUE(file.ok()) << file.error().message;
    std::vector<std::string> keys, names;
    for (const auto& [key, value] : file->metadata) keys.push_back(key);
    for (const NamedTensor& tensor : file->tensors) {
      names.push_back(tensor.name);
      EXPECT_EQ(tensor.tensor.shape, Shape{static_cast<std::int64_t>(kIntegerParameters)});
    }
    EXPECT_THAT(keys, ElementsAre("format", "shoal.checkpoint", "shoal.digest", "shoal.peer", "shoal.rule", "shoal.run",
                                  "shoal.saved", "shoal.sequence", "shoal.signature", "shoal.stage", "shoal.tag",
                                  "shoal.version"));
    if (id == RuleId::kAllreduce) {
      EXPECT_THAT(names, ElementsAre("anchor", "shared.1.moment1", "shared.2.moment2"));
    } else {
      EXPECT_THAT(names, ElementsAre("anchor", "shared.1.outer_momentum"));
    }
    EXPECT_EQ(file->metadata.at("shoal.rule"), kRuleNames[static_cast<std::size_t>(id)]);
    EXPECT_EQ(file->metadata.at("shoal.version"), "12");
  }
}

// What a flip of a byte outside of what counts gives (the padding, `format`) is the checkpoint as it was.
TEST(CheckpointTest, AFlippedByteIsNoticedOrChangesNothing) {
  const std::vector<std::uint8_t> file = diloco_file();
  const auto whole = parse_file(file);
  ASSERT_TRUE(whole.ok());
  std::size_t noticed = 0, tried = 0;
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const std::uint8_t mask : {0x01, 0x20, 0x80, 0xff}) {
      std::vector<std::uint8_t> flipped = file;
      flipped[at] ^= mask;
      const auto read = parse_file(std::move(flipped));
      ++tried;
      noticed += read.ok() ? 0 : 1;
      EXPECT_TRUE(!read.ok() || same(*read, *whole)) << "byte " << at << " mask " << int{mask};
    }
  }
  EXPECT_GT(noticed, tried * 9 / 10);
}

TEST(CheckpointTest, ACutFileIsAnErrorAtEveryLength) {
  const std::vector<std::uint8_t> file = diloco_file();
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parse_file({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)}).ok()) << size;
  std::vector<std::uint8_t> longer = file;
  longer.push_back(0);
  EXPECT_FALSE(parse_file(std::move(longer)).ok());
}

TEST(CheckpointTest, AValueThatIsNotFiniteIsRefusedWhoeverSignsIt) {
  std::vector<std::uint8_t> image;
  const Bytes good = image_of(*make_diloco_rule(), Version(12));
  image.assign(good.data(), good.data() + good.size());
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(image.data() + image.size() - sizeof bad, &bad, sizeof bad);
  const auto read = parse_file(file_of(checkpoint_parts({}, Bytes::from_vector(std::move(image)), key_numbered(1))));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.code(), ErrorCode::kNonFinite);
}

TEST(CheckpointTest, TheFormatOfALaterProgramIsNamed) {
  std::vector<std::uint8_t> file = diloco_file();
  std::string text(file.begin(), file.end());
  const std::string key = "\"shoal.checkpoint\":\"";
  file[text.find(key) + key.size()] = '2';
  const auto read = parse_file(std::move(file));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(read.error().message, HasSubstr("format 2, this program reads 1"));
}

// Bytes that a reader of any other language may have shifted: the arrays then lie on no multiple of four.
TEST(CheckpointTest, ReadsAHeaderOfAnyLength) {
  const std::vector<std::uint8_t> file = diloco_file();
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  for (std::uint64_t more = 1; more < 8; ++more) {
    std::vector<std::uint8_t> shifted = file;
    shifted.insert(shifted.begin() + static_cast<std::ptrdiff_t>(8 + length), more, std::uint8_t{' '});
    const std::uint64_t longer = length + more;
    std::memcpy(shifted.data(), &longer, sizeof longer);
    const auto read = parse_file(std::move(shifted));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(same(*read, *parse_file(file)));
  }
}

TEST(CheckpointTest, SaysThatItIsOneAlsoWhereItIsDamagedBehindItsHeader) {
  std::vector<std::uint8_t> file = diloco_file();
  EXPECT_TRUE(says_checkpoint(ByteView(file)));
  const std::size_t header = 8 + file[0] + 256u * file[1];
  for (std::size_t length = 0; length <= file.size(); ++length)
    EXPECT_EQ(says_checkpoint(ByteView(file).first(length)), length >= header) << length;
  NamedTensor tensor{"anchor", {DType::kF32, Shape{2}, ByteView(file).first(8)}};
  const auto other = file_of(safetensors_parts({{"shoal.model", "1"}}, {tensor}));
  EXPECT_FALSE(says_checkpoint(ByteView(other)));
}

}  // namespace
}  // namespace shoal
