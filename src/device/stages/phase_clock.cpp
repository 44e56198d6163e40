#include "device/stages/phase_clock.hpp"

#include "device/state.hpp"

namespace lockstep::device {

PhaseClock::PhaseClock(const Device& device, const Stream& stream) : device_(device), stream_(stream) {}

void PhaseClock::begin() {
  marks_.clear();
  mark({});
}

void PhaseClock::mark(const std::string& phase) {
  marks_.emplace_back(phase, device_.backend().record_event(DeviceState::queue_of(stream_)));
}

void PhaseClock::add_to(PhaseSeconds& seconds) {
  for (size_t k = 1; k < marks_.size(); ++k)
    seconds[marks_[k].first] += device_.backend().elapsed(*marks_[k - 1].second, *marks_[k].second);
  marks_.clear();
}

}  // namespace lockstep::device
