#pragma once
// What every Storage keeps. A rig is a loop rig that also has: Storage& storage(); std::string path(name): absent at
// first; std::string full_path(): a file that can be opened and whose disk is full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/storage.h"
#include "tests/common/loop_rig.h"

namespace shoal {

inline std::string text_in(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline Bytes text_bytes(std::string_view text) { return Bytes::copy_of(text); }

template <class Rig>
class StorageContract : public testing::Test {
 protected:
  Rig rig_;
  Storage& storage() { return rig_.storage(); }
  std::unique_ptr<AppendFile> open(const std::string& path) {
    auto file = storage().open_append(path);
    EXPECT_TRUE(file.ok()) << file.error().message;
    return std::move(file).value();
  }
  std::string content(const std::string& path) { return text_in(storage().read(path, 1 << 20).value()); }
};
TYPED_TEST_SUITE_P(StorageContract);

TYPED_TEST_P(StorageContract, AppendedBytesAreThereInOrderWhenSyncAnswers) {
  const std::string path = this->rig_.path("log");
  auto file = this->open(path);
  std::vector<int> order;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    file->append(text_bytes("one "));
    file->append(text_bytes(""));
    file->sync([&](Status status) {
      EXPECT_TRUE(status.ok());
      EXPECT_EQ(this->content(path).substr(0, 4), "one ");
      order.push_back(1);
    });
    file->append(text_bytes("two"));
    file->sync([&, finish](Status status) {
      EXPECT_TRUE(status.ok());
      order.push_back(2);
      finish();
    });
    EXPECT_TRUE(order.empty());  // never inside the call
  }));
  EXPECT_EQ(this->content(path), "one two");
  EXPECT_THAT(order, testing::ElementsAre(1, 2));
}

TYPED_TEST_P(StorageContract, ReopenedFileGoesOnBehindWhatWasThere) {
  const std::string path = this->rig_.path("log");
  for (const char* text : {"a", "b"}) {
    auto file = this->open(path);
    ASSERT_TRUE(this->rig_.run([&](Finish finish) {
      file->append(text_bytes(text));
      file->sync([finish](Status status) {
        EXPECT_TRUE(status.ok());
        finish();
      });
    }));
  }
  EXPECT_EQ(this->content(path), "ab");
}

TYPED_TEST_P(StorageContract, OneHolderAtATime) {
  const std::string path = this->rig_.path("log");
  auto first = this->open(path);
  auto second = this->storage().open_append(path);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), ErrorCode::kBusy);
  EXPECT_THAT(second.error().message, testing::HasSubstr(path));
  first.reset();
  EXPECT_TRUE(this->storage().open_append(path).ok());
}

TYPED_TEST_P(StorageContract, ReadNamesWhatIsMissingOrTooLarge) {
  const std::string path = this->rig_.path("some");
  const auto missing = this->storage().read(path, 10);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.code(), ErrorCode::kMissing);
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    this->storage().replace(path, {text_bytes("0123456789")}, [finish](Status status) {
      EXPECT_TRUE(status.ok());
      finish();
    });
  }));
  EXPECT_TRUE(this->storage().read(path, 10).ok());
  const auto large = this->storage().read(path, 9);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.code(), ErrorCode::kTooLarge);
}

TYPED_TEST_P(StorageContract, ReadsFromTheMiddleAsFarAsTheFileGoes) {
  const std::string path = this->rig_.path("some");
  std::vector<std::uint8_t> into(4, 'x');
  EXPECT_EQ(this->storage().read_at(path, 0, into).code(), ErrorCode::kMissing);
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    this->storage().replace(path, {text_bytes("0123456789")}, [finish](const Status&) { finish(); });
  }));
  for (const auto& [at, text] :
       std::map<std::uint64_t, std::string>{{0, "0123"}, {5, "5678"}, {8, "8978"}, {99, "8978"}}) {
    EXPECT_EQ(this->storage().read_at(path, at, into).value(), 10u);
    EXPECT_EQ(text_in(Bytes::copy_of(ByteView(into))), text);
  }
}

TYPED_TEST_P(StorageContract, ReplaceSwapsTheWholeContentAndTheLastOneWins) {
  const std::string path = this->rig_.path("state");
  std::vector<int> order;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    this->storage().replace(path, {text_bytes("a long first content")}, [&](Status status) {
      EXPECT_TRUE(status.ok());
      order.push_back(1);
    });
    this->storage().replace(path, {text_bytes("se"), text_bytes("cond")}, [&, finish](Status status) {
      EXPECT_TRUE(status.ok());
      order.push_back(2);
      finish();
    });
  }));
  EXPECT_EQ(this->content(path), "second");
  EXPECT_THAT(order, testing::ElementsAre(1, 2));
}

