#include "solve/model/block_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "solve/model/problem.hpp"

namespace lockstep::solve {
namespace {

using Range = std::pair<int64_t, int64_t>;

/// "3" and "0-9"; none for other texts.
std::optional<Range> range_of(std::string_view text) {
  const auto number = [&](int64_t& to) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (error != std::errc() || to < 0) return false;
    text.remove_prefix(size_t(end - text.data()));
    return true;
  };
  Range range;
  if (!number(range.first)) return {};
  range.second = range.first;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (!number(range.second)) return {};
  }
  return text.empty() && range.first <= range.second ? std::optional(range) : std::nullopt;
}

class Groups {
 public:
  Groups(const Problem& problem, const char* option)
      : state_(problem.state()), option_(option), group_of_(size_t(state_.blocks), -1) {}

  void add(int32_t group, std::string_view part) {
    const size_t colon = part.rfind(':');
    const auto range = colon == part.npos ? std::nullopt : range_of(part.substr(colon + 1));
    const SetState& set = set_named(range ? part.substr(0, colon) : part);
    if (!range) {
      for (int64_t b = 0; b < set.count; ++b) put(set.first_block + b, group);
      return;
    }
    if (range->second >= set.added)
      refuse(fmt::format("block {} of {}", range->second, set.name), fmt::format("0 to {}", set.added - 1));
    for (int64_t number = range->first; number <= range->second; ++number)
      put(set.first_block + set.place(number, "solve"), group);
  }
  std::vector<int32_t> take() { return std::move(group_of_); }

 private:
  [[noreturn]] void refuse(std::string found, std::string expected) const {
    throw schema_of<Options>().error(
        {OptionError::Kind::invalid, option_, std::move(found), std::move(expected), ""});
  }
  const SetState& set_named(std::string_view name) const {
    std::vector<std::string> names;
    const SetState* found = nullptr;
    for (const SetState& set : state_.sets) {
      if (set.name == name && found)
        refuse(fmt::format("two block sets '{}'", name), "sets with different names");
      if (set.name == name) found = &set;
      names.push_back(set.name);
    }
    if (!found)
      refuse(fmt::format("'{}'", name),
             fmt::format("a block set, NAME, NAME:BLOCK or NAME:FIRST-LAST, of {}", fmt::join(names, ", ")));
    return *found;
  }
  void put(int64_t block, int32_t group) {
    if (std::exchange(group_of_[size_t(block)], group) != -1)
      refuse(block_text(state_, block) + " twice", "each block once");
  }

  const Problem::State& state_;
  const char* option_;
  std::vector<int32_t> group_of_;
};

}  // namespace

std::string block_text(const Problem::State& state, int64_t block) {
  const SetState& set = state.set_of(block);
  return fmt::format("block {} of {}", set.number(block - set.first_block), set.name);
}

std::vector<int32_t> block_groups(const Problem& problem, std::span<const std::string> groups,
                                  const char* option) {
  Groups found(problem, option);
  for (size_t g = 0; g < groups.size(); ++g)
    for (std::string_view rest = groups[g];;) {
      const size_t plus = rest.find('+');
      found.add(int32_t(g), rest.substr(0, plus));
      if (plus == rest.npos) break;
      rest.remove_prefix(plus + 1);
    }
  return found.take();
}

}  // namespace lockstep::solve
