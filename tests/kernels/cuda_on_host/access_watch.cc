#include "tests/kernels/cuda_on_host/access_watch.h"

#include <link.h>

#include <algorithm>

// What the linker calls the two ends of the program.
extern "C" const char __executable_start, _end;

namespace shoal::cuda_on_host {
namespace {

constexpr std::size_t kArrayAlignment = 256;

std::uintptr_t number_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

// The program's own thread-local variables, of this thread: the first object that the loader lists is the program.
int find_thread_locals(dl_phdr_info* object, std::size_t, void* found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_TLS || object->dlpi_tls_data == nullptr) continue;
    const std::uintptr_t begin = number_of(object->dlpi_tls_data);
    *static_cast<AccessWatch::Range*>(found) = {begin, begin + object->dlpi_phdr[i].p_memsz};
  }
  return 1;
}

std::string name_of(unsigned block, unsigned thread) {
  return "thread " + std::to_string(thread) + " of block " + std::to_string(block);
}

}  // namespace

AccessWatch::AccessWatch() : program_{number_of(&__executable_start), number_of(&_end)} {
  dl_iterate_phdr(find_thread_locals, &shared_);
  shared_cells_.resize(shared_.end - shared_.begin);
}

void* AccessWatch::allocate(std::size_t bytes) {
  Array array;
  array.memory.resize(bytes + 3 * kArrayAlignment, 0xcd);
  const std::uintptr_t first = number_of(array.memory.data()) + kArrayAlignment;
  const std::uintptr_t begin = (first + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
  array.range = {begin, begin + bytes};
  array.cells.resize(bytes);
  arrays_.emplace(begin, std::move(array));
  return reinterpret_cast<void*>(begin);
}

bool AccessWatch::release(void* array) {
  last_ = nullptr;
  return arrays_.erase(number_of(array)) > 0;
}

AccessWatch::Array* AccessWatch::array_of(std::uintptr_t at) {
  if (last_ != nullptr && last_->range.holds(at, 1)) return last_;
  const auto above = arrays_.upper_bound(at);
  if (above == arrays_.begin()) return nullptr;
  Array& array = std::prev(above)->second;
  if (!array.range.holds(at, 1)) return nullptr;
  return last_ = &array;
}

bool AccessWatch::is_of_array(const void* at, std::size_t bytes) {
  if (bytes == 0) return true;
  const Array* array = array_of(number_of(at));
  return array != nullptr && array->range.holds(number_of(at), bytes);
}

void AccessWatch::written_by_host(void* at, std::size_t bytes) {
  if (bytes == 0) return;
  Array& array = *array_of(number_of(at));
  const std::size_t offset = number_of(at) - array.range.begin;
  for (std::size_t i = offset; i < offset + bytes; ++i) array.cells[i].written = true;
}

std::string AccessWatch::describe(const Actor& actor, std::size_t bytes, Access access) const {
  const char* verb = access == Access::kRead ? " reads " : access == Access::kWrite ? " writes " : " changes ";
  return name_of(actor.block, actor.thread) + verb + std::to_string(bytes) + " bytes";
}

// Where an address is that belongs to nothing.
std::string AccessWatch::nowhere(std::uintptr_t at) {
  const auto above = arrays_.upper_bound(at);
  if (above != arrays_.begin()) {
    const Range& below = std::prev(above)->second.range;
    if (at - below.end < kArrayAlignment)
      return std::to_string(at - below.end) + " bytes behind the end of an array of " +
             std::to_string(below.end - below.begin);
  }
  if (above != arrays_.end() && above->first - at < kArrayAlignment)
    return std::to_string(above->first - at) + " bytes before the beginning of an array";
  return "where no array of the device is";
}

std::string AccessWatch::judge(const Actor& actor, const Range& stack, const void* address, std::size_t bytes,
                               Access access) {
  const std::uintptr_t at = number_of(address);
  if (stack.holds(at, bytes)) return {};
  if (Array* array = array_of(at)) {
    const std::size_t offset = at - array->range.begin;
    if (!array->range.holds(at, bytes))
      return describe(actor, bytes, access) + " at byte " + std::to_string(offset) + " of an array of " +
             std::to_string(array->range.end - array->range.begin);
    return judge_cells(actor, array->cells.data(), offset, bytes, access, "an array");
  }
  if (shared_.holds(at, bytes))
    return judge_cells(actor, shared_cells_.data(), at - shared_.begin, bytes, access, "shared memory");
  if (program_.holds(at, bytes)) {
    if (access == Access::kRead) return {};
    return describe(actor, bytes, access) + " of the program, as if it were constant";
  }
  return describe(actor, bytes, access) + " " + nowhere(at);
}

std::string AccessWatch::judge_cells(const Actor& actor, Cell* cells, std::size_t offset, std::size_t bytes,
                                     Access access, const std::string& where) {
  const bool shared = cells == shared_cells_.data();
  for (std::size_t i = offset; i < offset + bytes; ++i) {
    Cell& cell = cells[i];
    if (shared && cell.block != block_) cell = Cell{};
    cell.block = block_;
    const auto what = [&] {
      return describe(actor, bytes, access) + " at byte " + std::to_string(offset) + " of " + where;
    };
    if (const Mark* other = conflict(actor, cell, access)) {
      return what() + ", which " + name_of(other->block, other->thread) +
             (other->access == Access::kRead ? " reads" : " writes") + " with no order between them";
    }
    if (access != Access::kWrite && !cell.written) return what() + ", which nothing has written";
    note(actor, cell, access);
  }
  return {};
}

bool AccessWatch::lies_behind(const Actor& actor, const Mark& mark) const {
  if (mark.launch != launch_) return true;
  if (mark.block != actor.block) return false;
  if (mark.thread == actor.thread || mark.barriers < actor.barriers) return true;
  const bool one_warp = mark.thread / kWarpLanes == actor.thread / kWarpLanes;
  return one_warp && mark.met < actor.behind[mark.thread % kWarpLanes];
}

const AccessWatch::Mark* AccessWatch::conflict(const Actor& actor, const Cell& cell, Access access) const {
  const auto conflicts = [&](const Mark& mark) {
    if (access == Access::kRead && mark.access == Access::kRead) return false;
    if (access == Access::kAtomic && mark.access == Access::kAtomic) return false;
    return !lies_behind(actor, mark);
  };
  for (const Mark* mark : {&cell.write, &cell.reads[0], &cell.reads[1]})
    if (conflicts(*mark)) return mark;
  return nullptr;
}

void AccessWatch::note(const Actor& actor, Cell& cell, Access access) const {
  const Mark mark{
      launch_, actor.block, actor.barriers, actor.behind[actor.lane()], static_cast<std::uint16_t>(actor.thread),
      access};
  if (access != Access::kRead) {
    cell.write = mark;
    cell.written = true;
    return;
  }
  for (Mark& read : cell.reads) {
    if (!lies_behind(actor, read)) continue;
    read = mark;
    return;
  }
}

}  // namespace shoal::cuda_on_host
