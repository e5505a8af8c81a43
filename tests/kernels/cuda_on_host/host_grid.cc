#include "tests/kernels/cuda_on_host/host_grid.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "common/check.h"
#include "tests/kernels/cuda_on_host/access_watch.h"
#include "tests/kernels/cuda_on_host/cuda_runtime.h"
#include "tests/kernels/cuda_on_host/fiber.h"

uint3 threadIdx, blockIdx;
dim3 blockDim{1}, gridDim{1};

namespace shoal::cuda_on_host {
namespace {

constexpr unsigned kThreadsMax = 1024;  // of a block
constexpr std::size_t kStackBytes = std::size_t{128} << 10;

struct Wait {
  Meeting meeting = Meeting::kBarrier;
  unsigned mask = 0;
  std::uint64_t value = 0;
  int parameter = 0, width = 0, line = 0;
  bool is_of(const Wait& other) const { return meeting == other.meeting && mask == other.mask && width == other.width; }
};

enum class State : std::uint8_t { kReady, kWaits, kLeft };

struct HostThread {
  Fiber fiber;
  Actor actor;
  State state = State::kReady;
  Wait wait;
  std::uint64_t got = 0;
};

const char* name_of(Meeting meeting) {
  switch (meeting) {
    case Meeting::kBarrier:
      return "__syncthreads";
    case Meeting::kSyncWarp:
      return "__syncwarp";
    case Meeting::kIndex:
      return "__shfl_sync";
    case Meeting::kDown:
      return "__shfl_down_sync";
    case Meeting::kXor:
      return "__shfl_xor_sync";
  }
  return "";
}

std::string name_of(const HostThread& thread) {
  return "thread " + std::to_string(thread.actor.thread) + " of block " + std::to_string(thread.actor.block);
}

std::string place_of(const Wait& wait) {
  return std::string(name_of(wait.meeting)) + " (line " + std::to_string(wait.line) + ")";
}

// Which lane a shuffle reads: PTX, shfl.sync.
unsigned source_of(const Wait& wait, unsigned lane) {
  const unsigned width = static_cast<unsigned>(wait.width), parameter = static_cast<unsigned>(wait.parameter);
  const unsigned first = lane & ~(width - 1), last = first + width - 1;
  switch (wait.meeting) {
    case Meeting::kIndex:
      return first | (parameter & (width - 1));
    case Meeting::kDown:
      return last - lane >= parameter ? lane + parameter : lane;
    case Meeting::kXor:
      return (lane ^ parameter) <= last ? lane ^ parameter : lane;
    default:
      return lane;
  }
}

class HostGrid {
 public:
  AccessWatch& watch() { return watch_; }
  void set_order(Order order) { order_ = order; }
  const std::string& mistake() const { return mistake_; }

  bool run(KernelCall call, Kernel kernel, dim3 blocks, dim3 threads, void** arguments);

  // From inside of a kernel; elsewhere nothing happens.
  bool in_kernel() const { return running_ != nullptr && !busy_; }
  std::uint64_t meet(const Wait& wait);
  void access(const void* at, std::size_t bytes, Access access);
  [[noreturn]] void fail(std::string what);
  [[noreturn]] static void body();

 private:
  void make_threads(unsigned count);
  void run_block(unsigned block);
  std::vector<unsigned> ordered(unsigned count);
  void enter(HostThread& thread);
  void gather(const HostThread& last);
  void gather_warp(const HostThread& last);
  void pass_barrier();
  std::string who_waits() const;

