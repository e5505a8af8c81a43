#pragma once
// What the authority wrote of rounds and sessions (docs/EVENTS.md, rules 2, 3, 9, 10).
#include "events/audit/audit_books.h"

namespace shoal {

class AuthorityStory {
 public:
  AuthorityStory(Books& books, Findings& findings) : books_(books), findings_(findings) {}

  void take(const ReadEvent& event);
  void finish();  // all files of the trainer are read: sums over versions

 private:
  void take_member(const ReadEvent& e);
  void take_over(const ReadEvent& e);
  void take_open(const ReadEvent& e);
  void take_abandoned(const ReadEvent& e);
  void take_round(const ReadEvent& e);
  void take_restored(const ReadEvent& e);
  void judge_restore(const ReadEvent& e);
  void take_back(const ReadEvent& e);
  void judge_left_out(const ReadEvent& e);
  bool is_repeat(const RoundFact& round);
  RoundFact& keep(RoundFact round);
  void take_version(const RoundFact& round);
  void take_secured(const ReadEvent& e, RoundFact& round);
  void compare(const RoundFact& round);

  Books& books_;
  Findings& findings_;
  std::map<std::uint16_t, std::uint64_t> opened_in_;  // life of the newest open round
};

}  // namespace shoal
