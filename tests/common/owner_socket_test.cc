#include "common/os/owner_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "common/os/posix_file.h"
#include "common/os/thread_loop.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

class OwnerSocketTest : public testing::Test {
 protected:
  std::unique_ptr<OwnerSocket> listen(OwnerSocket::Take take) {
    std::unique_ptr<OwnerSocket> server;
    loop_.call([&] {
      auto made = OwnerSocket::listen(loop_.loop(), path_, std::move(take));
      ASSERT_TRUE(made.ok()) << made.error().message;
      server = *std::move(made);
    });
    return server;
  }
  void end(std::unique_ptr<OwnerSocket>& server) {
    loop_.call([&] { server.reset(); });
  }
  static void echo(const std::string& line, const OwnerSocket::Answer& answer) { answer("heard " + line); }

  ScratchFolder folder_;
  std::string path_ = folder_ / "control";
  LoopThread loop_;
};

TEST_F(OwnerSocketTest, ALineIsAnsweredByALineAndTheSocketIsItsOwnersAlone) {
  auto server = listen(echo);
  struct stat facts;
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  for (const std::string line : {"pause", "", "resume"}) {
    const auto answer = ask_line(path_, line);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(*answer, "heard " + line);
  }
  end(server);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(ask_line(path_, "pause").code(), ErrorCode::kMissing);
}

TEST_F(OwnerSocketTest, WhatAProcessLeftThatDiedIsReplaced) {
  {
    const Descriptor left(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path_.size(), sizeof address.sun_path);
    std::copy(path_.begin(), path_.end(), address.sun_path);
    ASSERT_EQ(::bind(left.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_EQ(ask_line(path_, "pause").code(), ErrorCode::kMissing) << "nobody listens there";
  auto server = listen(echo);
  EXPECT_EQ(*ask_line(path_, "pause"), "heard pause");
  end(server);
}

TEST_F(OwnerSocketTest, AFolderDeeperThanASocketsPathMayBeServes) {
  path_ = folder_ / std::string(120, 'd');
  std::filesystem::create_directory(path_);
  path_ += "/control";
  auto server = listen(echo);
  EXPECT_EQ(*ask_line(path_, "pause"), "heard pause");
  end(server);
}

TEST_F(OwnerSocketTest, AnAnswerMayComeLaterAndWhoWaitsHearsOfTheServersEnd) {
  OwnerSocket::Answer kept;
  std::promise<void> came;
  auto server = listen([&](const std::string&, OwnerSocket::Answer answer) {
    kept = std::move(answer);
    came.set_value();
  });
  auto first = std::async(std::launch::async, [&] { return ask_line(path_, "finish"); });
  came.get_future().wait();
  loop_.call([&] { kept("left"); });
  EXPECT_EQ(*first.get(), "left");
  loop_.call([&] { kept("again"); });  // nobody waits any more
  came = {};
  auto second = std::async(std::launch::async, [&] { return ask_line(path_, "finish"); });
  came.get_future().wait();
  end(server);
  EXPECT_EQ(*second.get(), "");
  loop_.call([&] { kept("too late"); });
}

TEST_F(OwnerSocketTest, ALineWithoutEndIsCutOffAndOthersAreHeardMeanwhile) {
  auto server = listen(echo);
  const Descriptor silent(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path_.begin(), path_.end(), address.sun_path);
  ASSERT_EQ(::connect(silent.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string endless(2 * kSocketLineMax, 'x');
  EXPECT_GT(::send(silent.get(), endless.data(), endless.size(), MSG_NOSIGNAL), 0);
  EXPECT_EQ(*ask_line(path_, "pause"), "heard pause");
  char byte = 0;
  EXPECT_LE(::recv(silent.get(), &byte, 1, 0), 0) << "it is hung up on";
  end(server);
}

}  // namespace
}  // namespace shoal
