#pragma once
// Callbacks that may outlive the object that they are about: what a Lifetime guards does nothing once it is over.
//
//   loop.post(lifetime_.guard([this] { tick(); }));   // lifetime_ is a member: it ends with the object
//
// Thread: made, ended and asked on one thread (the loop), where guarded callbacks run too; they may be copied and
// destroyed on any.   Owns: one flag.
#include <memory>
#include <utility>

namespace shoal {

class Lifetime {
 public:
  // Outlives the Lifetime and says whether it is over: for code that goes on after a call that may have ended it.
  class Watch {
   public:
    bool over() const { return flag_.expired(); }

   private:
    friend class Lifetime;
    explicit Watch(const std::shared_ptr<const char>& flag) : flag_(flag) {}
    std::weak_ptr<const char> flag_;
  };

  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  // Before the object goes: no guarded callback runs from now on, also none that is made later. Twice is once.
  void end() { flag_.reset(); }
  bool over() const { return flag_ == nullptr; }
  Watch watch() const { return Watch(flag_); }

  // `callback` with the same arguments, without a result. One that is running when its Lifetime ends runs on.
  template <class Callback>
  auto guard(Callback callback) const {
    return [watch = watch(), callback = std::move(callback)](auto&&... arguments) mutable {
      if (!watch.over()) callback(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  std::shared_ptr<const char> flag_ = std::make_shared<const char>('\0');
};

}  // namespace shoal
