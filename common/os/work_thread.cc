#include "common/os/work_thread.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "common/os/batch_work.h"
#include "common/os/thread_waits.h"

namespace shoal {

namespace {

class WorkThread final : public WorkQueue {
 public:
  WorkThread(EventLoop& loop, std::string name)
      : loop_(loop), name_(std::move(name)), waits_(name_), thread_([this] { work(); }) {}

  ~WorkThread() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      queue_.clear();
    }
    ready_.notify_one();
    thread_.join();
  }

  void run(WorkKind task, std::function<void()> job, std::function<void()> done) override {
    {
      std::lock_guard lock(mutex_);
      queue_.push_back({task, std::move(job), std::move(done)});
    }
    ready_.notify_one();
  }

  Duration starved() override { return waits_.longest(loop_.now()); }

 private:
  struct Item {
    WorkKind task = WorkKind::kForward;
    std::function<void()> job, done;
  };

  void work() {
    pthread_setname_np(pthread_self(), name_.c_str());  // seen in top and in profiles
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
      loop_.post([&loop = loop_, task = item.task, done = std::move(item.done)] {
        loop.name_callback(name_of(task));
        done();
      });
    }
  }

  EventLoop& loop_;
  const std::string name_;
  ThreadWaits waits_;  // loop only
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Item> queue_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<WorkQueue> make_work_thread(EventLoop& loop, std::string name) {
  return std::make_unique<WorkThread>(loop, std::move(name));
}

}  // namespace shoal
