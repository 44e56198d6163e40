// Stand-ins for back ends that this build leaves out: they say so.
#include "device/backend.hpp"

namespace lockstep::device {

namespace {
template <DeviceKind kKind>
const BackendKind& absent() {
  static const BackendKind kind{kKind,
                                [] {
                                  DeviceStatus status;
                                  status.info.kind = kKind;
                                  status.info.name = std::string(name(kKind));
                                  status.reason = "not part of this build";
                                  return std::vector{status};
                                },
                                [](int, const DeviceOptions&) -> std::shared_ptr<Backend> {
                                  throw UnsupportedError("back end not included in this build", name(kKind),
                                                         "a build with it");
                                }};
  return kind;
}
}  // namespace

#ifndef LOCKSTEP_HAS_CUDA
const BackendKind& cuda_backend() { return absent<DeviceKind::cuda>(); }
#endif
#ifndef LOCKSTEP_HAS_WEBGPU
const BackendKind& webgpu_backend() { return absent<DeviceKind::webgpu>(); }
#endif
#ifndef LOCKSTEP_HAS_CPU
const BackendKind& cpu_backend() { return absent<DeviceKind::cpu>(); }
#endif
#ifndef LOCKSTEP_HAS_INTERP
const BackendKind& interp_backend() { return absent<DeviceKind::interp>(); }
#endif

}  // namespace lockstep::device
