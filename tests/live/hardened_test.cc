// The programs that strangers can reach are built so that a mistake in reading their bytes does not become their code.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

template <typename Record>
Record record_at(const std::string& file, std::size_t offset) {
  Record record{};
  EXPECT_LE(offset + sizeof record, file.size());
  if (offset + sizeof record <= file.size()) std::memcpy(&record, file.data() + offset, sizeof record);
  return record;
}

class HardenedTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    file_ = ScratchFolder::read(std::string(SHOAL_BINARY_DIR "/bin/") + GetParam());
    ASSERT_GT(file_.size(), sizeof(Elf64_Ehdr)) << GetParam() << " was not built";
    const auto head = record_at<Elf64_Ehdr>(file_, 0);
    for (std::size_t i = 0; i < head.e_phnum; ++i)
      segments_.push_back(record_at<Elf64_Phdr>(file_, head.e_phoff + i * sizeof(Elf64_Phdr)));
  }

  const Elf64_Phdr* segment(Elf64_Word type) const {
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == type) return &segment;
    return nullptr;
  }

  Elf64_Xword dynamic_value(Elf64_Sxword tag) const {
    const Elf64_Phdr* dynamic = segment(PT_DYNAMIC);
    for (std::size_t at = 0; dynamic && at + sizeof(Elf64_Dyn) <= dynamic->p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = record_at<Elf64_Dyn>(file_, dynamic->p_offset + at);
      if (entry.d_tag == tag) return entry.d_un.d_val;
    }
    return 0;
  }

  std::string file_;
  std::vector<Elf64_Phdr> segments_;
};

TEST_P(HardenedTest, LiesAtAnyAddress) { EXPECT_NE(dynamic_value(DT_FLAGS_1) & DF_1_PIE, 0u); }

TEST_P(HardenedTest, BindsAllAtItsStartAndKeepsTheTablesReadOnly) {
  EXPECT_NE(segment(PT_GNU_RELRO), nullptr);
  EXPECT_NE(dynamic_value(DT_FLAGS_1) & DF_1_NOW, 0u);
}

TEST_P(HardenedTest, ExecutesNoStackAndGuardsIt) {
  ASSERT_NE(segment(PT_GNU_STACK), nullptr);
  EXPECT_EQ(segment(PT_GNU_STACK)->p_flags & PF_X, 0u);
  EXPECT_NE(file_.find("__stack_chk_fail"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Programs, HardenedTest, testing::Values("shoal", "shoal-dht"), [](const auto& info) {
  return std::string(info.param == std::string("shoal") ? "Shoal" : "ShoalDht");
});

}  // namespace
}  // namespace shoal