  AccessWatch watch_;
  Order order_ = Order::kForward;
  std::mt19937 dice_;
  std::vector<HostThread> pool_;  // of kThreadsMax, made once
  std::span<HostThread> threads_;
  HostThread* running_ = nullptr;
  bool busy_ = false;  // with a call from inside: its own accesses are none of the kernel's
  unsigned at_barrier_ = 0, left_ = 0;
  KernelCall call_ = nullptr;
  Kernel kernel_ = nullptr;
  void** arguments_ = nullptr;
  std::string mistake_;
};

HostGrid& grid() {
  static HostGrid* const one = new HostGrid;  // never destroyed: fibers may stand in it
  return *one;
}

void HostGrid::make_threads(unsigned count) {
  if (pool_.empty()) {
    pool_ = std::vector<HostThread>(kThreadsMax);
    void* stacks = mmap(nullptr, kThreadsMax * kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    SHOAL_CHECK(stacks != MAP_FAILED);
    for (unsigned i = 0; i < kThreadsMax; ++i) {
      char* stack = static_cast<char*>(stacks) + i * kStackBytes;
      SHOAL_CHECK_EQ(mprotect(stack, 4096, PROT_NONE), 0);
      pool_[i].fiber.use_stack(stack + 4096, kStackBytes - 4096);
    }
  }
  threads_ = std::span(pool_).first(count);
}

std::vector<unsigned> HostGrid::ordered(unsigned count) {
  std::vector<unsigned> all(count);
  std::iota(all.begin(), all.end(), 0u);
  if (order_ == Order::kBackward) std::reverse(all.begin(), all.end());
  if (order_ == Order::kShuffled) std::shuffle(all.begin(), all.end(), dice_);
  return all;
}

bool HostGrid::run(KernelCall call, Kernel kernel, dim3 blocks, dim3 threads, void** arguments) {
  mistake_.clear();
  call_ = call;
  kernel_ = kernel;
  arguments_ = arguments;
  gridDim = blocks;
  blockDim = threads;
  make_threads(threads.x * threads.y * threads.z);
  watch_.begin_launch();
  for (const unsigned block : ordered(blocks.x * blocks.y * blocks.z)) {
    blockIdx = {block % blocks.x, block / blocks.x % blocks.y, block / blocks.x / blocks.y};
    run_block(block);
    if (mistake_.empty()) continue;
    for (HostThread& thread : threads_) thread.fiber.drop();
    return false;
  }
  return true;
}

void HostGrid::run_block(unsigned block) {
  watch_.begin_block();
  at_barrier_ = left_ = 0;
  for (unsigned i = 0; i < threads_.size(); ++i) {
    threads_[i].actor = Actor{block, i, 0, {}};
    threads_[i].state = State::kReady;
  }
  const std::vector<unsigned> order = ordered(static_cast<unsigned>(threads_.size()));
  while (left_ < threads_.size()) {
    bool ran = false;
    for (const unsigned i : order) {
      if (threads_[i].state != State::kReady) continue;
      ran = true;
      enter(threads_[i]);
      if (!mistake_.empty()) return;
    }
    if (ran) continue;
    mistake_ = who_waits();
    return;
  }
}

void HostGrid::enter(HostThread& thread) {
  const unsigned i = thread.actor.thread;
  threadIdx = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
  running_ = &thread;
  busy_ = false;
  thread.fiber.enter(body);
  running_ = nullptr;
}

void HostGrid::body() {
  HostGrid& self = grid();
  for (;;) {
    self.call_(self.kernel_, self.arguments_);
    self.busy_ = true;
    HostThread& thread = *self.running_;
    thread.state = State::kLeft;
    ++self.left_;
    thread.fiber.leave();
  }
}

void HostGrid::fail(std::string what) {
  busy_ = true;
  mistake_ = std::move(what);
  running_->fiber.leave();
  SHOAL_CHECK(false);  // it was dropped
  __builtin_unreachable();
}

std::uint64_t HostGrid::meet(const Wait& wait) {
  HostThread& self = *running_;
  busy_ = true;
  if (wait.meeting != Meeting::kBarrier && (wait.mask >> self.actor.lane() & 1u) == 0)
    fail(name_of(self) + " is not named by its own mask in " + place_of(wait));
  self.wait = wait;
  self.state = State::kWaits;
  gather(self);
  if (self.state == State::kWaits) self.fiber.leave();
  busy_ = false;
  return self.got;
}

// Whether all have come that wait for each other, now that one more does.
void HostGrid::gather(const HostThread& last) {
  if (last.wait.meeting != Meeting::kBarrier) return gather_warp(last);
  if (++at_barrier_ == threads_.size()) pass_barrier();
}

void HostGrid::pass_barrier() {
  at_barrier_ = 0;
  for (HostThread& thread : threads_) {
    ++thread.actor.barriers;
    thread.state = State::kReady;
  }
}

void HostGrid::gather_warp(const HostThread& last) {
  const Wait wait = last.wait;
  const unsigned first = last.actor.thread - last.actor.lane();
  std::vector<HostThread*> members;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if ((wait.mask >> lane & 1u) == 0) continue;
    if (first + lane >= threads_.size()) return;
    HostThread& member = threads_[first + lane];
    if (member.state != State::kWaits || !member.wait.is_of(wait)) return;
    members.push_back(&member);
  }
  std::array<std::uint32_t, kWarpLanes> behind{};
  for (const HostThread* member : members) {
    for (unsigned lane = 0; lane < kWarpLanes; ++lane)
      behind[lane] = std::max(behind[lane], member->actor.behind[lane]);
  }
  for (const HostThread* member : members) ++behind[member->actor.lane()];
  for (HostThread* member : members) {
    const unsigned lane = member->actor.lane(), source = source_of(member->wait, lane);
    if ((wait.mask >> source & 1u) == 0)
      fail(name_of(*member) + " reads in " + place_of(member->wait) + " from lane " + std::to_string(source) +
           ", which takes no part");
    member->got = threads_[first + source].wait.value;
    if (wait.meeting == Meeting::kSyncWarp) member->actor.behind = behind;
  }
  for (HostThread* member : members) member->state = State::kReady;
}

// One that waits for ever, and the first that it waits for.
std::string HostGrid::who_waits() const {
  for (const HostThread& thread : threads_) {
    if (thread.state != State::kWaits) continue;
    const bool barrier = thread.wait.meeting == Meeting::kBarrier;
    const std::string what = name_of(thread) + " waits for ever in " + place_of(thread.wait) + ": ";
    const std::size_t first = barrier ? 0 : thread.actor.thread - thread.actor.lane();
    const std::size_t end = barrier ? threads_.size() : first + kWarpLanes;
    for (std::size_t i = first; i < end; ++i) {
      if (!barrier && (thread.wait.mask >> (i - first) & 1u) == 0) continue;
      if (i >= threads_.size()) return what + "its block has no lane " + std::to_string(i - first) + " in this warp";
      const HostThread& other = threads_[i];
      if (other.state == State::kLeft) return what + name_of(other) + " has left";
      if (!other.wait.is_of(thread.wait)) return what + name_of(other) + " waits in " + place_of(other.wait);
    }
  }
  return "no thread goes on";
}

void HostGrid::access(const void* at, std::size_t bytes, Access access) {
  busy_ = true;
  const HostThread& self = *running_;
  std::string wrong = watch_.judge(self.actor, {self.fiber.stack_begin(), self.fiber.stack_end()}, at, bytes, access);
  if (!wrong.empty()) fail(std::move(wrong));
  busy_ = false;
}

cudaError_t last_error = cudaSuccess;

cudaError_t remembered(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace

void run_in_order(Order order) { grid().set_order(order); }

std::uint64_t meet(Meeting meeting, unsigned mask, std::uint64_t value, int parameter, int width, int line) {
  return grid().meet({meeting, mask, value, parameter, width, line});
}

void atomic_access(const void* at, std::size_t bytes) { grid().access(at, bytes, Access::kAtomic); }

cudaError_t run_grid(KernelCall call, Kernel kernel, dim3 blocks, dim3 threads, void** arguments) {
  const std::uint64_t count = std::uint64_t{threads.x} * threads.y * threads.z;
  if (count == 0 || count > kThreadsMax || blocks.x == 0 || blocks.y == 0 || blocks.z == 0)
    return remembered(cudaErrorInvalidConfiguration);
  return remembered(grid().run(call, kernel, blocks, threads, arguments) ? cudaSuccess : cudaErrorLaunchFailure);
}

void seen(const void* at, std::size_t bytes, Access access) {
  if (grid().in_kernel()) grid().access(at, bytes, access);
}
void seen_misaligned(const char* file, unsigned line, const void* at, unsigned bytes) {
  if (!grid().in_kernel()) return;
  grid().fail("an address that is not a multiple of " + std::to_string(bytes) + " at " + file + ":" +
              std::to_string(line) + " (" + std::to_string(reinterpret_cast<std::uintptr_t>(at) % bytes) + " over)");
}

}  // namespace shoal::cuda_on_host

using shoal::cuda_on_host::Access;
using shoal::cuda_on_host::grid;
using shoal::cuda_on_host::remembered;

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = grid().watch().allocate(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  return memory == nullptr || grid().watch().release(memory) ? cudaSuccess : remembered(cudaErrorInvalidValue);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const void* device = kind == cudaMemcpyHostToDevice ? to : from;
  if (!grid().watch().is_of_array(device, bytes)) return remembered(cudaErrorInvalidValue);
  if (bytes > 0) std::memcpy(to, from, bytes);
  if (kind == cudaMemcpyHostToDevice) grid().watch().written_by_host(to, bytes);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) { return cudaFree(memory); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return std::exchange(shoal::cuda_on_host::last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorLaunchFailure:
      return grid().mistake().c_str();
  }
  return "";
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "this CPU, judging each access");
  properties->totalGlobalMem = std::size_t{1} << 30;
  properties->major = 8;
  properties->minor = 0;
  return cudaSuccess;
}
