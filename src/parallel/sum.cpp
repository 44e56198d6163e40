// Sums over fixed parts of the work, the same bits for any number of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "parallel/links/device_link.hpp"
#include "parallel/transports/transport.hpp"
#include "parallel/tree.hpp"

namespace lockstep::parallel {

Node root_of(int64_t parts) {
  Node root;
  while (root.end() < parts) ++root.level;
  return root;
}

std::vector<Node> frontier(int64_t parts, const Range& range) {
  std::vector<Node> nodes;
  for (int64_t at = range.begin; at < range.end;) {
    Node node{0, at};
    // The parent begins here too, and its parts that exist are in the range.
    while (node.number % 2 == 0 && std::min(node.end() + (int64_t{1} << node.level), parts) <= range.end &&
           node.end() < parts)
      node = {node.level + 1, node.number / 2};
    nodes.push_back(node);
    at = std::min(node.end(), parts);
  }
  return nodes;
}

namespace {

void check_parts(int64_t parts) {
  if (parts < 1) throw InputError(fmt::format("{} parts", parts), "Group::sum", "at least one");
}

/// Numbers of each part; each rank has the same, or none where it has no parts.
int64_t numbers_of_part(const Group& group, int64_t parts, size_t numbers, bool whole) {
  const int64_t own = share(parts, group).size(), count = static_cast<int64_t>(numbers);
  const int64_t length = own > 0 && whole && count % own == 0 ? count / own : own == 0 && count == 0 ? 0 : -1;
  Bytes mine(sizeof length);
  std::memcpy(mine.data(), &length, sizeof length);
  int64_t found = 0;
  for (const Bytes& bytes : group.all_gather(std::move(mine))) {
    int64_t other = 0;
    std::memcpy(&other, bytes.data(), sizeof other);
    if (other < 0 || (found > 0 && other > 0 && other != found))
      throw GroupError("contributions of different lengths", "Group::sum",
                       fmt::format("as many numbers for each of {} parts", parts))
          .on_every_rank();
    found = std::max(found, other);
  }
  return found;
}

/// Below this many bytes each rank gets and adds everything: one message each way.
constexpr int64_t kSmall = 4096;

}  // namespace

template <class T>
std::vector<T> Group::sum(int64_t parts, std::span<const T> mine) const {
  check_parts(parts);
  const int64_t length = numbers_of_part(*this, parts, mine.size(), true);
  const Range own = share(parts, *this);
  using Values = std::vector<T>;
  const auto add = [](Values& left, const Values& right) {
    for (size_t k = 0; k < left.size(); ++k) left[k] += right[k];
  };
  const auto of_part = [&](const Node& node) -> std::optional<Values> {
    if (node.level > 0) return {};
    const T* const first = mine.data() + (node.begin() - own.begin) * length;
    return Values(first, first + length);
  };
  std::vector<Values> sums;  // of this rank's nodes
  for (const Node& node : frontier(parts, own)) sums.push_back(sum_of<Values>(parts, node, of_part, add));

  // Rank r adds the numbers of its slice.
  const bool small = length * static_cast<int64_t>(sizeof(T)) <= kSmall;
  const auto slice_of = [&](int r) { return small ? Range{0, length} : share(length, r, size()); };
  std::vector<Bytes> to;
  for (int r = 0; r < size(); ++r) {
    const Range slice = slice_of(r);
    Values numbers;
    for (const Values& sum : sums)
      numbers.insert(numbers.end(), sum.begin() + slice.begin, sum.begin() + slice.end);
    to.push_back(bytes_of<T>(numbers));
  }
  const std::vector<Bytes> from = all_to_all(std::move(to));
  const Range slice = slice_of(rank());
  std::map<Node, Values> there;
  for (int r = 0; r < size(); ++r) {
    const std::byte* at = from[static_cast<size_t>(r)].data();
    for (const Node& node : frontier(parts, share(parts, r, size()))) {
      Values& values = there[node];
      values.resize(static_cast<size_t>(slice.size()));
      std::memcpy(values.data(), at, values.size() * sizeof(T));
      at += values.size() * sizeof(T);
    }
  }
  const auto received = [&](const Node& node) -> std::optional<Values> {
    const auto found = there.find(node);
    return found == there.end() ? std::nullopt : std::optional(std::move(found->second));
  };
  Values total = sum_of<Values>(parts, root_of(parts), received, add);
  if (small) return total;
  Values whole;
  whole.reserve(static_cast<size_t>(length));
  for (const Bytes& bytes : all_gather(bytes_of<T>(total))) append_numbers(whole, bytes);
  return whole;
}
template std::vector<float> Group::sum(int64_t, std::span<const float>) const;
template std::vector<double> Group::sum(int64_t, std::span<const double>) const;

namespace {

template <class T>
const Kernel& add_kernel() {
  static const Kernel k =
      kernel(sizeof(T) == 8 ? "parallel.add_f64" : "parallel.add_f32",
             [](At<1> at, InOut<T, 1> left, Grid<T, 1> right) { left[at] = left[at] + right[at]; });
  return k;
}

void add_buffers(const Device& device, const Buffer& left, const Buffer& right) {
  const Kernel& k = left.storage() == Storage::f64 ? add_kernel<f64>() : add_kernel<f32>();
  device.launch(k, {left.elements()}, left, right);
}

/// Part [begin, end) of a vector.
Buffer slice_of_vector(const Buffer& vector, const Range& range) {
  return vector.rows(range.begin, range.size());
}

}  // namespace

void Group::sum(const Device& device, int64_t parts, const Buffer& mine, const Buffer& total) const {
  check_parts(parts);
  const Range own = share(parts, *this);
  const Storage storage = total.storage();
  const int64_t length = total.elements();
  const bool fits = (storage == Storage::f32 || storage == Storage::f64) && total.contiguous() &&
                    (own.size() == 0 || (mine && mine.storage() == storage && mine.contiguous() &&
                                         mine.elements() == own.size() * length));
  if (numbers_of_part(*this, parts, static_cast<size_t>(own.size() * length), fits) != length)
    throw GroupError("sums and contributions of different lengths", "Group::sum",
                     "one sum for each number of a part")
        .on_every_rank();
  if (length == 0) return;

  // Slices are whole rows of a vector; each rank's own is added where it is received.
  const auto vector = [&](int64_t count) { return device.allocate(storage, {std::max<int64_t>(count, 1)}); };
  const auto add = [&](Buffer& left, const Buffer& right) { add_buffers(device, left, right); };
  const auto of_part = [&](const Node& node) -> std::optional<Buffer> {
    if (node.level > 0) return {};
    const Buffer copy = vector(length);
    device.copy(mine.reshape({own.size() * length}).rows((node.begin() - own.begin) * length, length), copy);
    return copy;
  };
  const Range slice = share(length, *this);
  std::vector<Slice> sends, receives;
  std::map<Node, Buffer> there;
  for (const Node& node : frontier(parts, own)) {
    const Buffer sum = sum_of<Buffer>(parts, node, of_part, add);
    for (int r = 0; r < size(); ++r)
      if (const Range theirs = share(length, r, size()); theirs.size() > 0 && r != rank())
        sends.push_back({r, slice_of_vector(sum, theirs)});
    if (slice.size() > 0) there[node] = slice_of_vector(sum, slice);
  }
  for (int r = 0; r < size() && slice.size() > 0; ++r)
    for (const Node& node : frontier(parts, share(parts, r, size())))
      if (r != rank()) receives.push_back({r, there[node] = vector(slice.size())});
  exchange(device, sends, receives);

  std::vector<Slice> results, others;
  if (slice.size() > 0) {
    const auto received = [&](const Node& node) -> std::optional<Buffer> {
      const auto found = there.find(node);
      return found == there.end() ? std::nullopt : std::optional(found->second);
    };
    const Buffer mine_of_total = slice_of_vector(total.reshape({length}), slice);
    device.copy(sum_of<Buffer>(parts, root_of(parts), received, add), mine_of_total);
    for (int r = 0; r < size(); ++r)
      if (r != rank()) results.push_back({r, mine_of_total});
  }
  for (int r = 0; r < size(); ++r)
    if (const Range theirs = share(length, r, size()); theirs.size() > 0 && r != rank())
      others.push_back({r, slice_of_vector(total.reshape({length}), theirs)});
  exchange(device, results, others);
}

}  // namespace lockstep::parallel