TYPED_TEST_P(StorageContract, TruncateCutsATornTail) {
  const std::string path = this->rig_.path("log");
  EXPECT_EQ(this->storage().truncate(path, 0).code(), ErrorCode::kMissing);
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    this->storage().replace(path, {text_bytes("whole torn")}, [finish](Status) { finish(); });
  }));
  ASSERT_TRUE(this->storage().truncate(path, 6).ok());
  auto file = this->open(path);
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    file->append(text_bytes("again"));
    file->sync([finish](Status) { finish(); });
  }));
  EXPECT_EQ(this->content(path), "whole again");
}

TYPED_TEST_P(StorageContract, AHolderReadsAndCutsItsFileAndAppendsBehindTheCut) {
  const std::string path = this->rig_.path("log");
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    this->storage().replace(path, {text_bytes("whole torn")}, [finish](Status) { finish(); });
  }));
  auto file = this->open(path);
  EXPECT_EQ(this->content(path), "whole torn");
  ASSERT_TRUE(this->storage().truncate(path, 6).ok());
  EXPECT_EQ(this->storage().open_append(path).code(), ErrorCode::kBusy) << "the cut gives no lock up";
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    file->append(text_bytes("again"));
    file->sync([finish](Status status) {
      EXPECT_TRUE(status.ok());
      finish();
    });
  }));
  EXPECT_EQ(this->content(path), "whole again");
}

TYPED_TEST_P(StorageContract, WhatIsWrittenOnceMoreChangesNothingElse) {
  const std::string path = this->rig_.path("log");
  EXPECT_EQ(this->storage().rewrite(path, 0, text_bytes("x")).code(), ErrorCode::kMissing);
  ASSERT_TRUE(this->rig_.run(
      [&](Finish finish) { this->storage().replace(path, {text_bytes("one two")}, [finish](Status) { finish(); }); }));
  auto file = this->open(path);
  ASSERT_TRUE(this->storage().rewrite(path, 4, text_bytes("two")).ok());
  EXPECT_EQ(this->content(path), "one two");
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    file->append(text_bytes(" three"));
    file->sync([finish](Status status) {
      EXPECT_TRUE(status.ok());
      finish();
    });
  }));
  EXPECT_EQ(this->content(path), "one two three");
}

TYPED_TEST_P(StorageContract, FullDiskIsToldToEverySyncFromThenOn) {
  auto file = this->open(this->rig_.full_path());
  std::vector<ErrorCode> codes;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    file->append(text_bytes("does not fit"));
    file->sync([&, finish](Status first) {
      ASSERT_FALSE(first.ok());
      codes.push_back(first.code());
      EXPECT_THAT(first.error().message, testing::HasSubstr("o space left"));
      file->append(text_bytes("more"));
      file->sync([&, finish](Status second) {
        codes.push_back(second.ok() ? ErrorCode::kInterrupted : second.code());
        finish();
      });
    });
  }));
  EXPECT_THAT(codes, testing::ElementsAre(ErrorCode::kIo, ErrorCode::kIo));
}

TYPED_TEST_P(StorageContract, ARestartedFileHasTheNewContentAndGoesOnBehindItUnderItsLock) {
  const std::string path = this->rig_.path("log");
  auto file = this->open(path);
  std::vector<int> order;
  ASSERT_TRUE(this->rig_.run([&](Finish finish) {
    file->append(text_bytes("a long first content"));
    file->sync([&](Status status) {
      EXPECT_TRUE(status.ok());
      order.push_back(1);
    });
    file->restart({text_bytes("sh"), text_bytes("ort")}, [&, finish](Status status) {
      EXPECT_TRUE(status.ok());
      order.push_back(2);
      EXPECT_EQ(this->content(path), "short");
      file->append(text_bytes(" and more"));
      file->sync([&, finish](Status second) {
        EXPECT_TRUE(second.ok());
        order.push_back(3);
        finish();
      });
    });
  }));
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(this->content(path), "short and more");
  EXPECT_EQ(this->storage().open_append(path).code(), ErrorCode::kBusy);
  file.reset();
  EXPECT_TRUE(this->storage().open_append(path).ok());
}

REGISTER_TYPED_TEST_SUITE_P(StorageContract, AppendedBytesAreThereInOrderWhenSyncAnswers,
                            ReopenedFileGoesOnBehindWhatWasThere, OneHolderAtATime, ReadNamesWhatIsMissingOrTooLarge,
                            ReadsFromTheMiddleAsFarAsTheFileGoes, ReplaceSwapsTheWholeContentAndTheLastOneWins,
                            TruncateCutsATornTail, AHolderReadsAndCutsItsFileAndAppendsBehindTheCut,
                            WhatIsWrittenOnceMoreChangesNothingElse, FullDiskIsToldToEverySyncFromThenOn,
                            ARestartedFileHasTheNewContentAndGoesOnBehindItUnderItsLock);

}  // namespace shoal
