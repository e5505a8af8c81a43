#include "common/large_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <thread>

namespace shoal {
namespace {

constexpr std::size_t kPieceBytes = 8u << 20;  // while one is given back, page faults of others wait

// Lives as long as the process: memory is given back until its end.
class Reclaim {
 public:
  Reclaim() {
    std::thread([this] { run(); }).detach();
  }

  void add(std::uint8_t* memory, std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back({memory, bytes});
    }
    wake_.notify_one();
  }

 private:
  struct Item {
    std::uint8_t* memory;
    std::size_t bytes;
  };

  void run() {
    pthread_setname_np(pthread_self(), "reclaim");  // seen in top and in profiles
    while (true) {
      Item item;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return !queue_.empty(); });
        item = queue_.front();
        queue_.pop_front();
      }
      for (std::size_t at = 0; at < item.bytes; at += kPieceBytes)
        (void)::madvise(item.memory + at, std::min(kPieceBytes, item.bytes - at), MADV_DONTNEED);
      (void)::munmap(item.memory, item.bytes);
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Item> queue_;
};

}  // namespace

std::uint8_t* take_large(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::uint8_t*>(memory);
}

void give_back_large(std::uint8_t* memory, std::size_t bytes) {
  static Reclaim& reclaim = *new Reclaim;
  reclaim.add(memory, bytes);
}

}  // namespace shoal
