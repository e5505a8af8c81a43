#pragma once
// What the authority wrote of rounds and sessions (docs/EVENTS.md, rules 2, 3, 9, 10).
#include "events/audit/audit_books.h"

namespace shoal {

class AuthorityStory {
 public:
  AuthorityStory(Books& books, Findings& findings) : books_(books), findings_(findings) {}

  void take(const ReadEvent& event, const TrainerLife& life, Where where);
  void finish();  // all files of the trainer are read: sums over versions

 private:
  void take_member(const ReadEvent& e, Where where);
  void take_over(const ReadEvent& e, const TrainerLife& life, Where where);
  void take_open(const ReadEvent& e, Where where);
  void take_abandoned(const ReadEvent& e, Where where);
  void take_round(const ReadEvent& e, const TrainerLife& life, Where where);
  void take_restored(const ReadEvent& e, const TrainerLife& life, Where where);
  void judge_restore(const ReadEvent& e, Where where);
  void take_back(const ReadEvent& e, Where where);
  void judge_left_out(const ReadEvent& e, Where where);
  bool is_repeat(const RoundFact& round, Where where);
  RoundFact& keep(RoundFact round, Where where);
  void take_version(const RoundFact& round, Where where);
  void take_secured(const ReadEvent& e, RoundFact& round, Where where);
  void compare(const RoundFact& round, Where where);

  Books& books_;
  Findings& findings_;
  std::map<std::uint16_t, std::uint64_t> opened_in_;  // life of the newest open round
  std::uint16_t life_ = 0;
};

}  // namespace shoal
