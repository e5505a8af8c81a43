#include "runtime/stage_peer/device_queue.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "common/batch_work.h"

namespace shoal {

namespace {

class DeviceThread final : public DeviceQueue {
 public:
  explicit DeviceThread(EventLoop& loop) : loop_(loop), thread_([this] { work(); }) {}

  ~DeviceThread() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      queue_.clear();
    }
    ready_.notify_one();
    thread_.join();
  }

  void run(DeviceTask, std::function<void()> job, std::function<void()> done) override {
    {
      std::lock_guard lock(mutex_);
      queue_.push_back({std::move(job), std::move(done)});
    }
    ready_.notify_one();
  }

 private:
  struct Item {
    std::function<void()> job, done;
  };

  void work() {
    pthread_setname_np(pthread_self(), "device");  // seen in top and in profiles
    take_long_slices();
    while (true) {
      Item item;
      {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (stop_) return;
        item = std::move(queue_.front());
        queue_.pop_front();
      }
      item.job();
      item.job = nullptr;  // what it held is freed here, not on the loop
      loop_.post(std::move(item.done));
    }
  }

  EventLoop& loop_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Item> queue_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<DeviceQueue> make_device_thread(EventLoop& loop) { return std::make_unique<DeviceThread>(loop); }

}  // namespace shoal
