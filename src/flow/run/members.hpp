// The members of an ensemble that a rank computes, and what all ranks know of them. Fewer members than ranks are divided:
// all ranks compute each of them, and hold all states.
#pragma once

#include <span>
#include <vector>

#include "lockstep/flow.hpp"
#include "lockstep/parallel.hpp"

namespace lockstep::flow {

class Members {
 public:
  Members(parallel::Group group, int64_t count);

  const parallel::Group& group() const { return group_; }
  /// The ranks that compute each member.
  parallel::Group of_member() const { return divided() ? group_ : parallel::Group(); }
  bool divided() const { return count_ < group_.size(); }
  bool leads() const { return group_.leads(); }
  int64_t first() const { return own_.begin; }
  int64_t count() const { return own_.size(); }
  const parallel::Range& own() const { return own_; }
  /// The rank's members of an array whose first axis are all members.
  Array own(const Array& all) const;

  /// Numbers of every rank's members, in the order of members; on every rank.
  template <class T>
  std::vector<T> all(const std::vector<T>& mine) const {
    return dealt_.size() == 1 ? mine : parallel::numbers_of_all(dealt_, mine);
  }
  /// Arrays whose first axis are a rank's members, joined on rank 0; empty elsewhere.
  Array on_lead(const Array& mine) const;
  std::vector<Spectra> all(const std::vector<Spectra>& mine) const;

 private:
  parallel::Group group_;
  int64_t count_;
  parallel::Group dealt_;  // the ranks that members are distributed to
  parallel::Range own_;
};

}  // namespace lockstep::flow
