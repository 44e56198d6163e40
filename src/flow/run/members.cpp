#include "flow/run/members.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::flow {

Members::Members(parallel::Group group, int64_t count)
    : group_(std::move(group)),
      count_(count),
      dealt_(divided() ? parallel::Group() : group_),
      own_(parallel::share(count, dealt_)) {}

Array Members::own(const Array& all) const {
  if (dealt_.size() == 1) return all;
  const Array packed = all.packed();
  Sizes shape = packed.shape();
  const auto bytes = static_cast<size_t>(packed.bytes() / shape.front());
  shape.front() = count();
  Array part(packed.storage(), shape);
  std::memcpy(part.mutate_raw().data(), packed.data() + bytes * static_cast<size_t>(first()),
              bytes * static_cast<size_t>(count()));
  return part;
}

Array Members::on_lead(const Array& mine) const {
  if (dealt_.size() == 1) return mine;
  const Array packed = mine.packed();
  const std::vector<parallel::Bytes> from = dealt_.gather({packed.data(), packed.data() + packed.bytes()});
  if (!leads()) return {};
  Sizes shape = packed.shape();
  shape.front() = count_;
  Array whole(packed.storage(), shape);
  std::byte* at = whole.mutate_raw().data();
  for (const parallel::Bytes& bytes : from) at = std::copy(bytes.begin(), bytes.end(), at);
  return whole;
}

std::vector<Spectra> Members::all(const std::vector<Spectra>& mine) const {
  if (dealt_.size() == 1) return mine;
  constexpr std::vector<double> Spectra::* kRings[] = {&Spectra::energy, &Spectra::enstrophy,
                                                       &Spectra::energy_flux, &Spectra::enstrophy_flux};
  std::vector<Spectra> joined(static_cast<size_t>(count_));
  for (const auto ring : kRings) {
    std::vector<double> numbers;
    for (const Spectra& s : mine) numbers.insert(numbers.end(), (s.*ring).begin(), (s.*ring).end());
    numbers = all(numbers);
    const auto length = static_cast<ptrdiff_t>(numbers.size() / joined.size());
    for (size_t m = 0; m < joined.size(); ++m) {
      const auto begin = numbers.begin() + static_cast<ptrdiff_t>(m) * length;
      (joined[m].*ring).assign(begin, begin + length);
    }
  }
  return joined;
}

}  // namespace lockstep::flow
