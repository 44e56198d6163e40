#include <fmt/format.h>

#include <charconv>

#include "lockstep/verify.hpp"

namespace lockstep {

std::string Bound::text() const {
  if (bits) return "bits";
  std::string text;
  const auto add = [&](std::string part) { text += (text.empty() ? "" : " ") + part; };
  if (max_ulp) add(fmt::format("ulp<={:g}", *max_ulp));
  if (rel_l2) add(fmt::format("rel_l2<={:g}", *rel_l2));
  if (max_abs) add(fmt::format("max_abs<={:g}", *max_abs));
  if (differing_share < 1) add(fmt::format("differing<={:g}%", differing_share * 100));
  return text.empty() ? "any" : text;
}

void CaseRegistry::add(Case c) {
  for (const Case& other : cases_)
    if (other.name == c.name)
      throw InternalError("case " + c.name + " twice", "CaseRegistry", "distinct names");
  cases_.push_back(std::move(c));
}

std::vector<const Case*> CaseRegistry::match(const std::string& prefix) const {
  std::vector<const Case*> found;
  for (const Case& c : cases_)
    if (c.name.starts_with(prefix) && (c.name.size() == prefix.size() || prefix.empty() ||
                                       prefix.back() == '.' || c.name[prefix.size()] == '.'))
      found.push_back(&c);
  if (found.empty()) {
    std::string groups;
    for (const Case& c : cases_) {
      const std::string group = c.name.substr(0, c.name.find('.'));
      if (groups.find(group) == std::string::npos) groups += (groups.empty() ? "" : ", ") + group;
    }
    throw InputError(fmt::format("unknown case '{}'", prefix), "CASE",
                     fmt::format("a case or the beginning of its name ({})", groups));
  }
  return found;
}

std::vector<int64_t> parse_size(const std::string& text) {
  std::vector<int64_t> sizes;
  double elements = 1;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    int64_t value = -1;
    const auto [last, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (error != std::errc() || last != text.data() + end || value < 0 || value > (int64_t(1) << 40))
      throw InputError(fmt::format("size \"{}\"", text), "--sizes",
                       "whole numbers joined by x, such as 512x512");
    sizes.push_back(value);
    if ((elements *= double(value)) > 0x1p40)
      throw InputError(fmt::format("size \"{}\"", text), "--sizes", "at most 2^40 elements");
    begin = end + 1;
  }
  return sizes;
}

Shape parse_shape(const std::string& text, int rank) {
  const std::vector<int64_t> sizes = parse_size(text);
  if (int(sizes.size()) != rank)
    throw InputError(fmt::format("size \"{}\"", text), "--sizes",
                     fmt::format("{} numbers joined by x", rank));
  Shape shape;
  for (int64_t s : sizes) shape.push_back(s);
  return shape;
}

}  // namespace lockstep
